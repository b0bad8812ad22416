// A tensor of the new file, and where in the old tensors each of its weights is.
//
// Most tensors are copied. Some models rotate other pairs of numbers in GGUF than in Hugging Face's
// code, so rows change their order; experts are one tensor each there and one stack here; matrices
// are joined here and apart there, or the other way. So a tensor is a sequence of units (mostly
// rows), and `locate` gives the old tensor and the place of each unit.
#ifndef PRONK_CONVERT_OUT_TENSOR_H_
#define PRONK_CONVERT_OUT_TENSOR_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/safetensors.h"

namespace convert {

// The arithmetic on each number.
enum class Change : uint8_t {
  kNone,
  kPlusOne,   // norms that multiply by 1 + w (Gemma, Qwen3-Next)
  kMinusExp,  // -exp(x): decays that are stored as logarithms
  kTernary,   // -1, 0 or 1 times the mean magnitude of the matrix, as BitNet rounds while it runs
};

// How places change.
enum class Order : uint8_t {
  kSame,
  kVector,   // [1, n] or [] becomes [n]
  kTaps,     // a convolution's [channels, 1, taps] becomes [channels, taps]
  kColumn,   // [n] becomes [n, 1]
  kByGroup,  // [n] becomes [groups, n / groups] (Mamba-2's norm)
  kRopeQ,    // heads whose numbers i and i + half are a pair: now 2i and 2i + 1
  kRopeK,
  kFirstHalf,
  kSecondHalf,  // of the rows of each matrix
  kEven,
  kOdd,         // rows of each matrix; of vectors: numbers
  kTransposed,  // each matrix is stored by columns
  kEvenTransposed,
  kOddTransposed,  // the same, of the rows that the columns become
  kKeyB,
  kValueB,  // DeepSeek's matrix for keys and values: for each head both
  kGroupedQkv,
  kGroupedZ,          // Qwen3-Next: for each key head q, k, its values, their gates
  kValueHeads,        // Qwen3.5: heads of rows, grouped by key head there, tiled here
  kValueHeadsAfter,   // the same, after all queries and keys
  kValueHeadNumbers,  // the same, one row a head
  kValueHeadColumns,  // the same, of the columns
};

// The numbers that orders depend on.
struct Shapes {
  uint64_t n_heads = 0, n_kv_heads = 0;
  uint64_t n_groups = 1;  // Mamba-2's
  uint64_t head_plain = 0,
           head_value = 0;  // DeepSeek: a key's numbers that do not rotate; a value's
  uint64_t n_key_heads = 0, n_value_heads = 0;  // delta nets
  uint64_t state = 0;                           // their heads' length
};

struct Unit {
  const SafeTensor* from = nullptr;
  uint64_t first = 0, stride = 1;  // element of `from`; distance to the next
};

struct OutTensor {
  std::string name;
  std::vector<uint64_t> dims;  // the length of a row comes first
  uint64_t unit = 1;           // weights in a unit; a row is one or several of them
  std::function<Unit(uint64_t)> locate;
  Change change = Change::kNone;
  // MXFP4 as it is published: `locate` gives rows of blocks of 32, whose scales are here.
  const SafeTensor* scales = nullptr;
  // Instead of all that: numbers computed here.
  std::vector<float> values;

  uint64_t rows() const;  // of all matrices together
  const SafeTensor* source() const { return locate ? locate(0).from : nullptr; }
};

// `from` is one tensor, or an expert each. Throws gguf::Error where their shapes are not what the
// order needs.
OutTensor Arrange(const std::string& name, const std::vector<const SafeTensor*>& from, Order order,
                  const Shapes& shapes);

// MXFP4: blocks [experts, rows, n, 16] with scales [experts, rows, n]. order: kSame, kEven or kOdd.
OutTensor ArrangeMxfp4(const std::string& name, const SafeTensor& blocks, const SafeTensor& scales,
                       Order order);

}  // namespace convert

#endif  // PRONK_CONVERT_OUT_TENSOR_H_
