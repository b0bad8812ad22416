#include "cli/trace/trace_plain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <vector>

#include "cli/options/loading.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "engine/error.h"
#include "engine/plain.h"
#include "kernels/matmul/matmul.h"

namespace cli {
namespace {

using engine::PlainLlama;
using engine::Rows;
using tokenizer::TokenId;

std::string Quoted(const engine::Model& model, TokenId id) {
  return Cut(JsonLine(model.tokenizer->Piece(id, /*special=*/true)), 14);
}

// `"<s>"@1`: a token and its position, counted from 1.
std::string At(const engine::Model& model, TokenId id, size_t position) {
  return Quoted(model, id) + Format("@%zu", position + 1);
}

// The likeliest token and its logit.
template <class Number>
std::string Best(const engine::Model& model, const Number* logits) {
  const Number* const best = std::max_element(logits, logits + model.tokenizer->vocab().size());
  return Padded(Quoted(model, static_cast<TokenId>(best - logits)), 15) +
         Format("%6.2f", static_cast<double>(*best));
}

// Why the two differ.
std::string Reason(const engine::Session& session) {
  const gguf::DType type = engine::MainType(session.model().file);
  const std::string name(gguf::Info(type).name);
  std::string text;
  if (kernels::UsesInt8(type)) {
    text += "Both read the " + name +
            " weights exactly. The engine rounds what it multiplies them with\n"
            "to int8, a scale for each 32 numbers, since a CPU multiplies bytes several times\n"
            "as fast as floats: 2e-5 of a product's energy, which adds up over the layers.\n";
  } else {
    text += "The weights are " + name + ": the engine adds in float, in another order.\n";
  }
  if (session.state().layer(0).type != kernels::KvType::kF32) {
    text += "It also rounds keys and values; --kv f32 does not.\n";
  }
  return text;
}

// A row of the table of a head: the first numbers of a vector, then two others.
std::string HeadRow(const std::string& label, const double* vector, size_t n,
                    const std::string& more) {
  std::string text = Padded(label, 19);
  for (size_t i = 0; i < n; ++i) text += Format("%8.3f", vector[i]);
  return text + more + "\n";
}

}  // namespace

std::string PlainTable(engine::Session& session, std::span<const TokenId> prompt, size_t n) {
  const engine::Model& model = session.model();
  const PlainLlama::Text plain = PlainLlama(model).Continue(prompt, n);
  std::string text =
      ModelTitle(model) +
      ", by engine/plain.cc and by the engine.\n"
      "error: the energy of the logits' difference over that of the logits\n\n"
      "token              plain says next  logit   engine says next logit    error\n";
  double all_errors = 0, all_energy = 0;
  session.PrefillAllLogits(
      plain.ids, [&](size_t first, size_t n_rows, std::span<const float> rows) {
        for (size_t t = first; t < first + n_rows; ++t) {
          const float* const fast = rows.data() + (t - first) * plain.logits.cols;
          double error = 0, energy = 0;
          for (size_t i = 0; i < plain.logits.cols; ++i) {
            const double exact = plain.logits[t][i], difference = double{fast[i]} - exact;
            error += difference * difference;
            energy += exact * exact;
          }
          text += Padded(At(model, plain.ids[t], t), 19) + Best(model, plain.logits[t]) + "   " +
                  Best(model, fast) + Format("  %7.1e\n", error / energy);
          all_errors += error;
          all_energy += energy;
        }
      });
  return text + "\n" + model.tokenizer->Decode(plain.ids) +
         Format("\n\nThe error of all logits is %.1e.\n", all_errors / all_energy) +
         Reason(session);
}

std::string HeadTable(const engine::Model& model, std::span<const TokenId> tokens, size_t layer,
                      size_t head) {
  std::map<std::string, Rows, std::less<>> seen;
  PlainLlama plain(model, [&](std::string_view name, size_t of_layer, const Rows& out) {
    if (of_layer == layer) seen.emplace(name, out);
  });
  if (layer >= model.config.n_layers() || head >= model.config.layers[layer].n_heads) {
    throw engine::Error(Format("--head: the model has %zu layers of %zu heads, counted from 0",
                               model.config.n_layers(), model.config.layers[0].n_heads));
  }
  plain.Forward(tokens);
  const engine::LayerPlan& plan = model.config.layers[layer];
  const size_t dim = plan.key_length, shown = std::min<size_t>(dim, 5), last = tokens.size() - 1;
  const size_t kv_head = head / (plan.n_heads / plan.n_kv_heads);
  const double* const q = seen.at("attn_q_rope")[last] + head * dim;
  const double* const scores = seen.at("attn_scores")[last * plan.n_heads + head];
  const double* const shares = seen.at("attn_softmax")[last * plan.n_heads + head];
  const auto label = [&](const char* what, size_t p) {
    return what + (" " + At(model, tokens[p], p));
  };
  std::string text =
      Cut(ModelTitle(model), 30) +
      Format(
          ": layer %zu, head %zu, with keys and values of head %zu.\n"
          "q and k are after rope. score = q . k / sqrt(%zu); out is the sum of softmax * v.\n",
          layer, head, kv_head, dim) +
      Padded(Format("the first %zu of %zu", shown, dim), 19 + 8 * shown) +
      Format("%8s%9s\n", Format("these %zu", shown).c_str(), "q . k") +
      HeadRow(label("q", last), q, shown, "");
  for (size_t p = 0; p <= last; ++p) {
    const double* const k = seen.at("attn_k_rope")[p] + kv_head * dim;
    text += HeadRow(label("k", p), k, shown,
                    Format("%8.3f%9.3f", std::inner_product(q, q + shown, k, 0.0),
                           scores[p] * std::sqrt(static_cast<double>(dim))));
  }
  text += Format("%*s%8s%9s\n", static_cast<int>(19 + 8 * shown), "", "score", "softmax");
  for (size_t p = 0; p <= last; ++p) {
    const double* const v = seen.at("attn_v")[p] + kv_head * dim;
    text += HeadRow(label("v", p), v, shown, Format("%8.3f%9.3f", scores[p], shares[p]));
  }
  return text + HeadRow("out", seen.at("attn_mean")[last] + head * dim, shown, "");
}

}  // namespace cli
