// Measures the speed of memory and of the multipliers.
#include "kernels/matmul/ceiling.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/ceiling.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"
#include "kernels/matmul/bf16.h"
#include "kernels/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Reads n bytes in kStreams streams, prefetching kAhead bytes ahead (0: prefetching is left to the
// CPU), and returns a number that depends on every byte.
template <size_t kStreams, size_t kAhead>
uint64_t ReadStreams(const uint8_t* p, size_t n) {
  constexpr size_t kLine = 64;
  const DU8 d;
  const size_t part = n / kStreams / kLine * kLine;
  VU8 sums[kStreams];
  for (VU8& sum : sums) sum = hn::Zero(d);
  for (size_t i = 0; i < part; i += kLine) {
    for (size_t s = 0; s < kStreams; ++s) {
      const uint8_t* const line = p + s * part + i;
      if (kAhead != 0) __builtin_prefetch(line + kAhead);
      for (size_t k = 0; k < kLine; k += kVectorBytes) {
        sums[s] = hn::Xor(sums[s], hn::LoadU(d, line + k));
      }
    }
  }
  for (size_t s = 1; s < kStreams; ++s) sums[0] = hn::Xor(sums[0], sums[s]);
  return hn::GetLane(hn::BitCast(hn::Repartition<uint64_t, DU8>(), sums[0]));
}

// The ways to read, by number.
uint64_t ReadPart(size_t way, const uint8_t* p, size_t n) {
  constexpr decltype(&ReadStreams<1, 0>) kWays[] = {ReadStreams<1, 0>, ReadStreams<1, 512>,
                                                    ReadStreams<1, 1024>, ReadStreams<4, 1024>};
  return kWays[way](p, n);
}

// One vector of products, added to a chain of sums, in the kernels' cheapest way.
HWY_INLINE VI32 AddProducts(VI32 sum, VU8 codes, VI8 x) {
#if HWY_ARCH_X86 && !PRONK_VNNI
  // Four-bit codes: sums of i16 take eight vectors before they must be widened. The sum replaces x,
  // or the compiler would multiply once for all chains.
  (void)x;
  const DI16 d16;
  const VI16 products = hn::SatWidenMulPairwiseAdd(d16, codes, hn::BitCast(DI8(), sum));
  return hn::BitCast(DI32(), hn::Add(hn::BitCast(d16, sum), products));
#elif defined(PRONK_NEON_I8MM)
  return DotPairs(sum, hn::BitCast(DI8(), codes), x);
#else
  return Dot(sum, codes, x);
#endif
}

// Computes `rounds` rounds of products, in twelve chains of sums so that no sum waits for another.
// Returns a number that depends on every product; *n_ops gets the operations of one round.
int64_t DotRounds(size_t rounds, size_t* n_ops) {
  constexpr size_t kChains = 12, kLength = 8;
#ifdef PRONK_NEON_I8MM
  constexpr size_t kRows = 2;  // rows that each byte of x is multiplied with
#else
  constexpr size_t kRows = 1;
#endif
  *n_ops = kLength * kChains * kVectorBytes * kRows * 2;
  const VU8 codes = hn::Iota(DU8(), 1);
  const VI8 x = hn::Iota(DI8(), 3);
  VI32 sums[kChains];
  for (size_t k = 0; k < kChains; ++k) sums[k] = hn::Iota(DI32(), static_cast<int>(k));
  for (size_t i = 0; i < rounds; ++i) {
    HWY_UNROLL(8)
    for (size_t j = 0; j < kLength; ++j) {
      HWY_UNROLL(12)
      for (size_t k = 0; k < kChains; ++k) sums[k] = AddProducts(sums[k], codes, x);
    }
  }
  for (size_t k = 1; k < kChains; ++k) sums[0] = hn::Add(sums[0], sums[k]);
  return hn::ReduceSum(DI32(), sums[0]);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(ReadPart);
PRONK_EXPORT(DotRounds);

namespace {

constexpr size_t kReadWays = 4;

// DotRounds with the CPU's fastest instructions.
int64_t Rounds(size_t rounds, size_t* n_ops) {
#if HWY_ARCH_X86
  if (CpuUses(Extension::kAmx)) {
    SetUpAmx();
    *n_ops = AmxRounds(rounds);
    ReleaseAmx();
    return 0;
  }
#endif
  return PRONK_DISPATCH(DotRounds)(rounds, n_ops);
}

// Calls work(i) for each i < n on the threads of the running pool, and returns the seconds until
// the last call returns.
template <class Work>
double SecondsForAll(ThreadPool& pool, size_t n, Work work) {
  pool.For(pool.size(), 1, [](size_t, size_t, size_t) {});  // all threads are awake
  const auto start = std::chrono::steady_clock::now();
  pool.For(n, 1, [&](size_t begin, size_t end, size_t) {
    for (size_t i = begin; i < end; ++i) work(i);
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double ReadCeiling(ThreadPool& pool, std::span<const std::byte> bytes, int repeats) {
  const auto* const p = reinterpret_cast<const uint8_t*>(bytes.data());
  const size_t n_parts = pool.size() * ThreadPool::kChunks;
  const size_t part = bytes.size() / n_parts;
  std::atomic<uint64_t> sink = 0;  // keeps the reads
  double best = 0;
  pool.Run([&] {
    for (size_t i = 0; i < static_cast<size_t>(repeats) * kReadWays; ++i) {
      const double seconds = SecondsForAll(pool, n_parts, [&](size_t k) {
        sink ^= HWY_DYNAMIC_DISPATCH(ReadPart)(i % kReadWays, p + k * part, part);
      });
      best = std::max(best, static_cast<double>(part * n_parts) / seconds);
    }
  });
  return best;
}

double DotCeiling(ThreadPool& pool) {
  constexpr size_t kRounds = 250'000;
  constexpr int kRepeats = 3;
  std::atomic<int64_t> sink = 0;
  std::atomic<size_t> n_ops = 0;  // operations of a round
  double best = 0;
  pool.Run([&] {
    for (int i = 0; i < kRepeats; ++i) {
      const double seconds = SecondsForAll(pool, pool.size(), [&](size_t) {
        size_t ops = 0;
        sink ^= Rounds(kRounds, &ops);
        n_ops = ops;
      });
      best = std::max(best, static_cast<double>(n_ops * kRounds * pool.size()) / seconds);
    }
  });
  return best;
}

}  // namespace kernels
#endif  // HWY_ONCE
