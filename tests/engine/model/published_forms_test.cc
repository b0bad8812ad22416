// Forms in which models are published, besides their keys (published_test.cc): projections joined
// or not, published sizes of vocabularies and numbers of experts, parts of a split, Ollama's early
// files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/model.h"
#include "gguf/writer.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/logits.h"
#include "tests/support/temp_dir.h"

namespace engine {
namespace {

using gguf::DType;

// A tensor of floats, and its dims, row length first.
struct Floats {
  std::vector<uint64_t> dims;
  std::vector<float> numbers;
};

// A small model as tensors and metadata, for tests to change. All F32.
struct Parts {
  explicit Parts(const std::string& name)
      : file(gguf::File::Open(test::DataPath("hybrids/" + name + ".gguf").string())) {
    for (const gguf::TensorView& t : file.tensors()) {
      const auto* const from = reinterpret_cast<const float*>(t.data);
      tensors[std::string(t.name)] = {{t.dims.begin(), t.dims.begin() + t.n_dims},
                                      {from, from + t.elements()}};
    }
  }

  // Removes a matrix and adds those of its rows as another.
  void Gather(const std::string& from, const std::string& to, const std::vector<size_t>& rows) {
    const Floats& matrix = tensors.at(from);
    const size_t width = matrix.dims[0];
    Floats out = {{width, rows.size()}, {}};
    for (const size_t row : rows) {
      const auto begin = matrix.numbers.begin() + static_cast<ptrdiff_t>(row * width);
      out.numbers.insert(out.numbers.end(), begin, begin + static_cast<ptrdiff_t>(width));
    }
    tensors[to] = std::move(out);
  }

  // Adds all keys but these.
  void AddKeys(gguf::Writer& writer, const std::vector<std::string>& without = {}) const {
    for (const auto& entry : file.metadata().entries()) {
      if (std::ranges::count(without, entry.key) == 0) writer.Add(entry);
    }
  }
  void AddTensors(gguf::Writer& writer) const {
    for (const auto& [name, t] : tensors) {
      writer.AddTensor(name, DType::kF32, t.dims, std::as_bytes(std::span(t.numbers)));
    }
  }

  gguf::File file;
  std::map<std::string, Floats> tensors;
};

std::vector<float> LogitsOf(const Model& model, size_t batch = 512) {
  SessionOptions options = {
      .context = 64, .batch = batch, .n_threads = 1, .kv_type = kernels::KvType::kF32};
  return test::AllLogits(model, {1, 30, 12, 9, 36, 7, 26, 27, 30, 17}, options);
}

std::vector<float> LogitsOf(const gguf::Writer& writer) {
  const std::vector<std::byte> bytes = writer.ToBytes();
  return LogitsOf(Model::From(gguf::File::Parse("f.gguf", bytes)));
}

// Qwen3-Next: queries, keys, values and gates in one matrix, by key head, or in two; betas and
// alphas likewise. Published files have any mix.
TEST(PublishedForms, ProjectionsOfQwen3Next) {
  constexpr size_t kKeyHeads = 2, kEach = 2, kLength = 6;  // of qwen3next-legacy
  constexpr size_t kValues = kEach * kLength, kHead = 2 * kLength + 2 * kValues;
  const std::string blk = "blk.0.";
  std::vector<size_t> qkv, gate, beta, alpha;
  const auto range = [](std::vector<size_t>& rows, size_t first, size_t n) {
    for (size_t i = 0; i < n; ++i) rows.push_back(first + i);
  };
  for (const size_t part : {size_t{0}, kLength, 2 * kLength}) {
    for (size_t h = 0; h < kKeyHeads; ++h) {
      range(qkv, h * kHead + part, part == 2 * kLength ? kValues : kLength);
    }
  }
  for (size_t h = 0; h < kKeyHeads; ++h) {
    range(gate, h * kHead + 2 * kLength + kValues, kValues);
    range(beta, h * 2 * kEach, kEach);
    range(alpha, h * 2 * kEach + kEach, kEach);
  }
  std::vector<float> bare;
  for (const int mix : {0, 1, 2, 3}) {
    Parts parts("qwen3next-legacy");
    if ((mix & 1) != 0) {
      parts.Gather(blk + "ssm_in.weight", blk + "attn_qkv.weight", qkv);
      parts.Gather(blk + "ssm_in.weight", blk + "attn_gate.weight", gate);
      parts.tensors.erase(blk + "ssm_in.weight");
    }
    if ((mix & 2) != 0) {
      parts.Gather(blk + "ssm_ba.weight", blk + "ssm_beta.weight", beta);
      parts.Gather(blk + "ssm_ba.weight", blk + "ssm_alpha.weight", alpha);
      parts.tensors.erase(blk + "ssm_ba.weight");
    }
    gguf::Writer writer;
    parts.AddKeys(writer);
    parts.AddTensors(writer);
    const std::vector<float> logits = LogitsOf(writer);
    if (mix == 0) bare = logits;
    EXPECT_LT(test::Nmse(logits, bare), 1e-12) << mix;
  }
}

// 262,144 tokens and 512 experts: the new ones have no weight and are never chosen, so the logits
// of the old tokens stay the same.
TEST(PublishedForms, AsManyTokensAndExpertsAsPublished) {
  constexpr size_t kTokens = 262'144, kExperts = 512;
  Parts parts("lfm2moe");
  const size_t n_tokens = parts.tensors.at("token_embd.weight").dims[1];
  std::vector<std::string> made;
  std::vector<int32_t> types;
  for (size_t i = n_tokens; i < kTokens; ++i) made.push_back("new-" + std::to_string(i));
  std::vector<std::string_view> tokens;
  for (const std::string_view token : parts.file.metadata().GetStrings("tokenizer.ggml.tokens")) {
    tokens.push_back(token);
  }
  tokens.insert(tokens.end(), made.begin(), made.end());
  for (const int64_t type : parts.file.metadata().GetInts("tokenizer.ggml.token_type")) {
    types.push_back(static_cast<int32_t>(type));
  }
  types.resize(kTokens, 1);
  for (auto& [name, t] : parts.tensors) {
    if (name == "token_embd.weight") t.dims[1] = kTokens;
    const bool by_expert = name.find("_exps.") != std::string::npos ||
                           name.find("ffn_gate_inp.") != std::string::npos ||
                           name.find("exp_probs_b") != std::string::npos;
    if (by_expert) t.dims.back() = kExperts;
    size_t n = 1;
    for (const uint64_t dim : t.dims) n *= dim;
    t.numbers.resize(n, name.find("exp_probs_b") != std::string::npos ? -100.0f : 0.0f);
  }
  gguf::Writer writer;
  parts.AddKeys(writer, {"tokenizer.ggml.tokens", "tokenizer.ggml.token_type",
                         "lfm2moe.expert_count", "lfm2moe.vocab_size"});
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddArray("tokenizer.ggml.token_type", std::span<const int32_t>(types));
  writer.Add("lfm2moe.expert_count", static_cast<uint32_t>(kExperts));
  parts.AddTensors(writer);
  const std::vector<std::byte> bytes = writer.ToBytes();
  const Model model = Model::From(gguf::File::Parse("f.gguf", bytes));
  const std::vector<float> bare =
      LogitsOf(Model::Load(test::DataPath("hybrids/lfm2moe.gguf").string()));
  for (const size_t batch : {512u, 1u}) {
    const std::vector<float> all = LogitsOf(model, batch);
    ASSERT_EQ(all.size(), bare.size() / n_tokens * kTokens);
    std::vector<float> before;
    for (size_t row = 0; row < all.size(); row += kTokens) {
      const auto begin = all.begin() + static_cast<ptrdiff_t>(row);
      before.insert(before.end(), begin, begin + static_cast<ptrdiff_t>(n_tokens));
    }
    EXPECT_LT(test::Nmse(before, bare), 1e-9) << batch;
  }
}

// Parts as a splitting program writes them: a first part without tensors, with the metadata, then
// the tensors in two parts.
TEST(PublishedForms, PartsOfASplit) {
  const Parts parts("lfm2moe");
  const test::TempDir dir;
  const auto path = [&](int no) {
    return dir.Path("m-0000" + std::to_string(no) + "-of-00003.gguf");
  };
  size_t n = 0;
  for (uint16_t no = 0; no < 3; ++no) {
    gguf::Writer writer;
    if (no == 0) parts.AddKeys(writer);
    writer.Add("split.no", no);
    writer.Add("split.count", uint16_t{3});
    writer.Add("split.tensors.count", static_cast<int32_t>(parts.tensors.size()));
    size_t i = 0;
    for (const auto& [name, t] : parts.tensors) {
      const bool first_half = i++ < parts.tensors.size() / 2;
      if (no == 0 || first_half != (no == 1)) continue;
      writer.AddTensor(name, DType::kF32, t.dims, std::as_bytes(std::span(t.numbers)));
      ++n;
    }
    writer.WriteFile(path(no + 1));
  }
  ASSERT_EQ(n, parts.tensors.size());
  EXPECT_EQ(LogitsOf(Model::Load(path(1))),
            LogitsOf(Model::Load(test::DataPath("hybrids/lfm2moe.gguf").string())));
}

// Ollama's first gpt-oss had the rows of gates and ups interleaved, which other files have in
// halves. Some of its architectures are its own.
TEST(PublishedForms, RefusedOfOllamas) {
  for (const auto& [architecture, says] : {std::pair("gptoss", "an early file of Ollama's"),
                                           std::pair("glm4moelite", "Ollama's own converter")}) {
    gguf::Writer writer;
    writer.Add("general.architecture", architecture);
    const std::vector<float> numbers(8);
    writer.AddTensor("blk.0.ffn_gate_up_exps.weight", DType::kF32, {2, 2, 2},
                     std::as_bytes(std::span(numbers)));
    const std::vector<std::byte> bytes = writer.ToBytes();
    EXPECT_TRUE(
        test::Has(test::ErrorOf([&] { Model::From(gguf::File::Parse("f.gguf", bytes)); }), says));
  }
}

}  // namespace
}  // namespace engine
