// Hashes for the tables that a file fills. They are keyed with a random seed: a file whose strings
// all land in one slot (and so make a table quadratic) cannot be prepared in advance.
#ifndef PRONK_TOKENIZER_HASH_H_
#define PRONK_TOKENIZER_HASH_H_

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace tokenizer {

// The two halves of the 128-bit product folded into one: every bit of the result depends on all
// bits of both factors.
inline uint64_t MultiplyFold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

class SeededHash {
 public:
  SeededHash() {
    std::random_device random;
    seed_ = uint64_t{random()} << 32 | random();
    factor_ = (uint64_t{random()} << 32 | random()) | 1;
  }

  uint64_t operator()(uint64_t value) const {
    return MultiplyFold(MultiplyFold(value ^ seed_, factor_) ^ factor_, seed_ | 1);
  }

  uint64_t operator()(std::string_view text) const {
    uint64_t hash = seed_ ^ text.size();
    const char* at = text.data();
    size_t left = text.size();
    for (; left >= 8; at += 8, left -= 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      hash = MultiplyFold(hash ^ word, factor_) + seed_;
    }
    uint64_t tail = 0;
    if (left > 0) std::memcpy(&tail, at, left);
    return (*this)(hash ^ tail);
  }

 private:
  uint64_t seed_;
  uint64_t factor_;
};

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_HASH_H_
