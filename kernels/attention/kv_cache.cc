// The key-value cache: its layout, and keys and values rounded to its types.
#include "kernels/attention/kv_cache.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "gguf/blocks.h"
#include "kernels/attention/round_to_q4.h"
#include "kernels/half.h"
#include "kernels/ops/rounding.h"

namespace kernels {
namespace {

// Tokens that a thread stores at a time. Fewer do not pay for a barrier.
constexpr size_t kStoredTokens = 8;

// Rounds like RoundActivations, but stores the scales in f16.
void StoreQ8(const float* x, size_t n, std::byte* out) {
  auto* block = reinterpret_cast<gguf::BlockQ8_0*>(out);
  for (size_t i = 0; i < n; i += 32, ++block) {
    std::array<float, 32> padded{};
    std::copy_n(x + i, std::min<size_t>(32, n - i), padded.data());
    float scale;
    std::array<int16_t, 2> sums;
    RoundActivations(padded.data(), 32, block->qs, &scale, sums.data());
    block->d = F32ToF16(scale);
  }
}

void StoreQ4(const float* x, size_t n, std::byte* out) {
  auto* block = reinterpret_cast<gguf::BlockQ4_0*>(out);
  for (size_t i = 0; i < n; i += 32, ++block) {
    std::array<float, 32> padded{};
    std::copy_n(x + i, std::min<size_t>(32, n - i), padded.data());
    RoundToQ4(padded.data(), *block);
  }
}

void Store(KvType type, const float* x, size_t n, std::byte* out) {
  switch (type) {
    case KvType::kF32:
      std::copy_n(x, n, reinterpret_cast<float*>(out));
      return;
    case KvType::kF16:
      return RoundToF16(x, n, reinterpret_cast<uint16_t*>(out));
    case KvType::kQ8_0:
      return StoreQ8(x, n, out);
    case KvType::kQ4_0:
      return StoreQ4(x, n, out);
  }
}

}  // namespace

size_t KvBytes(KvType type, size_t length) {
  switch (type) {
    case KvType::kF32:
      return length * sizeof(float);
    case KvType::kF16:
      return length * sizeof(uint16_t);
    case KvType::kQ8_0:
      return (length + 31) / 32 * sizeof(gguf::BlockQ8_0);
    case KvType::kQ4_0:
      return (length + 31) / 32 * sizeof(gguf::BlockQ4_0);
  }
  return 0;
}

KvHead KvLayer::head(size_t i) const {
  const size_t stride = v != nullptr ? value_length : key_length;
  const KvType of_values = v != nullptr ? type.v : type.k;
  return {.type = {type.k, of_values},
          .k = k + i * capacity * KvBytes(type.k, key_length),
          .v = (v != nullptr ? v : k) + i * capacity * KvBytes(of_values, stride),
          .capacity = capacity - skipped,
          .key_length = key_length,
          .value_length = value_length,
          .value_stride = stride};
}

KvLayer KvLayer::From(size_t first) const {
  KvLayer rest = *this;
  rest.skipped += first;
  rest.k += first * KvBytes(type.k, key_length);
  if (v != nullptr) rest.v += first * KvBytes(type.v, value_length);
  return rest;
}

void StoreKv(ThreadPool& pool, const KvLayer& cache, size_t first_position, size_t n_tokens,
             const float* k, const float* v) {
  pool.For(n_tokens, kStoredTokens, [&](size_t begin, size_t end, size_t /*thread*/) {
    for (size_t t = begin; t < end; ++t) {
      for (size_t h = 0; h < cache.n_kv_heads; ++h) {
        const size_t to = h * cache.capacity + (first_position + t) % cache.capacity;
        const size_t from = t * cache.n_kv_heads + h;
        Store(cache.type.k, k + from * cache.key_length, cache.key_length,
              cache.k + to * KvBytes(cache.type.k, cache.key_length));
        if (cache.v == nullptr) continue;
        Store(cache.type.v, v + from * cache.value_length, cache.value_length,
              cache.v + to * KvBytes(cache.type.v, cache.value_length));
      }
    }
  });
}

}  // namespace kernels
