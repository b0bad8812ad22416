// What is at a path stays until something whole takes its place, and what cannot be replaced by a
// file is written through.
#include "gguf/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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

size_t CountFiles(const test::TempDir& dir) {
  const fs::directory_iterator files(dir.Path(""));
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST(OutputFileTest, AppearsWhenItIsCommitted) {
  const test::TempDir dir;
  const std::string path = dir.Write("out", "old");
  {
    OutputFile file(path);
    file.Write(std::as_bytes(std::span(std::string_view("ne"))));
    EXPECT_EQ(ReadText(path), "old");
  }
  EXPECT_EQ(ReadText(path), "old");  // given up
  Write(path, "new");
  EXPECT_EQ(ReadText(path), "new");
  EXPECT_EQ(CountFiles(dir), 1u);
}

// The link stays a link, and what it leads to is what changes.
TEST(OutputFileTest, LinksAreWrittenThrough) {
  const test::TempDir dir;
  const std::string target = dir.Write("target", "something long"), link = dir.Path("link");
  fs::create_symlink("target", link);
  Write(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(ReadText(target), "new");
  fs::remove(target);
  Write(link, "again");  // a link that led nowhere
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(ReadText(target), "again");
}

// While it is written, no other file of the folder is touched.
TEST(OutputFileTest, NeighboursAreLeftAlone) {
  const test::TempDir dir;
  const std::string path = dir.Path("out");
  const std::string taken = path + ".tmp" + std::to_string(getpid());
  dir.Write("out.partial", "mine");
  Write(path, "new");
  EXPECT_EQ(ReadText(dir.Path("out.partial")), "mine");
  // Not even one of the name that the unfinished file would have: it takes another.
  test::WriteBytes(taken, std::as_bytes(std::span(std::string_view("mine"))));
  Write(path, "newer");
  EXPECT_EQ(ReadText(taken), "mine");
  EXPECT_EQ(ReadText(path), "newer");
  EXPECT_EQ(CountFiles(dir), 3u);
}

// While it is written there is nothing that SIGKILL could leave.
TEST(OutputFileTest, HasNoNameBeforeItIsCommitted) {
  const test::TempDir dir;
#if defined(O_TMPFILE)
  const int fd = open(dir.Path("").c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (fd < 0) GTEST_SKIP() << "this file system has no such files";
  close(fd);
#else
  GTEST_SKIP() << "this system has no such files";
#endif
  for (const size_t n_files : {0u, 1u}) {  // then it replaces a file
    OutputFile file(dir.Path("out"));
    file.Write("new");
    EXPECT_EQ(CountFiles(dir), n_files);
    file.Commit();
    EXPECT_EQ(ReadText(dir.Path("out")), "new");
  }
}

// Opening a pipe waits until someone reads it.
TEST(OutputFileTest, PipesThatNobodyReads) {
  const test::TempDir dir;
  const std::string path = dir.Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(test::ErrorOf([&] { OutputFile file(path); }),
            path + ": is a pipe (FIFO) that nobody reads");
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  Write(path, "new");
  std::string text(4, '.');
  EXPECT_EQ(read(reader, text.data(), text.size()), 3);
  EXPECT_EQ(text, "new.");
  close(reader);
}

// By whatever name: nothing is touched.
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
  EXPECT_EQ(CountFiles(dir), 3u);
  OutputFile other(dir.Path("other"), inputs);
}

}  // namespace
}  // namespace gguf
