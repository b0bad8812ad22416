// Attention over the key-value cache, see attention.h. Batches go by tiles of queries
// (attention_tiles.cc); this is the way of single tokens.
//
// An item of work is one token and one key-value head with all the query heads that share it. It
// walks through the keys in tiles small enough for the first-level cache: scores of the tile for
// each head, then the values weighted with exp(score - maximum so far). When a tile raises the
// maximum, what was added up before is scaled down by exp(old maximum - new maximum).
#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/attention_tiles.h"
#include "kernels/cached-inl.h"
#include "kernels/exp-inl.h"
#include "kernels/half.h"
#include "kernels/quantize.h"

#ifndef PRONK_KERNELS_ATTENTION_CC_ITEM_
#define PRONK_KERNELS_ATTENTION_CC_ITEM_
namespace kernels {

// One token and one key-value head.
struct AttentionItem {
  const std::byte* k;  // [n_keys][key_length]
  const std::byte* v;  // [n_keys][value_length]
  size_t n_keys;
  size_t key_length;
  size_t value_length;
  const float* q;  // [n_heads][key_length], the heads that share k and v
  float* out;      // [n_heads][value_length]
  size_t n_heads;
  float scale;
};

}  // namespace kernels
#endif  // PRONK_KERNELS_ATTENTION_CC_ITEM_

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

constexpr size_t kTile = 64;   // keys
constexpr size_t kHeads = 4;   // query heads whose sums fit in registers together
constexpr size_t kGroup = 16;  // query heads that pass through a tile while it is in the cache

HWY_INLINE V LoadFloats(const float* p, size_t n) {
  const D d;
  return n >= kLanes ? hn::LoadU(d, p) : hn::LoadN(d, p, n);
}

HWY_INLINE void StoreFloats(V v, float* p, size_t n) {
  const D d;
  if (n >= kLanes) {
    hn::StoreU(v, d, p);
  } else {
    hn::StoreN(v, d, p, n);
  }
}

// The state of the heads that pass through the tiles together.
struct Heads {
  std::array<float, kGroup> max;
  std::array<float, kGroup> sum;
  float scores[kGroup][kTile];
};

// scores[h][p] = scale * q[h] . k[p] for kHeads heads; heads past the last repeat it.
template <typename T>
HWY_INLINE void Scores(const std::byte* HWY_RESTRICT k, size_t n_keys, size_t length,
                       const std::array<const float*, kHeads>& q, float scale,
                       const std::array<float*, kHeads>& scores) {
  const D d;
  for (size_t p = 0; p < n_keys; ++p) {
    V sums[kHeads] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (size_t i = 0; i < length; i += kLanes) {
      const V key = LoadCached<T>(d, k + p * CachedBytes<T>(length), i, length);
      for (size_t h = 0; h < kHeads; ++h) {
        sums[h] = hn::MulAdd(key, LoadFloats(q[h] + i, length - i), sums[h]);
      }
    }
    for (size_t h = 0; h < kHeads; ++h) scores[h][p] = hn::ReduceSum(d, sums[h]) * scale;
  }
}

// Turns the scores of a tile into weights, keeps maximum and sum, and returns the factor for what
// was added up before.
HWY_INLINE float Weigh(float* HWY_RESTRICT scores, size_t n_keys, float& max, float& sum) {
  const D d;
  float tile_max = scores[0];
  for (size_t p = 1; p < n_keys; ++p) tile_max = std::max(tile_max, scores[p]);
  const float new_max = std::max(max, tile_max);
  const float factor = hn::GetLane(Exp(d, hn::Set(d, max - new_max)));  // 1 where nothing changes
  const V shift = hn::Set(d, new_max);
  V sums = hn::Zero(d);
  for (size_t p = 0; p < n_keys; p += kLanes) {
    const size_t count = std::min(kLanes, n_keys - p);
    const V e = Exp(d, hn::Sub(hn::LoadU(d, scores + p), shift));
    hn::StoreU(e, d, scores + p);
    sums = hn::Add(sums, hn::IfThenElseZero(hn::FirstN(d, count), e));
  }
  max = new_max;
  sum = sum * factor + hn::ReduceSum(d, sums);
  return factor;
}

// out[h] = factor[h] * out[h] + sum over p of weights[h][p] * v[p] for kHeads heads.
template <typename T>
HWY_INLINE void AddValues(const std::byte* HWY_RESTRICT v, size_t n_keys, size_t length,
                          const std::array<const float*, kHeads>& weights,
                          const std::array<float, kHeads>& factors,
                          const std::array<float*, kHeads>& out, size_t n_heads) {
  const D d;
  for (size_t i = 0; i < length; i += kLanes) {
    V sums[kHeads];
    for (size_t h = 0; h < kHeads; ++h) {
      sums[h] = hn::Mul(LoadFloats(out[h] + i, length - i), hn::Set(d, factors[h]));
    }
    for (size_t p = 0; p < n_keys; ++p) {
      const V value = LoadCached<T>(d, v + p * CachedBytes<T>(length), i, length);
      for (size_t h = 0; h < kHeads; ++h) {
        sums[h] = hn::MulAdd(hn::Set(d, weights[h][p]), value, sums[h]);
      }
    }
    for (size_t h = 0; h < n_heads; ++h) StoreFloats(sums[h], out[h] + i, length - i);
  }
}

// Up to kGroup heads of an item, from `first` on.
template <typename T>
void AttendGroup(const AttentionItem& item, size_t first, size_t n_heads, Heads& heads) {
  float* const out = item.out + first * item.value_length;
  heads.max.fill(-std::numeric_limits<float>::max());
  heads.sum.fill(0.0f);
  std::fill_n(out, n_heads * item.value_length, 0.0f);
  for (size_t key = 0; key < item.n_keys; key += kTile) {
    const size_t n_keys = std::min(kTile, item.n_keys - key);
    for (size_t base = 0; base < n_heads; base += kHeads) {
      const size_t count = std::min(kHeads, n_heads - base);
      std::array<const float*, kHeads> q, weights;
      std::array<float*, kHeads> scores, outs;
      std::array<float, kHeads> factors{};
      for (size_t i = 0; i < kHeads; ++i) {
        const size_t h = base + std::min(i, count - 1);
        q[i] = item.q + (first + h) * item.key_length;
        weights[i] = scores[i] = heads.scores[h];
        outs[i] = out + h * item.value_length;
      }
      Scores<T>(item.k + key * CachedBytes<T>(item.key_length), n_keys, item.key_length, q,
                item.scale, scores);
      for (size_t i = 0; i < count; ++i) {
        factors[i] = Weigh(scores[i], n_keys, heads.max[base + i], heads.sum[base + i]);
      }
      AddValues<T>(item.v + key * CachedBytes<T>(item.value_length), n_keys, item.value_length,
                   weights, factors, outs, count);
    }
  }
  const D d;
  for (size_t h = 0; h < n_heads; ++h) {
    const V factor = hn::Set(d, 1.0f / heads.sum[h]);
    float* const o = out + h * item.value_length;
    for (size_t i = 0; i < item.value_length; i += kLanes) {
      const size_t n = item.value_length - i;
      StoreFloats(hn::Mul(LoadFloats(o + i, n), factor), o + i, n);
    }
  }
}

template <typename T>
HWY_INLINE void Attend(const AttentionItem& item) {
  Heads heads = {};
  for (size_t first = 0; first < item.n_heads; first += kGroup) {
    AttendGroup<T>(item, first, std::min(kGroup, item.n_heads - first), heads);
  }
}

void AttendF32(const AttentionItem& item) { Attend<float>(item); }
void AttendF16(const AttentionItem& item) { Attend<hwy::float16_t>(item); }
void AttendQ8(const AttentionItem& item) { Attend<gguf::BlockQ8_0>(item); }

void StoreF16(const float* HWY_RESTRICT x, size_t n, std::byte* out) {
  const D d;
  const hn::Rebind<hwy::float16_t, D> dh;
  hwy::float16_t* const to = reinterpret_cast<hwy::float16_t*>(out);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, x + i)), dh, to + i);
  if (i < n) hn::StoreN(hn::DemoteTo(dh, hn::LoadN(d, x + i, n - i)), dh, to + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {
namespace {

HWY_EXPORT(AttendF32);
HWY_EXPORT(AttendF16);
HWY_EXPORT(AttendQ8);
HWY_EXPORT(StoreF16);

// Rounded as activations are, but with the scale in f16.
void StoreQ8(const float* x, size_t n, std::byte* out) {
  auto* block = reinterpret_cast<gguf::BlockQ8_0*>(out);
  for (size_t i = 0; i < n; i += 32, ++block) {
    std::array<float, 32> padded{};
    std::copy_n(x + i, std::min<size_t>(32, n - i), padded.data());
    float scale;
    std::array<int16_t, 2> sums;
    QuantizeActivations(padded.data(), 32, block->qs, &scale, sums.data());
    block->d = F32ToF16(scale);
  }
}

void Store(KvType type, const float* x, size_t n, std::byte* out) {
  switch (type) {
    case KvType::kF32:
      std::copy_n(x, n, reinterpret_cast<float*>(out));
      break;
    case KvType::kF16:
      HWY_DYNAMIC_DISPATCH(StoreF16)(x, n, out);
      break;
    case KvType::kQ8_0:
      StoreQ8(x, n, out);
      break;
  }
}

void AttendItem(KvType type, const AttentionItem& item) {
  switch (type) {
    case KvType::kF32:
      return HWY_DYNAMIC_DISPATCH(AttendF32)(item);
    case KvType::kF16:
      return HWY_DYNAMIC_DISPATCH(AttendF16)(item);
    case KvType::kQ8_0:
      return HWY_DYNAMIC_DISPATCH(AttendQ8)(item);
  }
}

// From so many tokens on keys are worth converting once for all of them.
constexpr size_t kBatchTokens = 8;

void AttendBatch(Team& team, const KvLayer& cache, const float* q, size_t n_heads, size_t n_tokens,
                 size_t first_pos, float scale, float* out) {
  const size_t group = n_heads / cache.n_kv_heads;
  const size_t heads = std::min(group, kTileQueries);  // of a tile
  const size_t tokens = kTileQueries / heads;
  const size_t parts = (group + heads - 1) / heads;
  const size_t n_tiles = (n_tokens + tokens - 1) / tokens;
  const size_t columns = cache.n_kv_heads * parts;
  team.ForDynamic(n_tiles * columns, 1, [&](size_t begin, size_t end, size_t /*thread*/) {
    for (size_t i = begin; i < end; ++i) {
      // The last tokens have most keys: they go first, so that no thread is left with one.
      const size_t token = (n_tiles - 1 - i / columns) * tokens;
      const size_t kv_head = i % columns / parts;
      const size_t first_head = i % parts * heads;
      const size_t head = kv_head * group + first_head;
      const size_t start = kv_head * cache.capacity;
      AttendTile({
          .type = cache.type,
          .k = cache.k + start * KvBytes(cache.type, cache.key_length),
          .v = cache.v + start * KvBytes(cache.type, cache.value_length),
          .key_length = cache.key_length,
          .value_length = cache.value_length,
          .q = q + (token * n_heads + head) * cache.key_length,
          .out = out + (token * n_heads + head) * cache.value_length,
          .q_stride = n_heads * cache.key_length,
          .out_stride = n_heads * cache.value_length,
          .n_tokens = std::min(tokens, n_tokens - token),
          .n_heads = std::min(heads, group - first_head),
          .first_pos = first_pos + token,
          .scale = scale,
      });
    }
  });
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
  }
  return 0;
}

void StoreKv(const KvLayer& cache, size_t first_pos, size_t n_tokens, const float* k,
             const float* v) {
  for (size_t t = 0; t < n_tokens; ++t) {
    for (size_t h = 0; h < cache.n_kv_heads; ++h) {
      const size_t to = h * cache.capacity + first_pos + t;
      const size_t from = t * cache.n_kv_heads + h;
      Store(cache.type, k + from * cache.key_length, cache.key_length,
            cache.k + to * KvBytes(cache.type, cache.key_length));
      Store(cache.type, v + from * cache.value_length, cache.value_length,
            cache.v + to * KvBytes(cache.type, cache.value_length));
    }
  }
}

void Attention(Team& team, const KvLayer& cache, const float* q, size_t n_heads, size_t n_tokens,
               size_t first_pos, float scale, float* out) {
  if (n_tokens >= kBatchTokens) {
    return AttendBatch(team, cache, q, n_heads, n_tokens, first_pos, scale, out);
  }
  const size_t group = n_heads / cache.n_kv_heads;
  const auto attend = [&](size_t begin, size_t end, size_t /*thread*/) {
    for (size_t i = begin; i < end; ++i) {
      // The last tokens have most keys: they go first, so that no thread is left with one.
      const size_t token = n_tokens - 1 - i / cache.n_kv_heads;
      const size_t kv_head = i % cache.n_kv_heads;
      const size_t start = kv_head * cache.capacity;
      const size_t head = token * n_heads + kv_head * group;
      const AttentionItem item{
          .k = cache.k + start * KvBytes(cache.type, cache.key_length),
          .v = cache.v + start * KvBytes(cache.type, cache.value_length),
          .n_keys = first_pos + token + 1,
          .key_length = cache.key_length,
          .value_length = cache.value_length,
          .q = q + head * cache.key_length,
          .out = out + head * cache.value_length,
          .n_heads = group,
          .scale = scale,
      };
      AttendItem(cache.type, item);
    }
  };
  const size_t n_items = n_tokens * cache.n_kv_heads;
  if (n_tokens == 1) {
    team.For(n_items, 1, attend);
  } else {
    team.ForDynamic(n_items, 1, attend);
  }
}

}  // namespace kernels
#endif  // HWY_ONCE
