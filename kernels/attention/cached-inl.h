// Reads cached keys and values of every type. Included once per instruction set.
#if defined(PRONK_KERNELS_ATTENTION_CACHED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_CACHED_INL_H_
#undef PRONK_KERNELS_ATTENTION_CACHED_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_CACHED_INL_H_
#endif

#include <cstddef>
#include <type_traits>

#include "gguf/blocks.h"
#include "kernels/attention/kv_cache.h"
#include "kernels/types/shared/unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// T is the element of a cache: float or hwy::float16_t; or, for 32 numbers, gguf::BlockQ8_0 or
// gguf::BlockQ4_0, where a vector's last block is filled up with zeros.
template <typename T>
constexpr bool kIsBlock = std::is_same_v<T, gguf::BlockQ8_0> || std::is_same_v<T, gguf::BlockQ4_0>;

// Bytes of a cached vector.
template <typename T>
constexpr size_t CachedBytes(size_t length) {
  return (kIsBlock<T> ? (length + 31) / 32 : length) * sizeof(T);
}

// LoadUpTo and StoreUpTo access a vector at p, or its first n numbers if n is less than the lanes.
template <class D>
HWY_INLINE hn::Vec<D> LoadUpTo(D d, const hn::TFromD<D>* p, size_t n) {
  return n >= hn::Lanes(d) ? hn::LoadU(d, p) : hn::LoadN(d, p, n);
}
template <class D>
HWY_INLINE void StoreUpTo(D d, hn::Vec<D> v, float* p, size_t n) {
  if (n >= hn::Lanes(d)) {
    hn::StoreU(v, d, p);
  } else {
    hn::StoreN(v, d, p, n);
  }
}

// Numbers [i, i + lanes of d) of the cached vector at `row`, zeros past its end. i is a multiple of
// the lanes, of which there are at most 32.
template <typename T, class D>
HWY_INLINE hn::Vec<D> LoadCached(D d, const std::byte* HWY_RESTRICT row, size_t i, size_t length) {
  const hn::RebindToSigned<D> di;
  if constexpr (kIsBlock<T>) {
    const T& block = reinterpret_cast<const T*>(row)[i / 32];
    hn::Vec<decltype(di)> integers;
    if constexpr (std::is_same_v<T, gguf::BlockQ8_0>) {
      integers = hn::PromoteTo(di, hn::LoadU(hn::Rebind<int8_t, D>(), block.qs + i % 32));
    } else {  // byte j has number j in its low bits and number j + 16 in its high bits
      const auto both = hn::PromoteTo(di, hn::LoadU(hn::Rebind<uint8_t, D>(), block.qs + i % 16));
      const auto code = i % 32 < 16 ? hn::And(both, hn::Set(di, 15)) : hn::ShiftRight<4>(both);
      integers = hn::Sub(code, hn::Set(di, 8));
    }
    return hn::Mul(hn::ConvertTo(d, integers), hn::Set(d, HalfToFloat(block.d)));
  } else {
    const hn::Rebind<T, D> dt;
    const T* const p = reinterpret_cast<const T*>(row) + i;
    const auto v = LoadUpTo(dt, p, length - i);
    if constexpr (sizeof(T) == sizeof(float)) {
      return v;
    } else {
      return hn::PromoteTo(d, v);
    }
  }
}

// Calls read(T()) with the element of a cache of `type`.
template <class Read>
HWY_INLINE void WithElement(KvType type, Read read) {
  switch (type) {
    case KvType::kF32:
      return read(float());
    case KvType::kF16:
      return read(hwy::float16_t());
    case KvType::kQ8_0:
      return read(gguf::BlockQ8_0());
    case KvType::kQ4_0:
      return read(gguf::BlockQ4_0());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_CACHED_INL_H_
