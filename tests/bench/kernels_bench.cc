// How near the products come to the time of reading: for every weight type, instruction set and one
// or two threads, GB/s of weights beside what the same threads read without any arithmetic.
//
//   kernels_bench --benchmark_filter='Gemv/Q4_0/.*'
//
// share is the ratio of the two; what is read is larger than the caches. "Cached" benchmarks work on
// a matrix that fits in the second-level cache: what the arithmetic alone allows, a number that does
// not depend on what else the machine is doing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/matmul.h"
#include "kernels/reference.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kCols = 2048;
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

// Reads [p, p + n) as fast as one thread can: four streams, each prefetched ahead.
uint64_t ReadAll(const std::byte* p, size_t n) {
  constexpr size_t kStreams = 4;
  const size_t part = n / kStreams / 64 * 64;
  uint64_t sums[8] = {};
  for (size_t i = 0; i < part; i += 64) {
    for (size_t s = 0; s < kStreams; ++s) {
      const std::byte* const line = p + s * part + i;
      __builtin_prefetch(line + 1024);
      uint64_t words[8];
      std::memcpy(words, line, sizeof(words));
      for (size_t k = 0; k < 8; ++k) sums[k] ^= words[k];
    }
  }
  uint64_t all = 0;
  for (const uint64_t sum : sums) all ^= sum;
  return all;
}

double ReadSeconds(Team& team, const Matrix& w) {
  const auto start = Clock::now();
  const size_t part = w.rows * w.row_bytes() / team.size();
  team.For(team.size(), 1, [&](size_t begin, size_t end, size_t /*thread*/) {
    uint64_t sum = ReadAll(w.data + begin * part, (end - begin) * part);
    benchmark::DoNotOptimize(sum);
  });
  return Seconds(start);
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
  std::vector<double> read_seconds, seconds;
  team.Run([&] {
    for (auto _ : state) {
      x.Set(input.data(), 1, kCols);
      const auto start = Clock::now();
      MatMul(team, {&product, 1}, x);
      seconds.push_back(Seconds(start));
      state.SetIterationTime(seconds.back());
      if (n_bytes == kMatrixBytes) read_seconds.push_back(ReadSeconds(team, w));
    }
  });
  LimitCpu("");
  const auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
    return v[v.size() / 2];
  };
  const double bytes = static_cast<double>(w.rows * w.row_bytes());
  state.counters["GB/s"] = bytes / median(seconds) * 1e-9;
  if (!read_seconds.empty()) {
    state.counters["read"] = bytes / median(read_seconds) * 1e-9;
    state.counters["share"] = median(read_seconds) / median(seconds);
  }
}

void RegisterAll() {
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    if (!IsWeightType(info.type)) continue;
    for (const std::string& target : CpuTargets()) {
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
