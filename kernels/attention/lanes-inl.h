// Attention in integers on x86 (tiles.cc): scores, weights and means of a tile, for numbers that
// int16-inl.h and int8-inl.h make. Included once per instruction set.
//
// A lane belongs to a query, so that neither sums nor maximums cross lanes, and keys stay in their
// rows: a word, numbers of a key that one instruction multiplies, is broadcast to all queries.
// Where the queries do not fill a vector, kShare lanes share each query, and kShare neighbouring
// words are broadcast. The sums of kShare keys are then added up so that lane query * kShare + i
// has the sum of key i.
#if defined(PRONK_KERNELS_ATTENTION_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_LANES_INL_H_
#undef PRONK_KERNELS_ATTENTION_LANES_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_LANES_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/attention/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

using DU32 = hn::Repartition<uint32_t, DF>;
using VU32 = hn::Vec<DU32>;
constexpr float kInt16Limit = 32767;
// The score of a key that a query does not see.
constexpr float kUnseen = -std::numeric_limits<float>::infinity();

// Keys widened to whole runs, the step of all loops over keys: 16 of them, or four vectors of
// scores if that is more.
template <size_t kShare>
HWY_INLINE Range Runs(Range keys) {
  constexpr size_t kRun = std::max<size_t>(16, 4 * kShare);
  return {keys.begin / kRun * kRun, (keys.end + kRun - 1) / kRun * kRun};
}

// kShare words at p, again and again.
template <size_t kShare>
HWY_INLINE VU8 Broadcast(const void* HWY_RESTRICT p) {
  const DU8 d;
  const auto* const bytes = static_cast<const uint8_t*>(p);
  if constexpr (kShare <= 2) {
    std::conditional_t<kShare == 1, uint32_t, uint64_t> words;
    hwy::CopyBytes<4 * kShare>(p, &words);
    return hn::BitCast(d, hn::Set(hn::Repartition<decltype(words), DU8>(), words));
  }
  if constexpr (kShare == 4) return hn::LoadDup128(d, bytes);
  if constexpr (kShare == 8) {
    const auto words = hn::LoadU(hn::FixedTag<uint8_t, 4 * kShare>(), bytes);
    return hn::Combine(d, words, words);
  }
}

// Lane i gets number i / kShare.
template <size_t kShare>
HWY_INLINE VF ToLanes(const float* HWY_RESTRICT p) {
  const DF d;
  const auto some = hn::ResizeBitCast(d, hn::Load(hn::FixedTag<float, kFloats / kShare>(), p));
  const auto index = hn::ShiftRight<hwy::FloorLog2(kShare)>(hn::Iota(DI32(), 0));
  return hn::TableLookupLanes(some, hn::IndicesFromVec(d, index));
}
// Number i becomes lane i * kShare.
template <size_t kShare>
HWY_INLINE void FromLanes(VF v, float* HWY_RESTRICT p) {
  const DF d;
  const auto index = hn::And(hn::ShiftLeft<hwy::FloorLog2(kShare)>(hn::Iota(DI32(), 0)),
                             hn::Set(DI32(), kFloats - 1));
  const auto some = hn::TableLookupLanes(v, hn::IndicesFromVec(d, index));
  hn::Store(hn::ResizeBitCast(hn::FixedTag<float, kFloats / kShare>(), some),
            hn::FixedTag<float, kFloats / kShare>(), p);
}

// Combines the lanes of each query, which all get the result.
template <size_t kShare, class V, class Combine>
HWY_INLINE V Fold(V v, Combine combine) {
  const hn::DFromV<V> d;
  if constexpr (kShare > 1) v = combine(v, hn::Reverse2(d, v));
  if constexpr (kShare > 2) v = combine(v, hn::Shuffle1032(v));
  if constexpr (kShare > 4) v = combine(v, hn::SwapAdjacentBlocks(v));
  return v;
}

// sums[k * stride] has in the kShare lanes of a query the parts of its sum with key k. Lane i of
// the query gets the whole sum with key i.
template <size_t kShare>
HWY_INLINE VI32 AddShares(const VI32* sums, size_t stride) {
  const DI32 d;
  if constexpr (kShare == 1) return sums[0];
  if constexpr (kShare > 1) {
    constexpr size_t kHalf = kShare / 2;
    const VI32 a = AddShares<kHalf>(sums, stride);
    const VI32 b = AddShares<kHalf>(sums + kHalf * stride, stride);
    if constexpr (kShare == 2) {
      return hn::Add(hn::InterleaveEven(d, a, b), hn::InterleaveOdd(d, a, b));
    }
    if constexpr (kShare == 4) {
      const hn::Repartition<int64_t, DI32> d64;
      const auto low = hn::BitCast(d64, a), high = hn::BitCast(d64, b);
      return hn::Add(hn::BitCast(d, hn::InterleaveEven(d64, low, high)),
                     hn::BitCast(d, hn::InterleaveOdd(d64, low, high)));
    }
    if constexpr (kShare == 8) {
      return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a),
                     hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a)));
    }
  }
}

// The common part of Int16Products and Int8Products. Vector j of lanes has the queries from j *
// kWidth on. A key's slice of kSlice numbers is kBlocks blocks with a scale each, of kWords words.
template <typename T, size_t kShareLanes, size_t kSliceBlocks, size_t kBlockWords>
struct LaneBuffers {
  static constexpr size_t kSliceBytes = CachedBytes<T>(kSlice);
  static constexpr bool kIntegers = true;
  static constexpr float kPerDoubling = 2048;  // added to a kept score: twice the weight
  static constexpr float kOne = 32768;         // a weight of 1
  static constexpr size_t kShare = kShareLanes, kBlocks = kSliceBlocks, kWords = kBlockWords;
  static constexpr size_t kWidth = kFloats / kShare;
  static constexpr size_t kUnit = std::max(kWidth, kQueryUnit);  // queries with means together
  template <size_t kRows>
  static constexpr size_t kVectors = kRowVectors;  // of sums of values
  // The smallest scale, so that a ratio to it is finite for scales below 3e23.
  static constexpr float kLeast = 1e-15f;

  // Numbers [first, first + n) of the cached vectors of a tile's runs, and where the next tile's
  // are.
  CachedRows FindRuns(const std::byte* cache, size_t length, const TileKeys& tile, size_t first,
                      size_t n, const std::byte*& next) {
    const size_t bytes = CachedBytes<T>(length);
    next = NextTile(cache, bytes, tile, CachedBytes<T>(first));
    const Range runs = Runs<kShare>(tile.seen);
    return FindRows(cache, bytes, tile, tile.stored, runs.begin, runs.end - runs.begin,
                    CachedBytes<T>(first), CachedBytes<T>(n), copy, kSliceBytes);
  }
  // The start value of the sums of block b for a query's slot, in one of its lanes.
  int32_t& OffsetAt(size_t slot, size_t b) {
    return q_offsets[(slot / kWidth * kBlocks + b) * kFloats + slot % kWidth * kShare];
  }
  // The scale of query i's first slice, or another's ratio to it. Clears the slot's offsets.
  void SetScale(size_t i, size_t slot, bool is_first, float scale, float factor) {
    for (size_t b = 0; b < kBlocks; ++b) std::fill_n(&OffsetAt(slot, b), kShare, 0);
    const float bounded = scale < kLeast ? kLeast : scale;
    if (is_first) first_scales[i] = bounded;
    q_gains[i] = first_scales[i] * factor;
    slice_ratios[slot] = bounded / first_scales[i];
  }
  // Stores word i of those of a query's slice.
  void PutWord(size_t slot, size_t i, uint32_t word) {
    const size_t vectors = slot / kWidth * (kBlocks * kWords / kShare) + i / kShare;
    q_words[vectors * kFloats + slot % kWidth * kShare + i % kShare] = word;
  }

  alignas(64) uint32_t keys[kKeys][kBlocks * kWords];  // unless they are used where they are
  alignas(64) float key_scales[kBlocks][kKeys];
  // [slot / kWidth][block][word / kShare][slot % kWidth][word % kShare]
  alignas(64) uint32_t q_words[kSlots * kBlocks * kWords];
  // A score is a query's gain times the sum over slices of slice_ratio * (first block's product +
  // block_ratio * second block's), where ratios are those of scales.
  alignas(64) float q_gains[kBlockQueries], slice_ratios[kSlots], block_ratios[kSlots];
  float first_scales[kBlockQueries];
  alignas(64) int32_t q_offsets[kSlots * kBlocks * kShare];  // what sums begin with
  // Words of some keys' weights, [query / kWidth][word / kShare][query % kWidth][word % kShare];
  // bytes take the first half of a vector's words, second bytes the other.
  alignas(64) uint32_t weights[kBlocks][kBlockQueries * kKeys / 2];
  const std::byte *next_keys, *next_values;  // of the next tile
  std::byte copy[kKeys * kSliceBytes];       // of rows that are not read in place
};

// sums[k * kVectors + v] gets the products of block b of the keys from key + k * kShare on with the
// queries of vector j + v, times the keys' scales.
template <size_t kVectors, size_t kSums, class Products, class Next>
HWY_INLINE void MultiplyKeys(const Products& p, size_t key, size_t j, size_t b, size_t n_words,
                             Next& ahead, VF (&sums)[kSums]) {
  constexpr size_t kShare = Products::kShare, kWords = Products::kWords;
  constexpr size_t kBlocks = Products::kBlocks;
  VI32 dots[kSums * kShare];
  HWY_UNROLL(16)
  for (size_t i = 0; i < kSums * kShare; ++i) {
    dots[i] = hn::Load(DI32(), p.q_offsets + ((j + i % kVectors) * kBlocks + b) * kFloats);
  }
  const size_t stride = p.KeyStride();
  const std::byte* HWY_RESTRICT const words = p.KeyAt(key, b);
  const uint32_t* HWY_RESTRICT const q = p.q_words + (j * kBlocks + b) * kWords / kShare * kFloats;
  for (size_t begin = 0; begin < n_words; begin += 8) {
    HWY_UNROLL(8)
    for (size_t w = begin; w < begin + 8; w += kShare) {
      ahead.Step();
      HWY_UNROLL(16)
      for (size_t i = 0; i < kSums * kShare; ++i) {
        const VU8 word = Broadcast<kShare>(words + i / kVectors * stride + 4 * w);
        const size_t at = (i % kVectors * kBlocks * kWords + w) / kShare * kFloats;
        dots[i] = Products::Dot(dots[i], word, hn::Load(DU32(), q + at));
      }
    }
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < kSums; ++i) {
    const size_t k = i / kVectors * kShare;
    const VI32 dot = AddShares<kShare>(dots + k * kVectors + i % kVectors, kVectors);
    const VF scale = hn::BitCast(DF(), Broadcast<kShare>(p.key_scales[b] + key + k));
    sums[i] = hn::Mul(hn::ConvertTo(DF(), dot), scale);
  }
}

// Turns the scores of a vector of queries into weights relative to their maximum, as integers,
// where 32768 means 1 (at most 32767): pairs of two keys replace the scores.
//
// The largest score is 32767 steps, 2048 steps are a power of two, and -32768 stands for all
// weights below 2^-32. So the high bits of 32767 - steps are the exponent; the other bits are a
// fraction f, and 2^-f is a polynomial in integers: 9e-5 too large on average, with a standard
// deviation of 5e-5, and at most 1.9e-4.
template <size_t kShare>
HWY_NOINLINE void WeighLanes(Range runs, VF max, VF gain, size_t query, BlockState& s) {
  const DF d;
  const DI16 d16;
  const DU16 du16;
  using VU16 = hn::Vec<DU16>;
  float* const scores = s.scores[query];
  const auto none = hn::Eq(max, hn::Set(d, kUnseen));
  max = hn::IfThenZeroElse(none, max);
  const VF offset = hn::NegMulAdd(gain, max, hn::Set(d, 32767.5f));
  const VF lowest = hn::Set(d, std::numeric_limits<float>::lowest() / 2);
  FromLanes<kShare>(hn::IfThenElse(none, lowest, hn::Mul(gain, max)), s.tile_max + query);
  VF any = hn::Zero(d), other = any;  // become NaNs if a score is one
  VI32 sum = hn::Zero(DI32());
  const auto steps = [&](size_t i, VF& sum_of_all) HWY_ATTR {
    const VF x = hn::MulAdd(hn::Load(d, scores + i * kFloats), gain, offset);
    sum_of_all = hn::Add(sum_of_all, x);
    return hn::ConvertInRangeTo(DI32(), x);  // on x86 the lowest integer if out of range
  };
  const auto minus = [](uint16_t c, VU16 f, VU16 p)
                         HWY_ATTR { return hn::Sub(hn::Set(DU16(), c), hn::MulHigh(f, p)); };
  const auto turn =
      hn::Dup128VecFromValues(DU8(), 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  for (size_t i = runs.begin / kShare; i < runs.end / kShare; i += 4) {
    HWY_UNROLL(2)
    for (size_t k = i; k < i + 4; k += 2) {
      const VI32 low = steps(k, any), high = steps(k + 1, other);
      const auto both =
          hn::TableLookupBytes(hn::BitCast(DU8(), hn::ReorderDemote2To(d16, low, high)), turn);
      const VU16 down = hn::Xor(hn::BitCast(du16, both), hn::Set(du16, 0x7FFF));
      const VU16 f = hn::ShiftLeft<5>(down);
      const VU16 power = minus(65534, f, minus(45289, f, minus(15079, f, hn::Set(du16, 2557))));
      // Shifts by 16 and more make 0 on x86.
      const VU16 shifted = hn::Shr(power, hn::ShiftRight<11>(down));
      const VU16 weights = hn::AverageRound(shifted, hn::Zero(du16));
      sum = DotWords(sum, hn::BitCast(d16, weights), hn::Set(d16, 1));
      hn::Store(hn::BitCast(d, weights), d, scores + k / 2 * kFloats);
    }
  }
  any = hn::Add(any, other);
  const auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
  sum = Fold<kShare>(sum, add);
  any = Fold<kShare>(any, add);
  const VF nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  FromLanes<kShare>(hn::IfThenElse(hn::IsNaN(any), nan, hn::ConvertTo(d, sum)), s.tile_sum + query);
}

// The scores of some runs of keys and the queries of vectors j + v, and their maximums. A separate
// function, since GCC runs out of registers within a larger one.
template <size_t kVectors, size_t kLoops, class Products>
HWY_NOINLINE void ScoreUnit(const Products& products, size_t j, Range runs, size_t n, bool adds,
                            bool prefetches, float* HWY_RESTRICT scores, VF (&maximums)[kVectors]) {
  const DF d;
  constexpr size_t kShare = Products::kShare, kWidth = Products::kWidth;
  constexpr size_t kStep = 8 / kVectors, kSums = 8 / kShare;  // keys; vectors of scores
  constexpr size_t kVectorWords = Products::kBlocks * Products::kWords / kShare;
  const size_t n_words = Products::CountWords(n);
  VF max[kVectors], ratios[kVectors], slice_ratios[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    max[v] = hn::Set(d, kUnseen);
    if (kLoops == 2) ratios[v] = ToLanes<kShare>(products.block_ratios + (j + v) * kWidth);
    slice_ratios[v] = ToLanes<kShare>(products.slice_ratios + (j + v) * kWidth);
  }
  for (size_t key = runs.begin; key < runs.end; key += kStep) {
    Prefetcher<kStep * Products::kSliceBytes / kVectorWords> ahead(
        products.next_keys + key * Products::kSliceBytes * n / kSlice, prefetches);
    VF sums[kSums], others[kSums];
    MultiplyKeys<kVectors>(products, key, j, 0, n_words, ahead, sums);
    if (kLoops == 2) MultiplyKeys<kVectors>(products, key, j, 1, n_words, ahead, others);
    HWY_UNROLL(16)
    for (size_t i = 0; i < kSums; ++i) {
      const size_t v = i % kVectors;
      float* const to = scores + v * kWidth * kKeys + (key / kShare + i / kVectors) * kFloats;
      VF x = kLoops == 2 ? hn::MulAdd(others[i], ratios[v], sums[i]) : sums[i];
      if (adds) x = hn::MulAdd(x, slice_ratios[v], hn::Load(d, to));
      hn::Store(x, d, to);
      max[v] = hn::Max(max[v], x);
    }
  }
  for (size_t v = 0; v < kVectors; ++v) maximums[v] = max[v];
}

// Caps the scores of some runs of keys, or lowers them by distance; scores of keys that a query
// does not see become minus infinity. Returns the maximums.
template <size_t kShare>
HWY_INLINE VF Correct(const TileKeys& keys, Range runs, VF gain, const AttentionParams& params,
                      size_t query, BlockState& s) {
  const DF d;
  alignas(64) float begin[kFloats], end[kFloats], slopes[kFloats], distances[kFloats];
  for (size_t i = 0; i < kFloats; ++i) {
    const Range range = SeenBy(s, query + i / kShare, 1, keys);
    begin[i] = static_cast<float>(range.begin) - static_cast<float>(i % kShare);
    end[i] = static_cast<float>(range.end) - static_cast<float>(i % kShare);
    slopes[i] = s.slopes[query + i / kShare];
    distances[i] = s.DistanceOf(query + i / kShare, keys) + static_cast<float>(i % kShare);
  }
  float* const first = s.scores[query];
  VF max = hn::Set(d, kUnseen);
  for (size_t key = runs.begin; key < runs.end; key += kShare) {
    float* const scores = first + key / kShare * kFloats;
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

// The weights of a tile's keys, by way of their scores, [key / kShare][lane] for each vector of
// lanes.
template <size_t kVectors, class Products>
HWY_INLINE void ScoreLanes(const QueryBlock& block, const TileKeys& keys, bool is_first,
                           Products& products, BlockState& s) {
  const DF d;
  constexpr size_t kShare = Products::kShare, kWidth = Products::kWidth;
  constexpr size_t kUnit = kVectors * kWidth;
  const bool scales = block.params.softcap != 0 || block.params.slopes != nullptr;
  const size_t n_slices = (block.kv.key_length + kSlice - 1) / kSlice;
  const bool stay_packed = n_slices * s.n_queries <= kSlots;
  for (size_t slice = 0; slice < n_slices; ++slice) {
    const size_t first = slice * kSlice, n = std::min(kSlice, block.kv.key_length - first);
    const size_t slot = stay_packed ? slice * s.n_queries : 0;
    if (is_first || !stay_packed) products.PackQueries(block, s, slot, first, n);
    products.PackKeys(block, keys, first, n);
    const bool two_blocks = Products::kBlocks == 2 && n > kSlice / 2;
    for (size_t unit = 0; unit < s.n_queries; unit += kUnit) {
      const Range runs = Runs<kShare>(SeenBy(s, unit, kUnit, keys));
      const size_t j = (slot + unit) / kWidth;
      VF max[kVectors];
      if (two_blocks) {
        ScoreUnit<kVectors, 2>(products, j, runs, n, slice != 0, unit == 0, s.scores[unit], max);
      } else {
        ScoreUnit<kVectors, 1>(products, j, runs, n, slice != 0, unit == 0, s.scores[unit], max);
      }
      if (slice + 1 < n_slices) continue;
      const bool correct = scales || SeenBy(s, unit, 1, keys).end < runs.end ||
                           runs.begin < SeenBy(s, unit + kUnit - 1, 1, keys).begin;
      for (size_t v = 0; v < kVectors; ++v) {
        const size_t query = unit + v * kWidth;
        VF gain = ToLanes<kShare>(products.q_gains + query);
        if (correct) max[v] = Correct<kShare>(keys, runs, gain, block.params, query, s);
        if (scales) gain = hn::Set(d, 1.0f);
        max[v] = Fold<kShare>(max[v], [](VF a, VF b) HWY_ATTR { return hn::Max(a, b); });
        WeighLanes<kShare>(runs, max[v], gain, query, s);
      }
    }
  }
}

// A word of weights or values is of kWordKeys keys: one from each of two vectors of scores or, as
// bytes, from the first, third, second and fourth of four vectors.
template <size_t kWordKeys, size_t kShare>
constexpr size_t KeyOf(size_t word, size_t k) {
  const size_t turned = kWordKeys == 4 ? k % 2 * 2 + k / 2 : k;
  return word / kShare * kShare * kWordKeys + turned * kShare + word % kShare;
}

template <size_t kRows>
using VDots = VI32[kRows][kRowVectors];

template <size_t kRows>
HWY_INLINE void SetZero(VDots<kRows>& dots) {
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    for (VI32& sum : dots[r]) sum = hn::Zero(DI32());  // by indices GCC 12 fails with -O1
  }
}

// Adds to dots[row][lane] the products of a word of the weights of kRows queries from `query` on
// with values[lane].
template <size_t kRows, size_t kShare, class Dot>
HWY_INLINE void AddWords(const uint32_t* HWY_RESTRICT values, const uint32_t* HWY_RESTRICT weights,
                         size_t word, size_t query, Dot dot, VDots<kRows>& dots) {
  constexpr size_t kWidth = kFloats / kShare;
  const uint32_t* HWY_RESTRICT const x = weights + query / kWidth * kWidth * (kKeys / 2) +
                                         word / kShare * kFloats + query % kWidth * kShare +
                                         word % kShare;
  VU32 words[kRowVectors];
  for (size_t v = 0; v < kRowVectors; ++v) words[v] = hn::Load(DU32(), values + v * kFloats);
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    const size_t at = r / kWidth * kWidth * (kKeys / 2) + r % kWidth * kShare;
    const VU32 factors = hn::Set(DU32(), x[at]);
    for (size_t v = 0; v < kRowVectors; ++v) dots[r][v] = dot(dots[r][v], words[v], factors);
  }
}

// MultiplyValues for the words [begin, end), with values[word * stride + lane].
template <size_t kRows, size_t kShare, class Dot, class Next>
HWY_INLINE void MultiplyValues(const uint32_t* HWY_RESTRICT values, size_t stride, size_t begin,
                               size_t end, const uint32_t* HWY_RESTRICT weights, size_t query,
                               Dot dot, Next ahead, VDots<kRows>& dots) {
  for (size_t word = begin; word < end; word += 4) {  // GCC copies all sums wherever a loop ends
    HWY_UNROLL(4)
    for (size_t i = word; i < word + 4; ++i) {
      ahead.Step();
      AddWords<kRows, kShare>(values + i * stride, weights, i, query, dot, dots);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_LANES_INL_H_
