// Reads metadata values within ranges, and refuses keys that no code has read.
#include "engine/model/keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace engine {
namespace {

// Keys without effect on the logits.
constexpr std::array<std::string_view, 4> kWithoutEffect = {
    "vocab_size",
    "tensor_data_layout",
    "attention.layer_norm_epsilon",  // has no effect if norms are RMSNorm
    "rope.scaling.finetuned",
};

// The beginnings of keys of encoders, which turn images or sound into rows of the residual stream.
constexpr std::array<std::string_view, 6> kOfEncoders = {
    "vision.", "audio.", "mm.", "projector.", "deepstack_", "n_deepstack_layers"};

// Keys that would change the computation, unless they have these values.
struct DefaultValue {
  std::string_view key;
  double value;
  double other;  // accepted, too
};
constexpr std::array kDefaultValues = {
    DefaultValue{"attention.causal", 1, 1},
    DefaultValue{"use_parallel_residual", 0, 0},
    DefaultValue{"attention.max_alibi_bias", 0, 0},
    DefaultValue{"attention.sliding_window", 0, 0},
    DefaultValue{"logit_scale", 1, 0},
    DefaultValue{"rope.scaling.alpha", 0, 0},
    DefaultValue{"expert_count", 0, 0},
    DefaultValue{"expert_used_count", 0, 0},
    DefaultValue{"expert_shared_count", 0, 0},
    DefaultValue{"expert_group_count", 1, 0},
    DefaultValue{"expert_group_used_count", 1, 0},
    DefaultValue{"expert_weights_scale", 1, 0},
    DefaultValue{"expert_gating_func", 1, 0},  // softmax
    DefaultValue{"leading_dense_block_count", 0, 0},
    DefaultValue{"interleave_moe_layer_step", 1, 0},
    DefaultValue{"nextn_predict_layers", 0, 0},
};

}  // namespace

size_t Keys::Count(std::string_view key, uint64_t max) const {
  const uint64_t value = meta_.GetUint(Full(key), max);
  if (value == 0) Fail(key, "must not be 0");
  return value;
}

const gguf::Value* Keys::FindArray(std::string_view key) const {
  const gguf::Value* const value = meta_.Find(Full(key));
  return value != nullptr && value->type == gguf::ValueType::kArray ? value : nullptr;
}

size_t Keys::Length(std::string_view key) const {
  const gguf::Value* const array = FindArray(key);
  return array != nullptr ? array->count : 0;
}

void Keys::FailCount(std::string_view key, size_t n, size_t found) const {
  Fail(key, "expected one number for each of ", n, " layers, found ", found);
}

std::vector<size_t> Keys::PerLayer(std::string_view key, size_t n, uint64_t min,
                                   uint64_t max) const {
  const gguf::Value* const array = FindArray(key);
  if (array == nullptr) {
    return std::vector<size_t>(n, min > 0 ? Count(key, max) : meta_.GetUint(Full(key), max));
  }
  if (array->count != n) FailCount(key, n, array->count);
  return Array(key, n, min, max);
}

std::vector<size_t> Keys::Array(std::string_view key, size_t n, uint64_t min, uint64_t max) const {
  std::vector<size_t> numbers;
  for (const int64_t number : meta_.GetInts(Full(key))) {
    if (number < 0 || static_cast<uint64_t>(number) < min || static_cast<uint64_t>(number) > max) {
      Fail(key, "expected integers from ", min, " to ", max, ", found ", number);
    }
    numbers.push_back(static_cast<size_t>(number));
  }
  if (numbers.size() != n) {
    Fail(key, "expected ", n, " numbers, found ", numbers.size());
  }
  return numbers;
}

std::vector<double> Keys::Numbers(std::string_view key, size_t n) const {
  const gguf::Value* const array = FindArray(key);
  if (array == nullptr) return std::vector<double>(n, Number(key));
  if (array->count != n) FailCount(key, n, array->count);
  if (array->element_type != gguf::ValueType::kF32 &&
      array->element_type != gguf::ValueType::kF64) {
    const std::vector<int64_t> found = meta_.GetInts(Full(key));
    return {found.begin(), found.end()};
  }
  const std::vector<float> found = meta_.GetFloats(Full(key));
  return {found.begin(), found.end()};
}

double Keys::Positive(std::string_view key) const {
  const double value = meta_.GetFloat(Full(key));
  if (!(value > 0) || !std::isfinite(value)) {
    Fail(key, "expected a positive number, found ", value);
  }
  return value;
}

double Keys::NumberOf(const gguf::Metadata::Entry& entry) const {
  return entry.value.type == gguf::ValueType::kBool ? (meta_.GetBoolOr(entry.key, false) ? 1 : 0)
                                                    : meta_.GetFloat(entry.key);
}

void Keys::Refuse(std::string_view key, const std::string& what, const std::string& change) const {
  try {
    Fail(key, what);
  } catch (const gguf::Error& error) {
    throw KeyRefused(error.what(), prefix_ + change);
  }
}

bool Keys::RequireAllRead() const {
  bool encoders = false;
  for (const gguf::Metadata::Entry& entry : meta_.entries()) {
    if (!entry.key.starts_with(prefix_) || known_.contains(entry.key)) continue;
    const std::string_view key = entry.key.substr(prefix_.size());
    if (std::ranges::count(kWithoutEffect, key) > 0) continue;
    if (std::ranges::any_of(kOfEncoders, [&](auto head) { return key.starts_with(head); })) {
      encoders = true;
      continue;
    }
    const auto known = std::ranges::find(kDefaultValues, key, &DefaultValue::key);
    if (known == kDefaultValues.end()) {
      Refuse(key, "may change what this model computes, and this program does not know how",
             std::string(key) + "=");
    }
    const double found = NumberOf(entry);
    if (found != known->value && found != known->other) {
      std::array<char, 120> text;
      std::snprintf(text.data(), text.size(),
                    "expected %g, the only value that this program computes with, found %g",
                    known->value, found);
      Refuse(key, text.data(), std::string(key) + "=");
    }
  }
  return encoders;
}

}  // namespace engine
