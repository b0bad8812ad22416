// A trace as JSON, for notebooks; and as a page, which shows the same JSON (page.html).
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/trace/trace_report.h"

namespace cli {
namespace {

// How attention's weights are written: as numbers, a row for each token; or as bytes of 1/255 in
// base64, row after row, which fits into a page of 3 MB.
enum class Weights { kNumbers, kBytes };

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) {
      three = three << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

// The names of engine::Mixer, in its order.
constexpr std::array<std::string_view, 8> kMixerNames = {
    "none",      "attention", "latent attention", "short convolution",
    "delta net", "Mamba",     "Mamba-2",          "lightning"};
static_assert(kMixerNames.size() == static_cast<size_t>(engine::Mixer::kLightning) + 1);

Json TokenJson(const engine::Model& model, size_t token) {
  const auto id = static_cast<tokenizer::TokenId>(token);
  return {{"id", id}, {"text", model.tokenizer->Piece(id, /*special=*/true)}};
}

Json NextJson(const engine::Model& model, const std::vector<Share>& next) {
  Json list = Json::array();
  for (const auto& [token, probability] : next) {
    list.push_back(TokenJson(model, token));
    list.back()["probability"] = probability;
  }
  return list;
}

Json TokensJson(const TraceReport& report) {
  Json tokens = Json::array();
  for (size_t i = 0; i < report.tokens.size(); ++i) {
    Json token = {{"position", i + 1}};
    token.update(TokenJson(report.model, static_cast<size_t>(report.tokens[i])));
    if (!report.values.empty()) {
      if (i > 0) token["probability"] = report.values[i].probability;
      token["next"] = NextJson(report.model, report.values[i].next);
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// One head's weights, [tokens][positions so far].
Json HeadJson(const TraceReport& report, size_t layer, size_t head, Weights form) {
  Json rows = Json::array();
  std::string bytes;
  for (const TokenValues& token : report.values) {
    const std::vector<double>& row = token.layers[layer].heads[head];
    if (form == Weights::kNumbers) {
      rows.push_back(row);
    } else {
      for (const double weight : row) bytes += static_cast<char>(std::lround(255 * weight));
    }
  }
  return form == Weights::kNumbers ? rows : Json(Base64(bytes));
}

// A layer's numbers, each a list of all tokens.
Json LayerJson(const TraceReport& report, size_t layer, Weights form) {
  const engine::LayerPlan& plan = report.model.config.layers[layer];
  Json json = {{"mixer", kMixerNames.at(static_cast<size_t>(plan.mixer))}};
  if (plan.window > 0) json["window"] = plan.window;
  if (report.model.weights.layers[layer].attn_sinks != nullptr) json["sinks"] = true;
  for (const TokenValues& token : report.values) {
    const LayerValues& values = token.layers[layer];
    json["norm"].push_back(values.norm);
    if (!values.next.empty()) json["next"].push_back(NextJson(report.model, values.next));
    if (values.experts.empty()) continue;
    Json experts = Json::array();
    for (const auto& [expert, share] : values.experts) {
      experts.push_back({{"expert", expert}, {"share", share}});
    }
    json["experts"].push_back(std::move(experts));
  }
  const size_t n_heads = report.values[0].layers[layer].heads.size();
  for (size_t head = 0; head < n_heads; ++head) {
    json[form == Weights::kNumbers ? "heads" : "heads_base64"].push_back(
        HeadJson(report, layer, head, form));
  }
  return json;
}

Json OperationsJson(const engine::Trace& trace) {
  Json operations = Json::array();
  for (size_t i = 0; i < trace.operations.size(); ++i) {
    const engine::TraceOperation& operation = trace.operations[i];
    Json json = {{"part", OperationPart(trace, i)}, {"operation", operation.kind}};
    for (const engine::TraceWeights& weights : operation.weights) {
      json["tensors"].push_back({{"name", weights.tensor->name},
                                 {"type", TypeName(weights.tensor->dtype)},
                                 {"rows", weights.rows},
                                 {"cols", weights.cols}});
    }
    if (!operation.shape.empty()) json["shape"] = operation.shape;
    json["bytes"] = operation.bytes;
    json["operations"] = operation.flops;
    json["seconds"] = operation.seconds;
    operations.push_back(json);
  }
  return operations;
}

Json ReportJson(const TraceReport& report, Weights form) {
  Json json = {{"model", report.model.file.path()}, {"threads", report.n_threads},
               {"tokens", TokensJson(report)},      {"read_bytes_per_second", report.read_ceiling},
               {"reads_from", report.reads_from},   {"operations_per_second", report.dot_ceiling}};
  json["steps"] = OperationsJson(report.token);
  if (!report.prompt.operations.empty()) json["prompt_steps"] = OperationsJson(report.prompt);
  for (size_t i = 0; !report.values.empty() && i < report.model.config.n_layers(); ++i) {
    json["layers"].push_back(LayerJson(report, i, form));
  }
  return json;
}

// JSON that cannot end an HTML element: "<" and ">" occur only inside strings.
std::string JsonInHtml(const Json& json) {
  return Replaced(JsonText(json, -1), {{'<', "\\u003c"}, {'>', "\\u003e"}, {'&', "\\u0026"}});
}

}  // namespace

std::string TraceJson(const TraceReport& report) {
  return JsonText(ReportJson(report, Weights::kNumbers), 2);
}

std::string TraceHtml(const TraceReport& report) {
  // The page's own script is the only one that a browser runs: a text cannot know its nonce.
  std::random_device random;
  const std::string nonce = Format("%08x%08x%08x%08x", random(), random(), random(), random());
  const std::array<std::pair<std::string_view, std::string>, 4> parts = {
      {{"@NONCE@", nonce},
       {"@ROOFLINE@", TraceSvg(report)},
       {"@TRACE@", JsonInHtml(ReportJson(report, Weights::kBytes))},
       {"@NONCE@", nonce}}};
  std::string_view page = kTracePage;
  std::string out;
  for (const auto& [name, text] : parts) {
    const size_t at = page.find(name);
    out.append(page.substr(0, at)).append(text);
    page.remove_prefix(at + name.size());
  }
  return out.append(page);
}

}  // namespace cli
