#include "tests/support/small_model.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <list>
#include <random>

#include "gguf/blocks.h"
namespace test {
namespace {

using gguf::DType;

constexpr uint32_t kHeads = 4, kKvHeads = 2, kContext = 64;

void AddConfig(gguf::Writer& writer, uint32_t width) {
  writer.Add("general.architecture", "llama");
  writer.Add("llama.context_length", kContext);
  writer.Add("llama.embedding_length", width);
  writer.Add("llama.block_count", uint32_t{1});
  writer.Add("llama.feed_forward_length", 2 * width);
  writer.Add("llama.attention.head_count", kHeads);
  writer.Add("llama.attention.head_count_kv", kKvHeads);
  writer.Add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.Add("llama.rope.dimension_count", width / kHeads);
}

VocabSpec Vocabulary(const std::string& model) {
  if (model == "gpt2") {
    VocabSpec spec = BpeSpec("llama-bpe");
    AddMerge(spec, "a", "b");
    AddMerge(spec, "ab", "c");
    return spec;
  }
  VocabSpec spec = SpmSpec();
  spec.Add("\u2581a", -1);
  spec.Add("ab", -2);
  return spec;
}

// Weights of about +-0.1.
void FillUsual(DType dtype, std::span<std::byte> bytes, std::mt19937& random) {
  if (dtype == DType::kF32) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(float)) {
      const float value = (static_cast<float>(random() % 2001) - 1000) * 1e-4f;
      std::memcpy(bytes.data() + at, &value, sizeof(value));
    }
    return;
  }
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (size_t at = 0; at < bytes.size(); at += sizeof(gguf::BlockQ8_0)) {
    constexpr uint16_t kScale = 0x1266;  // 0.0008 as f16
    std::memcpy(bytes.data() + at, &kScale, sizeof(kScale));
  }
}

}  // namespace

std::vector<std::byte> SmallModel::Bytes() const {
  // Rows are whole blocks.
  const uint32_t width = std::max<uint32_t>(32, gguf::Info(dtype).block_size);
  gguf::Writer writer;
  AddConfig(writer, width);
  writer.Add("tokenizer.chat_template", chat_template);
  VocabSpec vocabulary = Vocabulary(tokenizer);
  if (change_vocabulary) change_vocabulary(vocabulary);
  vocabulary.AddTo(writer);

  std::mt19937 random(7);
  std::list<std::vector<std::byte>> data;  // the writer keeps views of these
  const auto matrix = [&](std::string_view name, uint64_t cols, uint64_t rows) {
    std::vector<std::byte>& bytes = data.emplace_back(rows * gguf::RowBytes(dtype, cols));
    fill ? fill(bytes) : FillUsual(dtype, bytes, random);
    writer.AddTensor(name, dtype, {cols, rows}, bytes);
  };
  const std::vector<float> ones(width, 1.0f);
  const auto norm = [&](std::string_view name) {
    writer.AddTensor(name, DType::kF32, {width}, std::as_bytes(std::span(ones)));
  };
  const uint64_t kv_width = width / kHeads * kKvHeads;
  matrix("token_embd.weight", width, vocabulary.tokens.size());
  norm("blk.0.attn_norm.weight");
  matrix("blk.0.attn_q.weight", width, width);
  matrix("blk.0.attn_k.weight", width, kv_width);
  matrix("blk.0.attn_v.weight", width, kv_width);
  matrix("blk.0.attn_output.weight", width, width);
  norm("blk.0.ffn_norm.weight");
  matrix("blk.0.ffn_gate.weight", width, 2 * width);
  matrix("blk.0.ffn_up.weight", width, 2 * width);
  matrix("blk.0.ffn_down.weight", 2 * width, width);
  norm("output_norm.weight");
  return writer.ToBytes();
}

}  // namespace test
