// NVFP4: 64 four-bit floats, with a scale for every 16, an unsigned eight-bit float (UE4M3,
// half.h). 36 bytes, 4.5 bits a weight. A matrix has one more factor.
//
//   bytes    0 ... 3    d
//            4 ... 35   qs: eight bytes for each 16 weights: byte j has weight j in its low
//                       nibble and weight j + 8 in its high nibble
//   weight   d * values[q] / 2, values as in MXFP4

#include "kernels/types/shared/tables.h"
#include "kernels/types/shared/types32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// A 128-bit lane has two groups of 16, and a lane's dots belong to one of them. A block is two
// 128-bit lanes.
struct NVFP4 : Definition<NVFP4, gguf::BlockNVFP4, 16> {
  using Block = gguf::BlockNVFP4;
  using PanelForm = Int8Form<-12, 12, 2>;
  static constexpr gguf::DType kDType = gguf::DType::kNVFP4;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 256;
  static constexpr size_t kStepBytes = 256 / Block::kWeights * sizeof(Block);
  static constexpr size_t kScaleVectors = kDotVectors / 2;  // vectors of the scales of 16 groups
  static constexpr int kZeroPoint = 12;                     // code = value + kZeroPoint

  static int Weight(const Block& block, int j) {
    const uint8_t byte = block.qs[8 * (j / 16) + j % 8];
    return kFp4Values[j % 16 < 8 ? byte & 15 : byte >> 4];
  }
  static float GroupScale(const Block& block, int g) { return Ue4m3ToF32(block.d[g]) * 0.5f; }
  struct Input {
    VI8 first[kDotVectors], second[kDotVectors];  // the first 8 of each group, and the second
    VI32 start[kDotVectors];                      // -zero * (sum of the lane)
    // The activations' scales in the order of ScaleBytes, for weights of twice the value.
    VF scales[kScaleVectors];
  };

  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    Input in;
    const hn::Repartition<uint64_t, DU8> d64;
    const VI32 none = hn::Zero(DI32());
    const VU8 zero = hn::Set(DU8(), uint8_t{kZeroPoint});
    for (size_t v = 0; v < kDotVectors; ++v) {
      const int8_t* const q = x.q + i + 2 * kVectorBytes * v;
      const auto low = hn::BitCast(d64, hn::LoadU(DI8(), q));
      const auto high = hn::BitCast(d64, hn::LoadU(DI8(), q + kVectorBytes));
      in.first[v] = hn::BitCast(DI8(), hn::ConcatEven(d64, high, low));
      in.second[v] = hn::BitCast(DI8(), hn::ConcatOdd(d64, high, low));
      in.start[v] = hn::Sub(none, Dot2(none, zero, in.first[v], zero, in.second[v]));
    }
    const VF unit = hn::Set(DF(), 0.5f * kUe4m3Unit);
    for (size_t k = 0; k < kScaleVectors; ++k) {
      alignas(64) float scales[kFloatLanes];
      for (size_t lane = 0; lane < kFloatLanes; ++lane) {
        const size_t vector = 2 * k + lane % 4 / 2;
        scales[lane] = x.scales[i / 32 + vector * kLanes128 + lane / 4];
      }
      in.scales[k] = hn::Mul(hn::Load(DF(), scales), unit);
    }
    return in;
  }

  struct Unpacked {
    VU8 codes[kDotVectors][2];
    VF scales[kScaleVectors];  // in the order of ScaleBytes
  };
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    for (size_t v = 0; v < kDotVectors; ++v) {
      const VU8 nibbles = LoadStripes<sizeof(Block)>(w + offsetof(Block, qs), v);
      unpacked.codes[v][0] = TableCodes<kFp4Values, kZeroPoint>::Of(LowNibbles(nibbles));
      unpacked.codes[v][1] = TableCodes<kFp4Values, kZeroPoint>::Of(HighNibbles(nibbles));
    }
    for (size_t k = 0; k < kScaleVectors; ++k) {
      unpacked.scales[k] = PromoteUe4m3(DF(), ScaleBytes(w, k));
    }
    return unpacked;
  }
  static HWY_INLINE Unpacked ZeroAfter(const Unpacked& w, size_t /*n*/) { return w; }  // all finite
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    VI32 dots[kDotVectors];
    for (size_t v = 0; v < kDotVectors; ++v) {
      dots[v] = Dot2(in.start[v], w.codes[v][0], in.first[v], w.codes[v][1], in.second[v]);
    }
    for (size_t k = 0; k < kScaleVectors; ++k) {
      const VF groups = hn::ConvertTo(DF(), AddNeighbours(dots[2 * k], dots[2 * k + 1]));
      sums.products = hn::MulAdd(groups, hn::Mul(w.scales[k], in.scales[k]), sums.products);
    }
  }

  // The scales of vectors 2k and 2k + 1, alternating two of each: the order in which AddNeighbours
  // leaves their groups.
  using DBytes = hn::Rebind<uint8_t, DF>;
  static HWY_INLINE hn::Vec<DBytes> ScaleBytes(const uint8_t* HWY_RESTRICT w, size_t k) {
#if PRONK_LANES128 == 1
    return hn::LoadU(DBytes(), w + k * sizeof(Block));
#else
    const hn::Repartition<uint16_t, DBytes> d16;
    const auto of_vector = [&](size_t v) HWY_ATTR {
      constexpr size_t kBlocks = kLanes128 / 2;
      uint32_t scales[2] = {};
      for (size_t b = 0; b < kBlocks; ++b) {
        hwy::CopyBytes<4>(w + (v * kBlocks + b) * sizeof(Block), &scales[b]);
      }
      const uint64_t bits = scales[0] | static_cast<uint64_t>(scales[1]) << 32;
      return hn::ResizeBitCast(d16, hn::Set(hn::FixedTag<uint64_t, 1>(), bits));
    };
    return hn::BitCast(DBytes(), hn::InterleaveLower(d16, of_vector(2 * k), of_vector(2 * k + 1)));
#endif
  }

  // Eight bytes of low nibbles, then eight of high nibbles.
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const auto* const blocks = reinterpret_cast<const Block*>(w);
    const hn::FixedTag<float, 4> df;
    const hn::RebindToSigned<DU8x16> d;
    const hn::Repartition<uint64_t, DU8x16> d64;  // eight weights
    const auto values = hn::LoadU(d, kFp4Values.data());
    for (size_t b = 0; b < 4; ++b) {
      const auto scale_bytes = hn::LoadU(hn::Rebind<uint8_t, decltype(df)>(), blocks[b].d);
      const auto scales = hn::Mul(PromoteUe4m3(df, scale_bytes), hn::Set(df, 0.5f * kUe4m3Unit));
      hn::StoreU(scales, df, out.scales + 4 * b);
      for (size_t half = 0; half < 2; ++half) {
        const VU8x16 nibbles = Load16(blocks[b].qs + 16 * half);
        const auto low = hn::TableLookupBytes(values, hn::BitCast(d, Bits<0, 4>(nibbles)));
        const auto high = hn::TableLookupBytes(values, hn::BitCast(d, Bits<4, 4>(nibbles)));
        int8_t* const weights = out.weights + 64 * b + 32 * half;
        const auto first = hn::InterleaveLower(d64, hn::BitCast(d64, low), hn::BitCast(d64, high));
        const auto second = hn::InterleaveUpper(d64, hn::BitCast(d64, low), hn::BitCast(d64, high));
        hn::StoreU(hn::BitCast(d, first), d, weights);
        hn::StoreU(hn::BitCast(d, second), d, weights + 16);
      }
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
