#include "tests/support/scripted_model.h"

#include <cstdint>
#include <list>
#include <span>
#include <stdexcept>
#include <string_view>

#include "gguf/writer.h"
#include "tests/support/vocab_spec.h"

namespace test {
namespace {

constexpr uint32_t kWidth = 32, kContext = 512;
constexpr TokenId kEos = 2;  // of SpmSpec

void AddConfig(gguf::Writer& writer) {
  writer.Add("general.architecture", "llama");
  writer.Add("general.name", "scripted");
  writer.Add("llama.context_length", kContext);
  writer.Add("llama.embedding_length", kWidth);
  writer.Add("llama.block_count", uint32_t{1});
  writer.Add("llama.feed_forward_length", kWidth);
  writer.Add("llama.attention.head_count", uint32_t{1});
  writer.Add("llama.attention.head_count_kv", uint32_t{1});
  writer.Add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.Add("llama.rope.dimension_count", kWidth);
}

}  // namespace

// The layer adds nothing to the embeddings: unit vector i + 1 for token i of the script, 0 for
// other tokens. A token's row of the output matrix is the vector of the previous token.
std::vector<std::byte> ScriptedModel(const std::vector<ScriptedToken>& script,
                                     const std::string& chat_template) {
  if (script.size() + 1 >= kWidth) throw std::invalid_argument("too long a script");
  gguf::Writer writer;
  AddConfig(writer);
  if (!chat_template.empty()) writer.Add("tokenizer.chat_template", chat_template);
  VocabSpec spec = SpmSpec();
  std::vector<TokenId> ids;
  for (const ScriptedToken& token : script) ids.push_back(spec.Add(token.text, -1, token.type));
  spec.AddTo(writer);
  writer.Add("tokenizer.ggml.bos_token_id", uint32_t{1});
  writer.Add("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(kEos));
  writer.Add("tokenizer.ggml.add_bos_token", false);
  writer.Add("tokenizer.ggml.add_space_prefix", false);

  const size_t n_vocab = spec.tokens.size();
  std::list<std::vector<float>> data;  // the writer keeps views of these
  const auto matrix = [&](std::string_view name, std::vector<float> values) {
    const uint64_t rows = values.size() / kWidth;
    writer.AddTensor(name, gguf::DType::kF32, {kWidth, rows},
                     std::as_bytes(std::span(data.emplace_back(std::move(values)))));
  };
  const auto norm = [&](std::string_view name) {
    writer.AddTensor(name, gguf::DType::kF32, {kWidth},
                     std::as_bytes(std::span(data.emplace_back(kWidth, 1.0f))));
  };
  std::vector<float> embeddings(n_vocab * kWidth), output(n_vocab * kWidth);
  for (size_t id = 0; id < n_vocab; ++id) embeddings[id * kWidth] = 1;
  for (size_t i = 0; i <= ids.size(); ++i) {
    const auto next = static_cast<size_t>(i < ids.size() ? ids[i] : kEos);
    output[next * kWidth + i] = 1;
    if (i == ids.size()) break;
    embeddings[next * kWidth] = 0;
    embeddings[next * kWidth + i + 1] = 1;
  }
  matrix("token_embd.weight", embeddings);
  norm("blk.0.attn_norm.weight");
  for (const char* const name :
       {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
    matrix(std::string("blk.0.") + name + ".weight", std::vector<float>(kWidth * kWidth));
  }
  norm("blk.0.ffn_norm.weight");
  norm("output_norm.weight");
  matrix("output.weight", output);
  return writer.ToBytes();
}

}  // namespace test
