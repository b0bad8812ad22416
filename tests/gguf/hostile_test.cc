// Hostile files: each must give one line that names the fault and its byte or key. No byte outside
// the file may be read; the sanitizers check this.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/support/allocations.h"
#include "tests/support/error_of.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/touch.h"

namespace gguf {
namespace {

using test::GgufBytes;

constexpr std::string_view kTruncated = "truncated or damaged";

// Returns the message of opening these bytes, or "" for a valid file. Copies the bytes to a block
// of exactly their size, whose ends AddressSanitizer watches.
std::string ErrorOf(std::span<const std::byte> bytes) {
  const std::vector<std::byte> exact(bytes.begin(), bytes.end());
  return test::ErrorOf([&] { test::TouchAll(File::Parse("f.gguf", exact)); });
}
std::string ErrorOf(const GgufBytes& bytes) { return ErrorOf(bytes.bytes()); }
std::string ErrorOf(std::string_view text) { return ErrorOf(std::as_bytes(std::span(text))); }

bool IsOneLine(const std::string& message) {
  return message.size() < 600 &&
         std::ranges::all_of(message, [](char c) { return c >= ' ' && c <= '~'; });
}

// Makes a file with keys and tensors of several kinds. Its last byte is its last tensor's.
std::vector<std::byte> GoodFile() {
  GgufBytes bytes(2, 5);
  bytes.Key("general.architecture", ValueType::kString).String("llama");
  bytes.Key("general.alignment", ValueType::kU32).Number(uint32_t{16});
  bytes.Key("a.flags", ValueType::kArray).Array(ValueType::kBool, 2);
  bytes.Number(uint8_t{0}).Number(uint8_t{1});
  bytes.Key("a.tokens", ValueType::kArray).Array(ValueType::kString, 2).String("one").String("");
  bytes.Key("a.nested", ValueType::kArray).Array(ValueType::kArray, 1);
  bytes.Array(ValueType::kF32, 2).Number(1.0f).Number(2.0f);
  bytes.Tensor("a.weight", {4, 3}, DType::kF32, 0);
  bytes.Tensor("b.weight", {32, 2}, DType::kQ4_0, 48);
  return bytes.Data(48 + 36, 16).bytes();
}

GgufBytes OneTensor(const std::vector<uint64_t>& dims, DType type, uint64_t offset = 0) {
  GgufBytes bytes(1, 0);
  return bytes.Tensor("t", dims, type, offset);
}

// -------------------------------------------------------------------------------------------------
// The header.

TEST(HostileTest, OtherFormatsAreNamed) {
  const std::string start = "f.gguf: byte 0: expected the magic \"GGUF\", found ";
  EXPECT_EQ(ErrorOf(std::string_view("PK\x03\x04....")),
            start +
                "\"PK\\x03\\x04\": this is a zip archive, as PyTorch writes: convert the model "
                "to GGUF");
  using namespace std::string_view_literals;
  EXPECT_TRUE(test::Has(ErrorOf("\x40\0\0\0\0\0\0\0{\"__metadata__\""sv), "a safetensors file"));
  EXPECT_TRUE(test::Has(ErrorOf("lmgg\x01\0\0\0"sv), "a GGML file"));
  EXPECT_TRUE(test::Has(ErrorOf("fmgg\x01\0\0\0"sv), "a GGML file"));
  EXPECT_TRUE(test::Has(ErrorOf("tjgg\x03\0\0\0"sv), "a GGML file"));
  EXPECT_TRUE(test::Has(ErrorOf("algg\x01\0\0\0"sv), "a GGLA adapter"));
  EXPECT_TRUE(test::Has(ErrorOf("\x80\x02\x8a\n"sv), "a Python pickle"));
  EXPECT_TRUE(test::Has(ErrorOf("\x1f\x8b\x08\0"sv), "a compressed file: unpack it first"));
  EXPECT_TRUE(test::Has(ErrorOf("\x28\xb5\x2f\xfd"sv), "a compressed file"));
  EXPECT_TRUE(
      test::Has(ErrorOf("<!DOCTYPE html>"sv), "an HTML or XML page, likely a failed download"));
  EXPECT_TRUE(test::Has(ErrorOf("\xef\xbb\xbf\r\n <html>"sv), "an HTML or XML page"));
  EXPECT_TRUE(test::Has(ErrorOf("{\"error\": 1}"sv), "JSON text"));
  EXPECT_TRUE(test::Has(ErrorOf("version https://git-lfs.github.com/spec/v1\noid sha256:12"sv),
                        "a Git LFS pointer, not the model: fetch the file with `git lfs pull`"));
  EXPECT_EQ(ErrorOf("GG"sv), start + "\"GG\": not a GGUF file");
  EXPECT_EQ(ErrorOf(""sv), start + "\"\": not a GGUF file");
  EXPECT_EQ(ErrorOf("\x1b[2J\x1b[1;31m"sv), start + "\"\\x1b[2J\": not a GGUF file");
  // Not every '{' after eight bytes is a safetensors header.
  EXPECT_EQ(ErrorOf("\xff\xff\xff\xff\xff\xff\xff\xff{"sv),
            start + "\"\\xff\\xff\\xff\\xff\": not a GGUF file");
}

TEST(HostileTest, VersionsAndByteOrder) {
  EXPECT_EQ(ErrorOf(GgufBytes(0, 0, 0x03000000)),
            "f.gguf: byte 4: expected a little-endian file, found a big-endian one: get or convert "
            "it to little-endian");
  for (const uint32_t version : {0, 1, 4}) {
    EXPECT_EQ(ErrorOf(GgufBytes(0, 0, version)),
              "f.gguf: byte 4: expected GGUF version 2 or 3, found " + std::to_string(version));
  }
}

TEST(HostileTest, CountsAreNotTrusted) {
  const uint64_t huge = uint64_t{1} << 61;
  EXPECT_EQ(ErrorOf(GgufBytes(huge, 0)),
            "f.gguf: byte 8: expected at most 0 tensors in the rest of the file, found a count of "
            "2305843009213693952: truncated or damaged");
  EXPECT_EQ(ErrorOf(GgufBytes(0, huge).Data(100)),
            "f.gguf: byte 16: expected at most 7 keys in the rest of the file, found a count of "
            "2305843009213693952: truncated or damaged");
  EXPECT_TRUE(
      test::Has(ErrorOf(GgufBytes(0, UINT64_MAX)), "found a count of 18446744073709551615"));
}

// -------------------------------------------------------------------------------------------------
// Keys and values.

TEST(HostileTest, KeysMustHaveNamesOfTheirOwn) {
  GgufBytes empty(0, 1);
  empty.Key("", ValueType::kU32).Number(1);
  EXPECT_EQ(ErrorOf(empty), "f.gguf: byte 24: key 0: expected a name, found an empty one");

  GgufBytes twice(0, 3);
  twice.Key("a", ValueType::kU8).Number(uint8_t{1});
  twice.Key("b", ValueType::kU8).Number(uint8_t{1});
  twice.Key("a", ValueType::kU8).Number(uint8_t{2});
  EXPECT_EQ(ErrorOf(twice), "f.gguf: byte 60: key \"a\": expected each key once, found it again");

  GgufBytes large(0, 1);
  large.Key(std::string(65536, 'k'), ValueType::kU8).Number(uint8_t{1});
  EXPECT_EQ(ErrorOf(large),
            "f.gguf: byte 24: key 0: expected a name of at most 65535 bytes, found one of 65536");
}

TEST(HostileTest, NamesCannotBreakTheLine) {
  GgufBytes bytes(0, 1);
  bytes.Key("a\n\x1b[31m" + std::string(1000, 'x'), ValueType::kU8).Number(uint8_t{1});
  std::vector<std::byte> cut = bytes.bytes();
  cut.pop_back();
  const std::string error = ErrorOf(cut);
  EXPECT_TRUE(IsOneLine(error)) << error;
  EXPECT_TRUE(test::Has(error, "key \"a\\n\\x1b[31mxxx"));
}

TEST(HostileTest, StringLengthsCannotWrap) {
  for (const uint64_t length : {UINT64_MAX, UINT64_MAX - 31, uint64_t{1} << 63, uint64_t{5}}) {
    GgufBytes bytes(0, 1);
    bytes.Key("k", ValueType::kString).Number(length).Raw("text");
    EXPECT_EQ(ErrorOf(bytes), "f.gguf: byte 45: key \"k\": expected " + std::to_string(length) +
                                  " bytes (text), found 4 before the end of the file: truncated or "
                                  "damaged, download or copy it again");
  }
  EXPECT_EQ(ErrorOf(GgufBytes(0, 1).Number(UINT64_MAX).Raw("key and value")),
            "f.gguf: byte 32: key 0: expected 18446744073709551615 bytes (name), found 13 before "
            "the end of the file: truncated or damaged, download or copy it again");
}

TEST(HostileTest, ArrayLengthsCannotWrap) {
  for (const auto type :
       {ValueType::kU8, ValueType::kF64, ValueType::kBool, ValueType::kString, ValueType::kArray}) {
    for (const uint64_t count :
         {UINT64_MAX, uint64_t{1} << 63, uint64_t{1} << 61, uint64_t{1} << 31, uint64_t{17}}) {
      GgufBytes bytes(0, 1);
      bytes.Key("k", ValueType::kArray).Array(type, count).Data(0);
      const std::string error = ErrorOf(bytes);
      EXPECT_TRUE(test::Has(error, "key \"k\": expected " + std::to_string(count) + " elements"));
      EXPECT_TRUE(test::Has(error, kTruncated));
    }
  }
}

TEST(HostileTest, ValuesMustBeOfKnownTypes) {
  GgufBytes bytes(0, 1);
  bytes.String("k").Number(uint32_t{13}).Data(32);
  EXPECT_EQ(ErrorOf(bytes),
            "f.gguf: byte 33: key \"k\": expected a value type from 0 to 12, found 13");
  GgufBytes array(0, 1);
  array.Key("k", ValueType::kArray).Number(uint32_t{99}).Number(uint64_t{0});
  EXPECT_EQ(ErrorOf(array),
            "f.gguf: byte 37: key \"k\": expected an element type from 0 to 12, found 99");
}

TEST(HostileTest, BoolsAreZeroOrOne) {
  GgufBytes bytes(0, 1);
  bytes.Key("k", ValueType::kBool).Number(uint8_t{7});
  EXPECT_EQ(ErrorOf(bytes), "f.gguf: byte 37: key \"k\": expected a bool of 0 or 1, found 7");
  GgufBytes array(0, 1);
  array.Key("k", ValueType::kArray).Array(ValueType::kBool, 3).Raw("\1\1\2");
  EXPECT_EQ(ErrorOf(array), "f.gguf: byte 51: key \"k\": expected a bool of 0 or 1, found 2");
}

TEST(HostileTest, NestedArraysEndSoon) {
  GgufBytes bytes(0, 1);
  bytes.Key("k", ValueType::kArray);
  for (int i = 0; i < 10'000; ++i) bytes.Array(ValueType::kArray, 1);
  bytes.Array(ValueType::kU8, 0);
  const std::string error = ErrorOf(bytes);
  EXPECT_TRUE(test::Has(error, "key \"k\": expected arrays at most 4 deep, found deeper ones"));
}

TEST(HostileTest, AlignmentIsASmallPowerOfTwo) {
  for (const uint32_t wrong : {0u, 1u, 3u, 4u, 33u, 0x400000u, 0x80000000u, 0xffffffffu}) {
    GgufBytes bytes(0, 1);
    bytes.Key("general.alignment", ValueType::kU32).Number(wrong);
    EXPECT_EQ(
        ErrorOf(bytes),
        "f.gguf: key \"general.alignment\": expected a power of two from 8 to 2097152, found " +
            std::to_string(wrong));
  }
  GgufBytes text(0, 1);
  text.Key("general.alignment", ValueType::kString).String("32");
  EXPECT_EQ(ErrorOf(text), "f.gguf: key \"general.alignment\": expected type u32, found string");
  GgufBytes wide(0, 1);
  wide.Key("general.alignment", ValueType::kU64).Number(uint64_t{32});
  EXPECT_EQ(ErrorOf(wide), "f.gguf: key \"general.alignment\": expected type u32, found u64");
}

// -------------------------------------------------------------------------------------------------
// Tensors.

TEST(HostileTest, TensorsHaveOneToFourDimensions) {
  EXPECT_EQ(ErrorOf(OneTensor({}, DType::kF32).Data(64)),
            "f.gguf: byte 33: tensor \"t\": expected 1 to 4 dimensions, found 0");
  EXPECT_EQ(ErrorOf(OneTensor({1, 1, 1, 1, 1}, DType::kF32).Data(64)),
            "f.gguf: byte 33: tensor \"t\": expected 1 to 4 dimensions, found 5");
  EXPECT_EQ(ErrorOf(OneTensor({4, 0}, DType::kF32).Data(64)),
            "f.gguf: byte 45: tensor \"t\": expected a dimension of at least 1, found 0");
}

TEST(HostileTest, ProductsOfDimensionsCannotWrap) {
  const uint64_t k32 = uint64_t{1} << 32;
  // 2^64 elements would wrap to 0. Then 2^63 elements, then UINT64_MAX in one dimension.
  EXPECT_EQ(ErrorOf(OneTensor({k32, k32}, DType::kI8).Data(64)),
            "f.gguf: byte 45: tensor \"t\": expected fewer than 2^63 elements, found a dimension "
            "of 4294967296 after 4294967296 elements");
  for (const std::vector<uint64_t>& dims : std::vector<std::vector<uint64_t>>{
           {k32, k32 / 2}, {UINT64_MAX}, {1, 1, 1, uint64_t{1} << 63}, {3, k32, k32, k32}}) {
    EXPECT_TRUE(
        test::Has(ErrorOf(OneTensor(dims, DType::kI8).Data(64)), "fewer than 2^63 elements"));
  }
  // The number of elements is valid, but the number of bytes is not.
  EXPECT_EQ(ErrorOf(OneTensor({k32, k32 / 4}, DType::kF64).Data(64)),
            "f.gguf: byte 24: tensor \"t\": expected fewer than 2^64 bytes of data, found "
            "4611686018427387904 elements of type F64");
  // The number of bytes is valid, but its sum with the offset would wrap.
  EXPECT_TRUE(test::Has(ErrorOf(OneTensor({k32, k32 / 4}, DType::kI16, UINT64_MAX - 31).Data(64)),
                        "found the end of the file"));
}

TEST(HostileTest, DataLiesInsideTheFile) {
  EXPECT_EQ(ErrorOf(OneTensor({16}, DType::kF32).Data(64)), "");
  EXPECT_EQ(ErrorOf(OneTensor({16}, DType::kF32).Data(63)),
            "f.gguf: byte 24: tensor \"t\": expected 64 bytes of data at offset 0 of the data "
            "section, which starts at byte 64, found the end of the file at byte 127: truncated or "
            "damaged, download or copy it again");
  for (const uint64_t offset : {uint64_t{32}, uint64_t{64}, uint64_t{1} << 40, UINT64_MAX - 31}) {
    EXPECT_TRUE(test::Has(ErrorOf(OneTensor({16}, DType::kF32, offset).Data(64)),
                          "at offset " + std::to_string(offset)));
  }
  // The file ends with its head, even without padding.
  EXPECT_TRUE(test::Has(ErrorOf(OneTensor({16}, DType::kF32)), kTruncated));
}

TEST(HostileTest, OffsetsAreAligned) {
  EXPECT_EQ(
      ErrorOf(OneTensor({4}, DType::kF32, 8).Data(64)),
      "f.gguf: byte 24: tensor \"t\": expected a data offset that is a multiple of 32, found 8");
}

TEST(HostileTest, TensorsDoNotOverlap) {
  GgufBytes bytes(3, 0);
  bytes.Tensor("b", {8}, DType::kF32, 64);
  bytes.Tensor("a", {9}, DType::kF32, 32);  // one number too many
  bytes.Tensor("c", {8}, DType::kF32, 0);
  EXPECT_EQ(ErrorOf(bytes.Data(96)),
            "f.gguf: byte 24: tensor \"b\": expected data of its own, found it overlapping tensor "
            "\"a\"");
  GgufBytes same(2, 0);
  same.Tensor("a", {8}, DType::kF32, 0).Tensor("b", {8}, DType::kF32, 0);
  EXPECT_TRUE(test::Has(ErrorOf(same.Data(32)), "overlapping tensor"));
}

TEST(HostileTest, TensorsHaveNamesOfTheirOwn) {
  GgufBytes twice(2, 0);
  twice.Tensor("a", {8}, DType::kF32, 0).Tensor("a", {8}, DType::kF32, 32);
  EXPECT_EQ(ErrorOf(twice.Data(64)),
            "f.gguf: tensor \"a\": expected each name once, found it again");
  GgufBytes empty(1, 0);
  empty.Tensor("", {8}, DType::kF32, 0);
  EXPECT_EQ(ErrorOf(empty.Data(32)),
            "f.gguf: byte 24: tensor 0: expected a name, found an empty one");
}

TEST(HostileTest, UnknownTypesAreListed) {
  GgufBytes bytes(5, 0);
  bytes.Tensor("known", {8}, DType::kF32, 0);
  bytes.Tensor("odd", {8}, uint32_t{31}, 32);
  bytes.Tensor("odd2", {8}, uint32_t{31}, 64);
  bytes.Tensor("new", {8}, uint32_t{77}, 96);
  bytes.Tensor("max", {8}, UINT32_MAX, 128);
  EXPECT_EQ(
      ErrorOf(bytes.Data(160)),
      "f.gguf: byte 61: tensor \"odd\": expected tensor types that pronk knows, found type 31 "
      "(Q4_0_4_4, 2 tensors), 77 (1 tensor), 4294967295 (1 tensor): get the model in another "
      "quantization, for example Q4_K_M");
  GgufBytes many(100, 0);
  for (uint32_t i = 0; i < 100; ++i) many.Tensor(std::to_string(i), {8}, 100 + i, 0);
  const std::string error = ErrorOf(many);
  EXPECT_TRUE(test::Has(error, "103 (1 tensor), ...: get"));
  EXPECT_TRUE(IsOneLine(error)) << error;
}

TEST(HostileTest, TypesOfOtherProgramsAreNamed) {
  const auto error_of = [](uint32_t type) {
    return ErrorOf(GgufBytes(1, 0).Tensor("t", {256}, type, 0).Data(256));
  };
  const std::pair<uint32_t, std::string> named[] = {
      {133, "133 (Q6_0 of ik_llama.cpp, 1 tensor)"},
      {141, "141 (IQ6_K of ik_llama.cpp, 1 tensor)"},
      {144, "144 (IQ4_KS of ik_llama.cpp, 1 tensor)"},
      {151, "151 (Q8_KV of ik_llama.cpp, 1 tensor)"},
      {158, "158 (IQ1_KT of ik_llama.cpp, 1 tensor)"},
      {202, "202 (a repacked type of ik_llama.cpp, 1 tensor)"},
      {399, "399 (a repacked type of ik_llama.cpp, 1 tensor)"},
      {43, "43 (1 tensor)"},
      {159, "159 (1 tensor)"}};
  for (const auto& [type, name] : named) {
    EXPECT_TRUE(test::Has(error_of(type), "found type " + name + ": get the model"));
  }
}

// This type id had another meaning in other files. Only the sizes show it.
TEST(HostileTest, Q2_0WithOtherGroupsIsPQ2_0) {
  const auto two = [](uint64_t second, uint64_t bytes) {
    return GgufBytes(2, 0)
        .Tensor("a", {1024, 4}, DType::kQ2_0, 0)
        .Tensor("b", {1024, 4}, DType::kQ2_0, second)
        .Data(bytes);
  };
  const auto types = [&](uint64_t second, uint64_t bytes) {
    const std::vector<std::byte> data = two(second, bytes).bytes();
    const File file = File::Parse("f.gguf", data);
    return std::pair(file.tensors()[0].dtype, file.tensors()[1].dtype);
  };
  constexpr uint64_t kOurs = 1024 * 4 / 64 * 18, kTheirs = 1024 * 4 / 128 * 34;
  EXPECT_EQ(types(kOurs, 2 * kOurs), std::pair(DType::kQ2_0, DType::kQ2_0));
  EXPECT_EQ(types(kTheirs, 2 * kTheirs), std::pair(DType::kPQ2_0, DType::kPQ2_0));
  EXPECT_EQ(types(kOurs, kOurs + kTheirs), std::pair(DType::kQ2_0, DType::kPQ2_0));
  // Other damage is not mistaken for the other meaning.
  EXPECT_TRUE(test::Has(ErrorOf(two(kOurs, 2 * kOurs - 32)), "truncated"));
  EXPECT_TRUE(test::Has(ErrorOf(two(kTheirs - 32, 2 * kOurs)), "overlapping"));
}

TEST(HostileTest, I2_SHasAScaleAfterItsRows) {
  constexpr uint64_t kRows = 1024 * 4 / 4, kAll = kRows + 32, kRepacked = 1024 * 4 / 32 * 18;
  const auto one = [](uint64_t bytes) {
    return GgufBytes(1, 0).Tensor("a", {1024, 4}, DType::kI2_S, 0).Data(bytes);
  };
  EXPECT_EQ(ErrorOf(one(kAll)), "");
  EXPECT_TRUE(test::Has(ErrorOf(one(kRows)), "expected 1056 bytes of data"));
  EXPECT_TRUE(test::Has(ErrorOf(one(kRepacked)), "found IQ4_NL_4_4"));
  std::vector<std::byte> bytes = one(kAll).bytes();
  const float scale = 0.75f;
  std::memcpy(bytes.data() + bytes.size() - 32, &scale, sizeof(scale));
  const File file = File::Parse("f.gguf", bytes);
  EXPECT_EQ(file.tensors()[0].scale(), 0.75f);
  EXPECT_EQ(file.tensors()[0].bytes, kAll);
}

TEST(HostileTest, RowsAreWholeBlocks) {
  EXPECT_EQ(ErrorOf(OneTensor({128, 2}, DType::kQ4_K).Data(144)),
            "f.gguf: byte 24: tensor \"t\": expected rows of a multiple of 256 weights for type "
            "Q4_K, found 128");
  EXPECT_EQ(ErrorOf(OneTensor({256, 2}, DType::kQ4_K).Data(288)), "");
}

// -------------------------------------------------------------------------------------------------
// Sizes and random damage.

TEST(HostileTest, TruncatedAnywhereIsAnError) {
  const std::vector<std::byte> good = GoodFile();
  ASSERT_EQ(ErrorOf(good), "");
  for (size_t n = 0; n < good.size(); ++n) {
    const std::string error = ErrorOf(std::span(good).first(n));
    EXPECT_TRUE(error.starts_with("f.gguf: byte ")) << n << ": " << error;
    EXPECT_TRUE(IsOneLine(error)) << error;
    if (n >= 4) {
      EXPECT_TRUE(test::Has(error, kTruncated)) << n;
    }
  }
}

// Numbers at the limits of types.
constexpr uint64_t kEdges[] = {
    0,         1,          2,          7,          0x7f,       0x80,       0xff,
    0xffff,    0x7fffffff, 0x80000000, UINT32_MAX, 1ull << 61, 1ull << 63, UINT64_MAX - 31,
    UINT64_MAX};

// Damages a few bytes, writes a number of kEdges somewhere, or cuts the end.
void Mutate(std::vector<std::byte>& bytes, std::mt19937& random) {
  const auto below = [&random](size_t n) { return static_cast<size_t>(random() % n); };
  for (size_t i = 1 + below(3); i > 0; --i) {
    const size_t at = below(bytes.size());
    switch (below(4)) {
      case 0:
        bytes[at] = std::byte{static_cast<uint8_t>(random())};
        break;
      case 1:
        bytes[at] ^= std::byte{static_cast<uint8_t>(1u << below(8))};
        break;
      case 2: {
        const std::span<const std::byte> edge =
            std::as_bytes(std::span(&kEdges[below(std::size(kEdges))], 1));
        const size_t n = std::min(bytes.size() - at, below(2) == 0 ? size_t{4} : size_t{8});
        std::copy_n(edge.begin(), n, bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      default:
        if (below(8) == 0) bytes.resize(std::max<size_t>(at, 1));
    }
  }
}

TEST(HostileTest, RandomDamageIsRefusedOrHarmless) {
  std::mt19937 random(20240607);
  int refused = 0;
  constexpr int kRounds = 20'000;
  for (int i = 0; i < kRounds; ++i) {
    std::vector<std::byte> bytes = GoodFile();
    Mutate(bytes, random);
    const std::string error = ErrorOf(bytes);
    EXPECT_TRUE(IsOneLine(error)) << error;
    refused += !error.empty();
  }
  // Damage to text or data is harmless, damage to most other bytes is refused: both must occur.
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds);
}

// The file has the maximum of keys and tensors, names with long common prefixes, and offsets in the
// worst order. Linear work takes well under a second even with sanitizers, quadratic work minutes.
TEST(HostileTest, ManyKeysAndTensorsTakeLittleTimeAndMemory) {
  constexpr uint64_t kCount = 1 << 17;
  GgufBytes bytes(kCount, kCount);
  const std::string prefix(50, 'k');
  for (uint64_t i = 0; i < kCount; ++i) {
    bytes.Key(prefix + std::to_string(i), ValueType::kU8).Number(uint8_t{0});
  }
  for (uint64_t i = 0; i < kCount; ++i) {
    bytes.Tensor(prefix + std::to_string(i), {1}, DType::kI8, 32 * (kCount - 1 - i));
  }
  bytes.Data(kCount * 32);
  const size_t before = test::CountAllocations().bytes;
  test::ResetPeak();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(test::ErrorOf([&] { File::Parse("f.gguf", bytes.bytes()); }), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_LT(test::CountAllocations().peak - before, 64'000'000u);
}

TEST(HostileTest, MoreKeysAndTensorsThanAnyModelHas) {
  EXPECT_EQ(ErrorOf(GgufBytes(131073, 0).Data(131073 * 40)),
            "f.gguf: byte 8: expected at most 131072 tensors, found a count of 131073");
  EXPECT_EQ(ErrorOf(GgufBytes(0, 131073).Data(131073 * 40)),
            "f.gguf: byte 16: expected at most 131072 keys, found a count of 131073");
}

// The file is overwritten while it is in use. The head stays as it was checked. Tensors may change,
// so the worst effect is wrong weights.
TEST(HostileFileInUse, ThatChangesInPlace) {
  const test::TempDir dir;
  GgufBytes bytes(1, 2);
  bytes.Key("a.tokens", ValueType::kArray).Array(ValueType::kString, 30'000);
  for (int i = 0; i < 30'000; ++i) bytes.String("token" + std::to_string(i));  // many pages
  bytes.Key("general.name", ValueType::kString).String(std::string(2'000'000, 'n'));
  bytes.Tensor("a.weight", {4, 3}, DType::kF32, 0);
  const std::vector<std::byte> good = bytes.Data(48, 32).bytes();
  const std::string path = dir.Write("a.gguf", good);
  const File file = File::Open(path);
  {
    std::fstream other(path, std::ios::in | std::ios::out | std::ios::binary);
    other << std::string(good.size(), '\xFF');
  }
  const std::vector<std::string_view> tokens = file.metadata().GetStrings("a.tokens");
  ASSERT_EQ(tokens.size(), 30'000u);
  EXPECT_EQ(tokens[0], "token0");
  EXPECT_EQ(tokens[29'999], "token29999");
  EXPECT_EQ(file.metadata().GetString("general.name"), std::string(2'000'000, 'n'));
  EXPECT_NE(file.FindTensor("a.weight"), nullptr);
}

}  // namespace
}  // namespace gguf
