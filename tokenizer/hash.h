// Hashes for tables filled from a file, keyed with a random seed: nobody can prepare a file whose
// strings all collide (which would make filling the table quadratic).
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace tokenizer {

// XORs the halves of the 128-bit product: each bit depends on all bits of both factors.
inline uint64_t MultiplyFold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The first eight bytes of a text as a number; a shorter text is padded with zeros.
inline uint64_t FirstBytes(std::string_view text) {
  const char* at = text.data();
  const size_t size = text.size();
  if (size >= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    return word;
  }
  if (size >= 4) {  // two halves, which may overlap
    uint32_t low;
    uint32_t high;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + size - 4, 4);
    return low | uint64_t{high} << (size - 4) * 8;
  }
  uint64_t word = 0;
  for (size_t i = 0; i < size; ++i) word |= uint64_t{static_cast<uint8_t>(at[i])} << i * 8;
  return word;
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
    uint64_t hash = text.size();
    for (; text.size() > 8; text.remove_prefix(8)) {
      hash = MultiplyFold(hash ^ seed_ ^ FirstBytes(text), factor_) + seed_;
    }
    return (*this)(hash ^ FirstBytes(text));
  }

 private:
  uint64_t seed_;
  uint64_t factor_;
};

}  // namespace tokenizer
