// How near the products come to the time of reading: for every weight type, instruction set and one
// or two threads, GB/s of weights beside what the same threads read without any arithmetic.
//
//   kernels_bench --benchmark_filter='Gemv/Q4_0/.*'
//
// GB/s is that of the best pass over a matrix larger than the caches, read the ceiling measured
// just before and after, share their ratio. "Cached" benchmarks work on a matrix that fits in the
// second-level cache: what the arithmetic alone would allow.
//
//   kernels_bench --benchmark_filter='Gemm/Q4_0/.*'
//
// is a batch of tokens by one thread: operations, those of dot products alone, and their ratio.
// "Attention" is that of 512 tokens behind others, by one thread: the operations of both of its
// products, with keys after a token's own counted, too.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/ceiling.h"
#include "kernels/cpu.h"
#include "kernels/matmul.h"
#include "kernels/reference.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kCols = 2048;
constexpr size_t kGemmRows = 2048;
constexpr size_t kMatrixBytes = size_t{192} << 20;
constexpr size_t kCachedBytes = size_t{192} << 10;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

// A large matrix of any type in one buffer. Its values repeat after some rows: only their bytes
// count.
class Weights {
 public:
  Matrix Get(gguf::DType dtype, size_t n_bytes) {
    if (bytes_.empty()) bytes_.resize(kMatrixBytes);
    const RandomMatrix tile(dtype, 32, kCols, 1);
    const Matrix small = tile.view();
    const size_t tile_bytes = small.rows * small.row_bytes();
    const size_t n_tiles = std::max<size_t>(n_bytes / tile_bytes, 1);
    for (size_t i = 0; i < n_tiles; ++i) {
      std::memcpy(bytes_.data() + i * tile_bytes, small.data, tile_bytes);
    }
    return {dtype, bytes_.data(), n_tiles * small.rows, kCols};
  }

 private:
  std::vector<std::byte> bytes_;
};

Weights& SharedWeights() {
  static Weights weights;
  return weights;
}

double Ceiling(Team& team, const Matrix& w) {
  return ReadCeiling(team, {w.data, w.rows * w.row_bytes()}, 2);
}

// Calls `work`, on a team's thread, as often as `state` wants; the seconds of the fastest time.
template <class Work>
double BestSeconds(benchmark::State& state, Work work) {
  double best = 1e9;
  for (auto _ : state) {
    const auto start = Clock::now();
    work();
    const double seconds = Seconds(start);
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  return best;
}

// The same for a product with `input`, tokens of kCols.
double BestSeconds(benchmark::State& state, Team& team, const Product& product,
                   const std::vector<float>& input, Activations& x) {
  double best = 0;
  team.Run([&] {
    x.Set(input.data(), input.size() / kCols, kCols);
    best = BestSeconds(state, [&] { MatMul(team, {&product, 1}, x); });
  });
  return best;
}

void RunGemv(benchmark::State& state, gguf::DType dtype, const std::string& target, int threads,
             size_t n_bytes) {
  LimitCpu(target);
  const Matrix w = SharedWeights().Get(dtype, n_bytes);
  const std::vector<float> input = NormalFloats(kCols, 2);
  Team team(threads);
  Activations x(1, kCols);
  std::vector<float> out(w.rows);
  const Product product{w, out.data(), w.rows};
  const bool from_memory = n_bytes == kMatrixBytes;
  double read = from_memory ? Ceiling(team, w) : 0;
  const double best = BestSeconds(state, team, product, input, x);
  LimitCpu("");
  const double speed = static_cast<double>(w.rows * w.row_bytes()) / best;
  state.counters["GB/s"] = speed * 1e-9;
  if (from_memory) {
    read = std::max(read, Ceiling(team, w));
    state.counters["read"] = read * 1e-9;
    state.counters["share"] = speed / read;
  }
}

void RunGemm(benchmark::State& state, gguf::DType dtype, const std::string& target,
             size_t n_tokens) {
  LimitCpu(target);
  const Matrix w = SharedWeights().Get(dtype, kGemmRows * gguf::RowBytes(dtype, kCols));
  const std::vector<float> input = NormalFloats(n_tokens * kCols, 2);
  Team team(1);
  Activations x(n_tokens, kCols);
  std::vector<float> out(n_tokens * w.rows);
  const Product product{w, out.data(), w.rows};
  const double ceiling = DotCeiling(team);
  const double best = BestSeconds(state, team, product, input, x);
  LimitCpu("");
  const double speed = 2 * static_cast<double>(w.rows * kCols * n_tokens) / best;
  state.counters["GOPS"] = speed * 1e-9;
  state.counters["dots"] = ceiling * 1e-9;
  state.counters["share"] = speed / ceiling;
}

// In the shape of Llama 3.2 1B.
void RunAttention(benchmark::State& state, KvType type, const std::string& target, size_t depth) {
  constexpr size_t kHeads = 32, kKvHeads = 8, kLength = 64, kTokens = 512;
  LimitCpu(target);
  const size_t capacity = depth + kTokens;
  std::vector<std::byte> k(kKvHeads * capacity * KvBytes(type, kLength)), v = k;
  const KvLayer cache{type, k.data(), v.data(), kKvHeads, capacity, kLength, kLength};
  const std::vector<float> numbers = NormalFloats(kTokens * kHeads * kLength, 3);
  for (size_t pos = 0; pos < capacity; pos += kTokens) {
    StoreKv(cache, pos, std::min(kTokens, capacity - pos), numbers.data(), numbers.data());
  }
  std::vector<float> out(numbers.size());
  Team team(1);
  double best = 0;
  team.Run([&] {
    best = BestSeconds(state, [&] {
      Attention(team, cache, numbers.data(), kHeads, kTokens, depth, {.scale = 0.125f}, out.data());
    });
  });
  LimitCpu("");
  state.counters["GOPS"] = 4e-9 * static_cast<double>(kHeads * kLength * kTokens * capacity) / best;
}

void RegisterAttention(KvType type, const std::string& kv) {
  for (const std::string& target : CpuTargets()) {
    for (const size_t depth : {0, 4096}) {
      benchmark::RegisterBenchmark(
          ("Attention/" + kv + "/" + target + "/depth:" + std::to_string(depth)).c_str(),
          RunAttention, type, target, depth)
          ->UseManualTime();
    }
  }
}

void RegisterAll() {
  RegisterAttention(KvType::kF32, "f32");
  RegisterAttention(KvType::kF16, "f16");
  RegisterAttention(KvType::kQ8_0, "q8_0");
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    if (!IsWeightType(info.type)) continue;
    for (const std::string& target : CpuTargets()) {
      for (const size_t n_tokens : {8, 512}) {
        const std::string name =
            std::string(info.name) + "/" + target + "/tokens:" + std::to_string(n_tokens);
        benchmark::RegisterBenchmark(("Gemm/" + name).c_str(), RunGemm, info.type, target, n_tokens)
            ->UseManualTime();
      }
      for (const int threads : {1, 2}) {
        const std::string name =
            std::string(info.name) + "/" + target + "/threads:" + std::to_string(threads);
        benchmark::RegisterBenchmark(("Gemv/" + name).c_str(), RunGemv, info.type, target, threads,
                                     kMatrixBytes)
            ->UseManualTime();
        if (threads > 1) continue;
        benchmark::RegisterBenchmark(("Cached/" + name).c_str(), RunGemv, info.type, target,
                                     threads, kCachedBytes)
            ->UseManualTime();
      }
    }
  }
}

}  // namespace
}  // namespace kernels

int main(int argc, char** argv) {
  kernels::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
