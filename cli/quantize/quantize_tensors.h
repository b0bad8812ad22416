// The numbers of pronk quantize: a tensor's weights in another type, a piece at a time, so that
// neither the old weights nor the new ones need to fit into memory.
#ifndef PRONK_CLI_QUANTIZE_QUANTIZE_TENSORS_H_
#define PRONK_CLI_QUANTIZE_QUANTIZE_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cli/quantize/quantize_types.h"
#include "cli/terminal/terminal.h"
#include "convert/importance.h"
#include "gguf/file.h"
#include "kernels/machine/team.h"

namespace cli {

class Converter {
 public:
  // importance may be null.
  Converter(const gguf::File& file, const convert::Importance* importance, int n_threads)
      : file_(file), importance_(importance), team_(n_threads) {}

  // The next weights of the tensor, from number `done` on, in its new type and divided by their
  // matrix's factor ([n_matrices], or empty); moves `done` past them. What is returned lasts
  // until the next call. Throws gguf::Error where a weight has no value in the type.
  std::span<const std::byte> Next(const PlannedTensor& planned, std::span<const float> factors,
                                  uint64_t& done);

  // NVFP4: a factor for each of the tensor's matrices that brings its largest weight to the largest
  // number that the type has. Reads all weights.
  std::vector<float> Factors(const gguf::TensorView& tensor);

 private:
  bool EncodePart(const PlannedTensor& planned, std::span<const float> factors, uint64_t first,
                  uint64_t n, std::byte* to) const;
  const std::byte* At(const gguf::TensorView& tensor, uint64_t weight) const {
    return tensor.data + gguf::RowBytes(tensor.dtype, weight);
  }

  // Of a tensor whose rows are whole blocks, any multiple of the largest block can be converted
  // without regard to rows.
  static constexpr uint64_t kPart = 4096;          // weights that a thread takes at a time
  static constexpr uint64_t kPiece = 256 * kPart;  // weights that are handed over at a time

  const gguf::File& file_;
  const convert::Importance* importance_;
  kernels::Team team_;
  std::vector<std::byte> bytes_;
  ProgressLine progress_{"quantize", 0.5, "MB"};
  uint64_t bytes_read_ = 0;
};

}  // namespace cli

#endif  // PRONK_CLI_QUANTIZE_QUANTIZE_TENSORS_H_
