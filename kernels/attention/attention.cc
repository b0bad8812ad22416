// Attention over the key-value cache, see attention.h: storing keys and values, and how threads
// divide the work. The queries are cut into blocks (tiles.cc). With up to 16 tokens, the keys are
// also cut into parts of 512, which threads share and whose results are added up.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "gguf/blocks.h"
#include "kernels/attention/block.h"
#include "kernels/attention/round_to_q4.h"
#include "kernels/half.h"
#include "kernels/matmul/matmul.h"
#include "kernels/ops/rounding.h"

namespace kernels {
namespace {

// Tokens that a thread stores at a time. Fewer do not pay for a barrier.
constexpr size_t kStoredTokens = 8;

// Rounded like activations, but with the scale in f16.
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

// The arguments of Attention(). Query number t * n_heads + h is head h of token t.
struct Queries {
  const KvLayer& cache;
  const AttentionParams& params;
  TokenRows<const float> q;
  TokenRows<float> out;
  size_t n_heads;
  size_t n_tokens;
  size_t first_pos;
  size_t end;  // positions of the text so far
};

// How queries are split into blocks of at most `queries`: tokens times heads that share a key-value
// head.
struct Blocks {
  Blocks(const Queries& all, size_t queries)
      : group(all.n_heads / all.cache.n_kv_heads),
        heads(std::min(group, queries)),
        tokens(queries / heads),
        per_group((group + heads - 1) / heads),
        per_token(all.cache.n_kv_heads * per_group),
        count((all.n_tokens + tokens - 1) / tokens * per_token) {}

  size_t group;      // heads that share a key-value head
  size_t heads;      // of a block
  size_t tokens;     // of a block
  size_t per_group;  // blocks for the heads of a group
  size_t per_token;  // blocks for all heads, of one token or several
  size_t count;      // blocks in all
};

// Block number `index`; *query gets the number of its first query.
QueryBlock BlockAt(const Queries& all, const Blocks& blocks, size_t index, size_t* query) {
  const KvLayer& cache = all.cache;
  const size_t token = index / blocks.per_token * blocks.tokens;
  const size_t kv_head = index % blocks.per_token / blocks.per_group;
  const size_t first_head = index % blocks.per_group * blocks.heads;
  const size_t head = kv_head * blocks.group + first_head;
  *query = token * all.n_heads + head;
  return {
      .kv = cache.head(kv_head),
      .q = all.q.data + token * all.q.stride + head * cache.key_length,
      .out = all.out.data + token * all.out.stride + head * cache.value_length,
      .q_stride = all.q.stride,
      .out_stride = all.out.stride,
      .n_tokens = std::min(blocks.tokens, all.n_tokens - token),
      .n_heads = std::min(blocks.heads, blocks.group - first_head),
      .first_pos = all.first_pos + token,
      .end = all.end,
      .params = all.params.From(head),
  };
}

// Up to kFewTokens tokens use parts of kPartKeys keys, aligned to multiples of that, which threads
// compute in parallel, since there may be a single key-value head. Then the parts are added up in
// the order of positions, so a token's result is the same for any number of threads and tokens.
constexpr size_t kPartKeys = 512;
static_assert(kPartKeys % kKvTile == 0);
// For the results of parts: 256 KB of the caller's stack.
constexpr size_t kScratchFloats = size_t{1} << 16;
// If that is too little for one token, its keys are one part.
constexpr size_t kAllKeys = ~size_t{0} / 2 / kKvTile * kKvTile;
constexpr size_t kMaxParts = 64;
constexpr size_t kAddedQueries = 8;  // the fewest that a thread adds up at a time

void Scale(float factor, size_t n, float* x) {
  for (size_t i = 0; i < n; ++i) x[i] *= factor;
}

// Up to kFewTokens tokens, by parts of part_keys keys.
struct FewTokens {
  Queries all;
  size_t part_keys;

  size_t n_queries() const { return all.n_tokens * all.n_heads; }
  size_t FirstPart(size_t token) const {
    return FirstVisible(all.first_pos + token, all.params.window) / part_keys;
  }
  size_t LastPart(size_t token) const {
    return LastVisible(all.first_pos + token, all.params.ahead, all.end) / part_keys;
  }
};

// The results of a part for each query.
struct Sums {
  float* max;  // [n_queries]
  float* sum;  // [n_queries]
  float* out;  // [n_queries][value_length]
};

// Returns the largest blocks, since a block's keys are converted once for all of its queries.
// Smaller ones if blocks times n_parts parts would be fewer than threads: latent attention has one
// key-value head for 128 query heads. A query's result is the same in any block.
Blocks BlocksFor(const FewTokens& few, size_t n_parts, size_t n_threads) {
  constexpr size_t kFewest = 8;
  size_t queries = kBlockQueries;
  while (queries > kFewest && Blocks(few.all, queries).count * n_parts < n_threads) queries /= 2;
  return Blocks(few.all, queries);
}

// Attention of block number `index` to the keys of one part, written to the part's `sums`, or to
// the result itself if it is the only part.
void AttendPart(const FewTokens& few, const Blocks& blocks, size_t index, size_t part,
                const Sums& sums, bool is_all) {
  size_t query;
  QueryBlock block = BlockAt(few.all, blocks, index, &query);
  KeyPart keys = {.begin = part * few.part_keys, .end = (part + 1) * few.part_keys};
  if (!is_all) {
    block.out = sums.out + query * block.kv.value_length;
    keys.max = sums.max + query;
    keys.sum = sums.sum + query;
    keys.sum_stride = few.all.n_heads;
  }
  AttendQueries(block, keys, /*few=*/true);
}

// Adds the parts from `begin` on, as far as query number `query` sees them, to `total`. parts[i]
// belongs to part begin + i.
void AddParts(const FewTokens& few, size_t query, size_t begin, std::span<const Sums> parts,
              const Sums& total) {
  const size_t length = few.all.cache.value_length;
  const size_t token = query / few.all.n_heads;
  const size_t first = few.FirstPart(token), last = few.LastPart(token);
  float* const out = total.out + query * length;
  for (size_t part = std::max(first, begin); part <= last && part < begin + parts.size(); ++part) {
    const Sums& sums = parts[part - begin];
    const float* const add = sums.out + query * length;
    if (part == first) {
      total.max[query] = sums.max[query];
      total.sum[query] = sums.sum[query];
      std::copy_n(add, length, out);
    } else {
      const float max = std::max(total.max[query], sums.max[query]);
      const float keep = std::exp(total.max[query] - max);
      const float gain = std::exp(sums.max[query] - max);
      total.max[query] = max;
      total.sum[query] = total.sum[query] * keep + sums.sum[query] * gain;
      for (size_t i = 0; i < length; ++i) out[i] = out[i] * keep + add[i] * gain;
    }
    if (part == last) Scale(1.0f / total.sum[query], length, out);
  }
}

// Processes as many parts at a time as fit in scratch.
void AttendFew(Team& team, const FewTokens& few, std::span<float, kScratchFloats> scratch) {
  const size_t n = few.n_queries();
  const size_t first = few.FirstPart(0), end = few.LastPart(few.all.n_tokens - 1) + 1;
  const auto sums_at = [&](float* p, float* out) { return Sums{p, p + n, out}; };
  const Sums total = sums_at(scratch.data(), few.all.out.data);
  if (end - first == 1) {
    const Blocks blocks = BlocksFor(few, 1, team.size());
    return team.For(blocks.count, 1, [&](size_t from, size_t to, size_t /*thread*/) {
      for (size_t i = from; i < to; ++i) AttendPart(few, blocks, i, first, total, true);
    });
  }
  std::array<Sums, kMaxParts> parts;
  const size_t part_floats = n * (few.all.cache.value_length + 2);
  const size_t n_parts = std::min((kScratchFloats - 2 * n) / part_floats, kMaxParts);
  for (size_t i = 0; i < n_parts; ++i) {
    float* const p = scratch.data() + 2 * n + i * part_floats;
    parts[i] = sums_at(p, p + 2 * n);
  }
  const Blocks blocks = BlocksFor(few, std::min(n_parts, end - first), team.size());
  for (size_t begin = first; begin < end; begin += n_parts) {
    const size_t count = std::min(n_parts, end - begin);
    team.For(blocks.count * count, 1, [&](size_t from, size_t to, size_t /*thread*/) {
      for (size_t i = from; i < to; ++i) {
        AttendPart(few, blocks, i / count, begin + i % count, parts[i % count], false);
      }
    });
    team.For(n, kAddedQueries, [&](size_t from, size_t to, size_t /*thread*/) {
      for (size_t i = from; i < to; ++i) {
        AddParts(few, i, begin, std::span(parts).first(count), total);
      }
    });
  }
}

}  // namespace

void AttendBatch(Team& team, const KvLayer& cache, const TokenRows<const float>& q,
                 const TokenRows<float>& out, size_t n_heads, size_t n_tokens, size_t first_pos,
                 const AttentionParams& params) {
  const Queries all = {cache, params, q, out, n_heads, n_tokens, first_pos, first_pos + n_tokens};
  const Blocks blocks(all, kBlockQueries);
  team.ForDynamic(blocks.count, 1, [&](size_t begin, size_t end, size_t /*thread*/) {
    for (size_t i = begin; i < end; ++i) {
      // The last tokens have the most keys and go first, so that no thread is still busy with them
      // at the end.
      const size_t tokens = blocks.count / blocks.per_token - 1 - i / blocks.per_token;
      size_t query;
      AttendQueries(BlockAt(all, blocks, tokens * blocks.per_token + i % blocks.per_token, &query),
                    {.begin = 0, .end = all.end}, /*few=*/false);
    }
  });
}

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

void StoreKv(Team& team, const KvLayer& cache, size_t first_pos, size_t n_tokens, const float* k,
             const float* v) {
  team.For(n_tokens, kStoredTokens, [&](size_t begin, size_t end, size_t /*thread*/) {
    for (size_t t = begin; t < end; ++t) {
      for (size_t h = 0; h < cache.n_kv_heads; ++h) {
        const size_t to = h * cache.capacity + (first_pos + t) % cache.capacity;
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

void Attention(Team& team, const KvLayer& cache, const float* q, size_t n_heads, size_t n_tokens,
               size_t first_pos, const AttentionParams& params, float* out) {
  const size_t q_stride = n_heads * cache.key_length, out_stride = n_heads * cache.value_length;
  if (n_tokens > kFewTokens) {
    return AttendBatch(team, cache, {q, q_stride}, {out, out_stride}, n_heads, n_tokens, first_pos,
                       params);
  }
  // As many tokens at a time as have room in scratch for one part each. If none has, its keys form
  // one part.
  const size_t token_floats = n_heads * (cache.value_length + 4);
  const size_t part_keys = token_floats <= kScratchFloats ? kPartKeys : kAllKeys;
  const size_t limit = std::max<size_t>(kScratchFloats / token_floats, 1);
  const size_t n_steps = (n_tokens + limit - 1) / limit;
  alignas(64) std::array<float, kScratchFloats> scratch;
  for (size_t step = 0; step < n_steps; ++step) {
    const size_t token = n_tokens * step / n_steps;
    const Queries some = {.cache = cache,
                          .params = params,
                          .q = {q + token * q_stride, q_stride},
                          .out = {out + token * out_stride, out_stride},
                          .n_heads = n_heads,
                          .n_tokens = n_tokens * (step + 1) / n_steps - token,
                          .first_pos = first_pos + token,
                          .end = first_pos + n_tokens};
    AttendFew(team, {some, part_keys}, scratch);
  }
}

}  // namespace kernels
