// IQ1_M: 256 weights. Each 8 are one of the 2048 points of a grid, moved up or down by an eighth;
// each 16 share a scale of three bits. 56 bytes, 1.75 bits a weight.
//
//   bytes    0 ... 31    qs: the low eight bits of each index
//            32 ... 47   qh: a nibble for each 8 weights: three bits of index, the sign of delta
//            48 ... 55   scales: four u16, each with four s of three bits and on top four bits of d
//   weight   d * (2s + 1) * (level + delta), as in IQ1_S

#include "kernels/types/iq1_s-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct IQ1_M : Iq1Type<IQ1_M, gguf::BlockIQ1_M, 3> {
  static constexpr gguf::DType kDType = gguf::DType::kIQ1_M;
  using Block = gguf::BlockIQ1_M;
  using PanelForm = Int8Form<-9, 9, 2>;

  // The f16 d: each of four words has a nibble of it on top.
  static uint16_t ScaleBits(const Block& block) {
    uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits |= (block.scales[i] >> 12u) << (4 * i);
    return static_cast<uint16_t>(bits);
  }
  // The nibble of qh for the k-th 8 weights: three bits of index and the sign of delta.
  static uint32_t High(const Block& block, int k) { return block.qh[k / 2] >> (4 * (k % 2)) & 15u; }
  static uint32_t Index(const Block& block, int k) {
    return block.qs[k] | (High(block, k) & 7) << 8;
  }
  static bool IsNegative(const Block& block, int k) { return (High(block, k) & 8) != 0; }  // delta
  static void Integers(const Block& block, int g, int* integers) {
    for (int k = 2 * g; k < 2 * g + 2; ++k, integers += 8)
      SetShifted(kIq1Grid[Index(block, k)], IsNegative(block, k), integers);
  }
  static float GroupScale(const Block& block, int g) {
    const int scale = 2 * (block.scales[g / 4] >> (3 * (g % 4)) & 7) + 1;
    return HalfToFloat(ScaleBits(block)) * static_cast<float>(scale) * kIq1Unit;
  }

  static HWY_INLINE void ComputeIndices(const uint8_t* HWY_RESTRICT w,
                                        uint16_t* HWY_RESTRICT index) {
    StoreIndices<4>(w, index);
  }
  static HWY_INLINE void UnpackSlice(const PackedGrid& w, size_t p, GridSlice& slice) {
    const DU64 d64;
    const VU64 qh = LoadGroups<uint16_t>(w.block + offsetof(Block, qh), p);
    LookUp<0xFFFF, 4>(kIq1BytesPlus9.data(), w.index, p, slice.weights);
    for (size_t v = 0; v < 4; ++v) {
      const auto minus = hn::TestBit(qh, hn::Set(d64, uint64_t{8} << (4 * v)));
      slice.weights[v] = AddDelta(slice.weights[v], minus);
    }
    // Six bits for each group, two groups in a word.
    uint64_t words;
    hwy::CopyBytes<8>(w.block + offsetof(Block, scales), &words);
    alignas(64) static constexpr uint64_t kShifts[8] = {0, 6, 16, 22, 32, 38, 48, 54};
    const VU64 shifts = hn::Load(d64, kShifts + p * kSliceGroups);
    SetScales(hn::Shr(hn::Set(d64, words), shifts), w.d, slice);
  }
  // d is in the top nibbles of the words.
  static HWY_INLINE VF BlockScale(const uint8_t* HWY_RESTRICT block) {
    uint64_t words;
    hwy::CopyBytes<8>(block + offsetof(Block, scales), &words);
    const uint64_t d =
        (words >> 12 & 0xF) | (words >> 24 & 0xF0) | (words >> 36 & 0xF00) | (words >> 48 & 0xF000);
    return SetHalf(DF(), reinterpret_cast<const uint8_t*>(&d));
  }
  static HWY_INLINE uint64_t Octet(const Block& block, size_t k) {
    return Iq1Bytes(Index(block, static_cast<int>(k)), IsNegative(block, static_cast<int>(k)));
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
