// Compares matrix products with plain reading: for every weight type, instruction set and one or
// two threads, GB/s of weights, and the GB/s at which these threads read without any arithmetic.
//
//   kernels_bench --benchmark_filter='Gemv/Q4_0/.*'
//
// GB/s is the speed of the best pass over a matrix larger than the caches, read is the ceiling
// measured just before and after, and share is their ratio. "Cached" benchmarks use a matrix that
// fits in the second-level cache, so they show the limit of the arithmetic alone.
//
//   kernels_bench --benchmark_filter='Gemm/Q4_0/.*'
//
// measures a batch of tokens on one thread: operations, operations of dot products alone, and their
// ratio.
// "Experts" is a layer in which every token uses 8 of 64 experts. Decode is one token at a time,
// with experts that are not in a cache; prefill is 512 tokens. "Dense" has as many bytes and
// operations in one network 8 times as wide.
// "Few" measures 1 to 16 tokens on a matrix in the cache: nanoseconds for each token and 256
// weights.
// "Attention" measures 512 tokens after earlier tokens, on one thread. It counts the operations of
// both products, and also keys after a token's own key.
// "Key" measures attention of one token, keys in the cache: nanoseconds for a key of one key-value
// head.
// "Recurrence" measures recurrent layers in the shapes of Qwen3-Next and Granite 4, with 1 or 512
// tokens, on one thread: nanoseconds for each token (convolution), or for each token and head.
// "faded" has zero inputs and states of denormal floats.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/experts/experts.h"
#include "kernels/matmul/ceiling.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/reference.h"
#include "kernels/recurrence/recurrence.h"
#include "kernels/threads/cpu.h"
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

// A large matrix of any type in one buffer. Its values repeat, since only the size matters.
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

double Ceiling(ThreadPool& pool, const Matrix& w) {
  return ReadCeiling(pool, {w.data, w.rows * w.row_bytes()}, 2);
}

// Calls `work` on a pool's thread as often as `state` wants. Returns the seconds of the fastest
// call.
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

// Returns the best time of a product with `input`, whose tokens have kCols numbers.
double BestSeconds(benchmark::State& state, ThreadPool& pool, const Product& product,
                   const std::vector<float>& input, Activations& x) {
  double best = 0;
  pool.Run([&] {
    x.Set(input.data(), input.size() / kCols, kCols);
    best = BestSeconds(state, [&] { MatMul(pool, {&product, 1}, x); });
  });
  return best;
}

void RunGemv(benchmark::State& state, gguf::DType dtype, const std::string& target, int threads,
             size_t n_bytes) {
  LimitCpu(target);
  const Matrix w = SharedWeights().Get(dtype, n_bytes);
  const std::vector<float> input = NormalFloats(kCols, 2);
  ThreadPool pool(threads);
  Activations x(1, kCols, static_cast<size_t>(threads));
  std::vector<float> out(w.rows);
  const Product product{w, out.data(), w.rows};
  const bool from_memory = n_bytes == kMatrixBytes;
  double read = from_memory ? Ceiling(pool, w) : 0;
  const double best = BestSeconds(state, pool, product, input, x);
  LimitCpu("");
  const double speed = static_cast<double>(w.rows * w.row_bytes()) / best;
  state.counters["GB/s"] = speed * 1e-9;
  if (from_memory) {
    read = std::max(read, Ceiling(pool, w));
    state.counters["read"] = read * 1e-9;
    state.counters["share"] = speed / read;
  }
}

void RunFew(benchmark::State& state, gguf::DType dtype, const std::string& target,
            size_t n_tokens) {
  LimitCpu(target);
  const Matrix w = SharedWeights().Get(dtype, kCachedBytes);
  const std::vector<float> input = NormalFloats(n_tokens * kCols, 2);
  ThreadPool pool(1);
  Activations x(n_tokens, kCols);
  std::vector<float> out(n_tokens * w.rows);
  const double best = BestSeconds(state, pool, {w, out.data(), w.rows}, input, x);
  LimitCpu("");
  state.counters["ns"] = best * 1e9 / static_cast<double>(w.rows * (kCols / 256) * n_tokens);
}

void RunGemm(benchmark::State& state, gguf::DType dtype, const std::string& target,
             size_t n_tokens) {
  LimitCpu(target);
  const Matrix w = SharedWeights().Get(dtype, kGemmRows * gguf::RowBytes(dtype, kCols));
  const std::vector<float> input = NormalFloats(n_tokens * kCols, 2);
  ThreadPool pool(1);
  Activations x(n_tokens, kCols);
  std::vector<float> out(n_tokens * w.rows);
  const Product product{w, out.data(), w.rows};
  const double ceiling = DotCeiling(pool);
  const double best = BestSeconds(state, pool, product, input, x);
  LimitCpu("");
  const double speed = 2 * static_cast<double>(w.rows * kCols * n_tokens) / best;
  state.counters["GOPS"] = speed * 1e-9;
  state.counters["dots"] = ceiling * 1e-9;
  state.counters["share"] = speed / ceiling;
}

// Layers in the shape of a small Qwen3 with experts, in a buffer as large as the other matrices.
struct FeedForward {
  static constexpr size_t kEmbd = 1024, kFf = 512, kExperts = 64, kUsed = 8;

  FeedForward(gguf::DType dtype, size_t n_tokens, size_t n_threads)
      : all(SharedWeights().Get(dtype, kMatrixBytes)),
        matrix_bytes(kFf * gguf::RowBytes(dtype, kEmbd)),
        n_layers(kMatrixBytes / (3 * kExperts * matrix_bytes)),
        input(NormalFloats(n_tokens * kEmbd, 2)),
        out(input.size()),
        hidden(n_tokens * kUsed * kFf),
        chosen(n_tokens * kUsed),
        weights(n_tokens * kUsed, 1.0f / kUsed),
        x(n_tokens, kUsed * kFf, n_threads),
        scratch(n_tokens, kExperts, kUsed, kEmbd, kFf, n_threads) {}

  // Returns matrix i; each has kFf times kEmbd weights.
  Matrix Get(size_t i, size_t rows, size_t cols) const {
    return {all.dtype, all.data + i * matrix_bytes, rows, cols};
  }
  // In decode, each pass takes the next experts of the next layer. In prefill the choice is random.
  void Choose(size_t pass) {
    for (size_t i = 0; i < chosen.size(); ++i) {
      chosen[i] = static_cast<uint32_t>((pass / n_layers * kUsed + i) % kExperts);
    }
    for (size_t t = 0; n_tokens() > 1 && t < n_tokens(); ++t) {
      std::vector<float> logits = NormalFloats(kExperts, static_cast<unsigned>(t));
      Route({}, logits.data(), kExperts, nullptr, kUsed, &chosen[t * kUsed], &weights[t * kUsed]);
    }
  }
  void RunExperts(ThreadPool& pool, size_t pass) {
    const size_t first = pass % n_layers * 3 * kExperts;
    const ExpertLayer layer{{Get(first, kFf, kEmbd), kExperts},
                            {Get(first + kExperts, kFf, kEmbd), kExperts},
                            {Get(first + 2 * kExperts, kEmbd, kFf), kExperts}};
    Experts(pool, layer, input.data(), n_tokens(), chosen.data(), weights.data(), kUsed, scratch,
            out.data());
  }
  void RunDense(ThreadPool& pool, size_t pass) {
    const size_t first = pass * 3 * kUsed % (3 * kExperts * n_layers);
    const GatedLayer layer{Get(first, kUsed * kFf, kEmbd), Get(first + kUsed, kUsed * kFf, kEmbd)};
    x.Set(input.data(), n_tokens(), kEmbd);
    GatedMatMul(pool, layer, x, hidden.data());
    x.Set(hidden.data(), n_tokens(), kUsed * kFf);
    const Product down{Get(first + 2 * kUsed, kEmbd, kUsed * kFf), out.data(), kEmbd};
    MatMul(pool, {&down, 1}, x);
  }
  size_t n_tokens() const { return input.size() / kEmbd; }

  Matrix all;
  size_t matrix_bytes, n_layers;
  std::vector<float> input, out, hidden;
  std::vector<uint32_t> chosen;
  std::vector<float> weights;
  Activations x;
  ExpertScratch scratch;
};

void RunFeedForward(benchmark::State& state, gguf::DType dtype, bool dense, size_t n_tokens,
                    int threads) {
  // The number of layers that are timed together, each with different experts.
  const size_t n_passes = n_tokens == 1 ? 24 : 1;
  ThreadPool pool(threads);
  FeedForward layers(dtype, n_tokens, pool.size());
  layers.Choose(0);
  double read = n_tokens == 1 ? Ceiling(pool, layers.all) : 0, best = 0;
  size_t pass = 0;
  pool.Run([&] {
    best = BestSeconds(state, [&] {
      for (size_t i = 0; i < n_passes; ++i, ++pass) {
        if (n_tokens == 1) layers.Choose(pass);
        dense ? layers.RunDense(pool, pass) : layers.RunExperts(pool, pass);
      }
    });
  });
  const size_t n_matrices = n_passes * n_tokens * 3 * FeedForward::kUsed;
  if (n_tokens == 1) {
    const double speed = static_cast<double>(n_matrices * layers.matrix_bytes) / best;
    read = std::max(read, Ceiling(pool, layers.all));
    state.counters["GB/s"] = speed * 1e-9;
    state.counters["read"] = read * 1e-9;
    state.counters["share"] = speed / read;
  } else {
    const size_t n_weights = n_matrices * FeedForward::kEmbd * FeedForward::kFf;
    state.counters["GOPS"] = 2e-9 * static_cast<double>(n_weights) / best;
  }
}

void RegisterFeedForward(gguf::DType dtype) {
  for (const bool dense : {false, true}) {
    for (const size_t n_tokens : {1, 512}) {
      for (const int threads : {1, 2}) {
        const std::string name =
            std::string(dense ? "Dense/" : "Experts/") + (n_tokens == 1 ? "decode/" : "prefill/") +
            std::string(gguf::Info(dtype).name) + "/threads:" + std::to_string(threads);
        benchmark::RegisterBenchmark(name.c_str(), RunFeedForward, dtype, dense, n_tokens, threads)
            ->UseManualTime();
      }
    }
  }
}

// Measures attention in the shape of Llama 3.2 1B.
void RunAttention(benchmark::State& state, KvType type, const std::string& target, size_t depth) {
  constexpr size_t kHeads = 32, kKvHeads = 8, kLength = 64, kTokens = 512;
  LimitCpu(target);
  const size_t capacity = depth + kTokens;
  std::vector<std::byte> k(kKvHeads * capacity * KvBytes(type, kLength)), v = k;
  const KvLayer cache{type, k.data(), v.data(), kKvHeads, capacity, kLength, kLength};
  const std::vector<float> numbers = NormalFloats(kTokens * kHeads * kLength, 3);
  ThreadPool pool(1);
  for (size_t pos = 0; pos < capacity; pos += kTokens) {
    StoreKv(pool, cache, pos, std::min(kTokens, capacity - pos), numbers.data(), numbers.data());
  }
  std::vector<float> out(numbers.size());
  double best = 0;
  pool.Run([&] {
    best = BestSeconds(state, [&] {
      Attend(pool, cache, numbers.data(), kHeads, kTokens, depth, {.scale = 0.125f}, out.data());
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

void RunKey(benchmark::State& state, KvType type, const std::string& target, size_t length,
            size_t n_queries) {
  constexpr size_t kKeys = 512;
  LimitCpu(target);
  std::vector<std::byte> k(kKeys * KvBytes(type, length)), v = k;
  const KvLayer cache{type, k.data(), v.data(), 1, kKeys, length, length};
  const std::vector<float> numbers = NormalFloats(kKeys * length, 3);
  const std::vector<float> q = NormalFloats(n_queries * length, 4);
  std::vector<float> out(q.size());
  ThreadPool pool(1);
  StoreKv(pool, cache, 0, kKeys, numbers.data(), numbers.data());
  double best = 0;
  pool.Run([&] {
    best = BestSeconds(state, [&] {
      Attend(pool, cache, q.data(), n_queries, 1, kKeys - 1, {.scale = 0.125f}, out.data());
    });
  });
  LimitCpu("");
  state.counters["ns"] = best * 1e9 / kKeys;
}

void RegisterKeys(KvType type, const std::string& kv) {
  for (const std::string& target : CpuTargets()) {
    for (const size_t length : {64, 96, 128, 256}) {
      for (const size_t n_queries : {8, 7, 6, 4, 3, 2, 1}) {
        const std::string name = "Key/" + kv + "/" + target + "/length:" + std::to_string(length) +
                                 "/queries:" + std::to_string(n_queries);
        benchmark::RegisterBenchmark(name.c_str(), RunKey, type, target, length, n_queries)
            ->UseManualTime();
      }
    }
  }
}

// Times `work` on a pool's thread. `n` is the number of tokens, or of tokens times heads.
template <class Work>
void TimeRecurrence(benchmark::State& state, const std::string& target, size_t n, Work work) {
  LimitCpu(target);
  ThreadPool pool(1);
  double best = 0;
  pool.Run([&] { best = BestSeconds(state, [&] { work(pool); }); });
  LimitCpu("");
  state.counters["ns"] = best * 1e9 / static_cast<double>(n);
}

void RunConvolve(benchmark::State& state, const std::string& target, size_t n_tokens) {
  constexpr size_t kChannels = 8192, kTaps = 4;
  const std::vector<float> taps = NormalFloats(kTaps * kChannels, 1);
  const std::vector<float> in = NormalFloats(n_tokens * kChannels, 2);
  std::vector<float> history((kTaps - 1) * kChannels), out(in.size());
  const CausalConv conv = {taps.data(), nullptr, kTaps, kChannels, true};
  TimeRecurrence(state, target, n_tokens, [&](ThreadPool& pool) {
    Convolve(pool, conv, history.data(), in.data(), n_tokens, out.data());
  });
}

constexpr float kFaded = 1e-39f;  // a denormal

void RunDeltaNet(benchmark::State& state, const std::string& target, size_t n_tokens, bool faded) {
  constexpr size_t kKeyHeads = 16, kHeads = 32, kLength = 128;
  const std::vector<float> bias = NormalFloats(kHeads, 1), a(kHeads, -0.1f);
  std::vector<float> qkv = NormalFloats(n_tokens * (2 * kKeyHeads + kHeads) * kLength, 2);
  std::vector<float> gates = NormalFloats(n_tokens * kHeads, 3), alpha = gates, beta = gates;
  std::vector<float> s(kHeads * kLength * kLength), out(n_tokens * kHeads * kLength);
  if (faded) std::fill(qkv.begin(), qkv.end(), 0.0f);
  if (faded) std::fill(s.begin(), s.end(), kFaded);
  const DeltaNet net = {kKeyHeads, kHeads, kLength, true, bias.data(), a.data()};
  TimeRecurrence(state, target, n_tokens * kHeads, [&](ThreadPool& pool) {
    GatedDeltaNet(pool, net, s.data(), qkv.data(), alpha.data(), beta.data(), n_tokens, out.data());
  });
}

void RunMamba2(benchmark::State& state, const std::string& target, size_t n_tokens, bool faded) {
  constexpr size_t kHeads = 48, kLength = 64, kState = 128;
  const std::vector<float> bias = NormalFloats(kHeads, 1), a(kHeads, -0.1f);
  std::vector<float> ubc = NormalFloats(n_tokens * (kHeads * kLength + 2 * kState), 2);
  std::vector<float> dt = NormalFloats(n_tokens * kHeads, 3);
  std::vector<float> s(kHeads * kState * kLength), out(n_tokens * kHeads * kLength);
  if (faded) std::fill(ubc.begin(), ubc.end(), 0.0f);
  if (faded) std::fill(s.begin(), s.end(), kFaded);
  const Mamba2 net = {1, kHeads, kState, kLength, bias.data(), a.data(), bias.data()};
  TimeRecurrence(state, target, n_tokens * kHeads, [&](ThreadPool& pool) {
    SelectiveScan(pool, net, s.data(), ubc.data(), dt.data(), n_tokens, out.data());
  });
}

void RegisterRecurrences() {
  for (const std::string& target : CpuTargets()) {
    for (const size_t n_tokens : {1, 512}) {
      const std::string name = target + "/tokens:" + std::to_string(n_tokens);
      const auto add = [&](const std::string& kind, auto* run, auto... faded) {
        benchmark::RegisterBenchmark(("Recurrence/" + kind + "/" + name).c_str(), run, target,
                                     n_tokens, faded...)
            ->UseManualTime();
      };
      add("convolve", RunConvolve);
      add("delta", RunDeltaNet, false);
      add("delta/faded", RunDeltaNet, true);
      add("mamba2", RunMamba2, false);
      add("mamba2/faded", RunMamba2, true);
    }
  }
}

void RegisterAll() {
  RegisterRecurrences();
  for (const gguf::DType dtype : {gguf::DType::kQ4_0, gguf::DType::kQ4_K, gguf::DType::kMXFP4}) {
    RegisterFeedForward(dtype);
  }
  RegisterAttention(KvType::kF32, "f32");
  RegisterAttention(KvType::kF16, "f16");
  RegisterAttention(KvType::kQ8_0, "q8_0");
  RegisterAttention(KvType::kQ4_0, "q4_0");
  RegisterKeys(KvType::kF16, "f16");
  RegisterKeys(KvType::kQ8_0, "q8_0");
  RegisterKeys(KvType::kQ4_0, "q4_0");
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    if (!IsWeightType(info.type)) continue;
    for (const std::string& target : CpuTargets()) {
      for (const size_t n_tokens : {32, 512}) {
        const std::string name =
            std::string(info.name) + "/" + target + "/tokens:" + std::to_string(n_tokens);
        benchmark::RegisterBenchmark(("Gemm/" + name).c_str(), RunGemm, info.type, target, n_tokens)
            ->UseManualTime();
      }
      for (const size_t n_tokens : {1, 2, 4, 8, 16}) {
        const std::string name =
            std::string(info.name) + "/" + target + "/tokens:" + std::to_string(n_tokens);
        benchmark::RegisterBenchmark(("Few/" + name).c_str(), RunFew, info.type, target, n_tokens)
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
