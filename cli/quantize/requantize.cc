// Chooses types by mix and pattern, then converts tensor after tensor.
#include "cli/quantize/requantize.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>

#include "cli/command.h"
#include "cli/output/text.h"
#include "gguf/dtype.h"
#include "gguf/error.h"
#include "gguf/utf8.h"
#include "kernels/encode/encode.h"
#include "kernels/matmul/reference.h"
#include "kernels/ops/ops.h"
#include "tokenizer/split.h"

namespace cli {
namespace {

using gguf::DType;

DType TypeOf(const std::string& flag, const std::string& name) {
  const gguf::DTypeInfo* const info = gguf::FindDType(name);
  if (info != nullptr && kernels::CanEncode(info->type)) return info->type;
  throw UsageError(flag, ": expected a type of weights, such as Q6_K, found ", name);
}

struct TypePattern {
  std::string flag;
  std::unique_ptr<const tokenizer::Splitter> pattern;
  DType type;
  bool is_used = false;
};

std::vector<TypePattern> ParsePatterns(const std::vector<std::string>& texts) {
  std::vector<TypePattern> patterns;
  for (const std::string& text : texts) {
    const std::string flag = "--tensor-type " + text;
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(flag, ": expected PATTERN=TYPE, such as ffn_down=Q6_K");
    }
    const DType type = TypeOf(flag, text.substr(equals + 1));
    const tokenizer::SplitRule rule = {{}, {std::string_view(text).substr(0, equals)}};
    try {
      patterns.push_back({flag, std::make_unique<tokenizer::Splitter>(rule), type});
    } catch (const std::runtime_error&) {
      throw UsageError(flag, ": expected a regular expression before =");
    }
  }
  return patterns;
}

std::optional<DType> MatchedType(std::vector<TypePattern>& patterns, std::string_view name) {
  const std::string_view text = name.substr(0, gguf::ValidUtf8Prefix(name));
  for (TypePattern& pattern : patterns) {
    bool matches = false;
    pattern.pattern->Match(text, [&](std::string_view) { matches = true; });
    if (!matches) continue;
    pattern.is_used = true;
    return pattern.type;
  }
  return std::nullopt;
}

// The requested types, before row lengths are checked.
class Wanted {
 public:
  Wanted(const gguf::File& file, const TypeOptions& options, bool has_importance)
      : mix_(MixOf(options.type)),
        pure_(options.pure),
        patterns_(ParsePatterns(options.patterns)),
        facts_(convert::FactsOf(file.metadata(), file.tensors())) {
    facts_.has_importance = has_importance;
    if (!options.output.empty()) output_ = TypeOf("--output-tensor-type", options.output);
    if (!options.embedding.empty()) {
      embedding_ = TypeOf("--token-embedding-type", options.embedding);
    }
  }

  DType For(const gguf::TensorView& tensor) {
    if (const auto type = MatchedType(patterns_, tensor.name)) return *type;
    const bool is_embedding = tensor.name == "token_embd.weight";
    if (is_embedding && embedding_) return *embedding_;
    // The embedding serves as the output matrix if there is none.
    const bool is_output = tensor.name == "output.weight" || (is_embedding && !facts_.has_output);
    if (is_output && output_) return *output_;
    return pure_ ? mix_.type : convert::MixType(mix_, facts_, tensor.name, tensor.cols());
  }

  // Called after all tensors.
  void CheckPatterns() const {
    for (const TypePattern& pattern : patterns_) {
      if (pattern.is_used) continue;
      throw UsageError(pattern.flag,
                       ": matches no matrix that is converted, or an earlier one matches it first");
    }
  }

 private:
  const convert::Mix& mix_;
  bool pure_;
  std::vector<TypePattern> patterns_;
  convert::MixFacts facts_;
  std::optional<DType> output_, embedding_;
};

bool Is16Bit(DType type) { return type == DType::kF16 || type == DType::kBF16; }

}  // namespace

std::string MixNames(bool plain) {
  std::vector<std::string_view> names;
  for (const convert::Mix& mix : convert::AllMixes()) {
    if (mix.is_plain || !plain) names.push_back(mix.name);
  }
  return Joined(names, "|");
}

const convert::Mix& MixOf(const std::string& name) {
  if (const convert::Mix* const mix = convert::FindMix(name)) return *mix;
  throw UsageError("TYPE ", name, ": expected one of ", MixNames());
}

std::vector<PlannedTensor> PlanTypes(const gguf::File& file, const TypeOptions& options,
                                     bool has_importance) {
  Wanted wanted(file, options, has_importance);
  std::vector<PlannedTensor> plan;
  size_t n_matrices = 0, n_odd = 0;
  for (const gguf::TensorView& tensor : file.tensors()) {
    plan.push_back({&tensor, tensor.dtype});
    PlannedTensor& planned = plan.back();
    if (!convert::IsQuantized(tensor.name, tensor.n_dims)) continue;
    if (!kernels::IsWeightType(tensor.dtype)) continue;  // integers
    ++n_matrices;
    const DType type = wanted.For(tensor);
    planned.type = convert::FittingType(type, tensor.cols());
    if (planned.type == type) continue;
    ++n_odd;
    // The fallback to F16 must not replace another type of the same or a smaller size.
    if (planned.type == DType::kF16 && Is16Bit(tensor.dtype)) planned.type = tensor.dtype;
  }
  if (n_matrices == 0) gguf::Fail(file.path(), "expected matrices, found none");
  wanted.CheckPatterns();
  if (n_odd > 0) {
    Complain("note: " + std::to_string(n_odd) + " of " + std::to_string(n_matrices) +
             " matrices get a type of smaller blocks, or F16: their rows are not a whole number of "
             "blocks");
  }
  return plan;
}

std::span<const std::byte> Requantizer::Next(const PlannedTensor& planned,
                                             std::span<const float> factors, uint64_t& done) {
  const gguf::TensorView& tensor = *planned.tensor;
  const uint64_t n = std::min(kPiece, tensor.elements() - done);
  bytes_.resize(gguf::RowBytes(planned.type, n));
  std::atomic<bool> all_fit = true;
  pool_.Run([&] {
    pool_.ForDynamic((n + kPart - 1) / kPart, 1, [&](size_t begin, size_t end, size_t) {
      for (size_t part = begin; part < end; ++part) {
        const uint64_t at = part * kPart;
        std::byte* const to = bytes_.data() + gguf::RowBytes(planned.type, at);
        if (!EncodePart(planned, factors, done + at, std::min(kPart, n - at), to)) all_fit = false;
      }
    });
  });
  if (!all_fit) {
    gguf::Fail(file_.path(), "tensor ", gguf::Quoted(tensor.name), ": expected weights that ",
               gguf::Info(planned.type).name,
               " can hold, found some that are not numbers or are too large");
  }
  done += n;
  bytes_read_ += gguf::RowBytes(tensor.dtype, n);
  progress_.Update(bytes_read_, file_.tensor_bytes());
  return bytes_;
}

// Encodes row by row if columns have importance or matrices have factors.
bool Requantizer::EncodePart(const PlannedTensor& planned, std::span<const float> factors,
                             uint64_t first, uint64_t n, std::byte* to) const {
  const gguf::TensorView& tensor = *planned.tensor;
  std::array<float, kPart> weights;
  kernels::DequantizeRow(tensor.dtype, At(tensor, first), n, weights.data());
  if (const float scale = tensor.scale(); scale != 1) kernels::Scale(weights.data(), scale, n);
  if (importance_ == nullptr && factors.empty()) {
    return kernels::EncodeRow(planned.type, weights.data(), n, to);
  }
  const uint64_t cols = tensor.cols();
  for (uint64_t i = 0; i < n;) {
    const uint64_t row = (first + i) / cols, col = (first + i) % cols;
    const uint64_t count = std::min(cols - col, n - i), matrix = row / tensor.dims[1];
    const float* const columns =
        importance_ != nullptr ? importance_->Columns(tensor, matrix) : nullptr;
    if (!factors.empty()) {
      for (uint64_t j = i; j < i + count; ++j) weights[j] /= factors[matrix];
    }
    if (!kernels::EncodeRow(planned.type, &weights[i], count, to + gguf::RowBytes(planned.type, i),
                            columns != nullptr ? columns + col : nullptr)) {
      return false;
    }
    i += count;
  }
  return true;
}

std::vector<float> Requantizer::Factors(const gguf::TensorView& tensor) {
  constexpr float kLargest = 448.0f * 6.0f;  // largest scale times largest 4-bit float
  const uint64_t per_matrix = tensor.cols() * tensor.dims[1];
  std::vector<float> factors(tensor.elements() / per_matrix);
  std::vector<float> weights(tensor.cols());
  for (uint64_t row = 0; row < tensor.rows(); ++row) {
    kernels::DequantizeRow(tensor.dtype, tensor.row(row), weights.size(), weights.data());
    kernels::Scale(weights.data(), tensor.scale(), weights.size());
    float& largest = factors[row / tensor.dims[1]];
    for (const float weight : weights) largest = std::max(largest, std::fabs(weight));
  }
  for (float& factor : factors) {
    factor = factor > 0 && std::isfinite(factor) ? factor / kLargest : 1.0f;
  }
  return factors;
}

}  // namespace cli
