// Files of bitnet.cpp: its names of the architecture, and I2_S, whose matrices have one scale.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "gguf/writer.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/logits.h"
#include "tests/support/temp_dir.h"

namespace engine {
namespace {

const std::vector<tokenizer::TokenId> kIds = {3, 9, 27, 51, 5, 44, 11, 7};
const SessionOptions kExact = {.context = 64, .n_threads = 1, .kv_type = kernels::KvType::kF32};

// Weight i of any matrix of three values.
int Code(size_t i) { return static_cast<int>((i * 7 + i / 11) % 3); }

// The bytes of I2_S by its definition: in each 128 weights, weight j is in byte j % 32, at bits 6,
// 4, 2 and 0 for each run of 32; after the last, a scale and 28 bytes that mean nothing.
std::vector<std::byte> Packed(size_t n, float scale) {
  std::vector<uint8_t> bytes(n / 4 + 32);
  for (size_t i = 0; i < n; ++i) {
    bytes[i / 128 * 32 + i % 32] |= static_cast<uint8_t>(Code(i) << (6 - i % 128 / 32 * 2));
  }
  std::memcpy(&bytes[n / 4], &scale, sizeof(scale));
  const auto all = std::as_bytes(std::span(bytes));
  return {all.begin(), all.end()};
}

std::vector<std::byte> Plain(size_t n, float scale) {
  std::vector<float> weights(n);
  for (size_t i = 0; i < n; ++i) weights[i] = scale * static_cast<float>(Code(i) - 1);
  const auto all = std::as_bytes(std::span(weights));
  return {all.begin(), all.end()};
}

// The small llama with ternary matrices in the place of blk.N.ffn_down.
void WriteTernary(const std::string& path, bool packed, float scale = 0.125f) {
  const gguf::File file = gguf::File::Open(test::DataPath("tiny/llama.gguf"));
  gguf::Writer writer;
  for (const auto& entry : file.metadata().entries()) writer.Add(entry);
  std::vector<std::vector<std::byte>> kept;
  kept.reserve(file.tensors().size());
  for (const gguf::TensorView& tensor : file.tensors()) {
    if (!tensor.name.ends_with("ffn_down.weight")) {
      writer.AddTensor(tensor);
      continue;
    }
    const size_t n = tensor.elements();
    kept.push_back(packed ? Packed(n, scale) : Plain(n, scale));
    writer.AddTensor(tensor.name, packed ? gguf::DType::kI2_S : gguf::DType::kF32,
                     {tensor.cols(), tensor.rows()}, kept.back());
  }
  ASSERT_FALSE(kept.empty());
  writer.WriteFile(path);
}

TEST(OtherPrograms, I2_SHasTheLogitsOfItsWeights) {
  const test::TempDir dir;
  WriteTernary(dir.Path("packed.gguf"), true);
  WriteTernary(dir.Path("plain.gguf"), false);
  const auto logits = [&](const char* name, bool exact) {
    return test::AllLogits(Model::Load(dir.Path(name), exact), kIds, kExact);
  };
  const std::vector<float> expected = logits("plain.gguf", true);
  EXPECT_LT(test::Nmse(logits("packed.gguf", true), expected), 1e-10);
  EXPECT_LT(test::Nmse(logits("packed.gguf", false), expected), 1e-3);  // int8 activations
  WriteTernary(dir.Path("packed.gguf"), true, NAN);
  EXPECT_TRUE(test::Has(test::ErrorOf([&] { Model::Load(dir.Path("packed.gguf")); }),
                        "expected a scale that is a number"));
}

// Models with these names have the squared ReLU, which no key says.
TEST(OtherPrograms, BitNetsOtherNamesHaveItsLogits) {
  const gguf::File file = gguf::File::Open(test::DataPath("families/bitnet-relu2.gguf"));
  const std::vector<float> expected =
      test::AllLogits(Model::Load(test::DataPath("families/bitnet-relu2.gguf")), kIds, kExact);
  for (const std::string name : {"bitnet-b1.58", "bitnet-25"}) {
    SCOPED_TRACE(name);
    gguf::Writer writer;
    for (gguf::Metadata::Entry entry : file.metadata().entries()) {
      std::string key(entry.key);
      if (key == "general.architecture" || key == "bitnet.hidden_activation") continue;
      if (key.starts_with("bitnet.")) key.replace(0, 6, name);
      entry.key = key;
      writer.Add(entry);
    }
    writer.Add("general.architecture", name);
    for (const gguf::TensorView& tensor : file.tensors()) writer.AddTensor(tensor);
    const test::TempDir dir;
    writer.WriteFile(dir.Path("m.gguf"));
    EXPECT_EQ(test::AllLogits(Model::Load(dir.Path("m.gguf")), kIds, kExact), expected);
  }
}

}  // namespace
}  // namespace engine
