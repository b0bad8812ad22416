// Attention in integers on x86 (key_tiles.cc): scores, attention weights and means of a tile, for
// numbers that int16_operands-inl.h and int8_operands-inl.h make. Included once per instruction
// set.
//
// A lane belongs to a query, so that neither sums nor maximums cross lanes, and keys stay in their
// rows. A WORD is 32 bits of a key: two or four numbers, whose products one instruction adds up. It
// is broadcast to all queries. Where the queries do not fill a vector, each query has kQueryLanes
// lanes, and kQueryLanes neighbouring words of the key are broadcast. Then each of these lanes has
// a part of the query's sum. The parts for kQueryLanes keys are added up together, so that lane
// query * kQueryLanes + i gets the whole sum of key i.
#if defined(PRONK_KERNELS_ATTENTION_INTEGER_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_INTEGER_PRODUCTS_INL_H_
#undef PRONK_KERNELS_ATTENTION_INTEGER_PRODUCTS_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_INTEGER_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/attention/float_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

using DU32 = hn::Repartition<uint32_t, DF>;
using VU32 = hn::Vec<DU32>;
constexpr float kInt16Limit = 32767;
// The score of a key that a query does not see.
constexpr float kUnseen = -std::numeric_limits<float>::infinity();

// The smallest range that has these keys and is aligned to the number of keys that loops process at
// a time: 16, or four vectors of scores if that is more.
template <size_t kQueryLanes>
HWY_INLINE KeyRange AlignKeys(KeyRange keys) {
  constexpr size_t kAtATime = std::max<size_t>(16, 4 * kQueryLanes);
  return {keys.begin / kAtATime * kAtATime, (keys.end + kAtATime - 1) / kAtATime * kAtATime};
}

// The kQueryLanes words at p, repeated through the vector.
template <size_t kQueryLanes>
HWY_INLINE VU8 Broadcast(const void* HWY_RESTRICT p) {
  const DU8 d;
  const auto* const bytes = static_cast<const uint8_t*>(p);
  if constexpr (kQueryLanes <= 2) {
    std::conditional_t<kQueryLanes == 1, uint32_t, uint64_t> words;
    hwy::CopyBytes<4 * kQueryLanes>(p, &words);
    return hn::BitCast(d, hn::Set(hn::Repartition<decltype(words), DU8>(), words));
  }
  if constexpr (kQueryLanes == 4) return hn::LoadDup128(d, bytes);
  if constexpr (kQueryLanes == 8) {
    const auto words = hn::LoadU(hn::FixedTag<uint8_t, 4 * kQueryLanes>(), bytes);
    return hn::Combine(d, words, words);
  }
}

// Lane i gets number i / kQueryLanes of p.
template <size_t kQueryLanes>
HWY_INLINE VF ToLanes(const float* HWY_RESTRICT p) {
  const DF d;
  const auto some =
      hn::ResizeBitCast(d, hn::Load(hn::FixedTag<float, kFloatLanes / kQueryLanes>(), p));
  const auto index = hn::ShiftRight<hwy::FloorLog2(kQueryLanes)>(hn::Iota(DI32(), 0));
  return hn::TableLookupLanes(some, hn::IndicesFromVec(d, index));
}
// Number i of p gets lane i * kQueryLanes.
template <size_t kQueryLanes>
HWY_INLINE void FromLanes(VF v, float* HWY_RESTRICT p) {
  const DF d;
  const auto index = hn::And(hn::ShiftLeft<hwy::FloorLog2(kQueryLanes)>(hn::Iota(DI32(), 0)),
                             hn::Set(DI32(), kFloatLanes - 1));
  const auto some = hn::TableLookupLanes(v, hn::IndicesFromVec(d, index));
  hn::Store(hn::ResizeBitCast(hn::FixedTag<float, kFloatLanes / kQueryLanes>(), some),
            hn::FixedTag<float, kFloatLanes / kQueryLanes>(), p);
}

// Combines the kQueryLanes lanes of each query; each lane gets the result.
template <size_t kQueryLanes, class V, class Combine>
HWY_INLINE V CombineLanes(V v, Combine combine) {
  const hn::DFromV<V> d;
  if constexpr (kQueryLanes > 1) v = combine(v, hn::Reverse2(d, v));
  if constexpr (kQueryLanes > 2) v = combine(v, hn::Shuffle1032(v));
  if constexpr (kQueryLanes > 4) v = combine(v, hn::SwapAdjacentBlocks(v));
  return v;
}

// The kQueryLanes lanes of a query in sums[k * stride] are the parts of its sum for key k. Lane i
// of the query in the result is the whole sum for key i.
template <size_t kQueryLanes>
HWY_INLINE VI32 AddParts(const VI32* sums, size_t stride) {
  const DI32 d;
  if constexpr (kQueryLanes == 1) return sums[0];
  if constexpr (kQueryLanes > 1) {
    constexpr size_t kHalf = kQueryLanes / 2;
    const VI32 a = AddParts<kHalf>(sums, stride);
    const VI32 b = AddParts<kHalf>(sums + kHalf * stride, stride);
    if constexpr (kQueryLanes == 2) {
      return hn::Add(hn::InterleaveEven(d, a, b), hn::InterleaveOdd(d, a, b));
    }
    if constexpr (kQueryLanes == 4) {
      const hn::Repartition<int64_t, DI32> d64;
      const auto low = hn::BitCast(d64, a), high = hn::BitCast(d64, b);
      return hn::Add(hn::BitCast(d, hn::InterleaveEven(d64, low, high)),
                     hn::BitCast(d, hn::InterleaveOdd(d64, low, high)));
    }
    if constexpr (kQueryLanes == 8) {
      return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a),
                     hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a)));
    }
  }
}

// Common to Int16Products and Int8Products. Vector j of lanes has the queries from j *
// kWidth on. A key's chunk of kHeadChunk numbers consists of kBlocks blocks of kWords words; each
// block has a scale.
template <typename T, size_t kLanes, size_t kChunkBlocks, size_t kBlockWords>
struct LaneBuffers {
  static constexpr size_t kChunkBytes = CachedBytes<T>(kHeadChunk);
  static constexpr bool kIntegers = true;
  static constexpr float kUnitsPerOctave = 2048;  // adding this to a kept score doubles the weight
  static constexpr float kWeightOfOne = 32768;    // stands for a weight of 1
  static constexpr size_t kQueryLanes = kLanes, kBlocks = kChunkBlocks, kWords = kBlockWords;
  static constexpr size_t kWidth = kFloatLanes / kQueryLanes;
  // Weights are packed for this many queries at a time, for the keys that any of these queries
  // sees.
  static constexpr size_t kWeightQueries = std::max(kWidth, kRegisterQueries);
  template <size_t kQueries>
  static constexpr size_t kVectors = kRowVectors;  // vectors of sums of values
  // Scales are at least this, so that the ratio of two scales is finite if they are below 3e23.
  static constexpr float kMinScale = 1e-15f;

  // Numbers [first, first + n) of the cached vectors of a tile's aligned keys; `next` gets the
  // address of these numbers in the next tile.
  CachedRows FindVectors(const std::byte* cache, size_t length, const KeyTile& tile, size_t first,
                         size_t n, const std::byte*& next) {
    const TileVectors vectors = {cache, CachedBytes<T>(length), tile};
    const ByteRange part = {CachedBytes<T>(first), CachedBytes<T>(n)};
    next = vectors.NextTile(part.offset);
    const KeyRange aligned = AlignKeys<kQueryLanes>(tile.seen);
    return vectors.Find(tile.stored, aligned.begin, aligned.end - aligned.begin, part, copy,
                        kChunkBytes);
  }
  // The start value of the sums of block b of packed chunk number `packed`, in the first lane of
  // its query.
  int32_t& StartAt(size_t packed, size_t b) {
    return q_starts[(packed / kWidth * kBlocks + b) * kFloatLanes + packed % kWidth * kQueryLanes];
  }
  // Sets the scale of query i's packed chunk number `packed`, as a ratio to the scale of the
  // query's first chunk. Clears the chunk's start values.
  void SetScale(size_t i, size_t packed, bool is_first, float scale, float factor) {
    for (size_t b = 0; b < kBlocks; ++b) std::fill_n(&StartAt(packed, b), kQueryLanes, 0);
    const float bounded = scale < kMinScale ? kMinScale : scale;
    if (is_first) first_scales[i] = bounded;
    q_gains[i] = first_scales[i] * factor;
    chunk_ratios[packed] = bounded / first_scales[i];
  }
  // Stores word i of packed chunk number `packed`.
  void PutWord(size_t packed, size_t i, uint32_t word) {
    const size_t vectors = packed / kWidth * (kBlocks * kWords / kQueryLanes) + i / kQueryLanes;
    q_words[vectors * kFloatLanes + packed % kWidth * kQueryLanes + i % kQueryLanes] = word;
  }

  alignas(64) uint32_t keys[kTileKeys][kBlocks * kWords];  // unless they are read in place
  alignas(64) float key_scales[kBlocks][kTileKeys];
  // [packed / kWidth][block][word / kQueryLanes][packed % kWidth][word % kQueryLanes]
  alignas(64) uint32_t q_words[kPackedChunks * kBlocks * kWords];
  // A score is q_gains of the query, times the sum over its chunks of chunk_ratios * (product of
  // the first block + block_ratios * product of the second block). The ratios are ratios of scales.
  alignas(64) float q_gains[kTileQueries], chunk_ratios[kPackedChunks], block_ratios[kPackedChunks];
  float first_scales[kTileQueries];
  alignas(64) int32_t q_starts[kPackedChunks * kBlocks * kQueryLanes];  // start values of sums
  // Words of the weights of neighbouring keys, [query / kWidth][word / kQueryLanes][query %
  // kWidth][word % kQueryLanes]. Weights of two bytes have the low bytes in the first half of [word
  // / kQueryLanes], the high bytes in the second half.
  alignas(64) uint32_t weights[kBlocks][kTileQueries * kTileKeys / 2];
  const std::byte *next_keys, *next_values;  // keys and values of the next tile
  std::byte copy[kTileKeys * kChunkBytes];   // rows that are not read in place
};

// sums[k * kVectors + v] = products of block b of the kQueryLanes keys from key + k * kQueryLanes
// on with the queries of vector j + v, times the keys' scales.
template <size_t kVectors, size_t kSums, class Products, class Next>
HWY_INLINE void MultiplyKeys(const Products& p, size_t key, size_t j, size_t b, size_t n_words,
                             Next& ahead, VF (&sums)[kSums]) {
  constexpr size_t kQueryLanes = Products::kQueryLanes, kWords = Products::kWords;
  constexpr size_t kBlocks = Products::kBlocks;
  VI32 dots[kSums * kQueryLanes];
  HWY_UNROLL(16)
  for (size_t i = 0; i < kSums * kQueryLanes; ++i) {
    dots[i] = hn::Load(DI32(), p.q_starts + ((j + i % kVectors) * kBlocks + b) * kFloatLanes);
  }
  const size_t stride = p.KeyStride();
  const std::byte* HWY_RESTRICT const words = p.KeyAt(key, b);
  const uint32_t* HWY_RESTRICT const q =
      p.q_words + (j * kBlocks + b) * kWords / kQueryLanes * kFloatLanes;
  for (size_t begin = 0; begin < n_words; begin += 8) {
    HWY_UNROLL(8)
    for (size_t w = begin; w < begin + 8; w += kQueryLanes) {
      ahead.Step();
      HWY_UNROLL(16)
      for (size_t i = 0; i < kSums * kQueryLanes; ++i) {
        const VU8 word = Broadcast<kQueryLanes>(words + i / kVectors * stride + 4 * w);
        const size_t at = (i % kVectors * kBlocks * kWords + w) / kQueryLanes * kFloatLanes;
        dots[i] = Products::Dot(dots[i], word, hn::Load(DU32(), q + at));
      }
    }
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < kSums; ++i) {
    const size_t k = i / kVectors * kQueryLanes;
    const VI32 dot = AddParts<kQueryLanes>(dots + k * kVectors + i % kVectors, kVectors);
    const VF scale = hn::BitCast(DF(), Broadcast<kQueryLanes>(p.key_scales[b] + key + k));
    sums[i] = hn::Mul(hn::ConvertTo(DF(), dot), scale);
  }
}

// Turns the scores of a vector of queries into attention weights relative to their maximum, as
// integers, where 32768 means 1 (at most 32767). Pairs, the weights of two keys, replace the
// scores.
//
// The largest score is 32767 units, 2048 units are a power of two, and -32768 stands for every
// weight below 2^-32. So the high bits of 32767 - units are the exponent; the other bits are a
// fraction f, and 2^-f is a polynomial in integers: 9e-5 too large on average, with a standard
// deviation of 5e-5, and at most 1.9e-4.
template <size_t kQueryLanes>
HWY_NOINLINE void WeighLanes(KeyRange aligned, VF max, VF gain, size_t query, QueryState& s) {
  const DF d;
  const DI16 d16;
  const DU16 du16;
  using VU16 = hn::Vec<DU16>;
  float* const scores = s.scores[query];
  const auto none = hn::Eq(max, hn::Set(d, kUnseen));
  max = hn::IfThenZeroElse(none, max);
  const VF offset = hn::NegMulAdd(gain, max, hn::Set(d, 32767.5f));
  const VF lowest = hn::Set(d, std::numeric_limits<float>::lowest() / 2);
  FromLanes<kQueryLanes>(hn::IfThenElse(none, lowest, hn::Mul(gain, max)), s.tile_max + query);
  VF any = hn::Zero(d), other = any;  // become NaN if a score is NaN
  VI32 sum = hn::Zero(DI32());
  const auto units = [&](size_t i, VF& total) HWY_ATTR {
    const VF x = hn::MulAdd(hn::Load(d, scores + i * kFloatLanes), gain, offset);
    total = hn::Add(total, x);
    return hn::ConvertInRangeTo(DI32(), x);  // on x86 the lowest integer if out of range
  };
  const auto minus = [](uint16_t c, VU16 f, VU16 p)
                         HWY_ATTR { return hn::Sub(hn::Set(DU16(), c), hn::MulHigh(f, p)); };
  const auto turn =
      hn::Dup128VecFromValues(DU8(), 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  for (size_t i = aligned.begin / kQueryLanes; i < aligned.end / kQueryLanes; i += 4) {
    HWY_UNROLL(2)
    for (size_t k = i; k < i + 4; k += 2) {
      const VI32 low = units(k, any), high = units(k + 1, other);
      const auto both =
          hn::TableLookupBytes(hn::BitCast(DU8(), hn::ReorderDemote2To(d16, low, high)), turn);
      const VU16 down = hn::Xor(hn::BitCast(du16, both), hn::Set(du16, 0x7FFF));
      const VU16 f = hn::ShiftLeft<5>(down);
      const VU16 power = minus(65534, f, minus(45289, f, minus(15079, f, hn::Set(du16, 2557))));
      // Shifts by 16 and more make 0 on x86.
      const VU16 shifted = hn::Shr(power, hn::ShiftRight<11>(down));
      const VU16 weights = hn::AverageRound(shifted, hn::Zero(du16));
      sum = DotWords(sum, hn::BitCast(d16, weights), hn::Set(d16, 1));
      hn::Store(hn::BitCast(d, weights), d, scores + k / 2 * kFloatLanes);
    }
  }
  any = hn::Add(any, other);
  const auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
  sum = CombineLanes<kQueryLanes>(sum, add);
  any = CombineLanes<kQueryLanes>(any, add);
  const VF nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  FromLanes<kQueryLanes>(hn::IfThenElse(hn::IsNaN(any), nan, hn::ConvertTo(d, sum)),
                         s.tile_sum + query);
}

// Computes the scores of aligned keys with the queries of vectors j + v, and their maximums.
// `adds`: adds to the scores over earlier chunks. This is a separate function, since GCC runs out
// of registers within a larger one.
template <size_t kVectors, size_t kLoops, class Products>
HWY_NOINLINE void ScoreQueries(const Products& products, size_t j, KeyRange aligned, size_t n,
                               bool adds, bool prefetches, float* HWY_RESTRICT scores,
                               VF (&maximums)[kVectors]) {
  const DF d;
  constexpr size_t kQueryLanes = Products::kQueryLanes, kWidth = Products::kWidth;
  constexpr size_t kKeysAtATime = 8 / kVectors, kSums = 8 / kQueryLanes;  // kSums vectors of scores
  constexpr size_t kVectorWords = Products::kBlocks * Products::kWords / kQueryLanes;
  const size_t n_words = Products::CountWords(n);
  VF max[kVectors], ratios[kVectors], chunk_ratios[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    max[v] = hn::Set(d, kUnseen);
    if (kLoops == 2) ratios[v] = ToLanes<kQueryLanes>(products.block_ratios + (j + v) * kWidth);
    chunk_ratios[v] = ToLanes<kQueryLanes>(products.chunk_ratios + (j + v) * kWidth);
  }
  for (size_t key = aligned.begin; key < aligned.end; key += kKeysAtATime) {
    Prefetcher<kKeysAtATime * Products::kChunkBytes / kVectorWords> ahead(
        products.next_keys + key * Products::kChunkBytes * n / kHeadChunk, prefetches);
    VF sums[kSums], others[kSums];
    MultiplyKeys<kVectors>(products, key, j, 0, n_words, ahead, sums);
    if (kLoops == 2) MultiplyKeys<kVectors>(products, key, j, 1, n_words, ahead, others);
    HWY_UNROLL(16)
    for (size_t i = 0; i < kSums; ++i) {
      const size_t v = i % kVectors;
      float* const to =
          scores + v * kWidth * kTileKeys + (key / kQueryLanes + i / kVectors) * kFloatLanes;
      VF x = kLoops == 2 ? hn::MulAdd(others[i], ratios[v], sums[i]) : sums[i];
      if (adds) x = hn::MulAdd(x, chunk_ratios[v], hn::Load(d, to));
      hn::Store(x, d, to);
      max[v] = hn::Max(max[v], x);
    }
  }
  for (size_t v = 0; v < kVectors; ++v) maximums[v] = max[v];
}

// Caps the scores of aligned keys, or lowers them by distance. Scores of keys that a query does not
// see become minus infinity. Returns the maximums.
template <size_t kQueryLanes>
HWY_INLINE VF Correct(const KeyTile& tile, KeyRange aligned, VF gain, const AttentionParams& params,
                      size_t query, QueryState& s) {
  const DF d;
  alignas(64) float begin[kFloatLanes], end[kFloatLanes], slopes[kFloatLanes],
      distances[kFloatLanes];
  for (size_t i = 0; i < kFloatLanes; ++i) {
    const KeyRange seen = SeenBy(s, query + i / kQueryLanes, 1, tile);
    begin[i] = static_cast<float>(seen.begin) - static_cast<float>(i % kQueryLanes);
    end[i] = static_cast<float>(seen.end) - static_cast<float>(i % kQueryLanes);
    slopes[i] = s.slopes[query + i / kQueryLanes];
    distances[i] =
        s.DistanceOf(query + i / kQueryLanes, tile) + static_cast<float>(i % kQueryLanes);
  }
  float* const first = s.scores[query];
  VF max = hn::Set(d, kUnseen);
  for (size_t key = aligned.begin; key < aligned.end; key += kQueryLanes) {
    float* const scores = first + key / kQueryLanes * kFloatLanes;
    VF x = hn::Load(d, scores);
    const VF at = hn::Set(d, static_cast<float>(key));
    if (params.softcap != 0) {
      x = SoftCap(d, hn::Mul(x, gain), params.softcap);
    } else if (params.slopes != nullptr) {
      x = hn::Mul(x, gain);
    }
    if (params.slopes != nullptr) {
      x = hn::MulAdd(hn::Add(at, hn::Load(d, distances)), hn::Load(d, slopes), x);
    }
    const auto inside = hn::And(hn::Ge(at, hn::Load(d, begin)), hn::Lt(at, hn::Load(d, end)));
    x = hn::IfThenElse(inside, x, hn::Set(d, kUnseen));
    hn::Store(x, d, scores);
    max = hn::Max(max, x);
  }
  return max;
}

// Computes the scores of a tile's keys, [key / kQueryLanes][lane] for each vector of lanes, and
// turns them into attention weights.
template <size_t kVectors, class Products>
HWY_INLINE void ScoreLanes(const QueryTile& query_tile, const KeyTile& tile, bool is_first,
                           Products& products, QueryState& s) {
  const DF d;
  constexpr size_t kQueryLanes = Products::kQueryLanes, kWidth = Products::kWidth;
  constexpr size_t kTogether = kVectors * kWidth;
  const bool corrects_all = query_tile.params.softcap != 0 || query_tile.params.slopes != nullptr;
  const size_t n_chunks = (query_tile.kv.key_length + kHeadChunk - 1) / kHeadChunk;
  const bool stay_packed = n_chunks * s.n_padded <= kPackedChunks;
  for (size_t chunk = 0; chunk < n_chunks; ++chunk) {
    const size_t first = chunk * kHeadChunk,
                 n = std::min(kHeadChunk, query_tile.kv.key_length - first);
    const size_t packed = stay_packed ? chunk * s.n_padded : 0;
    if (is_first || !stay_packed) products.PackQueries(query_tile, s, packed, first, n);
    products.PackKeys(query_tile, tile, first, n);
    const bool two_blocks = Products::kBlocks == 2 && n > kHeadChunk / 2;
    for (size_t query = 0; query < s.n_padded; query += kTogether) {
      const KeyRange aligned = AlignKeys<kQueryLanes>(SeenBy(s, query, kTogether, tile));
      const size_t j = (packed + query) / kWidth;
      VF max[kVectors];
      if (two_blocks) {
        ScoreQueries<kVectors, 2>(products, j, aligned, n, chunk != 0, query == 0, s.scores[query],
                                  max);
      } else {
        ScoreQueries<kVectors, 1>(products, j, aligned, n, chunk != 0, query == 0, s.scores[query],
                                  max);
      }
      if (chunk + 1 < n_chunks) continue;
      const bool correct = corrects_all || SeenBy(s, query, 1, tile).end < aligned.end ||
                           aligned.begin < SeenBy(s, query + kTogether - 1, 1, tile).begin;
      for (size_t v = 0; v < kVectors; ++v) {
        const size_t of_vector = query + v * kWidth;
        VF gain = ToLanes<kQueryLanes>(products.q_gains + of_vector);
        if (correct)
          max[v] = Correct<kQueryLanes>(tile, aligned, gain, query_tile.params, of_vector, s);
        if (corrects_all) gain = hn::Set(d, 1.0f);
        max[v] =
            CombineLanes<kQueryLanes>(max[v], [](VF a, VF b) HWY_ATTR { return hn::Max(a, b); });
        WeighLanes<kQueryLanes>(aligned, max[v], gain, of_vector, s);
      }
    }
  }
}

// The key that number k of a word of weights or values belongs to. A word has numbers of kWordKeys
// keys: one from each of two vectors of scores; or, as bytes, one from the first, third, second and
// fourth of four vectors.
template <size_t kWordKeys, size_t kQueryLanes>
constexpr size_t KeyOf(size_t word, size_t k) {
  const size_t turned = kWordKeys == 4 ? k % 2 * 2 + k / 2 : k;
  return word / kQueryLanes * kQueryLanes * kWordKeys + turned * kQueryLanes + word % kQueryLanes;
}

template <size_t kQueries>
using VDots = VI32[kQueries][kRowVectors];

template <size_t kQueries>
HWY_INLINE void SetZero(VDots<kQueries>& dots) {
  HWY_UNROLL(8)
  for (size_t q = 0; q < kQueries; ++q) {
    for (VI32& sum : dots[q]) sum = hn::Zero(DI32());  // with indices GCC 12 fails at -O1
  }
}

// Adds to dots[q][lane] the product of values[lane] and a word of the weights, for kQueries queries
// from `query` on.
template <size_t kQueries, size_t kQueryLanes, class Dot>
HWY_INLINE void AddWords(const uint32_t* HWY_RESTRICT values, const uint32_t* HWY_RESTRICT weights,
                         size_t word, size_t query, Dot dot, VDots<kQueries>& dots) {
  constexpr size_t kWidth = kFloatLanes / kQueryLanes;
  const uint32_t* HWY_RESTRICT const x = weights + query / kWidth * kWidth * (kTileKeys / 2) +
                                         word / kQueryLanes * kFloatLanes +
                                         query % kWidth * kQueryLanes + word % kQueryLanes;
  VU32 words[kRowVectors];
  for (size_t v = 0; v < kRowVectors; ++v) words[v] = hn::Load(DU32(), values + v * kFloatLanes);
  HWY_UNROLL(8)
  for (size_t q = 0; q < kQueries; ++q) {
    const size_t at = q / kWidth * kWidth * (kTileKeys / 2) + q % kWidth * kQueryLanes;
    const VU32 factors = hn::Set(DU32(), x[at]);
    for (size_t v = 0; v < kRowVectors; ++v) dots[q][v] = dot(dots[q][v], words[v], factors);
  }
}

// AddWords for the words [begin, end), with values[word * stride + lane].
template <size_t kQueries, size_t kQueryLanes, class Dot, class Next>
HWY_INLINE void MultiplyValues(const uint32_t* HWY_RESTRICT values, size_t stride, size_t begin,
                               size_t end, const uint32_t* HWY_RESTRICT weights, size_t query,
                               Dot dot, Next ahead, VDots<kQueries>& dots) {
  for (size_t word = begin; word < end; word += 4) {  // GCC copies all sums wherever a loop ends
    HWY_UNROLL(4)
    for (size_t i = word; i < word + 4; ++i) {
      ahead.Step();
      AddWords<kQueries, kQueryLanes>(values + i * stride, weights, i, query, dot, dots);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_INTEGER_PRODUCTS_INL_H_
