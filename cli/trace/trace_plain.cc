// Shows the plain pass (engine/plain.h): beside the engine, or one attention head with its numbers.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "cli/command.h"
#include "cli/options/loading.h"
#include "cli/output/text.h"
#include "cli/trace/trace_report.h"
#include "engine/error.h"
#include "engine/plain.h"

namespace cli {
namespace {

using engine::PlainModel;
using engine::Rows;
using tokenizer::TokenId;

constexpr size_t kToken = 14;  // columns

// The likeliest token and its logit.
template <class Number>
std::string Best(const engine::Model& model, const Number* logits) {
  const Number* const best = std::max_element(logits, logits + model.tokenizer->vocab().size());
  return Padded(TokenText(model, static_cast<TokenId>(best - logits), kToken), 15) +
         Format("%6.2f   ", double{*best});
}

// A number in `width` columns; a large one has fewer decimals, so as not to touch its neighbour.
std::string InColumn(int width, double x) {
  return Format("%*.*f", width, std::abs(x) < 100 ? 3 : 1, x);
}

// The first five numbers of a vector, then two more.
std::string HeadRow(const std::string& label, const double* vector) {
  std::string text = Padded(label, 19);
  for (size_t i = 0; i < 5; ++i) text += InColumn(8, vector[i]);
  return text;
}
std::string HeadRow(const std::string& label, const double* vector, double first, double second) {
  return HeadRow(label, vector) + InColumn(8, first) + InColumn(9, second) + "\n";
}

}  // namespace

std::string PlainTable(engine::Session& session, std::vector<TokenId> ids, size_t n) {
  const engine::Model& model = session.model();
  ids = PlainModel(model).Continue(std::move(ids), n);
  const Rows plain = PlainModel(model).Forward(ids);
  std::string text =
      Cut(ModelTitle(model), 40) +
      ", by engine/plain.cc and by the engine\n\n"
      "token              plain says next  logit   engine says next logit    error\n";
  double all_errors = 0, all_energy = 0;
  session.PrefillAllLogits(ids, [&](size_t first, size_t n_rows, std::span<const float> rows) {
    for (size_t t = first; t < first + n_rows; ++t) {
      const float* const fast = rows.data() + (t - first) * plain.cols;
      const double energy = std::inner_product(fast, fast + plain.cols, fast, 0.0);
      double error = 0;
      for (size_t i = 0; i < plain.cols; ++i) error += std::pow(fast[i] - plain[t][i], 2);
      text += Padded(TokenAt(model, ids, t, kToken), 19) + Best(model, plain[t]) +
              Best(model, fast) + Format("%7.1e\n", error / energy);
      all_errors += error;
      all_energy += energy;
    }
  });
  return text + "\n" + model.tokenizer->Decode(ids) +
         Format(
             "\n\nThe error is the energy of the difference over that of the logits: %.1e.\n"
             "Both read the %s weights exactly, but the engine adds in float, and rounds\n"
             "keys and values as --kv says. Inputs of packed matrices are rounded\n"
             "to int8, a scale for each 32 numbers, since a CPU multiplies bytes several\n"
             "times as fast: 2e-5 of a product's energy, which adds up over the layers.\n",
             all_errors / all_energy, TypeName(engine::MainType(model.file)).c_str());
}

std::string HeadTable(const engine::Model& model, const std::vector<TokenId>& ids, size_t layer,
                      size_t head) {
  std::map<std::string, Rows, std::less<>> seen;
  PlainModel plain(model, [&](std::string_view name, size_t of_layer, const Rows& out) {
    if (of_layer == layer) seen.emplace(name, out);
  });
  const engine::LayerPlan& plan = model.config.layers[0];  // all are alike
  const size_t dim = plan.key_length, last = ids.size() - 1;
  if (layer >= model.config.n_layers())
    throw UsageError("--layer: the model has ", model.config.n_layers(), " layers, from 0 on");
  if (head >= plan.n_heads)
    throw UsageError("--head: the model has ", plan.n_heads, " heads, from 0 on");
  if (dim < 5) throw engine::Error("--head: expected heads of at least 5 numbers, found ", dim);
  plain.Forward(ids);
  const size_t kv_head = head / (plan.n_heads / plan.n_kv_heads);
  const auto of_head = [&](const char* name, size_t token, size_t of) {
    return seen.at(name)[token] + of * dim;
  };
  const auto label = [&](const char* what, size_t p) {
    return what + (" " + TokenAt(model, ids, p, kToken));
  };
  const double* const q = of_head("attn_q_rope", last, head);
  const double* const scores = seen.at("attn_scores")[last * plan.n_heads + head];
  const double* const shares = seen.at("attn_softmax")[last * plan.n_heads + head];

  std::string text =
      Cut(ModelTitle(model), 30) +
      Format(
          ": layer %zu, head %zu, with keys and values of head %zu.\n"
          "q and k are after rope. score = q . k / sqrt(%zu); out is the sum of softmax * v.\n",
          layer, head, kv_head, dim) +
      Padded(Format("the first 5 of %zu", dim), 59) + Format("%8s%9s\n", "these 5", "q . k") +
      HeadRow(label("q", last), q) + "\n";
  for (size_t p = 0; p <= last; ++p) {
    const double* const k = of_head("attn_k_rope", p, kv_head);
    text += HeadRow(label("k", p), k, std::inner_product(q, q + 5, k, 0.0),
                    std::inner_product(q, q + dim, k, 0.0));
  }
  text += Format("%67s%9s\n", "score", "softmax");
  for (size_t p = 0; p <= last; ++p) {
    text += HeadRow(label("v", p), of_head("attn_v", p, kv_head), scores[p], shares[p]);
  }
  return text + HeadRow("out", of_head("attn_mean", last, head)) + "\n";
}

}  // namespace cli
