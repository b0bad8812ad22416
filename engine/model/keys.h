// Keys: the metadata of one architecture, read with range checks.
//
// A key that no code reads may change what a model computes, and the text would be silently wrong.
// So every requested key is recorded, and the architecture's other keys are refused by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/error.h"
#include "gguf/metadata.h"

namespace engine {

// Far above any model's lengths; the product of a few such numbers fits in 64 bits.
inline constexpr uint64_t kMaxLength = 1u << 24;

// A file is refused because of a key that the user may override.
class KeyRefused : public gguf::Error {
 public:
  KeyRefused(const std::string& what, std::string change)
      : gguf::Error(what), change_(std::move(change)) {}
  // "KEY=TYPE:VALUE", or "KEY=" for running the file without the key.
  const std::string& change() const { return change_; }

 private:
  std::string change_;
};

// Names omit the architecture ("block_count"). Functions throw gguf::Error (file, key, found).
class Keys {
 public:
  Keys(const gguf::Metadata& meta, std::string_view architecture)
      : meta_(meta), prefix_(std::string(architecture) + ".") {}

  // Keys with another prefix; none is refused.
  Keys Of(std::string_view prefix) const { return {meta_, prefix}; }

  bool Has(std::string_view key) const { return meta_.Has(Full(key)); }

  // An integer from 1 to max.
  size_t Count(std::string_view key, uint64_t max) const;
  size_t CountOr(std::string_view key, size_t fallback, uint64_t max) const {
    return Has(key) ? Count(key, max) : fallback;
  }
  // An integer from 0 to max.
  size_t UintOr(std::string_view key, uint64_t fallback, uint64_t max) const {
    return meta_.GetUintOr(Full(key), fallback, max);
  }
  // UintOr, but a list counts as an absent key.
  size_t NumberUnlessArray(std::string_view key, uint64_t fallback, uint64_t max) const {
    return FindArray(key) != nullptr ? fallback : UintOr(key, fallback, max);
  }
  // An integer from `min` to max for each of n layers: an array of n, or one number for all layers.
  std::vector<size_t> PerLayer(std::string_view key, size_t n, uint64_t min, uint64_t max) const;

  // n integers from an array of n.
  std::vector<size_t> Array(std::string_view key, size_t n, uint64_t min, uint64_t max) const;

  // A positive, finite number.
  double Positive(std::string_view key) const;
  double PositiveOr(std::string_view key, double fallback) const {
    return Has(key) ? Positive(key) : fallback;
  }
  // PositiveOr, but 0 also means the fallback, as in published files.
  double PositiveUnlessZero(std::string_view key, double fallback) const {
    return meta_.GetFloatOr(Full(key), 0) == 0 ? fallback : Positive(key);
  }

  // PositiveOr, but 0 and negative numbers also mean the fallback.
  double PositiveUnlessNegative(std::string_view key, double fallback) const {
    return Has(key) && Number(key) <= 0 ? fallback : PositiveOr(key, fallback);
  }

  // The number of elements of a list; 0 if the key is absent.
  size_t Length(std::string_view key) const;

  // Any number; or n numbers, one for each layer: a list, or one number for all layers.
  double Number(std::string_view key) const { return meta_.GetFloat(Full(key)); }
  std::vector<double> Numbers(std::string_view key, size_t n) const;

  bool BoolOr(std::string_view key, bool fallback) const {
    return meta_.GetBoolOr(Full(key), fallback);
  }
  std::string_view StringOr(std::string_view key, std::string_view fallback) const {
    return meta_.GetStringOr(Full(key), fallback);
  }

  // Marks keys without effect in this architecture as known.
  template <class... Names>
  void Ignore(Names... keys) const {
    (Full(keys), ...);
  }
  // Throws if a key of the architecture was neither read nor ignored. Keys of an encoder of images
  // or sound are ignored; returns whether there are such keys.
  bool RequireAllRead() const;

  template <class... Parts>
  [[noreturn]] void Fail(std::string_view key, const Parts&... what) const {
    meta_.Fail(Full(key), what...);
  }
  // Throws a KeyRefused, whose change() is the architecture's prefix and `change`.
  [[noreturn]] void Refuse(std::string_view key, const std::string& what,
                           const std::string& change) const;

 private:
  const gguf::Value* FindArray(std::string_view key) const;
  [[noreturn]] void FailCount(std::string_view key, size_t n, size_t found) const;
  double NumberOf(const gguf::Metadata::Entry& entry) const;
  // The key's name in the file; records the request.
  std::string Full(std::string_view key) const {
    return *known_.insert(prefix_ + std::string(key)).first;
  }

  const gguf::Metadata& meta_;
  std::string prefix_;
  mutable std::set<std::string, std::less<>> known_;
};

}  // namespace engine
