// Hostile safetensors: each must end in one line that names the tensor and its fault, and no byte
// outside the file may be read.
#include "engine/hf/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/hf_folder.h"

namespace engine {
namespace {

// The message of opening these bytes, copied to a block of their size, whose ends AddressSanitizer
// watches. "" if they are a good file, of which every byte of data is read.
std::string ErrorOf(std::string_view file) {
  const auto* const begin = reinterpret_cast<const std::byte*>(file.data());
  const std::vector<std::byte> bytes(begin, begin + file.size());
  return test::ErrorOf([&] {
    const Safetensors parsed = Safetensors::Parse("f", bytes);
    unsigned sum = 0;
    for (const SafeTensor& tensor : parsed.tensors()) {
      for (const std::byte byte : tensor.data) sum += static_cast<unsigned>(byte);
    }
    EXPECT_GE(sum, 0u);
  });
}

// The message for a file with one tensor "t".
std::string ErrorOf(const std::string& dtype, const std::string& shape, const std::string& offsets,
                    size_t data_bytes) {
  return ErrorOf(test::Safetensors(R"({"t":{"dtype":")" + dtype + R"(","shape":[)" + shape +
                                       R"(],"data_offsets":[)" + offsets + "]}}",
                                   data_bytes));
}

TEST(Safetensors, ReadsWhatIsThere) {
  const std::string file = test::Safetensors(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("i":{"dtype":"I64","shape":[0],"data_offsets":[16,16]}}   )",
      20);  // spaces after the header and bytes after the data are allowed
  const auto* const begin = reinterpret_cast<const std::byte*>(file.data());
  const std::vector<std::byte> bytes(begin, begin + file.size());
  const Safetensors parsed = Safetensors::Parse("f", bytes);
  ASSERT_EQ(parsed.tensors().size(), 3u);
  const SafeTensor &a = parsed.tensors()[0], &b = parsed.tensors()[1], &i = parsed.tensors()[2];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.floats, gguf::DType::kF32);
  EXPECT_EQ(a.elements, 1u);
  EXPECT_EQ(b.shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(b.data.data(), bytes.data() + bytes.size() - 20 + 4);
  EXPECT_EQ(b.data.size(), 12u);
  EXPECT_EQ(i.floats, std::nullopt);
  EXPECT_EQ(i.elements, 0u);
}

TEST(Safetensors, HeaderMustFitIntoTheFile) {
  EXPECT_EQ(ErrorOf("short"), "f: expected a safetensors file, found 5 bytes");
  const std::string file = test::Safetensors("{}", 10);
  for (const uint64_t length : {uint64_t{13}, uint64_t{1} << 32, UINT64_MAX, UINT64_MAX - 7}) {
    std::string damaged = file;
    std::memcpy(damaged.data(), &length, sizeof(length));
    EXPECT_EQ(ErrorOf(damaged),
              "f: byte 0: expected the length of a safetensors header, at most 12, found " +
                  std::to_string(length) + ": truncated, damaged, or not a safetensors file");
  }
  EXPECT_EQ(ErrorOf(test::Safetensors("", 10)),
            "f: byte 8: expected a safetensors header, which begins with {");
  EXPECT_EQ(ErrorOf(test::Safetensors("[]", 10)),
            "f: byte 8: expected a safetensors header, which begins with {");
}

TEST(Safetensors, HeaderMustBeSoundJson) {
  EXPECT_EQ(ErrorOf(test::Safetensors("{\"a\":", 0)),
            "f: expected JSON; it is not JSON from byte 6 on");
  const std::string entry = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_EQ(ErrorOf(test::Safetensors("{\"a\":" + entry + ",\"a\":" + entry + "}", 2)),
            "f: expected JSON; it has the key \"a\" twice");
  EXPECT_EQ(ErrorOf(test::Safetensors("{\"a\":" + std::string(100'000, '['), 0)),
            "f: expected JSON; it is nested deeper than 32 levels");
  EXPECT_EQ(ErrorOf(test::Safetensors(R"({"a":3})", 0)),
            "f: tensor \"a\": expected dtype, shape and data_offsets");
  EXPECT_EQ(ErrorOf(test::Safetensors(R"({"":{}})", 0)),
            "f: tensor \"\": expected a name of 1 to 65535 bytes");
}

TEST(Safetensors, TypesAndShapesAreChecked) {
  EXPECT_EQ(ErrorOf("F12", "1", "0,1", 1),
            "f: tensor \"t\": dtype: expected one that is known, found \"F12\"");
  EXPECT_EQ(ErrorOf(test::Safetensors(R"({"t":{"dtype":7}})", 0)),
            "f: tensor \"t\": dtype: expected a text, found 7");
  EXPECT_EQ(ErrorOf(test::Safetensors(R"({"t":{"dtype":"U8"}})", 0)),
            "f: tensor \"t\": shape: expected a list of whole numbers, found nothing");
  for (const auto& [shape, found] : {std::pair("-1", "-1"), std::pair("1.5", "1.5"),
                                     std::pair("\"1\"", "a text"), std::pair("null", "nothing")}) {
    EXPECT_EQ(ErrorOf("U8", shape, "0,1", 1),
              std::string("f: tensor \"t\": shape: expected whole numbers, found ") + found);
  }
  EXPECT_EQ(ErrorOf("U8", "1,1,1,1,1,1,1,1,1", "0,1", 1),
            "f: tensor \"t\": shape: expected at most 8 items, found 9");
  // Products that would wrap around 2^64, to 0 or to 4.
  EXPECT_EQ(ErrorOf("F32", "4294967296,4294967296", "0,0", 4),
            "f: tensor \"t\": shape: expected fewer than 2^57 elements, found [4294967296, "
            "4294967296]");
  EXPECT_NE(ErrorOf("F32", "4611686018427387905", "0,4", 4), "");
  EXPECT_EQ(ErrorOf("F4", "3", "0,1", 1), "f: tensor \"t\": shape: expected whole bytes of data");
}

TEST(Safetensors, DataLiesInsideTheFile) {
  EXPECT_EQ(ErrorOf("F32", "2", "0,8", 8), "");
  const std::string start =
      "f: tensor \"t\": data_offsets: expected begin and end within 8 bytes of data, found ";
  const std::string end = ": truncated or damaged, download or copy it again";
  EXPECT_EQ(ErrorOf("F32", "2", "4,12", 8), start + "[4, 12]" + end);
  EXPECT_EQ(ErrorOf("F32", "2", "8,0", 8), start + "[8, 0]" + end);
  EXPECT_EQ(ErrorOf("F32", "2", "8", 8), start + "[8]" + end);
  EXPECT_EQ(ErrorOf("F32", "2", "18446744073709551615,7", 8),
            start + "[18446744073709551615, 7]" + end);
  EXPECT_EQ(ErrorOf("F32", "2", "0,4", 8),
            "f: tensor \"t\": data_offsets: expected 8 bytes for F32 [2], found 4");
  EXPECT_EQ(ErrorOf("F32", "0", "0,4", 8),
            "f: tensor \"t\": data_offsets: expected 0 bytes for F32 [0], found 4");
}

TEST(Safetensors, TensorsDoNotOverlap) {
  const auto two = [](const std::string& a, const std::string& b) {
    return ErrorOf(test::Safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[)" + a +
                                         R"(]},"b":{"dtype":"U8","shape":[4],"data_offsets":[)" +
                                         b + "]}}",
                                     16));
  };
  EXPECT_EQ(two("0,4", "4,8"), "");
  EXPECT_EQ(two("12,16", "0,4"), "");  // any order, and holes
  EXPECT_EQ(two("0,4", "3,7"),
            "f: tensor \"b\": expected data of its own, found it overlapping tensor \"a\"");
  EXPECT_NE(two("0,4", "0,4"), "");
}

TEST(Safetensors, DamageIsRefusedOrHarmless) {
  const std::string good =
      test::Safetensors(R"({"a.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                        R"("b.weight":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}})",
                        32);
  ASSERT_EQ(ErrorOf(good), "");
  for (size_t n = 0; n < good.size(); ++n) EXPECT_NE(ErrorOf(good.substr(0, n)), "") << n;
  std::mt19937 random(20261122);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  constexpr std::string_view kLikely = "0123456789[]{},:\"-e.";
  int refused = 0;
  constexpr int kRounds = 20'000;
  for (int i = 0; i < kRounds; ++i) {
    std::string bytes = good;
    for (size_t n = 1 + below(3); n > 0; --n) {
      const bool any = below(2) == 0;
      bytes[below(bytes.size())] =
          any ? static_cast<char>(random()) : kLikely[below(kLikely.size())];
    }
    const std::string error = ErrorOf(bytes);
    EXPECT_TRUE(std::ranges::all_of(error, [](char c) { return c >= ' ' && c <= '~'; })) << error;
    EXPECT_LT(error.size(), 600u);
    refused += error.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace engine
