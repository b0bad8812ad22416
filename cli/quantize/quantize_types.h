// Which type each tensor of a model becomes in pronk quantize: what the mix says
// (convert/quantize_plan.h), and what flags say of single tensors.
#ifndef PRONK_CLI_QUANTIZE_QUANTIZE_TYPES_H_
#define PRONK_CLI_QUANTIZE_QUANTIZE_TYPES_H_

#include <string>
#include <vector>

#include "convert/quantize_plan.h"
#include "gguf/file.h"
#include "gguf/tensor.h"

namespace cli {

struct TypeOptions {
  std::string type;                   // of a mix
  std::vector<std::string> patterns;  // "PATTERN=TYPE"
  std::string output, embedding;      // types; empty: as the mix says
  bool pure = false;                  // all matrices the mix's type
};

// A tensor and what it becomes; its own type where it stays as it is.
struct PlannedTensor {
  const gguf::TensorView* tensor;
  gguf::DType type;

  bool is_changed() const { return type != tensor->dtype; }
  uint64_t bytes() const { return gguf::RowBytes(type, tensor->elements()); }
};

// "F32|F16|..."; plain: those with one type for all matrices.
std::string MixNames(bool plain = false);
// Throws UsageError.
const convert::Mix& MixOf(const std::string& name);

// For every tensor of the file, in its order. A PATTERN is a regular expression (ECMAScript's, as
// in llama.cpp) that some part of the name matches; the first pattern that does counts, before all
// else. Says where rows are not whole blocks. Throws UsageError, and gguf::Error where the file has
// nothing to round.
std::vector<PlannedTensor> PlanTypes(const gguf::File& file, const TypeOptions& options,
                                     bool has_importance);

}  // namespace cli

#endif  // PRONK_CLI_QUANTIZE_QUANTIZE_TYPES_H_
