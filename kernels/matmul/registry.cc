// Chooses each format's functions for this CPU, once.
#include "kernels/matmul/registry.h"

#include "kernels/threads/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/registry.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"
#include "kernels/simd/targets.h"

#ifdef PRONK_NEON_I8MM
namespace kernels::N_NEON_DOT {
const FormatTable& Formats();
}
#endif

namespace kernels::HWY_NAMESPACE {
// The parts of the list, each in its own object file (formats.cc).
void AddFormats0(FormatTable&);
void AddFormats1(FormatTable&);
void AddFormats2(FormatTable&);
void AddFormats3(FormatTable&);
void AddFormats4(FormatTable&);
void AddFormats5(FormatTable&);
void AddFormats6(FormatTable&);
void AddFormats7(FormatTable&);
}  // namespace kernels::HWY_NAMESPACE

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

const FormatTable& Formats() {
  static const FormatTable formats = [] {
#ifdef PRONK_NEON_I8MM
    FormatTable table = N_NEON_DOT::Formats();
#else
    FormatTable table{};
#endif
    for (void (*const add)(FormatTable&) : {AddFormats0, AddFormats1, AddFormats2, AddFormats3,
                                            AddFormats4, AddFormats5, AddFormats6, AddFormats7}) {
      add(table);
    }
    return table;
  }();
  return formats;
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

using gguf::DType;

PRONK_EXPORT(Formats);

Format FormatOf(WeightKind kind) {
  const size_t index = FormatIndex(kind.dtype);
  if (index >= std::tuple_size_v<FormatTable>) return {};
  const Format& format = PRONK_DISPATCH(Formats)()[index];
  return kind.exact ? Exact(format) : format;
}

size_t TokensByRows(WeightKind kind) {
  return CpuUses(Extension::kAmx) ? kTokensByRows : FormatOf(kind).tokens_by_rows;
}

BatchForm BatchFormFor(WeightKind kind) {
  if (kind.exact) return BatchForm::kFloats;
  const DType dtype = kind.dtype;
  if (UsesInt8(dtype)) return CpuUses(Extension::kAmx) ? BatchForm::kBf16 : BatchForm::kInt8;
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  return half && CpuUses(Extension::kBf16) ? BatchForm::kBf16 : BatchForm::kFloats;
}

}  // namespace kernels
#endif  // HWY_ONCE
