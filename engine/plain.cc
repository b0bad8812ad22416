// From a token to the next one, for the models that most people run: Llama (Touvron et al. 2023),
// Mistral, SmolLM2, Qwen2 and Qwen3 without experts, from a file of any type. It computes one
// number at a time, in double, without SIMD or threads. The files of READING.md's weekend compute
// the same logits faster, and for other families.
//
// Shapes are [tokens][width], or [tokens][heads][head_dim] where a vector is cut into heads. Sizes
// in comments are sizes of models/default.gguf. `pronk trace --plain` runs this file.
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

// --- Arithmetic ---

double Dot(const double* a, const double* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Row r of a matrix. WeightView (model/weights.h) is a matrix [w.rows][w.cols] in the file:
// w.row(r) points to the bytes of a row, and w.dtype says what they mean, for example Q8_0: blocks
// of 32 weights, each a byte, that share a scale. kernels/types/ has a file for each weight type.
std::vector<double> ReadRow(const WeightView& w, size_t r) {
  std::vector<float> row(w.cols);
  kernels::DequantizeRow(w.dtype, w.row(r), w.cols, row.data());
  return {row.begin(), row.end()};
}

// Rotates the point (x, y) by an angle.
void RotatePoint(double angle, double& x, double& y) {
  const double old = x;
  x = old * std::cos(angle) - y * std::sin(angle);
  y = old * std::sin(angle) + y * std::cos(angle);
}

// Scores become probabilities: positive, with sum 1. Subtracting the largest score keeps exp from
// overflowing.
void Softmax(const double* scores, size_t n, double* probabilities) {
  const double max = *std::max_element(scores, scores + n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += probabilities[i] = std::exp(scores[i] - max);
  for (size_t i = 0; i < n; ++i) probabilities[i] /= sum;
}

void Add(Rows& x, const Rows& delta) {
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += delta.values[i];
}

void Append(Rows& rows, const Rows& more) {
  rows.values.insert(rows.values.end(), more.values.begin(), more.values.end());
  rows.rows += more.rows;
}

}  // namespace

// --- The operations: each computes rows, shows them to the observer, and returns them ---

void PlainModel::Observe(std::string_view name, const Rows& out) const {
  if (observer_) observer_(name, layer_, out);
}

// A token starts as its row of the embedding matrix: [tokens][256].
Rows PlainModel::Embed(std::string_view name, const WeightView& w,
                       std::span<const TokenId> ids) const {
  Rows out(ids.size(), w.cols);
  for (size_t t = 0; t < ids.size(); ++t) {
    std::ranges::copy(ReadRow(w, static_cast<size_t>(ids[t])), out[t]);
  }
  Observe(name, out);
  return out;
}

// Each number of the result is the dot product of the input with a row of the matrix [rows][cols].
// From [tokens][cols] to [tokens][rows]. Nearly all of the time is here.
Rows PlainModel::MatMul(std::string_view name, const WeightView& w, const Rows& in) const {
  Rows out(in.rows, w.rows);
  for (size_t r = 0; r < w.rows; ++r) {
    const std::vector<double> row = ReadRow(w, r);
    const double bias = w.bias != nullptr ? w.bias[r] : 0;  // few models have a bias
    for (size_t t = 0; t < in.rows; ++t) {
      // The scale is a factor that a few types store beside the matrix; for other types it is 1.
      out[t][r] = w.scale * Dot(row.data(), in[t], w.cols) + bias;
    }
  }
  Observe(name, out);
  return out;
}

// RMSNorm (Zhang and Sennrich 2019): a vector divided by the root of its mean square, so that its
// length no longer matters, then times a weight for each dimension. A vector is a whole row, or a
// part of it that has `length` numbers: in Qwen3 each head is one, and all heads share the weights.
// Same shape.
Rows PlainModel::RmsNorm(std::string_view name, const Rows& in, size_t length,
                         const float* weight) const {
  Rows out = in;
  for (size_t begin = 0; begin < out.values.size(); begin += length) {
    double* const x = out.values.data() + begin;
    const double mean_square = Dot(x, x, length) / static_cast<double>(length);
    const double root = std::sqrt(mean_square + model_.config.norm_eps);
    for (size_t i = 0; i < length; ++i) x[i] *= weight[i] / root;
  }
  Observe(name, out);
  return out;
}

// RoPE (Su et al. 2021): pairs of numbers of a head are points in a plane, each rotated by an angle
// that grows with the position: the first pair by 1 radian per position, each later pair more
// slowly. The dot product of two rotated vectors then depends on the distance between their
// positions. RopeConfig (model/config.h) says how many numbers of a head rotate (n_dims), how much
// more slowly (base), and what a pair is: two neighbours in Llama's files; in Qwen's a number of
// the first half and one of the second. Same shape.
Rows PlainModel::Rope(std::string_view name, const Rows& in, size_t head_dim,
                      size_t first_position) const {
  const RopeConfig& rope = model_.config.ropes[0];
  const float* const divisors = model_.weights.rope_freqs;
  const bool adjacent = rope.pairs == kernels::RopePairs::kAdjacent;
  const size_t n_pairs = rope.n_dims / 2;
  Rows out = in;
  for (size_t t = 0; t < out.rows; ++t) {
    const auto position = static_cast<double>(first_position + t);
    for (size_t i = 0; i < n_pairs; ++i) {
      const double exponent = -static_cast<double>(i) / static_cast<double>(n_pairs);
      double angle = position * std::pow(rope.base, exponent);
      if (divisors != nullptr) angle /= double{divisors[i]};  // Llama 3.1, for longer texts
      const size_t x = adjacent ? 2 * i : i, y = adjacent ? 2 * i + 1 : n_pairs + i;
      for (size_t begin = 0; begin < out.cols; begin += head_dim) {
        double* const head = out[t] + begin;
        RotatePoint(angle, head[x], head[y]);
      }
    }
  }
  Observe(name, out);
  return out;
}

// SwiGLU (Shazeer 2020): silu(gate) * up, number by number. Same shape.
Rows PlainModel::SwiGlu(std::string_view name, const Rows& gate, const Rows& up) const {
  Rows out = gate;
  for (double& x : out.values) x = x / (1 + std::exp(-x));  // silu
  for (size_t i = 0; i < out.values.size(); ++i) out.values[i] *= up.values[i];
  Observe(name, out);
  return out;
}

// --- The model ---

// The transformer (Vaswani et al. 2017). x is the residual stream: every layer reads it and adds to
// it twice: first what attention takes from earlier tokens, then the output of a small network.
// LayerPlan (model/config.h) has a layer's shape, LayerWeights (model/weights.h) its matrices,
// named as in the file. Rows (plain.h) is a table of numbers.
Rows PlainModel::Forward(std::span<const TokenId> ids) {
  const Weights& weights = model_.weights;
  Rows x = Embed("token_embd", weights.token_embd, ids);  // [tokens][256]
  const size_t width = x.cols;
  for (layer_ = 0; layer_ < model_.config.n_layers(); ++layer_) {
    const LayerPlan& plan = model_.config.layers[layer_];
    const LayerWeights& w = weights.layers[layer_];
    Add(x, Attention(plan, w, RmsNorm("attn_norm", x, width, w.attn_norm)));
    Observe("attn_residual", x);
    Add(x, FeedForward(w, RmsNorm("ffn_norm", x, width, w.ffn_norm)));
    Observe("ffn_residual", x);
  }
  layer_ = kNoLayer;
  const Rows last = RmsNorm("output_norm", x, width, weights.output_norm);
  return MatMul("output", weights.output, last);  // [tokens][4274], a logit for each token
}

// Each token makes a query, a key and a value. Keys and values stay in the cache, for the tokens
// that follow. From and to [tokens][256].
Rows PlainModel::Attention(const LayerPlan& plan, const LayerWeights& w, const Rows& in) {
  const size_t head_dim = plan.key_length;           // 32
  const size_t first_position = keys_[layer_].rows;  // the first of these tokens' position
  Rows q = MatMul("attn_q", w.attn_q, in);           // [tokens][8 heads][32]
  Rows k = MatMul("attn_k", w.attn_k, in);           // [tokens][4 heads][32]
  const Rows v = MatMul("attn_v", w.attn_v, in);     // [tokens][4 heads][32]
  if (w.attn_q_norm != nullptr) {                    // Qwen3 (Dehghani et al. 2023)
    q = RmsNorm("attn_q_norm", q, head_dim, w.attn_q_norm);
    k = RmsNorm("attn_k_norm", k, head_dim, w.attn_k_norm);
  }
  q = Rope("attn_q_rope", q, head_dim, first_position);
  k = Rope("attn_k_rope", k, head_dim, first_position);
  Append(keys_[layer_], k);
  Append(values_[layer_], v);
  return MatMul("attn_output", w.attn_output, AttendHeads(plan, q));
}

// Each token compares its query with the keys of all tokens up to itself and takes a mean of their
// values: the better a key matches, the larger its value's weight is. Each head does this with its
// own part of the vectors; several query heads share keys and values (grouped queries, Ainslie et
// al. 2023). From and to [tokens][8 heads][32].
Rows PlainModel::AttendHeads(const LayerPlan& plan, const Rows& q) const {
  const size_t head_dim = plan.key_length, n_heads = plan.n_heads;  // 32, 8
  const size_t group = n_heads / plan.n_kv_heads;                   // 2
  const Rows &keys = keys_[layer_], &values = values_[layer_];      // [positions][4 heads][32]
  // A row for each token and head, a column for each position; later positions than the token's
  // stay 0.
  Rows scores(q.rows * n_heads, keys.rows), probabilities = scores;
  Rows mean(q.rows, n_heads * head_dim);
  for (size_t t = 0; t < q.rows; ++t) {
    const size_t n_seen = keys.rows - q.rows + t + 1;  // the token itself and all before it
    for (size_t head = 0; head < n_heads; ++head) {
      const size_t row = t * n_heads + head;
      // Where the head's numbers begin in a query, and in a key or value.
      const size_t q_begin = head * head_dim, kv_begin = head / group * head_dim;
      for (size_t p = 0; p < n_seen; ++p) {
        scores[row][p] = Dot(q[t] + q_begin, keys[p] + kv_begin, head_dim) / std::sqrt(head_dim);
      }
      Softmax(scores[row], n_seen, probabilities[row]);
      for (size_t p = 0; p < n_seen; ++p) {
        for (size_t i = 0; i < head_dim; ++i) {
          mean[t][q_begin + i] += probabilities[row][p] * values[p][kv_begin + i];
        }
      }
    }
  }
  Observe("attn_scores", scores);
  Observe("attn_softmax", probabilities);
  Observe("attn_mean", mean);
  return mean;
}

// A network that runs on each token by itself: its 768 numbers are each multiplied by a gate. From
// and to [tokens][256].
Rows PlainModel::FeedForward(const LayerWeights& w, const Rows& in) const {
  const Rows gate = MatMul("ffn_gate", w.ffn_gate, in);  // [tokens][768]
  const Rows up = MatMul("ffn_up", w.ffn_up, in);        // [tokens][768]
  return MatMul("ffn_down", w.ffn_down, SwiGlu("ffn_swiglu", gate, up));
}

std::vector<TokenId> PlainModel::Continue(std::vector<TokenId> ids, size_t n) {
  const tokenizer::Vocabulary& vocab = model_.tokenizer->vocab();
  Rows logits = Forward(ids);
  for (size_t i = 0; i < n; ++i) {
    // The likeliest token. (engine/sampling/ draws one of the likely tokens instead.)
    const double* const last = logits[logits.rows - 1];
    const auto id = static_cast<TokenId>(std::max_element(last, last + vocab.size()) - last);
    if (std::ranges::binary_search(vocab.eog, id)) break;
    ids.push_back(id);
    logits = Forward({&id, 1});  // the cache has the keys and values of all earlier tokens
  }
  return ids;
}

// --- The models that this file can run ---

namespace {

// Why this code cannot run the model: the end of a sentence that begins with "this model". Empty if
// it can.
std::string Unsupported(const Model& model) {
  const Config& config = model.config;
  const Weights& weights = model.weights;
  const RopeConfig& rope = config.ropes[0];
  const LayerPlan& plan = config.layers[0];
  const auto is_scaled = [](const LayerWeights& w) { return w.layer_output_scale != nullptr; };
  // Numbers that the file's keys may set for any family. The transformer above has these values.
  const bool has_own_scales = config.embedding_scale != 1 || config.attention_output_scale != 1 ||
                              config.residual_scale != 1 || config.stream_scale != 1 ||
                              config.logit_scale != 1;
  const bool has_own_limits = config.clamp_qkv != 0 || config.attention_softcap != 0 ||
                              config.logit_softcap != 0 || config.attention_temperature_scale != 0;
  const auto has_own_root = [](const LayerPlan& layer) {
    return layer.score_scale != 1 / std::sqrt(static_cast<float>(layer.key_length));
  };
  const auto has_window = [](const LayerPlan& layer) { return layer.window > 0; };
  const bool is_known = config.architecture == "llama" || config.architecture == "qwen2" ||
                        config.architecture == "qwen3";
  if (!is_known) return "is of the family " + config.architecture;
  if (plan.n_experts > 0) return "has experts";
  if (config.uses_hadamard) return "has matrices that expect Hadamard transforms of their inputs";
  if (plan.key_length != plan.value_length) return "has keys and values of different lengths";
  if (std::ranges::any_of(config.layers, has_window)) return "has a window of attention";
  if (config.pooling != Pooling::kNone) return "makes vectors of texts, not logits";
  if (std::ranges::any_of(weights.layers, is_scaled)) return "scales the outputs of layers";
  if (has_own_scales || has_own_limits || std::ranges::any_of(config.layers, has_own_root))
    return "scales or limits queries, scores, the residual stream or logits in its own way";
  if (!model.tokenizer->vocab().suppressed.empty()) return "has tokens that must never be chosen";
  const bool is_plain = rope.scaling != RopeScaling::kYarn && rope.factor == 1 &&
                        rope.attention_factor == 1 && weights.rope_factors_long == nullptr;
  return is_plain ? "" : "stretches its context";
}

}  // namespace

PlainModel::PlainModel(const Model& model, PlainObserver observer)
    : model_(model), observer_(std::move(observer)) {
  const std::string unsupported = Unsupported(model);
  if (!unsupported.empty()) {
    throw Error(
        gguf::PrintablePath(model.file.path()),
        ": the plain pass (engine/plain.cc) runs Llama, Qwen2 and Qwen3 without experts; this "
        "model ",
        unsupported, "; pronk trace runs it without --plain");
  }
  for (const LayerPlan& plan : model.config.layers) {
    keys_.emplace_back(0, plan.n_kv_heads * plan.key_length);
    values_.emplace_back(0, plan.n_kv_heads * plan.value_length);
  }
}

}  // namespace engine
