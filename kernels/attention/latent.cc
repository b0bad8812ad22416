// Makes keys and values of each head from a cache of latent vectors, see latent.h, for as many
// heads at a time as fit in scratch. The heads' matrices K are transposed. HeadProducts() makes
// their keys and values, for some positions at a time, and attention reads these like any cache.
#include "kernels/attention/latent.h"

#include <algorithm>

#include "kernels/attention/query_tile.h"
#include "kernels/matmul/reference.h"
#include "kernels/ops/hadamard.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/latent.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "kernels/attention/cached-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

template <typename T>
void ReadRow(const std::byte* HWY_RESTRICT row, size_t n, float* HWY_RESTRICT out) {
  const hn::CappedTag<float, 16> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    StoreUpTo(d, LoadCached<T>(d, row, i, n), out + i, n - i);
  }
}

void ReadCached(KvType type, const std::byte* row, size_t n, float* out) {
  WithElement(type, [&](auto element) HWY_ATTR { ReadRow<decltype(element)>(row, n, out); });
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {
namespace {

HWY_EXPORT(ReadCached);

constexpr size_t kMadeKeys = 576;   // positions at a time: whole units of work of HeadProducts()
constexpr size_t kTransposed = 32;  // rows of K^T that are transposed at a time

double Times(size_t a, size_t b) { return static_cast<double>(a) * static_cast<double>(b); }

// `n` heads from `head` on.
ExpertStack Some(const ExpertStack& stack, size_t head, size_t n) {
  ExpertStack some = stack;
  some.first.data = stack.expert(head).data;
  some.n_experts = n;
  if (stack.scales != nullptr) some.scales += head;
  if (stack.bias != nullptr) some.bias += head * stack.first.rows;
  return some;
}

// out[c][head][r] = stack's row r, column c; `rows` has room for kTransposed rows of each thread.
void TransposeHeads(ThreadPool& pool, const ExpertStack& stack, float* rows, float* out) {
  const size_t n_rows = stack.first.rows, n_cols = stack.first.cols;
  pool.ForDynamic(stack.n_experts, 1, [&](size_t begin, size_t end, size_t thread) {
    float* const in = rows + thread * kTransposed * n_cols;
    for (size_t head = begin; head < end; ++head) {
      const Matrix matrix = stack.expert(head);
      for (size_t row = 0; row < n_rows; row += kTransposed) {
        const size_t n = std::min(kTransposed, n_rows - row);
        for (size_t r = 0; r < n; ++r) {
          DequantizeRow(matrix.dtype, matrix.row(row + r), n_cols, in + r * n_cols);
        }
        for (size_t c = 0; c < n_cols; ++c) {
          float* const to = out + (c * stack.n_experts + head) * n_rows + row;
          for (size_t r = 0; r < n; ++r) to[r] = in[r * n_cols + c];
        }
      }
    }
  });
}

}  // namespace

double SavedByHeads(const KvLayer& cache, const LatentHeads& heads, size_t n_tokens,
                    size_t first_position, const AttentionParams& params) {
  const size_t end = first_position + n_tokens, latent = cache.value_length;
  const size_t plain = heads.k_t.first.cols, value = heads.v.first.rows;
  size_t n_pairs = 0;
  for (size_t pos = first_position; pos < end; ++pos) {
    n_pairs += LastVisible(pos, params.ahead, end) + 1 - FirstVisible(pos, params.window);
  }
  // Both forms multiply by K and V for each token of the batch: the absorbed form queries and
  // means, this form keys and values.
  const size_t n_before = first_position - FirstVisible(first_position, params.window);
  const double made = Times(n_before, latent * (plain + value));
  // Transposing a number takes the time of about 100 multiplications (Zen 5).
  return Times(n_pairs, 2 * latent) - Times(n_pairs, plain + value) - made -
         Times(100, latent * plain);
}

void AttendToLatents(ThreadPool& pool, const KvLayer& cache, const LatentHeads& heads,
                     const float* q, size_t n_tokens, size_t first_position,
                     const AttentionParams& params, LatentScratch& scratch, HeadScratch& products,
                     float* out, size_t rotation) {
  const size_t latent = cache.value_length, cached = cache.key_length, all = heads.k_t.n_experts;
  const size_t plain = heads.k_t.first.cols, value = heads.v.first.rows;
  const size_t key = plain + cached - latent;
  // Position 0 of the made keys is aligned like the cache's.
  const size_t first = FirstVisible(first_position, params.window) / kTileKeys * kTileKeys;
  const size_t n_keys = first_position + n_tokens - first;
  const bool int8 = UsesInt8(heads.k_t.first) && latent % 32 == 0;
  const KvType matrix_type = int8 ? KvType::kQ8_0 : KvType::kF32;
  const KvType type = std::min(cache.type.k, KvType::kF16);

  const size_t at_a_time = std::min(kMadeKeys, products.max_tokens());

  // Scratch: floats for the heads together; then for each head floats, its matrix, keys and values.
  const size_t rows = std::max(at_a_time * cached, scratch.max_threads * kTransposed * plain);
  const size_t floats = std::max(at_a_time * (key + value), plain * latent);
  const size_t matrix_bytes = (plain * KvBytes(matrix_type, latent) + 63) / 64 * 64;
  const size_t key_bytes = n_keys * KvBytes(type, key), value_bytes = n_keys * KvBytes(type, value);
  const size_t head_bytes = floats * sizeof(float) + matrix_bytes + key_bytes + value_bytes;
  const size_t fit = std::clamp<size_t>(scratch.limit / head_bytes, 1, all);
  const size_t n_steps = (all + fit - 1) / fit, n_heads = (all + n_steps - 1) / n_steps;
  const size_t size = rows * sizeof(float) + n_heads * head_bytes;
  if (scratch.size < size) {
    scratch.size = std::max(size + size / 4, scratch.limit);
    scratch.bytes = Buffer<std::byte>();  // frees the old buffer first
    scratch.bytes = Buffer<std::byte>(scratch.size);
  }
  float* const x = reinterpret_cast<float*>(scratch.bytes.get());
  float *const k = x + rows, *const v = k + n_heads * at_a_time * key;
  std::byte* const matrix = scratch.bytes.get() + (rows + n_heads * floats) * sizeof(float);
  std::byte* const kv = matrix + n_heads * matrix_bytes;

  for (size_t head = 0; head < all; head += n_heads) {
    const size_t n = std::min(n_heads, all - head);
    const ExpertStack from = Some(heads.k_t, head, n), values = Some(heads.v, head, n);
    TransposeHeads(pool, from, x, k);
    StoreKv(pool, {matrix_type, matrix, nullptr, n, plain, latent}, 0, plain, k, nullptr);
    const Matrix transposed = {int8 ? gguf::DType::kQ8_0 : gguf::DType::kF32, matrix, plain, latent,
                               from.first.scale};
    const KvLayer made = {type, kv, kv + n * key_bytes, n, n_keys, key, value};
    for (size_t p = 0; p < n_keys; p += at_a_time) {
      const size_t count = std::min(at_a_time, n_keys - p);
      pool.For(count, 8, [&](size_t begin, size_t end, size_t /*thread*/) {
        for (size_t i = begin; i < end; ++i) {
          const size_t cache_index = (first + p + i) % cache.capacity;
          float* const read = x + i * cached;
          HWY_DYNAMIC_DISPATCH(ReadCached)
          (cache.type.k, cache.k + cache_index * KvBytes(cache.type.k, cached), cached, read);
          for (size_t at = 0; rotation != 0 && at < cached; at += rotation) {
            Hadamard(read + at, rotation);
          }
          for (size_t h = 0; h < n; ++h) {
            std::copy_n(read + latent, cached - latent, k + (i * n + h) * key + plain);
          }
        }
      });
      HeadProducts(pool, {transposed, n, from.scales}, {x, 0, cached}, count, {k, key, n * key},
                   products);
      HeadProducts(pool, values, {x, 0, cached}, count, {v, value, n * value}, products);
      StoreKv(pool, made, p, count, k, v);
    }
    AttendBatch(pool, made, {q + head * key, all * key}, {out + head * value, all * value}, n,
                n_tokens, first_position - first, params.From(head));
  }
}

}  // namespace kernels
#endif  // HWY_ONCE
