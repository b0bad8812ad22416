// Opens a file, and counts the bytes and operations that a token costs.
#include "engine/model/model.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/model/ollama.h"

namespace engine {

gguf::DType MainType(const gguf::File& file) {
  std::map<gguf::DType, uint64_t> bytes;
  for (const gguf::TensorView& tensor : file.tensors()) bytes[tensor.dtype] += tensor.bytes;
  const auto largest =
      std::ranges::max_element(bytes, {}, [](const auto& one) { return one.second; });
  return largest == bytes.end() ? gguf::DType::kF32 : largest->first;
}

Model Model::Load(const std::string& path, bool exact) {
  return From(gguf::File::Open(path), exact);
}

Model Model::From(gguf::File file, bool exact) {
  RespellOllama(file);
  Config config = Config::Read(file);
  Weights weights = Weights::Bind(file, config, exact);
  config.residual_cols = weights.ResidualCols();
  // A token needs one row of the embedding; padding rows only cost memory.
  std::unique_ptr<tokenizer::Tokenizer> tokenizer =
      tokenizer::Tokenizer::Create(file, config.vocab_size);
  std::vector<std::string> notes = tokenizer->vocab().notes;
  if (config.has_encoders || weights.encoder_bytes > 0) {
    notes.insert(notes.begin(), "images and sound are not read: their encoder is ignored");
  }
  return {std::move(file),      std::move(config), std::move(weights),
          std::move(tokenizer), std::move(notes),  exact};
}

uint64_t Model::BytesPerToken() const {
  const kernels::Matrix& embd = weights.token_embd;
  const bool tied = weights.output.data == embd.data;
  uint64_t unread = weights.skipped_bytes + (tied ? 0 : (embd.rows - 1) * embd.row_bytes());
  const kernels::Matrix& per_layer = weights.per_layer_token_embd;
  if (per_layer.rows > 0) unread += (per_layer.rows - 1) * per_layer.row_bytes();
  for (const LayerWeights& w : weights.layers) {
    for (const ExpertsView* experts : w.experts()) {
      if (experts->tensor == nullptr) continue;
      unread += experts->first.rows * experts->first.row_bytes() *
                (experts->n_experts - config.n_experts_used);
    }
  }
  uint64_t again = 0;  // bytes read again in further runs through the layers
  for (const gguf::TensorView& tensor : file.tensors()) {
    if (tensor.name.starts_with("blk.")) again += (config.n_runs - 1) * tensor.bytes;
  }
  return file.tensor_bytes() - unread + again;
}

std::span<const std::byte> Model::LargestStretch() const {
  constexpr size_t kMaxGap = 4096;  // padding between tensors
  constexpr size_t kEnough = size_t{1} << 30;
  std::span<const std::byte> best, current;
  for (const gguf::TensorView& tensor : file.tensors()) {
    const std::byte* const end = current.data() + current.size();
    const bool follows = !current.empty() && tensor.data >= end && tensor.data <= end + kMaxGap;
    const std::byte* const begin = follows ? current.data() : tensor.data;
    current = {begin, tensor.data + tensor.bytes};
    if (current.size() > best.size()) best = current;
  }
  return best.first(std::min(best.size(), kEnough));
}

double Model::OperationsPerToken() const {
  const auto operations = [](const kernels::Matrix& m) {
    return 2.0 * static_cast<double>(m.rows) * static_cast<double>(m.cols);
  };
  double n = 0;
  for (const LayerWeights& w : weights.layers) {
    n += 2.0 * static_cast<double>(w.matrix_elements);
    for (const ExpertsView* experts : w.experts()) {
      n += static_cast<double>(config.n_experts_used) * operations(experts->first);
    }
    for (const ExpertsView* heads : {&w.attn_k_b, &w.attn_v_b}) {
      n += static_cast<double>(heads->n_experts) * operations(heads->first);
    }
  }
  return n;
}

}  // namespace engine
