// Reads Sentence Transformers' files about a folder's vectors: which modules follow the model, how
// positions become one vector, what is put before a text, and where a text is cut. GGUF has a key
// for pooling; other keys are our own, "sentence_transformers.*". A setting that no key expresses
// is refused by name.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/source.h"
#include "gguf/error.h"

namespace convert {
namespace {

constexpr std::string_view kModules = "modules.json";
constexpr std::string_view kPrefix = "sentence_transformers.";

// An unknown field with a value may change vectors.
void ExpectKnown(const Fields& object, std::span<const std::string_view> known) {
  for (const auto& [key, value] : object.json()) {
    const std::string_view text = value.text();
    const bool is_set = text != "null" && text != "{}" && text != "[]";
    if (is_set && std::ranges::count(known, key) == 0)
      object.Fail(key, "this field is not known: its vectors might be wrong");
  }
}

// How the vectors of a text's positions become one: GGUF's number. A sum divided by the root of the
// number of positions has the direction of the mean.
void AddKind(const Fields& pooling, bool is_normalized, OutModel& model) {
  struct Kind {
    std::string_view key, name;
    uint64_t number;
  };
  constexpr Kind kKinds[] = {
      {"pooling_mode_cls_token", "cls", 2},
      {"pooling_mode_mean_tokens", "mean", 1},
      {"pooling_mode_lasttoken", "lasttoken", 3},
      {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", 1},
      {"pooling_mode_max_tokens", "max", 0},
      {"pooling_mode_weightedmean_tokens", "weightedmean", 0},
  };
  constexpr std::string_view kKnown[] = {
      "word_embedding_dimension", "embedding_dimension",
      "include_prompt",           "pooling_mode",
      "pooling_mode_cls_token",   "pooling_mode_mean_tokens",
      "pooling_mode_lasttoken",   "pooling_mode_mean_sqrt_len_tokens",
      "pooling_mode_max_tokens",  "pooling_mode_weightedmean_tokens"};
  ExpectKnown(pooling, kKnown);
  for (const char* const key : {"word_embedding_dimension", "embedding_dimension"}) {
    const uint64_t width = model.config.Count("hidden_size");
    if (pooling.CountOr(key, width) != width)
      pooling.Fail(key, "expected the model's hidden_size ", width);
  }
  const std::string named = pooling.TextOr("pooling_mode", "");
  bool any = !named.empty();
  for (const Kind& kind : kKinds) any |= pooling.Has(kind.key);
  std::vector<const Kind*> chosen;
  for (const Kind& kind : kKinds) {
    // If nothing is specified, the library's default is the mean.
    const bool fallback = named.empty() ? !any && kind.name == "mean" : kind.name == named;
    if (pooling.BoolOr(kind.key, fallback)) chosen.push_back(&kind);
  }
  if (chosen.empty()) {
    named.empty() ? void()
                  : pooling.Fail("pooling_mode", "expected mean, cls or lasttoken, found ",
                                 gguf::Quoted(named, 40));
    return;  // a model without vectors of texts
  }
  const Kind& kind = *chosen[0];
  if (chosen.size() > 1)
    pooling.Fail(chosen[1]->key, "expected one way of pooling, found ", kind.key, ", too");
  const bool is_scaled = kind.name == "mean_sqrt_len_tokens" && !is_normalized;
  if (kind.number == 0 || is_scaled)
    pooling.Fail(kind.key, "expected pooling by mean, cls or lasttoken, as files can say");
  model.Uint("pooling_type", kind.number);
}

// The prompts that may be put before a text, by name, and the default one.
void AddPrompts(const Fields& config, bool include_prompt, OutModel& model) {
  constexpr std::string_view kKnown[] = {"__version__", "prompts", "default_prompt_name",
                                         "similarity_fn_name", "model_type"};
  ExpectKnown(config, kKnown);
  std::vector<std::string> names, texts;
  for (const auto& [name, text] : config.Object("prompts").json()) {
    if (!text.IsString()) config.Fail("prompts", "expected a text for each name");
    names.push_back(name);
    texts.push_back(text.String());
  }
  const std::string usual = config.TextOr("default_prompt_name", "");
  if (!usual.empty() && std::ranges::count(names, usual) == 0)
    config.Fail("default_prompt_name", "expected one of prompts, found ", gguf::Quoted(usual, 40));
  const bool empty = std::ranges::all_of(texts, [](const std::string& x) { return x.empty(); });
  if (names.empty() || empty) return;
  if (!include_prompt)
    config.Fail("prompts", "expected none, since pooling leaves them out (include_prompt)");
  const auto add = [&](std::string_view key, const std::vector<std::string>& list) {
    model.keys.AddStrings(std::string(kPrefix) + std::string(key),
                          std::vector<std::string_view>(list.begin(), list.end()));
  };
  add("prompt_names", names);
  add("prompts", texts);
  if (!usual.empty()) model.keys.Add(std::string(kPrefix) + "default_prompt", usual);
}

// The number of tokens that a text is cut to.
void AddLongest(OutModel& model) {
  constexpr std::string_view kKnown[] = {"max_seq_length", "do_lower_case", "transformer_task",
                                         "modality_config", "module_output_name"};
  for (const char* const kind : {"bert", "roberta", "distilbert", "xlm-roberta", "camembert",
                                 "mpnet", "xlnet", "albert", "electra"}) {
    const Fields config = model.folder.Object("sentence_" + std::string(kind) + "_config.json");
    if (!config.is_there()) continue;
    ExpectKnown(config, kKnown);
    const bool lowers = model.folder.Object("tokenizer_config.json").BoolOr("do_lower_case", false);
    if (config.BoolOr("do_lower_case", false) && !lowers)
      config.Fail("do_lower_case", "expected false, since the tokenizer's files do not say so");
    const uint64_t most = config.CountOr("max_seq_length", UINT32_MAX);
    if (most < model.config.Count("max_position_embeddings"))
      model.keys.Add(std::string(kPrefix) + "max_tokens", static_cast<uint32_t>(most));
    return;
  }
}

struct Modules {
  std::string pooling = "1_Pooling";
  bool are_listed = false, normalize = false;
};

// The model, pooling, matrices, and a last one that divides a vector by its length.
Modules ReadModules(const HfFolder& folder) {
  Modules found;
  std::optional<std::string> text = folder.Text(std::string(kModules));
  if (!text) return found;
  found.are_listed = true;
  const std::string file = folder.path() + "/" + std::string(kModules);
  const Fields list = ParseObject(file, "{\"modules\": " + *text + "}");
  bool is_pooled = false;
  for (const Fields& module : list.Objects("modules")) {
    const std::string type = module.Text("type"), path = module.TextOr("path", "");
    const std::string name = type.substr(type.rfind('.') + 1);
    if (found.normalize) module.Fail("type", "expected nothing after Normalize");
    if (name == "Transformer" && !is_pooled) {
      if (!path.empty()) module.Fail("path", "expected the model in the folder itself");
    } else if (name == "Pooling" && !is_pooled) {
      if (path.empty() || path.starts_with('.') || path.find('/') != std::string::npos)
        module.Fail("path", "expected a folder in this one, found ", gguf::Quoted(path, 60));
      found.pooling = path;
      is_pooled = true;
    } else if (name == "Dense" && is_pooled) {
      if (path != "1_Dense" && path != "2_Dense" && path != "3_Dense")
        module.Fail("path", "expected 2_Dense or 3_Dense, found ", gguf::Quoted(path, 60));
    } else if (name == "Normalize" && is_pooled) {
      found.normalize = true;
    } else if (name != "Dropout") {
      module.Fail("type",
                  "expected Transformer, Pooling, Dense and Normalize in this order, found ",
                  gguf::Quoted(type, 80));
    }
  }
  if (!is_pooled) found.pooling.clear();
  return found;
}

}  // namespace

void AddPooling(OutModel& model) {
  const Modules modules = ReadModules(model.folder);
  if (modules.pooling.empty() || model.Gives("pooling_type")) return;
  const Fields pooling = model.folder.Object(modules.pooling + "/config.json");
  if (!pooling.is_there()) {
    if (modules.are_listed)
      gguf::Fail(model.folder.path(), "expected ", modules.pooling,
                 "/config.json, as modules.json says");
    return;
  }
  AddKind(pooling, modules.normalize || !modules.are_listed, model);
  if (!model.Gives("pooling_type")) return;
  if (modules.are_listed && !modules.normalize)
    model.keys.Add(std::string(kPrefix) + "normalize", false);
  AddPrompts(model.folder.Object("config_sentence_transformers.json"),
             pooling.BoolOr("include_prompt", true), model);
  AddLongest(model);
}

}  // namespace convert
