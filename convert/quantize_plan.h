// The type of each matrix when a model is quantized: plain, all matrices alike, or a mix, which
// gives more bits to the matrices that lose most by rounding. The mixes are llama.cpp's, with its
// names and numbers.
#ifndef PRONK_CONVERT_QUANTIZE_PLAN_H_
#define PRONK_CONVERT_QUANTIZE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/dtype.h"
#include "gguf/metadata.h"
#include "gguf/tensor.h"

namespace convert {

// general.quantization_version of the blocks as gguf/blocks.h has them.
inline constexpr uint32_t kQuantizationVersion = 2;

inline bool IsFloat(gguf::DType type) {
  return type == gguf::DType::kF32 || type == gguf::DType::kF16 || type == gguf::DType::kBF16;
}

// A target of quantization.
struct Mix {
  std::string_view name;  // "Q4_K_M"
  uint32_t file_type;     // general.file_type, which readers show
  gguf::DType type;       // of all matrices, or of most
  bool is_plain;          // of all
};
std::span<const Mix> AllMixes();
// By name, in upper or lower case; nullptr where there is none.
const Mix* FindMix(std::string_view name);

// The facts of a model on which a mix depends.
struct MixFacts {
  size_t n_layers = 0;
  size_t n_experts = 0;
  size_t n_heads_per_kv = 0;         // query heads for each of keys and values, in the first layer
  bool has_output = false;           // output.weight is there: else token_embd serves as that
  bool has_importance = false;       // an importance matrix is used
  std::vector<size_t> value_layers;  // layers that have attn_v or what holds it, in order
  std::vector<size_t> ffn_layers;    // layers that have ffn_down, in order
};
MixFacts FactsOf(const gguf::Metadata& metadata, std::span<const gguf::TensorView> tensors);

// False for what is never rounded: vectors, biases, routers, and small matrices where rounding
// saves nothing (convolutions, matrices beside the residual stream).
bool IsQuantized(std::string_view name, size_t n_dims);

// The type of a matrix with `cols` columns, if rows are whole blocks of it.
gguf::DType MixType(const Mix& mix, const MixFacts& facts, std::string_view name, uint64_t cols);

// The type itself where rows are whole blocks of it; else llama.cpp's replacement, of blocks of 32,
// or F16.
gguf::DType FittingType(gguf::DType type, uint64_t cols);

}  // namespace convert

#endif  // PRONK_CONVERT_QUANTIZE_PLAN_H_
