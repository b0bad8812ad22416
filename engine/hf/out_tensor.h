// A tensor of the new file, and the position of each of its weights in the old tensors.
//
// Most tensors are copied. Some models rotate other pairs of numbers in GGUF than in Hugging Face's
// code, so their rows are reordered. Experts are separate tensors there and one stack here. Some
// matrices are joined in one format and separate in the other. So a tensor is a sequence of units
// (mostly rows), and `locate` returns the old tensor and the position of each unit.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/hf/safetensors.h"

namespace engine {

// Arithmetic on each number.
enum class Change : uint8_t {
  kNone,
  kPlusOne,   // norms that multiply by 1 + w (Gemma, Qwen3-Next)
  kMinusExp,  // -exp(x): decays stored as logarithms
  kExp,       // the exponential, where rates are positive (Ling 3)
  kTernary,   // mean magnitude of the matrix times -1, 0 or 1, as BitNet rounds at run time
};

// How weights are reordered.
enum class Order : uint8_t {
  kSame,
  kVector,          // [1, n] or [] becomes [n]
  kTaps,            // a convolution's [channels, 1, taps] becomes [channels, taps]
  kTapsApart,       // kTaps' input, or [channels, taps], becomes [channels, 1, taps]
  kColumn,          // [n] becomes [n, 1]
  kByGroup,         // [n] becomes [groups, n / groups] (Mamba-2's norm)
  kOtherHalfFirst,  // exchanges the halves of each head
  kRopeQ,           // heads that pair numbers i and i + half: now 2i and 2i + 1
  kRopeK,
  kAfterPadding,  // drops the rows of positions that no text has (RoBERTa)
  kFirstHalf,
  kSecondHalf,  // the second half of each matrix's rows
  kEven,        // rows 0, 2, ... of each matrix; of a vector, its numbers
  kOdd,         // rows 1, 3, ...
  kTransposed,  // each matrix is stored by columns
  kByExpert,    // [experts * n, m] becomes [experts, n, m]
  kByExpertTransposed,
  kPicked,               // two rows
  kFirstHalfTransposed,  // kFirstHalf, for the rows that the columns become
  kSecondHalfTransposed,
  kEvenTransposed,
  kOddTransposed,
  kKeyB,    // from DeepSeek's matrix of keys and values for each head: the keys' part
  kValueB,  // the values' part
  kPartQ,   // q from a matrix with q, k and v of each group of heads; then kRopeQ
  kPartK,   // k likewise; then kRopeK
  kPartV,
  kHeadsTogether,  // q, k and v of each group of heads: now all q, all k, all v
  kHeadsInFour,    // q, v and k of each quarter of the heads (CodeGen): now all q, all k, all v
  kGroupedQkv,
  kGroupedZ,          // Qwen3-Next: for each key head q, k, its values, their gates
  kValueHeads,        // Qwen3.5: heads of rows, grouped by key head there, tiled here
  kValueHeadsAfter,   // kValueHeads, after all queries and keys
  kValueHeadNumbers,  // kValueHeads, one row per head
  kValueHeadColumns,  // kValueHeads, for the columns
};

// The sizes that these orders need.
struct Shapes {
  uint64_t n_heads = 0, n_kv_heads = 0;
  uint64_t n_rotated = 0;  // how many of a head's first numbers rotate; 0: all
  uint64_t head = 0;       // kOtherHalfFirst: a head's length
  uint64_t n_groups = 1;   // groups of Mamba-2, or of heads (kPartQ)
  uint64_t head_plain = 0,
           head_value = 0;  // DeepSeek: numbers per key without rope; numbers per value
  uint64_t n_key_heads = 0, n_value_heads = 0;  // delta nets
  uint64_t state = 0;                           // the length of delta nets' heads
  uint64_t n_experts = 1;
  std::array<uint64_t, 2> picked = {};
  uint64_t padding = 0;  // rows that kAfterPadding drops
};

// The end of each run of a tensor's rows, and the run's factor. Empty: no factors.
using RowFactors = std::vector<std::pair<uint64_t, float>>;

struct Unit {
  const SafeTensor* from = nullptr;
  uint64_t first = 0, stride = 1;  // index in `from`; distance to the next
};

struct OutTensor {
  std::string name;
  std::vector<uint64_t> dims;  // row length first
  uint64_t unit = 1;           // weights per unit; a row is one or several units
  std::function<Unit(uint64_t)> locate;
  Change change = Change::kNone;
  RowFactors factors;
  // Published MXFP4: the scales of the blocks of 32 whose rows `locate` returns.
  const SafeTensor* scales = nullptr;
  // If set, replaces all members above: numbers computed here.
  std::vector<float> values;

  uint64_t rows() const;  // the number of rows of all matrices together
  const SafeTensor* source() const { return locate ? locate(0).from : nullptr; }
};

// `from` is one tensor, or one per expert. Throws gguf::Error if their shapes do not fit the order.
OutTensor Arrange(const std::string& name, const std::vector<const SafeTensor*>& from, Order order,
                  const Shapes& shapes);

// MXFP4: blocks [experts, rows, n, 16] with scales [experts, rows, n]. order: kSame, kEven or kOdd.
OutTensor ArrangeMxfp4(const std::string& name, const SafeTensor& blocks, const SafeTensor& scales,
                       Order order);

// Reads any stored type (out_tensor_numbers.cc): writes n numbers of the unit to out[n], changed
// for kPlusOne, kMinusExp and kExp, but not for kTernary.
void ReadNumbers(const Unit& unit, uint64_t n, Change change, float* out);
// Number i of a tensor of floats.
float NumberAt(const SafeTensor& tensor, uint64_t i);

}  // namespace engine
