// The launcher: a copy in folders with odd names, with a cmake that only records its arguments.
// Tests when it builds, which processes wait, and what it refuses.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

namespace fs = std::filesystem;

// "Builds" a program that prints its arguments, and notes when two builds overlap.
constexpr const char* kCmake = R"(#!/bin/sh
if [ "$1" = -S ]; then
  echo "CMAKE_HOME_DIRECTORY:INTERNAL=$2" >"$4/CMakeCache.txt"
  : >"$4/build.ninja"
  echo "$*" >>"$NOTES/configured"
else
  mkdir "$NOTES/busy" || echo >>"$NOTES/overlap"
  sleep "${SECONDS_OF_BUILD:-0}"
  mkdir -p "$2/bin"
  printf '#!/bin/sh\necho "built: $*"\n' >"$2/bin/pronk"
  chmod +x "$2/bin/pronk"
  echo >>"$NOTES/built"
  rmdir "$NOTES/busy"
fi
)";

class Launcher : public testing::Test {
 protected:
  void SetUp() override {
    if (Shell("command -v flock").status != 0) GTEST_SKIP() << "flock is not installed";
    for (const char* folder : {"tools", "notes"}) fs::create_directory(dir_.Path(folder));
    dir_.Write("tools/cmake", kCmake);
    dir_.Write("tools/ninja", "#!/bin/sh\n");
    for (const char* tool : {"tools/cmake", "tools/ninja"}) {
      fs::permissions(dir_.Path(tool), fs::perms::owner_all);
    }
  }

  // A checkout in a folder of this name; returns its path.
  std::string Checkout(const std::string& name) const {
    const fs::path root = dir_.Path(name);
    for (const char* folder :
         {"gguf", "kernels", "tokenizer", "grammar", "engine", "convert", "cli"}) {
      fs::create_directories(root / folder);
    }
    fs::copy_file(SourceDir() + "/pronk", root / "pronk");
    dir_.Write(name + "/CMakeLists.txt", "");
    return root;
  }
  // A line of sh in which $ROOT is the checkout and `cmake` the one above.
  Finished Run(const std::string& root, const std::string& line,
               std::vector<std::string> environment = {}) const {
    environment.insert(environment.begin(),
                       {"ROOT=" + root, "NOTES=" + dir_.Path("notes"), "CXX=true",
                        "PRONK_TARGETS=", "FETCHCONTENT_SOURCE_DIR_HIGHWAY="});
    return Shell("PATH='" + dir_.Path("tools") + "':$PATH; " + line, environment);
  }
  // How many lines there are in a file of notes.
  size_t Noted(const std::string& name) const {
    return fs::exists(dir_.Path("notes/" + name))
               ? Count(ReadText(dir_.Path("notes/" + name)), "\n")
               : 0;
  }

  const TempDir dir_;
};

TEST_F(Launcher, BuildsOnceInAnyFolder) {
  size_t n_built = 0;
  for (const std::string name : {"plain", "a b", "it's", "do$llar `b` (x)", "-dash", "*"}) {
    SCOPED_TRACE(name);
    const std::string root = Checkout(name);
    const Finished first = Done(Run(root, "cd / && exec \"$ROOT/pronk\" 'x  y' -z"));
    EXPECT_EQ(first.out, "built: x  y -z\n");
    EXPECT_TRUE(Has(first.err, "pronk: ready after ")) << first.err;
    const Finished second = Done(Run(root, "cd \"$ROOT\" && exec ./pronk again"));
    EXPECT_EQ(second.out + second.err, "built: again\n");
    EXPECT_EQ(Noted("built"), ++n_built);
    fs::create_symlink(root + "/pronk", dir_.Path("link"));
    EXPECT_EQ(Run(root, "exec \"$LINK\" linked", {"LINK=" + dir_.Path("link")}).out,
              "built: linked\n");
    fs::remove(dir_.Path("link"));
    Done(Run(root, "exec \"$ROOT/pronk\" clean"));
    EXPECT_FALSE(fs::exists(root + "/build"));
  }
  EXPECT_EQ(Noted("built"), n_built);
}

// Names that cmake does not accept.
TEST_F(Launcher, RefusesFoldersInALine) {
  for (const std::string name :
       {"new\nline", "line\n", "quo\"te", "se;mi", "back\\slash", "c#", "[x]", "a<b", "a|b"}) {
    SCOPED_TRACE(name);
    const std::string root = Checkout(name);
    ExpectError(Run(root, "exec \"$ROOT/pronk\" x"), 1, "pronk: cmake cannot build in /");
    EXPECT_FALSE(fs::exists(root + "/build"));
  }
  EXPECT_EQ(Noted("configured"), 0u);
}

TEST_F(Launcher, ChecksTargets) {
  const std::string root = Checkout("checkout");
  for (const std::string targets : {"\033[2J", "sse4", "all\n", "native x", "$(id)"}) {
    const Finished run = Run(root, "exec \"$ROOT/pronk\" x", {"PRONK_TARGETS=" + targets});
    ExpectError(run, 1, "pronk: PRONK_TARGETS: expected native or all, found ");
    EXPECT_FALSE(Has(run.err, "\033"));
  }
  Done(Run(root, "exec \"$ROOT/pronk\" x", {"PRONK_TARGETS=all"}));
  EXPECT_TRUE(Has(ReadText(dir_.Path("notes/configured")), "-DPRONK_TARGETS=all "));
}

// Any user who may read the launcher could lock it; a killed build leaves no lock.
TEST_F(Launcher, OnlyBuildsLockIt) {
  const std::string root = Checkout("checkout");
  const Finished run =
      Done(Run(root, "flock \"$ROOT/pronk\" sleep 60 & timeout 30 \"$ROOT/pronk\" x; kill $!"));
  EXPECT_EQ(run.out, "built: x\n");
  EXPECT_EQ(fs::status(root + "/build/lock").permissions() &
                (fs::perms::group_all | fs::perms::others_all),
            fs::perms::none);
  const Finished killed =
      Run(root,
          "rm \"$ROOT/build/stamp\"; sh -c 'exec 9<>\"$ROOT/build/lock\"; flock 9; kill -9 $$'; "
          "exec timeout 30 \"$ROOT/pronk\" x");
  EXPECT_EQ(killed.out, "built: x\n");
  EXPECT_FALSE(Has(killed.err, "waiting")) << killed.err;
}

TEST_F(Launcher, OneBuildAtATime) {
  const std::string root = Checkout("checkout");
  const Finished two =
      Done(Run(root, "\"$ROOT/pronk\" a & \"$ROOT/pronk\" b && wait $!", {"SECONDS_OF_BUILD=0.5"}));
  EXPECT_EQ(Count(two.out, "built: "), 2u);
  EXPECT_TRUE(Has(two.err, "pronk: waiting for another pronk that is building")) << two.err;
  EXPECT_EQ(Noted("built"), 1u);
  // A cleanup in between also removes the lock's file.
  const Finished cleaned =
      Done(Run(root,
               "rm -rf \"$ROOT/build\"; \"$ROOT/pronk\" a & sleep 0.2; \"$ROOT/pronk\" clean & "
               "sleep 0.1; \"$ROOT/pronk\" b & \"$ROOT/pronk\" c; wait; exec \"$ROOT/pronk\" d",
               {"SECONDS_OF_BUILD=0.5"}));
  EXPECT_TRUE(cleaned.out.ends_with("built: d\n")) << cleaned.err;
  EXPECT_EQ(Noted("overlap"), 0u);
}

}  // namespace
}  // namespace test
