// pronk-pull, with a hub on this machine (hub.py) that serves, breaks off, lies and refuses: the
// files that it downloads, their places, and that it writes nothing else.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/model_stores.h"
#include "tests/cli/pronk.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

namespace fs = std::filesystem;

const std::string kScript = SourceDir() + "/cli/pronk-pull";
const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";  // the hub's commit

class Pull : public testing::Test {
 protected:
  void SetUp() override {
    if (Shell("command -v python3 && command -v curl").status != 0) {
      GTEST_SKIP() << "python3 or curl is not installed";
    }
    fs::create_directory(home_);
  }

  // A line of sh with the hub in reach, in which $PULL is the script.
  Finished WithHub(const std::string& line, std::vector<std::string> environment = {}) {
    environment.insert(environment.begin(),
                       {"HOME=" + home_, "HF_HUB_CACHE=", "HF_HOME=", "XDG_CACHE_HOME=",
                        "HUB_LOG=" + dir_.Path("log"), "PULL=" + kScript, "PRONK=" + Program()});
    return RunProgram({"/usr/bin/env", "python3", SourceDir() + "/tests/cli/pull/hub.py", kModel,
                       "/bin/sh", "-c", line},
                      "", environment);
  }
  Finished Run(const std::string& model, const std::vector<std::string>& environment = {}) {
    return WithHub("exec sh \"$PULL\" '" + model + "'", environment);
  }
  // One line of stderr says why, and no file has its final name.
  void ExpectFault(const std::string& repo, const std::string& says) {
    SCOPED_TRACE(repo);
    const Finished run = Run("acme/" + repo);
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_TRUE(Has(run.err, says)) << run.err;
    EXPECT_FALSE(Has(run.err, "\033"));
    EXPECT_TRUE(Count(run.err, "\n") <= 3 && run.err.starts_with("pull: ")) << run.err;
    for (const std::string& path : Files(Store(repo))) {
      EXPECT_TRUE(path.ends_with(".incomplete")) << path;
    }
  }

  std::string Hub() const { return home_ + "/.cache/huggingface/hub"; }
  std::string Store(const std::string& repo) const { return Hub() + "/models--acme--" + repo; }
  // All files below a folder, without following links.
  static std::vector<std::string> Files(const std::string& folder) {
    std::vector<std::string> files;
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
      if (entry.is_symlink() || !entry.is_directory()) files.push_back(entry.path());
    }
    return files;
  }
  std::string Log() const { return ReadText(dir_.Path("log")); }

  const TempDir dir_;
  const std::string home_ = dir_.Path("home");
};

TEST_F(Pull, FillsTheHubsCache) {
  const Finished run = Done(Run("acme/Good"));
  const std::string link = Store("Good") + "/snapshots/" + kCommit + "/sub/tiny-Q4_K_M.gguf";
  EXPECT_EQ(run.out, link + "\n");
  EXPECT_EQ(run.err,
            "pull: acme/Good/sub/tiny-Q4_K_M.gguf, 468992 bytes\n"
            "pull: checking sub/tiny-Q4_K_M.gguf\npull: ready: ./pronk chat -m "
            "acme/Good/sub/tiny-Q4_K_M\n");
  EXPECT_EQ(ReadText(link), ReadText(kModel));
  EXPECT_EQ(ReadText(Store("Good") + "/refs/main"), kCommit);
  // A blob's name is its SHA-256, by another program.
  const std::string blob = fs::read_symlink(link);
  const std::string sum = Shell("sha256sum \"$MODEL\"").out.substr(0, 64);
  EXPECT_EQ(blob, "../../../blobs/" + sum);
  EXPECT_EQ(Files(Store("Good")).size(), 3u);
  // The program finds the model, in any case and without its ending.
  const std::vector<std::string> here = {"HOME=" + home_, "HF_HUB_CACHE=", "HF_HOME="};
  EXPECT_TRUE(Has(Pronk({"list", "--names"}, "", here).out, "acme/Good/sub/tiny-Q4_K_M.gguf\n"));
  EXPECT_EQ(Pronk({"tokenize", "-m", "TINY-q4_k_m", "-p", "x"}, "", here).status, 0);
  // Once more: nothing is downloaded.
  fs::remove(dir_.Path("log"));
  EXPECT_EQ(Done(Run("acme/Good")).out, link + "\n");
  EXPECT_EQ(Count(Log(), "\n"), 2u) << Log();
}

TEST_F(Pull, PrefersTypes) {
  for (const auto& [model, file] : std::map<std::string, std::string>{
           {"acme/Good:q8_0", "tiny-Q8_0.gguf"},
           {"https://huggingface.co/acme/Good:Q4_K_S", "tiny-Q4_K_S.gguf"},
           {"hf.co/acme/Good/tiny-Q4_K_S.gguf", "tiny-Q4_K_S.gguf"},
           {"https://huggingface.co/acme/Good/blob/main/tiny-Q4_K_S.gguf", "tiny-Q4_K_S.gguf"},
           {"https://hf.co/acme/Good/resolve/main/tiny-Q8_0.gguf?download=true", "tiny-Q8_0.gguf"},
           {"http://huggingface.co/acme/Good/tree/main", "sub/tiny-Q4_K_M.gguf"},
           {"acme/Good/mmproj-tiny-Q4_K_M.gguf", "mmproj-tiny-Q4_K_M.gguf"},
           {"acme/Pages", "sub/tiny-Q4_K_M.gguf"},
           {"acme/Folders:IQ4_NL", "iq4_nl/model.gguf"},
           {"acme/OneFile", "one-weird.gguf"}}) {
    const Finished run = Done(Run(model));
    EXPECT_TRUE(run.out.ends_with("/" + kCommit + "/" + file + "\n")) << run.out;
  }
  ExpectFault("Unclear",
              "which file? ./pronk pull acme/Unclear:TYPE takes one of a-IQ2_S.gguf b-I");
  EXPECT_TRUE(Has(Run("acme/Folders").err, "takes one of IQ2_S/model.gguf iq4_nl/model.gguf"));
  ExpectFault("NoModel", "has no language model as a GGUF file with a plain name whose SHA-256");
  ExpectFault("NoHash", "has no language model as a GGUF file with a plain name whose SHA-256");
  // Q4_K is not Q4_K_M.
  EXPECT_TRUE(Has(Run("acme/Good:Q4_K").err, "takes one of tiny-Q8_0.gguf tiny-Q4_K_M.gguf tiny"));
}

TEST_F(Pull, TakesAllPartsOrNone) {
  const Finished run = Done(Run("acme/Split"));
  EXPECT_TRUE(run.out.ends_with("/Q4_K_M/split-Q4_K_M-00001-of-00003.gguf\n")) << run.out;
  EXPECT_EQ(Files(Store("Split")).size(), 7u);
  EXPECT_TRUE(Has(run.err, "and 2 more parts, 1 MB\n"));
  ExpectFault("PartMissing", "x-Q4_K_M-00002-of-00003.gguf is not there, a part of the model");
}

TEST_F(Pull, GoesOnWhereItEnded) {
  const std::string half = std::to_string(fs::file_size(kModel) / 2);
  for (const std::string repo : {"Truncates", "NoRanges"}) {
    EXPECT_EQ(ReadText(Done(Run("acme/" + repo)).out.substr(0, Hub().size()) + "/models--acme--" +
                       repo + "/snapshots/" + kCommit + "/sub/tiny-Q4_K_M.gguf"),
              ReadText(kModel));
    EXPECT_TRUE(Has(Log(), "cdn/" + repo + "/sub/tiny-Q4_K_M.gguf bytes=" + half + "-"));
  }
  EXPECT_EQ(Count(Log(), "cdn/NoRanges"), 3u);  // half of it, no half of it, all of it
  // An earlier run's rest, even a wrong one, costs at most a download.
  for (const std::string& left : {std::string(1000, 'x'), std::string(1 << 20, 'x')}) {
    fs::remove_all(Store("Good"));
    const std::string sum = Shell("sha256sum \"$MODEL\"").out.substr(0, 64);
    fs::create_directories(Store("Good") + "/blobs");
    WriteBytes(Store("Good") + "/blobs/" + sum + ".incomplete", std::as_bytes(std::span(left)));
    if (left.size() == 1000) ExpectFault("Good", "removed, try again");
    Done(Run("acme/Good"));
  }
}

TEST_F(Pull, SaysWhatIsWrong) {
  ExpectFault("Unknown", "/acme/Unknown: the hub answers 404: there is no such repository");
  ExpectFault("Busy", "the hub answers 429, too many requests: try again 7 seconds later");
  ExpectFault("Broken", "the hub answers 503: try again later");
  ExpectFault("Odd", "the hub answers 418\n");
  ExpectFault("Gated", "the hub answers 401: there is no such repository, or it asks for a log-in");
  ExpectFault("Lies", "expected 468992 bytes with the SHA-256 ");
  EXPECT_TRUE(Files(Store("Lies")).empty());
  ExpectFault("Shorter", "ends after 100 of 468992 bytes. Run it again to go on");
  ExpectFault("Nothing", "ends after 0 of 468992 bytes: curl: (18) transfer closed");
  ExpectFault("Longer", "the answer is longer than stated or allowed");
  ExpectFault("Endless", "the answer is longer than stated or allowed");
  ExpectFault("Huge", "needs 8796.0 GB, and ");
  for (const std::string repo : {"Html", "Deep", "Nul", "Open", "Empty"}) {
    ExpectFault(repo, "/revision/main: expected JSON, found something else");
  }
  ExpectFault("WrongCommit", "expected a commit of 40 digits, found ../../../");
  ExpectFault("EndlessList", "the answer is longer than stated or allowed");
  for (const std::string model :
       {"llama3.2", "acme", "acme/", "/Good", "acme/..", "../acme", "acme/Go od", "acme/a--b",
        "acme/Good:../x", "-o", "acme/\033[2J", "a;b/c"}) {
    const Finished run = RunProgram({"/bin/sh", kScript, model});
    EXPECT_EQ(run.status, 2) << model << run.err;
    EXPECT_TRUE(Has(run.err, "pull: expected OWNER/REPO")) << run.err;
    EXPECT_FALSE(Has(run.err, "\033"));
  }
  EXPECT_EQ(RunProgram({"/bin/sh", kScript}).status, 2);
  EXPECT_TRUE(
      Has(Done(RunProgram({"/bin/sh", kScript, "--help"})).out, "pronk-pull OWNER/REPO:TYPE  "));
}

// Redirects lead to other hosts, but to no other kind of address.
TEST_F(Pull, StaysWithHttp) {
  ExpectFault("ToFile", "Protocol \"file\" not supported");
  ExpectFault("ListToFile", "Protocol \"file\" not supported");
  ExpectFault("ToFtp", "Protocol \"ftp\" not supported");
  ExpectFault("ToItself", "Maximum (10) redirects followed");
  for (const std::string endpoint :
       {"file:///etc", "ftp://localhost", "localhost", "https://", "http://a b", "https://a//b",
        "https://x\n--output=/tmp/x", "https://$(id)", "-o/tmp/x"}) {
    const Finished run = Run("acme/Good", {"HF_ENDPOINT=" + endpoint});
    EXPECT_EQ(run.status, 1) << endpoint;
    EXPECT_TRUE(run.err.starts_with("pull: HF_ENDPOINT: expected ")) << run.err;
  }
  // Plain http is allowed only if the endpoint uses it.
  dir_.Write("curl", "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$ARGUMENTS\"\nexit 7\n");
  fs::permissions(dir_.Path("curl"), fs::perms::owner_all);
  for (const auto& [scheme, allowed] :
       {std::pair("https", "=https\n"), {"http", "=http,https\n"}}) {
    const Finished run = WithHub("PATH=" + dir_.Path("") + ":$PATH sh \"$PULL\" acme/Good",
                                 {"HF_ENDPOINT=" + std::string(scheme) + "://example.org",
                                  "HF_TOKEN=hf_secret", "ARGUMENTS=" + dir_.Path("arguments")});
    EXPECT_EQ(run.status, 1);
    const std::string arguments = ReadText(dir_.Path("arguments"));
    EXPECT_TRUE(Has(arguments, std::string("--proto\n") + allowed + "--proto-redir\n" + allowed));
    EXPECT_FALSE(Has(arguments, "hf_secret"));  // others on the machine see arguments
  }
}

// The token goes to the hub and not to the host that sends the files.
TEST_F(Pull, KeepsTheToken) {
  Done(Run("acme/Gated", {"HF_TOKEN=hf_secret"}));
  EXPECT_EQ(Count(Log(), "Bearer hf_secret"), 3u) << Log();
  EXPECT_TRUE(Has(Log(), "GET /cdn/Gated/sub/tiny-Q4_K_M.gguf None None"));
  fs::remove_all(Store("Gated"));
  fs::create_directories(home_ + "/hf");
  WriteBytes(home_ + "/hf/token", std::as_bytes(std::span(std::string_view("hf_secret \r\n"))));
  const Finished run = Done(Run("acme/Gated", {"HF_HOME=" + home_ + "/hf"}));
  EXPECT_TRUE(run.out.starts_with(home_ + "/hf/hub/models--acme--Gated/")) << run.out;
  EXPECT_TRUE(Has(Run("acme/Gated", {"HF_TOKEN=a\"\noutput=x"}).err, "HF_TOKEN: has a character"));
  WriteBytes(home_ + "/hf/token", std::as_bytes(std::span(std::string_view("hf\"secret\n"))));
  EXPECT_TRUE(
      Has(Run("acme/Gated", {"HF_HOME=" + home_ + "/hf"}).err, "/hf/token: has a character"));
}

// Of a list of hostile names only the plain one is used, and files are written nowhere else.
TEST_F(Pull, TakesPlainNamesOnly) {
  dir_.Write("neighbour", "mine");
  const Finished run = Done(Run("acme/Names"));
  EXPECT_TRUE(run.out.ends_with("/" + kCommit + "/good-Q8_0.gguf\n"));
  EXPECT_EQ(Files(Store("Names")).size(), 3u);
  fs::remove(dir_.Path("log"));
  for (const std::string& path : Files(dir_.Path(""))) {
    EXPECT_TRUE(path.starts_with(Hub()) || path == dir_.Path("neighbour")) << path;
  }
  EXPECT_FALSE(fs::exists("/tmp/pronk-evil-Q4_K_M.gguf"));
}

// A link inside the cache may lead out of it.
TEST_F(Pull, FollowsNoLinksInTheCache) {
  const std::string sum = Shell("sha256sum \"$MODEL\"").out.substr(0, 64);
  const std::string outside = dir_.Path("outside"), file = dir_.Write("file", "mine");
  fs::create_directory(outside);
  for (const std::string& at : std::vector<std::string>{
           "models--acme--Good", "models--acme--Good/blobs", "models--acme--Good/snapshots",
           "models--acme--Good/snapshots/" + kCommit,
           "models--acme--Good/snapshots/" + kCommit + "/sub", "models--acme--Good/refs", ".locks",
           ".locks/models--acme--Good", "models--acme--Good/refs/main",
           "models--acme--Good/blobs/" + sum, "models--acme--Good/blobs/" + sum + ".incomplete",
           ".locks/models--acme--Good/" + sum + ".lock"}) {
    SCOPED_TRACE(at);
    const fs::path link = Hub() + "/" + at;
    const bool is_folder = !link.has_extension() && !at.ends_with("main") && !at.ends_with(sum);
    fs::create_directories(link.parent_path());
    fs::create_symlink(is_folder || at == ".locks" ? outside : file, link);
    const Finished run = Run("acme/Good");
    EXPECT_EQ(run.status, 1);
    EXPECT_TRUE(Has(run.err, "/" + at + ": is a link, expected a f")) << run.err;
    EXPECT_TRUE(fs::is_empty(outside));
    EXPECT_EQ(ReadText(file), "mine");
    fs::remove_all(Hub());
  }
  // The cache itself may be a link.
  fs::create_directories(home_ + "/.cache/huggingface");
  fs::create_symlink(outside, Hub());
  Done(Run("acme/Good"));
  EXPECT_FALSE(fs::is_empty(outside));
}

TEST_F(Pull, TwoAtOnce) {
  const Finished run = Done(
      WithHub("sh \"$PULL\" acme/Slow >/dev/null & sleep 0.3; sh \"$PULL\" acme/Slow && wait $!"));
  EXPECT_TRUE(Has(run.err, "pull: waiting for another download of this file\n")) << run.err;
  EXPECT_EQ(ReadText(run.out.substr(0, run.out.size() - 1)), ReadText(kModel));
  EXPECT_EQ(Count(Log(), "GET /cdn/"), 2u) << Log();  // its halves
}

// Interrupted: nothing is left but the half file, whose other half comes later.
TEST_F(Pull, Interrupted) {
  for (const auto& [signal, status] : {std::pair("INT", "130"), {"TERM", "143"}, {"HUP", "129"}}) {
    SCOPED_TRACE(signal);
    fs::remove_all(Hub());
    fs::create_directories(dir_.Path("temporary"));
    // The shell makes background jobs ignore SIGINT.
    const std::string line =
        std::string("python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, ") +
        "signal.SIG_DFL); os.execvp(\"sh\", sys.argv[1:])' sh \"$PULL\" acme/Stuck & "
        "until [ -s \"$HUB\"/models--acme--Stuck/blobs/*.incomplete ] || ! kill -0 $!; do sleep "
        "0.1; done; "
        "kill -" +
        signal +
        " $!; wait $!; echo $?; ls \"$TMPDIR\"; find \"$HUB\" -name '*.gguf'; "
        "sh \"$PULL\" acme/Stuck";
    const Finished run = Done(WithHub(line, {"HUB=" + Hub(), "TMPDIR=" + dir_.Path("temporary")}));
    EXPECT_EQ(run.out, std::string(status) + "\n" + Store("Stuck") + "/snapshots/" + kCommit +
                           "/sub/tiny-Q4_K_M.gguf\n");
    EXPECT_TRUE(Has(Log(), "Stuck/sub/tiny-Q4_K_M.gguf bytes=2"));
  }
}

// Called by the launcher, which builds nothing first; and the program's own message.
TEST_F(Pull, FromTheLauncher) {
  const Finished run =
      Done(WithHub("exec \"$LAUNCHER\" pull acme/Good", {"LAUNCHER=" + SourceDir() + "/pronk"}));
  EXPECT_TRUE(run.out.ends_with("/tiny-Q4_K_M.gguf\n")) << run.out;
  EXPECT_TRUE(Has(run.err, "ready: ./pronk chat -m acme/Good/sub/tiny-Q4_K_M"));
  // Installed, beside the program.
  fs::create_directory(dir_.Path("bin"));
  fs::copy_file(kScript, dir_.Path("bin/pronk-pull"));
  fs::copy_file(Program(), dir_.Path("bin/pronk"));
  EXPECT_TRUE(
      Has(Done(WithHub("sh \"$BIN\"/pronk-pull acme/Good", {"BIN=" + dir_.Path("bin")})).err,
          "ready: pronk chat -m acme/Good/sub/tiny"));
  ExpectError(RunProgram({dir_.Path("bin/pronk"), "pull", "acme/Good"}), 2,
              "this line does: pronk-pull acme/Good\n");
}

}  // namespace
}  // namespace test
