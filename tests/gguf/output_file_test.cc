// The file at a path stays until a complete file replaces it. A path that a file cannot replace is
// written through.
#include "gguf/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace gguf {
namespace {

namespace fs = std::filesystem;

using test::ReadText;

void Write(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.Write(std::as_bytes(std::span(text)));
  file.Commit();
}

TEST(OutputFileTest, AppearsWhenItIsCommitted) {
  const test::TempDir dir;
  const std::string path = dir.Write("out", "old");
  {
    OutputFile file(path);
    file.Write(std::as_bytes(std::span(std::string_view("ne"))));
    EXPECT_EQ(ReadText(path), "old");
  }
  EXPECT_EQ(ReadText(path), "old");  // not committed
  Write(path, "new");
  EXPECT_EQ(ReadText(path), "new");
  EXPECT_EQ(dir.CountFiles(), 1u);
}

// A link stays a link, and its target is replaced when the new file is complete.
TEST(OutputFileTest, LinksAreFollowed) {
  const test::TempDir dir;
  fs::create_directory(dir.Path("folder"));
  const std::string target = dir.Write("folder/target", "something long"), link = dir.Path("link");
  fs::create_symlink("target", dir.Path("folder/second"));
  fs::create_symlink("folder/second", link);
  {
    OutputFile file(link);
    file.Write("ne");
    EXPECT_EQ(ReadText(target), "something long");
  }
  EXPECT_EQ(ReadText(target), "something long");  // not committed
  Write(link, "new");
  EXPECT_TRUE(fs::is_symlink(link) && fs::is_symlink(dir.Path("folder/second")));
  EXPECT_EQ(ReadText(target), "new");
  fs::remove(target);
  Write(link, "again");  // the link's target did not exist
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(ReadText(target), "again");
  fs::create_symlink("round", dir.Path("round"));
  EXPECT_NE(test::ErrorOf([&] { OutputFile file(dir.Path("round")); }), "");
}

// A limit on the file size simulates a full disk.
TEST(OutputFileTest, AFullDiskLosesNothing) {
  const test::TempDir dir;
  const std::string file = dir.Write("file", "old");
  fs::create_symlink("file", dir.Path("link"));
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const std::string& path : {file, dir.Path("link")}) {
    OutputFile out(path);
    const rlimit small = {1000, limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const std::string error = test::ErrorOf([&] { out.Write(std::string(2000, 'x')); });
    setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT_EQ(error, path + ": cannot be written: File too large");
    EXPECT_EQ(ReadText(file), "old");
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(dir.CountFiles(), 2u);
  EXPECT_EQ(test::ErrorOf([&] { Write("/dev/full", "x"); }),
            "/dev/full: cannot be written: No space left on device");
}

TEST(OutputFileTest, KeepsPermissionsAndOwner) {
  const test::TempDir dir;
  const std::string file = dir.Write("file", "old"), link = dir.Path("link");
  fs::create_symlink("file", link);
  for (const mode_t mode : {0600, 0644, 0660, 0777}) {
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
    Write(mode == 0600 ? link : file, "new");
    struct stat status;
    ASSERT_EQ(stat(file.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, mode);
  }
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(file.c_str(), 1234, 5678), 0);
  Write(file, "newer");
  struct stat status;
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 1234u);
  EXPECT_EQ(status.st_gid, 5678u);
  // Another user may write to the folder, but cannot restore the file's owner.
  ASSERT_EQ(chmod(dir.Path("").c_str(), 0777), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(9999) != 0 || setuid(9999) != 0) _exit(2);
    const std::string error = test::ErrorOf([&] { OutputFile out(file); });
    _exit(error.find("belongs to another user") != std::string::npos ? 0 : 1);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(ReadText(file), "newer");
}

// Root could write to a read-only file, but OutputFile refuses it, too.
TEST(OutputFileTest, RefusesReadOnlyFilesAndFolders) {
  const test::TempDir dir;
  const std::string file = dir.Write("file", "old"), link = dir.Path("link");
  fs::create_symlink("file", link);
  ASSERT_EQ(chmod(file.c_str(), 0444), 0);
  for (const std::string& path : {file, link}) {
    EXPECT_EQ(test::ErrorOf([&] { OutputFile out(path); }),
              path + ": is read-only, and would be lost");
  }
  EXPECT_EQ(ReadText(file), "old");
  EXPECT_EQ(test::ErrorOf([&] { OutputFile out(dir.Path("")); }),
            dir.Path("") + ": is a folder: give the name of a file");
  EXPECT_NE(test::ErrorOf([&] { OutputFile out(dir.Path("none/file")); }), "");
}

// Writing a file changes no other file of the folder.
TEST(OutputFileTest, NeighboursAreLeftAlone) {
  const test::TempDir dir;
  const std::string path = dir.Path("out");
  const std::string taken = path + ".tmp" + std::to_string(getpid());
  dir.Write("out.partial", "mine");
  Write(path, "new");
  EXPECT_EQ(ReadText(dir.Path("out.partial")), "mine");
  // If the name of the unfinished file is taken, it gets another name.
  test::WriteBytes(taken, std::as_bytes(std::span(std::string_view("mine"))));
  Write(path, "newer");
  EXPECT_EQ(ReadText(taken), "mine");
  EXPECT_EQ(ReadText(path), "newer");
  EXPECT_EQ(dir.CountFiles(), 3u);
}

// Before the commit, SIGKILL leaves no file behind.
TEST(OutputFileTest, HasNoNameBeforeItIsCommitted) {
  const test::TempDir dir;
#if defined(O_TMPFILE)
  const int fd = open(dir.Path("").c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (fd < 0) GTEST_SKIP() << "this file system has no such files";
  close(fd);
#else
  GTEST_SKIP() << "this system has no such files";
#endif
  for (const size_t n_files : {0u, 1u}) {  // the second file replaces the first
    OutputFile file(dir.Path("out"));
    file.Write("new");
    EXPECT_EQ(dir.CountFiles(), n_files);
    file.Commit();
    EXPECT_EQ(ReadText(dir.Path("out")), "new");
  }
}

// Opening a pipe normally waits for a reader.
TEST(OutputFileTest, PipesThatNobodyReads) {
  const test::TempDir dir;
  const std::string path = dir.Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(test::ErrorOf([&] { OutputFile file(path); }),
            path + ": is a pipe (FIFO) without a reader");
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  Write(path, "new");
  std::string text(4, '.');
  EXPECT_EQ(read(reader, text.data(), text.size()), 3);
  EXPECT_EQ(text, "new.");
  close(reader);
}

// An input file is refused under any of its names.
TEST(OutputFileTest, InputsAreRefused) {
  const test::TempDir dir;
  const std::string input = dir.Write("input", "read me");
  fs::create_symlink("input", dir.Path("link"));
  fs::create_hard_link(input, dir.Path("hard"));
  struct stat status;
  ASSERT_EQ(stat(input.c_str(), &status), 0);
  const std::vector<FileId> inputs = {FileId::Of(status)};
  for (const std::string& path : {input, dir.Path("link"), dir.Path("hard")}) {
    EXPECT_EQ(test::ErrorOf([&] { OutputFile file(path, inputs); }),
              path + ": is a file that is read: give another name");
  }
  EXPECT_EQ(ReadText(input), "read me");
  EXPECT_EQ(dir.CountFiles(), 3u);
  OutputFile other(dir.Path("other"), inputs);
}

}  // namespace
}  // namespace gguf
