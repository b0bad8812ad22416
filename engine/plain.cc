// The whole way from a token to the next one, for the models that most people run: Llama (Touvron
// et al. 2023), SmolLM2, Mistral, Qwen2 and Qwen3 without experts, from a file of any type. One
// number at a time, in double: no SIMD, no threads. The files of READING.md's weekend
// compute the same logits faster, and for other families.
//
// Shapes are [tokens][width], or [tokens][heads][head_dim] where a vector is cut into heads. Sizes
// in comments are those of models/default.gguf. `pronk trace --plain` runs this file.
#include "engine/plain.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/error.h"
#include "gguf/error.h"
#include "kernels/matmul/reference.h"

namespace engine {
namespace {

using tokenizer::TokenId;

// Row r of a matrix. In the file it is a row of blocks, say Q8_0: 32 weights of a byte that share a
// scale. kernels/formats/ has a file for each format.
std::vector<double> ReadRow(const WeightView& w, size_t r) {
  std::vector<float> row(w.cols);
  kernels::DequantizeRow(w.dtype, w.row(r), w.cols, row.data());
  return {row.begin(), row.end()};
}

double Dot(const double* a, const double* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// A token starts as its row of the embedding matrix: [tokens][256].
Rows Embed(const WeightView& token_embd, std::span<const TokenId> ids) {
  Rows out(ids.size(), token_embd.cols);
  for (size_t t = 0; t < ids.size(); ++t) {
    std::ranges::copy(ReadRow(token_embd, static_cast<size_t>(ids[t])), out[t]);
  }
  return out;
}

// Each number of the result is the dot product of the input with a row of the matrix [rows][cols].
// From [tokens][cols] to [tokens][rows]. Nearly all of the time is here.
Rows MatMul(const WeightView& w, const Rows& in) {
  Rows out(in.rows, w.rows);
  for (size_t r = 0; r < w.rows; ++r) {
    const std::vector<double> row = ReadRow(w, r);
    const double bias = w.bias != nullptr ? w.bias[r] : 0;  // few models have one
    for (size_t t = 0; t < in.rows; ++t) {
      // The scale is a factor that a few types keep beside the matrix.
      out[t][r] = w.scale * Dot(row.data(), in[t], w.cols) + bias;
    }
  }
  return out;
}

// RMSNorm (Zhang and Sennrich 2019): a vector divided by the root of its mean square, so that its
// length no longer matters, then times a weight for each dimension. Same shape.
Rows RmsNorm(const Rows& in, const float* weight, double eps) {
  Rows out = in;
  for (size_t t = 0; t < in.rows; ++t) {
    const double mean_square = Dot(in[t], in[t], in.cols) / static_cast<double>(in.cols);
    for (size_t i = 0; i < in.cols; ++i) out[t][i] *= weight[i] / std::sqrt(mean_square + eps);
  }
  return out;
}

// RMSNorm of each head separately; all heads share the weights. Same shape.
Rows HeadNorm(const Rows& in, size_t head_dim, const float* weight, double eps) {
  Rows heads(in.values.size() / head_dim, head_dim);
  heads.values = in.values;
  Rows out = in;
  out.values = RmsNorm(heads, weight, eps).values;
  return out;
}

// RoPE (Su et al. 2021): pairs of numbers of a head are points in a plane, each rotated by an angle
// that grows with the position: the first pair by 1 radian per position, each later pair more
// slowly. The dot product of two rotated vectors then depends on the distance between their
// positions. A pair is two neighbours in Llama's files; in Qwen's it is a number of the first half
// and one of the second. Same shape.
Rows WithRope(Rows heads, size_t head_dim, const RopeConfig& rope, const float* divisors,
              size_t first_position) {
  const bool adjacent = rope.pairs == kernels::RopePairs::kAdjacent;
  const size_t n_pairs = rope.n_dims / 2;
  for (size_t t = 0; t < heads.rows; ++t) {
    const auto position = static_cast<double>(first_position + t);
    for (size_t i = 0; i < n_pairs; ++i) {
      const double exponent = -static_cast<double>(i) / static_cast<double>(n_pairs);
      double angle = position * std::pow(rope.base, exponent);
      if (divisors != nullptr) angle /= double{divisors[i]};  // Llama 3.1, for longer texts
      for (size_t head = 0; head < heads.cols; head += head_dim) {
        double& first = heads[t][head + (adjacent ? 2 * i : i)];
        double& second = heads[t][head + (adjacent ? 2 * i + 1 : n_pairs + i)];
        const double x = first, y = second;
        first = x * std::cos(angle) - y * std::sin(angle);
        second = x * std::sin(angle) + y * std::cos(angle);
      }
    }
  }
  return heads;
}

// Scores become weights: positive, with sum 1. Subtracting the largest keeps exp from overflowing.
void Softmax(const double* scores, size_t n, double* weights) {
  const double max = *std::max_element(scores, scores + n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += weights[i] = std::exp(scores[i] - max);
  for (size_t i = 0; i < n; ++i) weights[i] /= sum;
}

void Add(Rows& x, const Rows& delta) {
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += delta.values[i];
}

void Append(Rows& rows, const Rows& more) {
  rows.values.insert(rows.values.end(), more.values.begin(), more.values.end());
  rows.rows += more.rows;
}

// What the model needs and this code cannot do; empty if there is nothing.
std::string Unsupported(const Model& model) {
  const Config& config = model.config;
  const Weights& weights = model.weights;
  const RopeConfig& rope = config.ropes[0];
  const LayerPlan& plan = config.layers[0];
  const auto is_scaled = [](const LayerWeights& w) { return w.layer_output_scale != nullptr; };
  const auto has_window = [](const LayerPlan& layer) { return layer.window > 0; };
  const bool is_known = config.architecture == "llama" || config.architecture == "qwen2" ||
                        config.architecture == "qwen3";
  if (!is_known) return "the family " + config.architecture;
  if (plan.n_experts > 0) return "experts";
  if (config.uses_hadamard) return "matrices whose inputs are rotated";  // Hadamard
  if (plan.key_length != plan.value_length) return "keys and values of different lengths";
  if (std::ranges::any_of(config.layers, has_window)) return "a window of attention";
  if (config.pooling != Pooling::kNone) return "vectors of texts, not logits";
  if (std::ranges::any_of(weights.layers, is_scaled)) return "layers with scaled outputs";
  if (!model.tokenizer->vocab().suppressed.empty()) return "tokens that are never chosen";
  const bool is_plain = rope.scaling != RopeScaling::kYarn && rope.factor == 1 &&
                        rope.attention_factor == 1 && weights.rope_factors_long == nullptr;
  return is_plain ? "" : "a stretched context";
}

}  // namespace

PlainLlama::PlainLlama(const Model& model, PlainObserver observer)
    : model_(model), observer_(std::move(observer)) {
  const std::string unsupported = Unsupported(model);
  if (!unsupported.empty()) {
    throw Error(gguf::PrintablePath(model.file.path()),
                ": the plain pass (engine/plain.cc) reads Llama, Qwen2 and Qwen3 without experts; "
                "this model has ",
                unsupported);
  }
  for (const LayerPlan& plan : model.config.layers) {
    keys_.emplace_back(0, plan.n_kv_heads * plan.key_length);
    values_.emplace_back(0, plan.n_kv_heads * plan.value_length);
  }
}

// Shows a result to the observer, for trace and tests, and returns it.
Rows PlainLlama::Observed(std::string_view name, Rows out) const {
  if (observer_) observer_(name, layer_, out);
  return out;
}

// The transformer (Vaswani et al. 2017). x is the residual stream: every layer reads it and adds to
// it twice: first what attention takes from earlier tokens, then the output of a small network.
Rows PlainLlama::Forward(std::span<const TokenId> ids) {
  const Weights& weights = model_.weights;
  const double eps = model_.config.norm_eps;
  Rows x = Observed("token_embd", Embed(weights.token_embd, ids));  // [tokens][256]
  for (layer_ = 0; layer_ < model_.config.n_layers(); ++layer_) {
    const LayerPlan& plan = model_.config.layers[layer_];
    const LayerWeights& w = weights.layers[layer_];
    Add(x, Attention(plan, w, Observed("attn_norm", RmsNorm(x, w.attn_norm, eps))));
    x = Observed("attn_residual", std::move(x));
    Add(x, FeedForward(w, Observed("ffn_norm", RmsNorm(x, w.ffn_norm, eps))));
    x = Observed("ffn_residual", std::move(x));
  }
  layer_ = kNoLayer;
  const Rows last = Observed("output_norm", RmsNorm(x, weights.output_norm, eps));
  return Observed("output",
                  MatMul(weights.output, last));  // [tokens][4274], a logit for each token
}

// Each token compares its query with the keys of the tokens up to itself; the better a key matches,
// the more of that token's value is added. Each head does this with its own part of the vectors;
// several query heads share keys and values (grouped queries, Ainslie et al. 2023). [tokens][256].
Rows PlainLlama::Attention(const LayerPlan& plan, const LayerWeights& w, const Rows& in) {
  const size_t dim = plan.key_length, n_heads = plan.n_heads;  // 32, 8
  const size_t group = n_heads / plan.n_kv_heads;              // 2
  const RopeConfig& rope = model_.config.ropes[0];
  const float* const divisors = model_.weights.rope_freqs;
  Rows &keys = keys_[layer_], &values = values_[layer_];
  const size_t first = keys.rows;  // the position of the first of these tokens

  Rows q = Observed("attn_q", MatMul(w.attn_q, in));        // [tokens][8 heads][32]
  Rows k = Observed("attn_k", MatMul(w.attn_k, in));        // [tokens][4 heads][32]
  const Rows v = Observed("attn_v", MatMul(w.attn_v, in));  // [tokens][4 heads][32]
  if (w.attn_q_norm != nullptr) {                           // Qwen3 (Dehghani et al. 2023)
    const double eps = model_.config.norm_eps;
    q = Observed("attn_q_norm", HeadNorm(q, dim, w.attn_q_norm, eps));
    k = Observed("attn_k_norm", HeadNorm(k, dim, w.attn_k_norm, eps));
  }
  q = Observed("attn_q_rope", WithRope(std::move(q), dim, rope, divisors, first));
  k = Observed("attn_k_rope", WithRope(std::move(k), dim, rope, divisors, first));
  Append(keys, k);
  Append(values, v);

  // A row for each token and head, a column for each position; 0 where a token does not look.
  Rows scores(in.rows * n_heads, keys.rows), weights = scores;
  Rows mean(in.rows, n_heads * dim);  // [tokens][8 heads][32]
  for (size_t t = 0; t < in.rows; ++t) {
    for (size_t head = 0; head < n_heads; ++head) {
      const size_t row = t * n_heads + head, kv = head / group * dim, n_seen = first + t + 1;
      for (size_t p = 0; p < n_seen; ++p) {
        scores[row][p] = Dot(q[t] + head * dim, keys[p] + kv, dim) / std::sqrt(dim);
      }
      Softmax(scores[row], n_seen, weights[row]);
      for (size_t p = 0; p < n_seen; ++p) {
        for (size_t i = 0; i < dim; ++i) {
          mean[t][head * dim + i] += weights[row][p] * values[p][kv + i];
        }
      }
    }
  }
  Observed("attn_scores", std::move(scores));
  Observed("attn_softmax", std::move(weights));
  return Observed("attn_output", MatMul(w.attn_output, Observed("attn_mean", std::move(mean))));
}

// SwiGLU (Shazeer 2020): 768 numbers, each let through by its gate. From and to [tokens][256].
Rows PlainLlama::FeedForward(const LayerWeights& w, const Rows& in) {
  Rows gate = Observed("ffn_gate", MatMul(w.ffn_gate, in));  // [tokens][768]
  const Rows up = Observed("ffn_up", MatMul(w.ffn_up, in));  // [tokens][768]
  for (size_t i = 0; i < gate.values.size(); ++i) {
    const double g = gate.values[i];
    gate.values[i] = g / (1 + std::exp(-g)) * up.values[i];  // silu(gate) * up
  }
  return Observed("ffn_down", MatMul(w.ffn_down, Observed("ffn_swiglu", std::move(gate))));
}

std::vector<TokenId> PlainLlama::Continue(std::vector<TokenId> ids, size_t n) {
  const tokenizer::Vocabulary& vocab = model_.tokenizer->vocab();
  Rows logits = Forward(ids);
  for (size_t i = 0; i < n; ++i) {
    // The likeliest token. (engine/sampling/ draws one of the likely instead.)
    const double* const last = logits[logits.rows - 1];
    const auto id = static_cast<TokenId>(std::max_element(last, last + vocab.size()) - last);
    if (std::ranges::binary_search(vocab.eog, id)) break;
    ids.push_back(id);
    logits = Forward({&id, 1});  // the cache has the keys and values of all before it
  }
  return ids;
}

}  // namespace engine
