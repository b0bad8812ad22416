// The products of attention for caches in Q8_0 and Q4_0 on x86. Included once per instruction set.
//
// Numbers of Q4_0 become blocks of Q8_0 without rounding, a part of a tile at a time. The bytes of
// keys are used as they are stored, and queries are rounded to int8 with a scale for each 32
// numbers, as keys are. Values become int16 without rounding. Weights have 15 bits and are
// multiplied by their values' scales, relative to the largest of the tile. Sums are integers below
// 2^31 (128 keys * 32767 * 127). Results of a few tokens are batch-invariant (kernels/README.md):
// there the largest scale is taken over the keys that the query sees, in a batch over the keys that
// the query tile sees.
//
// Where instructions multiply any unsigned bytes (VNNI), values stay bytes, too. Weights are
// multiples of 1/255 of a limit: the tile's largest weight, or 1/64 of the sum of the weights so
// far if that is less. Then rounding moves at most 128 / 255 / 128 = 0.4% of the total weight,
// usually far less, since errors have both signs. A weight that does not fit in a byte has a second
// byte, in multiples of 64: few keys have so much weight.
#if defined(PRONK_KERNELS_ATTENTION_INT8_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_INT8_OPERANDS_INL_H_
#undef PRONK_KERNELS_ATTENTION_INT8_OPERANDS_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_INT8_OPERANDS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "kernels/attention/integer_products-inl.h"
#include "kernels/ops/rounding.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

template <size_t kLanes>
class Int8Products : public LaneBuffers<gguf::BlockQ8_0, kLanes, 2, 8> {
  using Block = gguf::BlockQ8_0;
  using Base = LaneBuffers<Block, kLanes, 2, 8>;

 public:
  using Base::kBlocks, Base::kQueryLanes, Base::kWeightQueries, Base::kWidth;

  static constexpr size_t CountWords(size_t /*n*/) { return Base::kWords; }
  HWY_INLINE size_t KeyStride() const { return kInPlace ? rows_.stride : sizeof(this->keys[0]); }
  HWY_INLINE const std::byte* KeyAt(size_t key, size_t b) const {
    if (kInPlace) return rows_[key - first_key_] + b * sizeof(Block) + offsetof(Block, qs);
    return reinterpret_cast<const std::byte*>(this->keys[key]) + 32 * b;
  }
  static HWY_INLINE VI32 Dot(VI32 sum, VU8 key, VU32 q) {
#if PRONK_VNNI
    if (kInPlace) key = hn::Add(key, hn::Set(DU8(), kKeyBias));
    return DotBytes(sum, key, hn::BitCast(DI8(), q));
#else
    return DotSigned(sum, hn::BitCast(DI8(), q), hn::BitCast(DI8(), key));
#endif
  }

  void PackQueries(const QueryTile& query_tile, const QueryState& s, size_t packed, size_t first,
                   size_t n) {
    for (size_t i = 0; i < s.n_padded; ++i) {
      std::array<float, kHeadChunk> padded{};
      std::copy_n(s.q[i] + first, n, padded.data());
      alignas(64) std::array<int8_t, kHeadChunk> q;
      std::array<float, kBlocks> scales;
      std::array<int16_t, 2 * kBlocks> sums;
      RoundActivations(padded.data(), kHeadChunk, q.data(), scales.data(), sums.data());
      const auto* const words = reinterpret_cast<const uint32_t*>(q.data());
      for (size_t k = 0; k < kHeadChunk / 4; ++k) this->PutWord(packed + i, k, words[k]);
      this->SetScale(i, packed + i, first == 0, scales[0], query_tile.params.scale);
      this->block_ratios[packed + i] = scales[1] / std::max(scales[0], Base::kMinScale);
      for (size_t b = 0; b < kBlocks; ++b) {
        this->StartAt(packed + i, b) = -kKeyBias * (sums[2 * b] + sums[2 * b + 1]);
      }
    }
  }

  void PackKeys(const QueryTile& query_tile, const KeyTile& tile, size_t first, size_t n) {
    const KeyRange aligned = AlignKeys<kQueryLanes>(tile.seen);
    first_key_ = aligned.begin;
    rows_ = FindBlocks(query_tile.kv.type.k, query_tile.kv.k, query_tile.kv.key_length, tile, first,
                       n, this->next_keys);
    const size_t last = (n - 1) / 32;  // the first block replaces a missing second block
    const hn::CappedTag<uint8_t, 32> d;
    const std::byte* at = rows_.first;
    for (size_t p = aligned.begin; p < aligned.end; ++p, at += rows_.stride) {
      const Block* const row = reinterpret_cast<const Block*>(at);
      HWY_UNROLL(2)
      for (size_t b = 0; b < kBlocks; ++b) {
        const Block& from = row[b * last];
        for (size_t i = 0; i < 32 && !kInPlace; i += hn::Lanes(d)) {
          const auto v = hn::LoadU(d, reinterpret_cast<const uint8_t*>(from.qs) + i);
          hn::Store(hn::Add(v, hn::Set(d, kKeyBias)), d,
                    reinterpret_cast<uint8_t*>(this->keys[p]) + 32 * b + i);
        }
        halves_[b * kTileKeys + p] = from.d;
      }
    }
    ConvertHalves(aligned, this->key_scales);
  }

  // Packs values as words of kWordKeys keys, in the order of the weights' words.
  void PackValues(const QueryTile& query_tile, const KeyTile& tile, size_t first, size_t n) {
    const KeyRange aligned = AlignKeys<kQueryLanes>(tile.seen);
    const CachedRows rows =
        FindBlocks(query_tile.kv.type.v, query_tile.kv.v, query_tile.kv.value_stride, tile, first,
                   n, this->next_values);
    n_blocks_ = (n + 31) / 32;
    const auto blocks = [&](size_t key) HWY_ATTR {
      return reinterpret_cast<const Block*>(rows[key - aligned.begin]);
    };
    const std::byte* at = rows.first;
    for (size_t p = aligned.begin; p < aligned.end; ++p, at += rows.stride) {
      halves_[p] = reinterpret_cast<const Block*>(at)[0].d;
      halves_[kTileKeys + p] = reinterpret_cast<const Block*>(at)[n_blocks_ - 1].d;
    }
#if PRONK_VNNI
    // A word has a byte of each of four rows. Interleaving twice makes the words, but separately in
    // each 128-bit lane, so the words of a row are first distributed to the 128-bit lanes. A vector
    // has as many blocks as fit.
    const DU8 d8;
    static constexpr auto kOrder = [] {
      std::array<uint32_t, kFloatLanes> order{};
      for (uint32_t i = 0; i < kFloatLanes; ++i) order[i] = i % 4 * uint32_t{kLanes128} + i / 4;
      return order;
    }();
    const auto order = hn::SetTableIndices(DU32(), kOrder.data());
    for (size_t b = 0; b < n_blocks_; b += kVectorBytes / 32) {
      for (size_t word = aligned.begin / kWordKeys; word < aligned.end / kWordKeys; ++word) {
        const auto row = [&](size_t k) HWY_ATTR {
          const Block* const row_blocks = blocks(KeyOf<kWordKeys, kQueryLanes>(word, k));
          const hn::FixedTag<uint8_t, 32> d32;
          const auto numbers = [&](size_t i) HWY_ATTR {
            return hn::LoadU(d32, reinterpret_cast<const uint8_t*>(row_blocks[i].qs));
          };
#if PRONK_VECTOR64
          const VU8 row_bytes = hn::Combine(d8, numbers(n_blocks_ - 1), numbers(0));
#else
          const VU8 row_bytes = numbers(b);
#endif
          return hn::BitCast(d8, hn::TableLookupLanes(hn::BitCast(DU32(), row_bytes), order));
        };
        const VU8 r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
        const auto put = [&](size_t i, VU8 low, VU8 high) HWY_ATTR {
          const DU16 d16;
          const auto a = hn::BitCast(d16, low), c = hn::BitCast(d16, high);
          uint32_t* const to = values_[b + i / 32] + word * 32 + i % 32;
          hn::Store(hn::BitCast(DU32(), hn::InterleaveLower(d16, a, c)), DU32(), to);
          hn::Store(hn::BitCast(DU32(), hn::InterleaveUpper(d16, a, c)), DU32(), to + kFloatLanes);
        };
        put(0, hn::InterleaveLower(d8, r0, r1), hn::InterleaveLower(d8, r2, r3));
        put(2 * kFloatLanes, hn::InterleaveUpper(d8, r0, r1), hn::InterleaveUpper(d8, r2, r3));
      }
    }
#else
    for (size_t b = 0; b < n_blocks_; ++b) {
      for (size_t word = aligned.begin / kWordKeys; word < aligned.end / kWordKeys; ++word) {
        HWY_UNROLL(8)
        for (size_t i = 0; i < 32; i += kFloatLanes) {
          const auto number = [&](size_t k) HWY_ATTR {
            const hn::Rebind<int8_t, DI32> d8;
            return hn::PromoteTo(
                DI32(), hn::LoadU(d8, blocks(KeyOf<kWordKeys, kQueryLanes>(word, k))[b].qs + i));
          };
          const auto low = hn::BitCast(DI16(), number(0));
          const auto high = hn::BitCast(DI16(), hn::ShiftLeft<16>(number(1)));
          hn::Store(hn::BitCast(DU32(), hn::OddEven(high, low)), DU32(),
                    values_[b] + word * 32 + i);
        }
      }
    }
#endif
    ConvertHalves(aligned, value_scales_);
  }

  // Multiplies the weights by the scales of their keys' values. With VNNI a weight becomes a low
  // byte and, if it does not fit, a high byte.
  void PackWeights(const QueryState& s, const KeyTile& tile, size_t /*first*/) {
    const DF d;
    KeyRange factors_of = {};
    for (size_t first = 0; first < s.n_padded; first += kWidth) {
      const size_t outer = first / kWeightQueries * kWeightQueries,
                   n = std::min(kWeightQueries, s.n_padded - outer);
      const KeyRange aligned = AlignKeys<kQueryLanes>(SeenBy(s, outer, n, tile));
      bool is_high = false;
      for (size_t i = outer; i < outer + n; ++i) is_high |= s.gain[i] > kByteFraction * s.sum[i];
      for (auto& high : high_)
        high[outer / kWeightQueries] = first == outer ? 0 : high[outer / kWeightQueries];
      const VF gain = ToLanes<kQueryLanes>(s.gain + first),
               sum = ToLanes<kQueryLanes>(s.sum + first);
      // The integer that the largest weight becomes: at most 16320 with VNNI. The quotient may be a
      // NaN.
      const VF share = hn::Mul(hn::Div(gain, sum), hn::Set(d, kOneByte / kByteFraction));
      const VF largest =
          PRONK_VNNI ? hn::Floor(hn::Max(share, hn::Set(d, kOneByte))) : hn::Set(d, kInt16Limit);
      // Queries that see the same keys are handled together; the lanes of other queries stay
      // unchanged.
      for (size_t begin = first, end; begin < first + kWidth; begin = end) {
        const KeyRange seen = s.batch_invariant ? SeenBy(s, begin, 1, tile) : tile.seen;
        end = s.batch_invariant ? begin + 1 : first + kWidth;
        for (; end < first + kWidth && SeenBy(s, end, 1, tile) == seen;) ++end;
        if (begin == 0 || seen != factors_of) FindFactors(seen);
        factors_of = seen;
        const auto lane = [&](size_t query) HWY_ATTR {
          return hn::Set(DI32(), static_cast<int32_t>((query - first) * kQueryLanes));
        };
        const VI32 lanes = hn::Iota(DI32(), 0);
        const auto mine = hn::And(hn::Ge(lanes, lane(begin)), hn::Lt(lanes, lane(end)));
        for (size_t b = 0; b < n_blocks_; ++b) {
          const VF step = hn::Div(hn::Mul(gain, hn::Set(d, scale_limits_[b])), largest);
          float* const gains = gains_[b] + first;
          FromLanes<kQueryLanes>(
              hn::IfThenElse(hn::RebindMask(d, mine), step, ToLanes<kQueryLanes>(gains)), gains);
          if (end - begin < kWidth) {
            Multiply<true, true>(aligned, first, s, b, largest, mine);
          } else if (is_high) {
            Multiply<true, false>(aligned, first, s, b, largest, mine);
          } else {
            Multiply<false, false>(aligned, first, s, b, largest, mine);
          }
        }
      }
    }
  }

  template <size_t kQueries>
  HWY_INLINE void WeightedSum(size_t query, KeyRange seen, size_t lane,
                              VSums<kQueries, kRowVectors>& sums) const {
    const KeyRange aligned = AlignKeys<kQueryLanes>(seen);
    VDots<kQueries> dots;
    const size_t b = lane / 32;
    constexpr size_t kPrefetchedBytes = kWordKeys * kMicroRows * sizeof(Block) / 32;  // for a word
    const Prefetcher<kPrefetchedBytes> ahead(
        this->next_values + kTileKeys * lane * sizeof(Block) / 32, query == 0);
    const uint32_t *const values = values_[b] + lane % 32, *const low = this->weights[b];
    const size_t begin = aligned.begin / kWordKeys, end = aligned.end / kWordKeys;
    const auto dot = [](VI32 sum, VU32 value, VU32 weight) HWY_ATTR {
#if PRONK_VNNI
      return DotBytes(sum, hn::BitCast(DU8(), weight), hn::BitCast(DI8(), value));
#else
      return DotWords(sum, hn::BitCast(DI16(), weight), hn::BitCast(DI16(), value));
#endif
    };
    SetZero<kQueries>(dots);
#if PRONK_VNNI
    if (uint32_t left = high_[b][query / kWeightQueries]; left != 0) {
      for (; left != 0; left &= left - 1) {
        const size_t word = static_cast<size_t>(std::countr_zero(left));
        AddWords<kQueries, kQueryLanes>(values + word * 32, low + kWidth * kTileKeys / 4, word,
                                        query, dot, dots);
      }
      HWY_UNROLL(8)
      for (size_t q = 0; q < kQueries; ++q) {
        for (VI32& sum : dots[q]) sum = hn::ShiftLeft<6>(sum);
      }
    }
#endif
    MultiplyValues<kQueries, kQueryLanes>(values, 32, begin, end, low, query, dot, ahead, dots);
    HWY_UNROLL(8)
    for (size_t q = 0; q < kQueries; ++q) {
      for (size_t v = 0; v < kRowVectors; ++v) {
        sums[q][v] = hn::Mul(hn::ConvertTo(DF(), dots[q][v]), hn::Set(DF(), gains_[b][query + q]));
      }
    }
  }

 private:
  // VNNI needs unsigned bytes on one side, so this is added to the keys' bytes. The start value of
  // each sum subtracts its contribution.
  static constexpr uint8_t kKeyBias = PRONK_VNNI ? 128 : 0;
  // Where few queries use a key, copying it does not pay off.
  static constexpr bool kInPlace = kQueryLanes >= 4;
  // The keys whose values, or weights, share a word.
  static constexpr size_t kWordKeys = PRONK_VNNI ? 4 : 2;
  // A weight of more than this part of the sum of the weights needs a second byte.
  static constexpr float kByteFraction = 1.0f / 64, kOneByte = 255;

  // FindVectors() for both types: blocks of Q4_0 become blocks of Q8_0 in a copy. A negative scale
  // of Q4_0 becomes positive, and its numbers are negated, to -7 to 8.
  CachedRows FindBlocks(KvType type, const std::byte* cache, size_t length, const KeyTile& tile,
                        size_t first, size_t n, const std::byte*& next) {
    if (type == KvType::kQ8_0) return this->FindVectors(cache, length, tile, first, n, next);
    using Half = gguf::BlockQ4_0;
    const hn::FixedTag<uint8_t, 16> d;
    const TileVectors vectors = {cache, CachedBytes<Half>(length), tile};
    next = vectors.NextTile(CachedBytes<Half>(first));
    const std::byte* const rows =
        cache + tile.cache_index * vectors.bytes + CachedBytes<Half>(first);
    const KeyRange aligned = AlignKeys<kQueryLanes>(tile.seen);
    std::byte* to_row = this->copy;
    for (size_t p = aligned.begin; p < aligned.end; ++p, to_row += Base::kChunkBytes) {
      const size_t row = std::clamp(p, tile.seen.begin, tile.seen.end - 1);
      const Half* const from = reinterpret_cast<const Half*>(rows + row * vectors.bytes);
      Block* const to = reinterpret_cast<Block*>(to_row);
      for (size_t b = 0; b < (n + 31) / 32; ++b) {
        const auto codes = hn::LoadU(d, from[b].qs), zero = hn::Set(d, 8);
        const uint16_t scale = from[b].d;
        const auto sign = hn::Set(d, scale >> 15 != 0 ? 0xFF : 0);
        const auto put = [&](auto code, size_t i) HWY_ATTR {  // -x is the complement, plus 1
          const auto number = hn::Xor(hn::Sub(code, zero), sign);
          hn::StoreU(hn::Sub(number, sign), d, reinterpret_cast<uint8_t*>(to[b].qs) + i);
        };
        to[b].d = scale & 0x7FFF;
        put(hn::And(codes, hn::Set(d, 15)), 0);
        put(hn::ShiftRight<4>(codes), 16);
      }
    }
    return {this->copy, Base::kChunkBytes};
  }

  // Stores the weights of a vector of queries for block b: pairs times factors_. kHigh: weights may
  // need two bytes. kMasked: stores only the lanes in `mine`.
  template <bool kHigh, bool kMasked, class Mask>
  HWY_INLINE void Multiply(KeyRange aligned, size_t first, const QueryState& s, size_t b,
                           VF largest, Mask mine) {
    const float* HWY_RESTRICT const pairs = s.scores[first];
    uint32_t* HWY_RESTRICT const words = this->weights[b] + first * (kTileKeys / 2);
    [[maybe_unused]] const VI32 one = hn::ConvertInRangeTo(DI32(), largest);
    [[maybe_unused]] const VI16 factor = hn::BitCast(DI16(), hn::Or(one, hn::ShiftLeft<16>(one)));
    const auto put = [&](VI16 v, uint32_t* to) HWY_ATTR {
      VU32 word = hn::BitCast(DU32(), v);
      if (kMasked) word = hn::IfThenElse(hn::RebindMask(DU32(), mine), word, hn::Load(DU32(), to));
      hn::Store(word, DU32(), to);
    };
    const auto product = [&](size_t pair) HWY_ATTR {
      const VI16 both = hn::BitCast(DI16(), hn::Load(DF(), pairs + pair * kFloatLanes));
      const VU8 factors = Broadcast<kQueryLanes>(factors_[b] + 2 * pair * kQueryLanes);
      return hn::MulFixedPoint15(both, hn::BitCast(DI16(), factors));
    };
    [[maybe_unused]] constexpr uint32_t kWordsOfKeys = (1u << kQueryLanes) - 1;
    [[maybe_unused]] uint32_t words_with_high = 0;
    for (size_t pair = aligned.begin / (2 * kQueryLanes); pair < aligned.end / (2 * kQueryLanes);
         pair += 2) {
#if PRONK_VNNI
      VI16 a = hn::MulFixedPoint15(product(pair), factor);
      VI16 c = hn::MulFixedPoint15(product(pair + 1), factor);
      uint32_t* const to = words + pair / 2 * kFloatLanes;
      if (kHigh) {
        const auto high = [](VI16 v) HWY_ATTR {
          const auto more = hn::SaturatedSub(hn::BitCast(DU16(), v), hn::Set(DU16(), 192));
          return hn::BitCast(DI16(), hn::ShiftRight<6>(more));
        };
        const VI16 high_a = high(a), high_c = high(c);
        a = hn::Sub(a, hn::ShiftLeft<6>(high_a));
        c = hn::Sub(c, hn::ShiftLeft<6>(high_c));
        const VI16 both = hn::Or(high_a, hn::ShiftLeft<8>(high_c));
        put(both, to + kWidth * kTileKeys / 4);
        const uint32_t any = !hn::AllTrue(DI16(), hn::Eq(both, hn::Zero(DI16())));
        words_with_high |= any * kWordsOfKeys << (pair / 2 * kQueryLanes);
      }
      put(hn::Or(a, hn::ShiftLeft<8>(c)), to);
#else
      put(product(pair), words + pair * kFloatLanes);
      put(product(pair + 1), words + (pair + 1) * kFloatLanes);
#endif
    }
    high_[b][first / kWeightQueries] |= words_with_high;
  }

  // Sets factors_, which weights are multiplied by, in the order of their pairs: a value's scale
  // over the largest scale of the seen values, times 32767.
  HWY_INLINE void FindFactors(KeyRange seen) {
    // The start value is below every positive f16, so that no limit is infinite. Scales are
    // compared as integers, so that a NaN is the largest.
    const VI32 lowest = hn::Set(DI32(), std::bit_cast<int32_t>(5e-8f));
    VI32 max[kBlocks] = {lowest, lowest};
    for (size_t p = seen.begin / kFloatLanes * kFloatLanes; p < seen.end; p += kFloatLanes) {
      const VI32 at = hn::Iota(DI32(), static_cast<int32_t>(p));
      const auto inside = hn::And(hn::Ge(at, hn::Set(DI32(), static_cast<int32_t>(seen.begin))),
                                  hn::Lt(at, hn::Set(DI32(), static_cast<int32_t>(seen.end))));
      HWY_UNROLL(2)
      for (size_t b = 0; b < kBlocks; ++b) {
        const VI32 scale = hn::BitCast(DI32(), hn::Load(DF(), value_scales_[b] + p));
        max[b] = hn::Max(max[b], hn::IfThenElseZero(inside, scale));
      }
    }
    const VI32 at = hn::Iota(DI32(), 0);
    const VI32 turned = hn::Add(at, hn::AndNot(hn::Set(DI32(), kQueryLanes - 1), at));
    const auto low = hn::IndicesFromVec(DI32(), hn::And(turned, hn::Set(DI32(), kFloatLanes - 1)));
    const auto high = hn::IndicesFromVec(
        DI32(),
        hn::And(hn::Add(turned, hn::Set(DI32(), kQueryLanes)), hn::Set(DI32(), kFloatLanes - 1)));
    HWY_UNROLL(2)
    for (size_t b = 0; b < kBlocks; ++b) {
      const float largest = std::bit_cast<float>(hn::ReduceMax(DI32(), max[b]));
      const VF limit = hn::Set(DF(), kInt16Limit / largest);
      scale_limits_[b] = largest * (PRONK_VNNI ? 32768 / kInt16Limit : 1);  // two products' halves
      for (size_t p = 0; p < kTileKeys; p += kFloatLanes) {
        VI32 factors = hn::ConvertInRangeTo(
            DI32(), hn::MulAdd(hn::Load(DF(), value_scales_[b] + p), limit, hn::Set(DF(), 0.5f)));
        factors = hn::Min(factors, hn::Set(DI32(), 32767));  // scales of unseen keys may be larger
        const VI16 lows = hn::BitCast(DI16(), hn::TableLookupLanes(factors, low));
        const VI16 highs =
            hn::BitCast(DI16(), hn::ShiftLeft<16>(hn::TableLookupLanes(factors, high)));
        const VI32 pairs = hn::BitCast(DI32(), hn::OddEven(highs, lows));
        const hn::Half<DI32> half;
        hn::Store(hn::LowerHalf(half, pairs), half, reinterpret_cast<int32_t*>(factors_[b] + p));
      }
    }
  }

  // The scales of halves_ as floats. They are copied as halves, and read as vectors only after
  // other work, since a vector load waits for the small stores to its bytes.
  HWY_INLINE void ConvertHalves(KeyRange aligned, float (&scales)[kBlocks][kTileKeys]) const {
    const hn::Rebind<hwy::float16_t, DF> dh;
    for (size_t b = 0; b < kBlocks; ++b) {
      const auto* const from = reinterpret_cast<const hwy::float16_t*>(halves_ + b * kTileKeys);
      for (size_t p = aligned.begin; p < aligned.end; p += kFloatLanes) {
        hn::Store(hn::PromoteTo(DF(), hn::Load(dh, from + p)), DF(), scales[b] + p);
      }
    }
  }

  alignas(64) uint16_t halves_[kBlocks * kTileKeys];          // scales
  alignas(64) uint32_t values_[kBlocks][32 * kTileKeys / 2];  // [words of keys][32]
  alignas(64) float value_scales_[kBlocks][kTileKeys];
  alignas(64) int16_t factors_[kBlocks][kTileKeys];  // factors of weights
  float scale_limits_[kBlocks];                      // the scale of the largest factor
  uint32_t high_[kBlocks][kTileQueries];  // [query / kWeightQueries]: bit i: word i has high bytes
  alignas(64) float gains_[kBlocks][kTileQueries];
  CachedRows rows_;  // keys, from first_key_ on
  size_t first_key_;
  size_t n_blocks_;  // blocks of a chunk of the values
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_INT8_OPERANDS_INL_H_
