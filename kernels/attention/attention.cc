// How threads divide the work of attention. Queries are divided into query tiles (key_tiles.cc).
// With up to 16 tokens, keys are also divided into spans of 512, which threads share and whose
// results are added up. Here 8 query heads share 4 key-value heads:
//
//   query heads              0    1    2    3    ...       keys of the key-value head
//   key-value heads        |    0    |    1    | ...     | 0 ... 511 | 512 ... 1023 | ...
//
//   up to 16 tokens        | tile 0  | tile 1  | ...  x  |  span 0   |    span 1    | ...
//
//   batch, 0 ... 127       | tile 0  | tile 1  | ...  x  |           all            | ...
//          128 ... 255     | tile 4  | tile 5  | ...
//
// A row of query tiles is a token group. A thread takes a query tile, or a query tile and a span.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "kernels/attention/query_tile.h"
#include "kernels/matmul/matmul.h"

namespace kernels {
namespace {

// The arguments of Attend(). Query number t * n_heads + h is head h of token t.
struct Queries {
  const KvLayer& cache;
  const AttentionParams& params;
  TokenRows<const float> q;
  TokenRows<float> out;
  size_t n_heads;
  size_t n_tokens;
  size_t first_position;
  size_t end;  // positions of the text so far
};

// The division of queries into query tiles of at most max_queries queries: tokens times heads that
// share a key-value head. A token group is the tokens of a query tile.
struct QueryTiles {
  QueryTiles(const Queries& queries, size_t max_queries)
      : sharing_heads(queries.n_heads / queries.cache.n_kv_heads),
        heads(std::min(sharing_heads, max_queries)),
        tokens(max_queries / heads),
        per_kv_head((sharing_heads + heads - 1) / heads),
        per_group(queries.cache.n_kv_heads * per_kv_head),
        n_groups((queries.n_tokens + tokens - 1) / tokens) {}

  size_t count() const { return n_groups * per_group; }

  size_t sharing_heads;  // query heads of a key-value head
  size_t heads;          // query heads of a query tile
  size_t tokens;         // tokens of a query tile
  size_t per_kv_head;    // query tiles of a token group for the heads of a key-value head
  size_t per_group;      // query tiles of a token group
  size_t n_groups;       // number of token groups
};

// The queries of a query tile.
struct TileQueries {
  size_t token, kv_head, head;  // the first token and query head
  size_t n_tokens, n_heads;
};

TileQueries QueriesOf(const Queries& queries, const QueryTiles& tiles, size_t index) {
  const size_t token = index / tiles.per_group * tiles.tokens;
  const size_t kv_head = index % tiles.per_group / tiles.per_kv_head;
  const size_t first_head = index % tiles.per_kv_head * tiles.heads;
  return {.token = token,
          .kv_head = kv_head,
          .head = kv_head * tiles.sharing_heads + first_head,
          .n_tokens = std::min(tiles.tokens, queries.n_tokens - token),
          .n_heads = std::min(tiles.heads, tiles.sharing_heads - first_head)};
}

QueryTile TileAt(const Queries& queries, const TileQueries& at) {
  const KvLayer& cache = queries.cache;
  return {
      .kv = cache.head(at.kv_head),
      .q = queries.q.data + at.token * queries.q.stride + at.head * cache.key_length,
      .out = queries.out.data + at.token * queries.out.stride + at.head * cache.value_length,
      .q_stride = queries.q.stride,
      .out_stride = queries.out.stride,
      .n_tokens = at.n_tokens,
      .n_heads = at.n_heads,
      .first_position = queries.first_position + at.token,
      .end = queries.end,
      .params = queries.params.From(at.head),
  };
}

// In passes of up to kMaxInvariantTokens tokens, keys are divided into spans of kSpanKeys
// positions, aligned to multiples of kSpanKeys. Threads compute spans in parallel, because a model
// may have only one key-value head. The spans' results are then added up in the order of positions,
// so a token's result is the same for any number of threads and tokens.
constexpr size_t kSpanKeys = 512;
static_assert(kSpanKeys % kTileKeys == 0);
// Room for the results of spans: 256 KB of the caller's stack.
constexpr size_t kScratchFloats = size_t{1} << 16;
// If one token does not fit, all its keys are one span.
constexpr size_t kAllKeys = ~size_t{0} / 2 / kTileKeys * kTileKeys;
constexpr size_t kMaxSpans = 64;
constexpr size_t kAddedQueries = 8;  // queries that a thread adds up at a time, at least

// The results of a span for each query.
struct SpanSums {
  float* max;  // [n_queries]
  float* sum;  // [n_queries]
  float* out;  // [n_queries][value_length]
};

// Attention of up to kMaxInvariantTokens tokens, by spans of span_keys keys.
struct SmallBatch {
  Queries queries;
  size_t span_keys;

  size_t n_queries() const { return queries.n_tokens * queries.n_heads; }
  size_t FirstSpan(size_t token) const {
    return FirstVisible(queries.first_position + token, queries.params.window) / span_keys;
  }
  size_t LastSpan(size_t token) const {
    return LastVisible(queries.first_position + token, queries.params.ahead, queries.end) /
           span_keys;
  }
  KeySpan SpanAt(size_t span) const {
    return {.begin = span * span_keys, .end = (span + 1) * span_keys};
  }
};

// Returns large query tiles, since keys are converted once for all queries of a tile; smaller ones
// if query tiles times spans would be fewer than threads. (Latent attention has one key-value head
// for 128 query heads.) A query's result is the same in any tile.
QueryTiles TilesFor(const SmallBatch& batch, size_t n_spans, size_t n_threads) {
  constexpr size_t kMinQueries = 8;
  size_t max_queries = kTileQueries;
  while (max_queries > kMinQueries &&
         QueryTiles(batch.queries, max_queries).count() * n_spans < n_threads)
    max_queries /= 2;
  return QueryTiles(batch.queries, max_queries);
}

// Attention of query tile number `index` to the keys of one span, written to the span's sums.
void AttendTileToSpan(const SmallBatch& batch, const QueryTiles& tiles, size_t index, size_t span,
                      const SpanSums& sums) {
  const TileQueries at = QueriesOf(batch.queries, tiles, index);
  const size_t query = at.token * batch.queries.n_heads + at.head;
  QueryTile query_tile = TileAt(batch.queries, at);
  query_tile.out = sums.out + query * query_tile.kv.value_length;
  KeySpan keys = batch.SpanAt(span);
  keys.max = sums.max + query;
  keys.sum = sums.sum + query;
  keys.sum_stride = batch.queries.n_heads;
  AttendQueryTile(query_tile, keys, /*batch_invariant=*/true);
}

// Attention to one span, which has every key that the queries see.
void AttendToOneSpan(ThreadPool& pool, const SmallBatch& batch, size_t span) {
  const QueryTiles tiles = TilesFor(batch, 1, pool.size());
  pool.For(tiles.count(), 1, [&](size_t begin, size_t end, size_t /*thread*/) {
    for (size_t i = begin; i < end; ++i) {
      AttendQueryTile(TileAt(batch.queries, QueriesOf(batch.queries, tiles, i)), batch.SpanAt(span),
                      /*batch_invariant=*/true);
    }
  });
}

// Adds the sums of the spans that query number `query` sees, from span `first_span` on, to `total`.
// spans[i] belongs to span first_span + i.
void AddSpans(const SmallBatch& batch, size_t query, size_t first_span,
              std::span<const SpanSums> spans, const SpanSums& total) {
  const size_t length = batch.queries.cache.value_length;
  const size_t token = query / batch.queries.n_heads;
  const size_t first = batch.FirstSpan(token), last = batch.LastSpan(token);
  float* const out = total.out + query * length;
  for (size_t span = std::max(first, first_span); span <= last && span < first_span + spans.size();
       ++span) {
    const SpanSums& sums = spans[span - first_span];
    const float* const add = sums.out + query * length;
    if (span == first) {
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
    if (span == last) Scale(out, 1.0f / total.sum[query], length);
  }
}

// Attention to the spans [first, end). Computes as many spans at a time as fit in scratch, and adds
// their sums to the total.
void AttendBySpans(ThreadPool& pool, const SmallBatch& batch, size_t first, size_t end,
                   std::span<float, kScratchFloats> scratch) {
  const size_t n = batch.n_queries();
  // scratch: maximums and sums of the total, whose means go to `out`; then the sums of spans.
  const SpanSums total = {scratch.data(), scratch.data() + n, batch.queries.out.data};
  const size_t span_floats = n * (batch.queries.cache.value_length + 2);
  const size_t n_together = std::min((kScratchFloats - 2 * n) / span_floats, kMaxSpans);
  std::array<SpanSums, kMaxSpans> spans;
  for (size_t i = 0; i < n_together; ++i) {
    float* const p = scratch.data() + 2 * n + i * span_floats;
    spans[i] = {p, p + n, p + 2 * n};
  }
  const QueryTiles tiles = TilesFor(batch, std::min(n_together, end - first), pool.size());
  for (size_t begin = first; begin < end; begin += n_together) {
    const size_t count = std::min(n_together, end - begin);
    pool.For(tiles.count() * count, 1, [&](size_t from, size_t to, size_t /*thread*/) {
      for (size_t i = from; i < to; ++i) {
        AttendTileToSpan(batch, tiles, i / count, begin + i % count, spans[i % count]);
      }
    });
    pool.For(n, kAddedQueries, [&](size_t from, size_t to, size_t /*thread*/) {
      for (size_t i = from; i < to; ++i) {
        AddSpans(batch, i, begin, std::span(spans).first(count), total);
      }
    });
  }
}

// Attention of up to kMaxInvariantTokens tokens: as many at a time as fit in scratch with the sums
// of one span. If one token does not fit, all its keys are one span.
void AttendSmallBatch(ThreadPool& pool, const Queries& queries) {
  const size_t token_floats = queries.n_heads * (queries.cache.value_length + 4);
  const size_t span_keys = token_floats <= kScratchFloats ? kSpanKeys : kAllKeys;
  const size_t limit = std::max<size_t>(kScratchFloats / token_floats, 1);
  const size_t n_steps = (queries.n_tokens + limit - 1) / limit;
  alignas(64) std::array<float, kScratchFloats> scratch;
  for (size_t step = 0; step < n_steps; ++step) {
    const size_t token = queries.n_tokens * step / n_steps;
    SmallBatch batch = {queries, span_keys};
    batch.queries.q.data += token * queries.q.stride;
    batch.queries.out.data += token * queries.out.stride;
    batch.queries.n_tokens = queries.n_tokens * (step + 1) / n_steps - token;
    batch.queries.first_position += token;
    const size_t first = batch.FirstSpan(0), end = batch.LastSpan(batch.queries.n_tokens - 1) + 1;
    if (end - first == 1) {
      AttendToOneSpan(pool, batch, first);
    } else {
      AttendBySpans(pool, batch, first, end, scratch);
    }
  }
}

}  // namespace

void AttendBatch(ThreadPool& pool, const KvLayer& cache, const TokenRows<const float>& q,
                 const TokenRows<float>& out, size_t n_heads, size_t n_tokens,
                 size_t first_position, const AttentionParams& params) {
  const Queries queries = {
      cache, params, q, out, n_heads, n_tokens, first_position, first_position + n_tokens};
  const QueryTiles tiles(queries, kTileQueries);
  pool.ForDynamic(tiles.count(), 1, [&](size_t begin, size_t end, size_t /*thread*/) {
    for (size_t i = begin; i < end; ++i) {
      // The last tokens have the most keys. They go first, so that threads finish at about the same
      // time.
      const size_t group = tiles.n_groups - 1 - i / tiles.per_group;
      const size_t index = group * tiles.per_group + i % tiles.per_group;
      AttendQueryTile(TileAt(queries, QueriesOf(queries, tiles, index)),
                      {.begin = 0, .end = queries.end},
                      /*batch_invariant=*/false);
    }
  });
}

void Attend(ThreadPool& pool, const KvLayer& cache, const float* q, size_t n_heads, size_t n_tokens,
            size_t first_position, const AttentionParams& params, float* out) {
  const TokenRows<const float> q_rows = {q, n_heads * cache.key_length};
  const TokenRows<float> out_rows = {out, n_heads * cache.value_length};
  if (n_tokens > kMaxInvariantTokens) {
    return AttendBatch(pool, cache, q_rows, out_rows, n_heads, n_tokens, first_position, params);
  }
  AttendSmallBatch(pool, {cache, params, q_rows, out_rows, n_heads, n_tokens, first_position,
                          first_position + n_tokens});
}

}  // namespace kernels
