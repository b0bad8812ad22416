// IQ4_NL: 32 weights of a non-uniform codebook of 16, with a scale. 18 bytes, 4.5 bits a weight.
//
//   bytes    0 1        d
//            2 ... 17   qs: nibbles as in Q4_0
//   weight   d * values[q], values in tables.h: -127 to 113

#include "kernels/types/q4_0-inl.h"
#include "kernels/types/shared/tables.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct IQ4_NL : SignedType32<IQ4_NL, gguf::BlockIQ4_NL, true>,
                Nibbles32<gguf::BlockIQ4_NL, TableCodes<kIq4nlValues, kSignedOffset>> {
  static constexpr gguf::DType kDType = gguf::DType::kIQ4_NL;
  using PanelForm = Int8Form<kIq4nlValues.front(), kIq4nlValues.back()>;

  static int Weight(const Block& block, int j) { return kIq4nlValues[Q4_0::Nibble(block.qs, j)]; }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
