// pronk inspect --check and pronk diff: the faults of a file, and the differences of two files.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "engine/session/xxh64.h"
#include "gguf/dtype.h"
#include "gguf/writer.h"
#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

using gguf::DType;

std::string Hash(std::string_view text) {
  char hex[17];
  std::snprintf(hex, sizeof(hex), "%016llx",
                static_cast<unsigned long long>(engine::Xxh64(std::as_bytes(std::span(text)))));
  return hex;
}

// Published test vectors, with inputs of each length that has its own code path.
TEST(Xxh64, Published) {
  EXPECT_EQ(Hash(""), "ef46db3751d8e999");
  EXPECT_EQ(Hash("a"), "d24ec4f1a98c6e5b");
  EXPECT_EQ(Hash("abc"), "44bc2cf5ad770999");
  EXPECT_EQ(Hash("The quick brown fox jumps over the lazy dog"), "0b242d361fda71bc");
}

// A model file of F32 tensors and any keys.
struct Tensor {
  std::string name;
  std::vector<float> weights;
};
std::string Write(const TempDir& dir, const std::string& name, const std::vector<Tensor>& tensors,
                  const std::function<void(gguf::Writer&)>& add_keys = {}) {
  gguf::Writer writer;
  if (add_keys) add_keys(writer);
  for (const auto& [tensor, weights] : tensors) {
    writer.AddTensor(tensor, DType::kF32, {weights.size() / 4, 4},
                     std::as_bytes(std::span(weights)));
  }
  writer.WriteFile(dir.Path(name));
  return dir.Path(name);
}

std::vector<float> Waves(size_t n) {
  std::vector<float> weights(n);
  for (size_t i = 0; i < n; ++i) weights[i] = std::sin(static_cast<float>(i));
  return weights;
}

// More numbers than a thread takes at a time.
constexpr size_t kMany = 1'100'000;

TEST(InspectCheck, FindsWhatIsThere) {
  const TempDir dir;
  std::vector<float> weights = Waves(kMany);
  weights[3] = -2.5f;
  weights[kMany - 1] = 7;
  size_t n_zero = 1;  // sin(0)
  for (size_t i = 1000; i < 1500; ++i, ++n_zero) weights[i] = 0;
  const std::string path = Write(dir, "m", {{"good", weights}, {"small", Waves(8)}});
  Json found;
  for (const char* threads : {"1", "3"}) {
    const Finished run = Done(Pronk({"inspect", path, "--check", "--json", "-t", threads}));
    const Json now = Json::parse(run.out);
    EXPECT_TRUE(found.is_null() || found == now);
    found = now;
  }
  EXPECT_EQ(found["finite"], true);
  const Json& tensor = found["tensors"][0];
  EXPECT_EQ(tensor["name"], "good");
  EXPECT_EQ(tensor["least"], -2.5);
  EXPECT_EQ(tensor["most"], 7.0);
  EXPECT_EQ(tensor["zero"], n_zero);
  EXPECT_EQ(tensor["nan"].get<int>() + tensor["infinite"].get<int>(), 0);
  EXPECT_EQ(tensor["hash"], Hash({reinterpret_cast<const char*>(weights.data()), 4 * kMany}));
  const Finished text = Pronk({"inspect", path, "--check"});
  EXPECT_TRUE(Has(text.out, "2 tensors, all numbers finite\n"));
}

TEST(InspectCheck, WhatIsNotFiniteIsAFault) {
  const TempDir dir;
  std::vector<float> weights = Waves(kMany);
  weights[5] = std::nanf("");
  weights[kMany - 2] = INFINITY;
  weights[kMany - 1] = -INFINITY;
  const std::string path = Write(dir, "m", {{"good", Waves(8)}, {"bad", weights}});
  const Finished run = Pronk({"inspect", path, "--check", "--json"});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(Has(run.err, "found NaN or infinity in 1 of 2 tensors, the first \"bad\"\n"));
  const Json found = Json::parse(run.out);
  EXPECT_EQ(found["finite"], false);
  EXPECT_EQ(found["tensors"][1]["nan"], 1);
  EXPECT_EQ(found["tensors"][1]["infinite"], 2);
  EXPECT_TRUE(Has(Pronk({"inspect", path, "--check"}).out, "NOT FINITE: 1 NaN, 2 infinite, of "));
  ExpectError(Pronk({"inspect", path, "-t", "2"}), 2, "-t: only with --check");
}

// Quantized: a block whose scale is not a number.
TEST(InspectCheck, ScalesOfBlocks) {
  const TempDir dir;
  std::vector<std::byte> blocks(34 * 3);
  blocks[34] = std::byte{0};  // the second block's scale: NaN in f16
  blocks[35] = std::byte{0x7e};
  blocks[36] = std::byte{1};
  gguf::Writer writer;
  writer.AddTensor("q", DType::kQ8_0, {96}, blocks);
  writer.WriteFile(dir.Path("m"));
  const Finished run = Pronk({"inspect", dir.Path("m"), "--check", "--json"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(Json::parse(run.out)["tensors"][0]["nan"], 32);
  EXPECT_EQ(Json::parse(run.out)["tensors"][0]["zero"], 64);
}

TEST(Diff, OfAFileAndItselfIsNone) {
  const Finished run = Done(Pronk({"diff", kModel, kModel}));
  EXPECT_FALSE(Has(run.out, "\n~ "));
  const Json found = Json::parse(Pronk({"diff", kModel, kModel, "--json"}).out);
  EXPECT_EQ(found["metadata"].size() + found["tensors"].size(), 0u);
  EXPECT_GT(found["same_tensors"], 5);
  EXPECT_EQ(found["relative_squared_error"], 0.0);
}

TEST(Diff, KeysAndTensors) {
  const TempDir dir;
  std::vector<float> changed = Waves(kMany);
  changed[kMany - 7] += 0.5f;
  double squares = 0;
  for (const float weight : Waves(kMany)) squares += double{weight} * weight;
  const std::string a = Write(
      dir, "a",
      {{"same", Waves(8)}, {"other", Waves(kMany)}, {"gone", {1, 2, 3, 4}}, {"shape", Waves(8)}},
      [](gguf::Writer& writer) {
        writer.Add("same", "x");
        writer.Add("gone", uint32_t{1});
        writer.Add("changed", uint32_t{1});
        writer.Add("type", uint32_t{1});
        writer.Add("long", std::string(1000, 'x') + "a\n");
      });
  const std::string b = Write(
      dir, "b", {{"new", Waves(8)}, {"other", changed}, {"same", Waves(8)}, {"shape", Waves(16)}},
      [](gguf::Writer& writer) {
        writer.Add("changed", uint32_t{2});
        writer.Add("same", "x");
        writer.Add("type", int32_t{1});
        writer.Add("long", std::string(1000, 'x') + "b\n");
        writer.Add("new", true);
      });
  const Finished run = Pronk({"diff", a, b, "--json"});
  EXPECT_EQ(run.status, 3) << run.err;
  const Json found = Json::parse(run.out);
  std::vector<std::string> keys, tensors;
  for (const Json& entry : found["metadata"]) keys.push_back(entry["key"]);
  for (const Json& entry : found["tensors"]) tensors.push_back(entry["name"]);
  EXPECT_EQ(keys, (std::vector<std::string>{"gone", "changed", "type", "long", "new"}));
  EXPECT_EQ(tensors, (std::vector<std::string>{"other", "gone", "shape", "new"}));
  EXPECT_EQ(found["same_keys"], 1);
  EXPECT_EQ(found["same_tensors"], 1);
  EXPECT_FALSE(found["metadata"][0].contains("b"));
  EXPECT_EQ(found["metadata"][1]["b"], "2");
  EXPECT_EQ(found["metadata"][2]["a_type"], "u32");
  EXPECT_EQ(found["metadata"][2]["b_type"], "i32");
  EXPECT_LT(found["metadata"][3]["a"].get<std::string>().size(), 100u);
  const Json& other = found["tensors"][0];
  // Half an ulp of each of three roundings to float, of numbers up to 2.
  EXPECT_NEAR(other["largest_difference"], 0.5, 4e-7);
  EXPECT_NEAR(other["relative_squared_error"], 0.25 / squares, 0.25 / squares * 2e-6);
  EXPECT_FALSE(found["tensors"][2].contains("largest_difference")) << "shapes differ";
  EXPECT_EQ(found["tensors"][2]["b"]["dims"], (std::vector<int>{4, 4}));

  const Finished text = Pronk({"diff", a, b});
  EXPECT_EQ(text.status, 3);
  for (const char* line : {"\n- gone ", "\n~ changed ", "u32 1 -> i32 1\n",
                           "another, which begins alike", "\n+ new ", "\n~ other "}) {
    EXPECT_TRUE(Has(text.out, line));
  }
  // Faults of either file are reported.
  ExpectError(Pronk({"diff", a, dir.Path("none")}), 1, "none");
  ExpectError(Pronk({"inspect", a, "--tensors", "--check"}), 2,
              "--tensors: --check lists them all");
  ExpectError(Pronk({"inspect", a, "--tensors", "--json"}), 2, "--tensors: --json lists them all");
  ExpectError(Pronk({"diff", a}), 2, "B is required");
}

TEST(Diff, TypesAndErrors) {
  const TempDir dir;
  const std::string q8 = dir.Path("q8");
  ASSERT_EQ(Pronk({"quantize", kModel, q8, "Q8_0"}).status, 0);
  const Finished run = Pronk({"diff", kModel, q8, "--json"});
  EXPECT_EQ(run.status, 3);
  const Json found = Json::parse(run.out);
  ASSERT_GT(found["tensors"].size(), 5u);
  for (const Json& tensor : found["tensors"]) {
    EXPECT_EQ(tensor["a"]["type"], "F32");
    EXPECT_EQ(tensor["b"]["type"], "Q8_0");
    // A weight is within half a step, 1/254 of the largest of its 32, whose squares sum up to at
    // least that one's: an error of at most 32 / 254^2 / 4.
    EXPECT_LT(tensor["relative_squared_error"], 1.1 * 32 / 254 / 254 / 4);
    EXPECT_GT(tensor["relative_squared_error"], 0.0);
  }
  // A file without numbers still differs from itself with some.
  std::vector<float> broken = Waves(8);
  broken[1] = std::nanf("");
  const std::string a = Write(dir, "a", {{"t", Waves(8)}}), b = Write(dir, "b", {{"t", broken}});
  const Finished nan = Pronk({"diff", a, b, "--json"});
  EXPECT_EQ(nan.status, 3);
  EXPECT_TRUE(Json::parse(nan.out)["tensors"][0]["largest_difference"].is_null());
}

}  // namespace
}  // namespace test
