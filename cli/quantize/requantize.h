// The work of pronk quantize: chooses each tensor's type by the mix (convert/quantize_plan.h) and
// flags, and converts its weights in pieces: old and new weights need not fit into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "convert/importance.h"
#include "convert/quantize_plan.h"
#include "gguf/file.h"
#include "gguf/tensor.h"
#include "kernels/threads/thread_pool.h"

namespace cli {

struct TypeOptions {
  std::string type;                   // the name of a mix
  std::vector<std::string> patterns;  // "PATTERN=TYPE"
  std::string output, embedding;      // types; empty: as the mix says
  bool pure = false;                  // all matrices get the mix's type
};

// A tensor and its new type; its own type if it stays unchanged.
struct PlannedTensor {
  const gguf::TensorView* tensor;
  gguf::DType type;

  bool is_changed() const { return type != tensor->dtype; }
  uint64_t bytes() const {
    return is_changed() ? gguf::RowBytes(type, tensor->elements()) : tensor->bytes;
  }
};

// "F32|F16|..."; plain: only names with one type for all matrices.
std::string MixNames(bool plain = false);
// Throws UsageError.
const convert::Mix& MixOf(const std::string& name);

// One entry per tensor, in the file's order. A PATTERN is a regular expression (PCRE2's) that
// matches some part of the name, at least a character; the first that does overrides all else.
// Reports rows that are not whole blocks. Throws UsageError, gguf::Error if nothing can be rounded.
std::vector<PlannedTensor> PlanTypes(const gguf::File& file, const TypeOptions& options,
                                     bool has_importance);

class Requantizer {
 public:
  // importance may be null.
  Requantizer(const gguf::File& file, const convert::Importance* importance, int n_threads)
      : file_(file), importance_(importance), pool_(n_threads) {}

  // The next weights of the tensor, from index `done` on, in its new type and divided by their
  // matrix's factor ([n_matrices], or empty); moves `done` past them. The result is valid until the
  // next call. Throws gguf::Error if the type cannot represent a weight.
  std::span<const std::byte> Next(const PlannedTensor& planned, std::span<const float> factors,
                                  uint64_t& done);

  // NVFP4: each matrix's factor, its largest weight over the type's largest number. Reads all.
  std::vector<float> Factors(const gguf::TensorView& tensor);

 private:
  bool EncodePart(const PlannedTensor& planned, std::span<const float> factors, uint64_t first,
                  uint64_t n, std::byte* to) const;
  const std::byte* At(const gguf::TensorView& tensor, uint64_t weight) const {
    return tensor.data + gguf::RowBytes(tensor.dtype, weight);
  }

  // Rows are whole blocks: any multiple of the largest block can be converted, wherever rows end.
  static constexpr uint64_t kPart = 4096;          // weights that a thread takes at a time
  static constexpr uint64_t kPiece = 256 * kPart;  // weights returned at a time

  const gguf::File& file_;
  const convert::Importance* importance_;
  kernels::ThreadPool pool_;
  std::vector<std::byte> bytes_;
  ProgressLine progress_{"quantize", "MB", 1'000'000, kPipedStep};
  uint64_t bytes_read_ = 0;
};

}  // namespace cli
