// The type of each matrix when a model is quantized: plain, the same for all, or a mix, with more
// bits for sensitive matrices. Mixes are llama.cpp's, with its names and numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/dtype.h"
#include "gguf/file.h"
#include "gguf/metadata.h"
#include "gguf/tensor.h"

namespace convert {

// general.quantization_version of the block formats in gguf/blocks.h.
inline constexpr uint32_t kQuantizationVersion = 2;

inline bool IsFloat(gguf::DType type) {
  return type == gguf::DType::kF32 || type == gguf::DType::kF16 || type == gguf::DType::kBF16;
}

// A target of quantization.
struct Mix {
  std::string_view name;  // "Q4_K_M"
  uint32_t file_type;     // general.file_type, which readers show
  gguf::DType type;       // the type of all matrices, or of most
  bool is_plain;          // all matrices have this type
};
std::span<const Mix> AllMixes();
// The mix with this name (any case); nullptr if unknown.
const Mix* FindMix(std::string_view name);

// The type of a file as llama-bench names it, "Q8_0" or "Q4_K - Medium": the type of most weights,
// or the mix of general.file_type.
std::string FileTypeName(const gguf::File& file);

// The properties of a model that a mix depends on.
struct MixFacts {
  size_t n_layers = 0;
  size_t n_experts = 0;
  size_t n_heads_per_kv = 0;         // query heads per key-value head, in the first layer
  bool has_output = false;           // output.weight exists; otherwise token_embd is used
  bool has_importance = false;       // an importance matrix is used
  std::vector<size_t> value_layers;  // layers with attn_v or a joined matrix, in order
  std::vector<size_t> ffn_layers;    // layers with ffn_down, in order
};
MixFacts FactsOf(const gguf::Metadata& metadata, std::span<const gguf::TensorView> tensors);

// False for tensors that are never rounded: vectors, biases, routers, and small matrices where
// rounding saves nothing (convolutions, matrices beside the residual stream).
bool IsQuantized(std::string_view name, size_t n_dims);

// The type of a matrix with `cols` columns, if rows are whole blocks of it.
gguf::DType MixType(const Mix& mix, const MixFacts& facts, std::string_view name, uint64_t cols);

// The type if rows are whole blocks of it; else llama.cpp's replacement of blocks of 32, or F16.
gguf::DType FittingType(gguf::DType type, uint64_t cols);

}  // namespace convert
