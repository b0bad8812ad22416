// Keys: the metadata of one architecture, read with ranges.
//
// A key that nobody reads may change what a model computes, and without it the text would be wrong
// and nobody would see why. So every key that is asked for is noted, and at the end those of the
// architecture that nobody asked for are refused by name.
#ifndef PRONK_ENGINE_MODEL_KEYS_H_
#define PRONK_ENGINE_MODEL_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"

namespace engine {

// The end of a message: what stands there instead.
inline std::string Found(size_t value) { return ", found " + std::to_string(value); }

// Names are those behind the architecture's own: "block_count" is "llama.block_count" in the file.
// What is refused throws gguf::Error (file, key, expected, found).
class Keys {
 public:
  Keys(const gguf::Metadata& meta, std::string_view architecture)
      : meta_(meta), prefix_(std::string(architecture) + ".") {}

  bool Has(std::string_view key) const { return meta_.Has(Full(key)); }

  // An integer from 1 to max.
  size_t Count(std::string_view key, uint64_t max) const;
  size_t CountOr(std::string_view key, size_t fallback, uint64_t max) const;
  // An integer from 0 to max.
  size_t UintOr(std::string_view key, uint64_t fallback, uint64_t max) const;
  // The same; a list of values is as good as no key.
  size_t NumberUnlessArray(std::string_view key, uint64_t fallback, uint64_t max) const;
  // One integer from `min` to max for each of n layers: an array of so many, or one for all.
  std::vector<size_t> PerLayer(std::string_view key, size_t n, uint64_t min, uint64_t max) const;

  // Such an array, of n integers.
  std::vector<size_t> Array(std::string_view key, size_t n, uint64_t min, uint64_t max) const;

  // A positive, finite number.
  double Positive(std::string_view key) const;
  double PositiveOr(std::string_view key, double fallback) const;
  // The same, but 0 also stands for the fallback, as in published files.
  double PositiveUnlessZero(std::string_view key, double fallback) const;

  // Any number; n of them, one for each layer.
  double Number(std::string_view key) const { return meta_.GetFloat(Full(key)); }
  std::vector<double> Numbers(std::string_view key, size_t n) const;

  bool BoolOr(std::string_view key, bool fallback) const;
  std::string_view StringOr(std::string_view key, std::string_view fallback) const;

  // Takes a key as known that has no effect in this architecture.
  void Ignore(std::string_view key) const { Full(key); }
  // Throws where a key of the architecture was neither read nor ignored.
  void RequireAllRead() const;

  [[noreturn]] void Fail(std::string_view key, const std::string& what) const {
    meta_.Fail(Full(key), what);
  }

 private:
  [[noreturn]] void FailCount(std::string_view key, size_t n, size_t found) const;
  double NumberOf(const gguf::Metadata::Entry& entry) const;
  // The key as the file has it; notes that it was asked for.
  std::string Full(std::string_view key) const;

  const gguf::Metadata& meta_;
  std::string prefix_;
  mutable std::set<std::string, std::less<>> known_;
};

}  // namespace engine

#endif  // PRONK_ENGINE_MODEL_KEYS_H_
