// Writes a model in the shape of TinyLlama 1.1B with random weights, for measuring
// (speed_table.py). It takes a second to make and is as fast as a trained model. Its text is noise.
//
//   random_model TYPE OUT.gguf      TYPE is a name of gguf/dtype.cc, or Q4_K_M, the usual mix of
//                                   Q4_K with Q6_K where it counts most
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/writer.h"
#include "kernels/matmul/matmul.h"
#include "tests/kernels/random_weights.h"

namespace {

using gguf::DType;

constexpr uint32_t kWidth = 2048, kKeyWidth = 256, kHidden = 5632, kLayers = 22, kVocab = 32000;

class ModelWriter {
 public:
  explicit ModelWriter(std::string_view type) : mixed_(type == "Q4_K_M") {
    const gguf::DTypeInfo* const info = gguf::FindDType(mixed_ ? "Q4_K" : type);
    if (info == nullptr) throw std::runtime_error("no such type: " + std::string(type));
    dtype_ = info->type;
  }

  void Write(const std::string& path) {
    AddMetadata();
    AddVocabulary();
    AddMatrix("token_embd", kWidth, kVocab, false);
    for (uint32_t layer = 0; layer < kLayers; ++layer) AddLayer(layer);
    AddNorm("output_norm");
    AddMatrix("output", kWidth, kVocab, true);
    writer_.WriteFile(path);
  }

 private:
  void AddMetadata() {
    writer_.Add("general.architecture", "llama");
    writer_.Add("llama.context_length", uint32_t{2048});
    writer_.Add("llama.embedding_length", kWidth);
    writer_.Add("llama.block_count", kLayers);
    writer_.Add("llama.feed_forward_length", kHidden);
    writer_.Add("llama.attention.head_count", uint32_t{32});
    writer_.Add("llama.attention.head_count_kv", uint32_t{4});
    writer_.Add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    writer_.Add("llama.rope.dimension_count", uint32_t{64});
    writer_.Add("llama.rope.freq_base", 10000.0f);
    writer_.Add("llama.vocab_size", kVocab);
  }

  // Adds three special tokens, the 256 byte tokens, and words.
  void AddVocabulary() {
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<int32_t> types = {2, 3, 3};
    for (unsigned byte = 0; byte < 256; ++byte) {
      char text[8];
      std::snprintf(text, sizeof(text), "<0x%02X>", byte);
      tokens.emplace_back(text);
      types.push_back(6);
    }
    while (tokens.size() < kVocab) {
      tokens.push_back("\xE2\x96\x81w" + std::to_string(tokens.size()));
      types.push_back(1);
    }
    std::vector<float> scores(kVocab);
    for (size_t i = 0; i < kVocab; ++i) scores[i] = -static_cast<float>(i);
    writer_.Add("tokenizer.ggml.model", "llama");
    writer_.AddStrings("tokenizer.ggml.tokens",
                       std::vector<std::string_view>(tokens.begin(), tokens.end()));
    writer_.AddArray<float>("tokenizer.ggml.scores", scores);
    writer_.AddArray<int32_t>("tokenizer.ggml.token_type", types);
    writer_.Add("tokenizer.ggml.bos_token_id", uint32_t{1});
    writer_.Add("tokenizer.ggml.eos_token_id", uint32_t{2});
    writer_.Add("tokenizer.ggml.unknown_token_id", uint32_t{0});
  }

  void AddLayer(uint32_t layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    // The mix has Q6_K in the first and last eighth of the layers, and in every third between.
    const bool fine =
        layer < kLayers / 8 || layer >= 7 * kLayers / 8 || (layer - kLayers / 8) % 3 == 2;
    AddNorm(blk + "attn_norm");
    AddMatrix(blk + "attn_q", kWidth, kWidth, false);
    AddMatrix(blk + "attn_k", kWidth, kKeyWidth, false);
    AddMatrix(blk + "attn_v", kWidth, kKeyWidth, fine);
    AddMatrix(blk + "attn_output", kWidth, kWidth, false);
    AddNorm(blk + "ffn_norm");
    AddMatrix(blk + "ffn_gate", kWidth, kHidden, false);
    AddMatrix(blk + "ffn_up", kWidth, kHidden, false);
    AddMatrix(blk + "ffn_down", kHidden, kWidth, fine);
  }

  void AddNorm(const std::string& name) {
    writer_.AddTensor(name + ".weight", DType::kF32, {kWidth}, std::as_bytes(std::span(norm_)));
  }

  // Repeats a few rows, since only their number matters. An embedding cannot be I2_S.
  void AddMatrix(const std::string& name, size_t cols, size_t rows, bool fine) {
    const bool is_other = rows == kVocab && gguf::Info(dtype_).tail_bytes > 0;
    const DType dtype = (mixed_ && fine) || is_other ? DType::kQ6_K : dtype_;
    writer_.AddTensor(name + ".weight", dtype, {cols, rows}, [this, dtype, cols, rows] {
      constexpr size_t kTileRows = 32;
      const kernels::RandomMatrix tile(dtype, kTileRows, cols, 1);
      const auto bytes = std::span(tile.view().data, kTileRows * tile.view().row_bytes());
      matrix_.clear();
      for (size_t i = 0; i < rows; i += kTileRows) {
        matrix_.insert(matrix_.end(), bytes.begin(), bytes.end());
      }
      if (const size_t tail = gguf::Info(dtype).tail_bytes; tail > 0) {  // the scale of all rows
        constexpr float kScale = 1;
        matrix_.resize(matrix_.size() + tail);
        std::memcpy(matrix_.data() + matrix_.size() - tail, &kScale, sizeof(kScale));
      }
      return std::span<const std::byte>(matrix_);
    });
  }

  bool mixed_;
  DType dtype_;
  gguf::Writer writer_;
  // Norms are small so that nothing overflows: random weights are large.
  std::vector<float> norm_ = std::vector<float>(kWidth, 1e-3f);
  std::vector<std::byte> matrix_;  // the matrix being written
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: random_model TYPE OUT.gguf\n", stderr);
    return 2;
  }
  try {
    ModelWriter(argv[1]).Write(argv[2]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "random_model: %s\n", e.what());
    return 1;
  }
}
