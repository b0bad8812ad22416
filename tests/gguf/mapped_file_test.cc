// Tests paths that are not files, and the cost of a mapping.
#include "gguf/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gguf/file.h"
#include "tests/support/error_of.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_dir.h"

namespace gguf {
namespace {

using test::ErrorOf;

std::string OpenError(const std::string& path) {
  return ErrorOf([&] { MappedFile::Open(path); });
}

TEST(MappedFileTest, MapsTheBytesOfTheFile) {
  const test::TempDir dir;
  const std::vector<std::byte> bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
  const MappedFile file = MappedFile::Open(dir.Write("a", bytes));
  EXPECT_EQ(std::vector(file.bytes().begin(), file.bytes().end()), bytes);
}

TEST(MappedFileTest, MovingKeepsTheAddress) {
  const test::TempDir dir;
  const std::vector<std::byte> bytes = {std::byte{7}};
  MappedFile first = MappedFile::Open(dir.Write("a", bytes));
  const std::byte* const address = first.bytes().data();
  MappedFile second = std::move(first);
  EXPECT_EQ(second.bytes().data(), address);
  MappedFile third = MappedFile::Open(dir.Path("a"));
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), address);
  EXPECT_EQ(third.bytes()[0], std::byte{7});
}

// Five megabytes: the file has several whole steps of KeepFirst and a part of one.
constexpr size_t kFile = 5'000'001;

TEST(MappedFileTest, WhatIsKeptStaysWhenTheFileIsWrittenTo) {
  const test::TempDir dir;
  const std::string path = dir.Write("a", std::vector(kFile, std::byte{1}));
  MappedFile file = MappedFile::Open(path);
  const std::byte* const address = file.bytes().data();
  file.KeepFirst(1);
  file.KeepFirst(3'000'000);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << std::string(kFile, 2);
  EXPECT_EQ(file.bytes().data(), address);
  for (size_t i = 0; i < 3'000'000; ++i) ASSERT_EQ(file.bytes()[i], std::byte{1}) << i;
  EXPECT_EQ(file.bytes()[kFile - 1], std::byte{2});
  file.KeepFirst(kFile);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << std::string(kFile, 3);
  EXPECT_EQ(file.bytes()[0], std::byte{1});
  EXPECT_EQ(file.bytes()[kFile - 1], std::byte{2});
}

TEST(MappedFileTest, SaysThatTheFileHasBecomeShorter) {
  const test::TempDir dir;
  const std::string path = dir.Write("a", std::vector(kFile, std::byte{1}));
  MappedFile file = MappedFile::Open(path);
  file.KeepFirst(1);
  std::filesystem::resize_file(path, 4'000'000);
  const std::string error = ErrorOf([&] { file.KeepFirst(kFile); });
  EXPECT_EQ(error, path + ": cannot be read: it has become shorter");
}

// The mapping is so large that two threads unmap it. Pages of a hole are mapped like other pages.
TEST(MappedFileTest, ALargeMappingLeavesNothingBehind) {
  constexpr size_t kLarge = (size_t{40} << 20) + 12345;
  const test::TempDir dir;
  const std::string path = dir.Write("a", std::vector(1, std::byte{1}));
  std::filesystem::resize_file(path, kLarge);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::byte* begin = nullptr;
  {
    MappedFile file = MappedFile::Open(path);
    file.KeepFirst(1);
    begin = const_cast<std::byte*>(file.bytes().data());
    for (size_t at = 0; at < kLarge; at += page) ASSERT_LE(file.bytes()[at], std::byte{1});
  }
  unsigned char resident = 0;
  for (size_t at = 0; at < kLarge; at += page) {
    ASSERT_NE(mincore(begin + at, 1, &resident), 0) << at;
  }
}

TEST(MappedFileTest, SaysWhatThePathIsInstead) {
  const test::TempDir dir;
  EXPECT_EQ(OpenError(dir.Path("none")), dir.Path("none") + ": no such file");
  EXPECT_EQ(OpenError(dir.Path("")), dir.Path("") + ": expected a GGUF file, found a directory");
  EXPECT_EQ(OpenError(dir.Write("empty", "")),
            dir.Path("empty") + ": expected a GGUF file, found an empty file");
  EXPECT_EQ(OpenError("/dev/null"), "/dev/null: expected a GGUF file, found a device");
  const std::string below = dir.Path("empty") + "/below";
  EXPECT_EQ(OpenError(below), below + ": cannot be opened: Not a directory");
}

// A file that is too large is not even mapped: not every system can map a sparse tebibyte.
TEST(MappedFileTest, RefusesWhatIsTooLarge) {
  const test::TempDir dir;
  const std::string path = dir.Write("large", "x");
  const auto open = [&](uint64_t bytes) {
    std::filesystem::resize_file(path, bytes);
    return ErrorOf([&] { MappedFile::Open(path, "a text", uint64_t{3} << 20); });
  };
  EXPECT_EQ(open(uint64_t{3} << 20), "");
  EXPECT_EQ(open((uint64_t{3} << 20) + 1), path + ": expected at most 3 MB, found 4");
  EXPECT_EQ(open(uint64_t{1} << 40), path + ": expected at most 3 MB, found 1048576");
}

TEST(MappedFileTest, DoesNotWaitForThePipesWriter) {
  const test::TempDir dir;
  const std::string pipe = dir.Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(OpenError(pipe), pipe + ": expected a GGUF file, found a pipe (FIFO)");
}

TEST(MappedFileTest, NamesASocket) {
  const test::TempDir dir;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(dir.Path("socket").size(), sizeof(address.sun_path));
  dir.Path("socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(OpenError(dir.Path("socket")),
            dir.Path("socket") + ": expected a GGUF file, found a socket");
  close(fd);
}

TEST(MappedFileTest, SaysThatAFileIsUnreadable) {
  const test::TempDir dir;
  const std::string path = dir.Write("secret", std::vector<std::byte>(1));
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  // Root may read every file, so the test temporarily becomes another user.
  constexpr uid_t kNobody = 65534;
  const uid_t user = geteuid();
  ASSERT_EQ(seteuid(user == 0 ? kNobody : user), 0);
  const std::string error = OpenError(path);
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_EQ(error, path + ": cannot be read: permission denied");
}

TEST(MappedFileTest, PathsInMessagesCannotCommandTheTerminal) {
  EXPECT_EQ(OpenError("no\x1b[2J\nsuch"), "no\\x1b[2J\\nsuch: no such file");
}

// Opening a file of 1.2 GB brings only its head into memory. The file is sparse, so that it needs
// no disk space; the kernel maps pages of holes like other pages.
TEST(MappedFileTest, OpeningALargeFileTouchesOnlyItsHead) {
  constexpr uint64_t kBytes = 1'200'000'000;
  constexpr uint64_t kCols = 1 << 15;
  constexpr uint64_t kRows = 9000;
  static_assert(kCols * kRows * 4 < kBytes);
  const test::TempDir dir;
  test::GgufBytes head(1, 1);
  head.Key("general.name", ValueType::kString).String("large");
  head.Tensor("token_embd.weight", {kCols, kRows}, DType::kF32, 0);
  const std::string path = dir.Write("large.gguf", head.bytes());
  std::filesystem::resize_file(path, kBytes);

  const File file = File::Open(path);
  EXPECT_EQ(file.file_bytes(), kBytes);
  EXPECT_EQ(file.tensors().at(0).bytes, kCols * kRows * 4);

  // Counts the file's pages in memory. The system reads ahead by at most a few MB.
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(kBytes / page + 1);
  const auto data = reinterpret_cast<uintptr_t>(file.tensors()[0].data);
  void* const base = reinterpret_cast<void*>(data / page * page);
  ASSERT_EQ(mincore(base, kBytes, resident.data()), 0);
  uint64_t pages = 0;
  for (const unsigned char flags : resident) pages += flags & 1;
  EXPECT_LE(pages * page, uint64_t{16} << 20);
}

}  // namespace
}  // namespace gguf
