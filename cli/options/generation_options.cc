#include "cli/options/generation_options.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <sstream>

#include "cli/command.h"
#include "cli/options/loading.h"
#include "cli/output/text.h"
#include "cli/terminal/charset.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"
#include "gguf/number.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"

namespace cli {
namespace {

// "ID+BIAS" or "ID-BIAS", as llama.cpp writes it: "15043+1.5", "2-inf".
std::pair<tokenizer::TokenId, float> ParseLogitBias(const std::string& text,
                                                    const tokenizer::Vocabulary& vocab) {
  const size_t sign = std::min(text.find_first_of("+-", 1), text.size());
  const auto id = gguf::NumberIn<tokenizer::TokenId>(text.substr(0, sign));
  const std::string rest = text.substr(std::min(sign + 1, text.size()));
  const auto bias = gguf::NumberIn<float>(rest);
  if (!id || !bias || std::isnan(*bias) || rest.starts_with('-')) {
    throw UsageError("--logit-bias ", text, ": expected ID+BIAS or ID-BIAS, for example 2-inf");
  }
  if (*id < 0 || static_cast<size_t>(*id) >= vocab.size()) {
    throw UsageError("--logit-bias ", text, ": the vocabulary has ids 0 to ", vocab.size() - 1);
  }
  return {*id, text[sign] == '-' ? -*bias : *bias};
}

std::vector<engine::SamplerStep> ParseSteps(const std::string& text) {
  std::vector<engine::SamplerStep> steps;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ';');) {
    const auto step = engine::FindSamplerStep(name);
    if (!step) throw UsageError("--samplers: '", name, "' is none of ", engine::SamplerStepNames());
    steps.push_back(*step);
  }
  return steps;
}

using grammar::Grammar;

// Reads a grammar from a file, or from the text given in its place.
Grammar From(const std::string& given, bool is_text, const char* flag,
             const std::function<Grammar(const std::string& text)>& read) {
  try {
    return read(is_text ? given : ReadText(given, kMaxDocumentBytes));
  } catch (const grammar::Error& error) {
    const std::string what = error.what();
    const std::string name = is_text ? flag : given;
    throw engine::Error(what.starts_with(name + ": ") ? what : name + ": " + what);
  }
}

bool IsSchemaText(const std::string& given) {
  const size_t begin = given.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && given[begin] == '{';
}

}  // namespace

void GenerationOptions::AddFlags(Command& command) {
  command.group = "Drafts (the text stays the same)";
  AddDraftFlags(command);
  command.group = "Output that always parses";
  AddGrammarFlags(command);
  command.group = "Sampling (a file may have other defaults: general.sampling.*)";
  AddSamplingFlags(command);
  command.group = kOwn;
}

void GenerationOptions::AddEscapeFlag(Command& command) {
  command.Add("-e,--escape", escape,
              "In -p, --system, -r and --dry-sequence-breaker, \\n is a line feed and so on");
}

std::string GenerationOptions::Typed(const std::string& text) const {
  return escape ? Unescaped(text) : text;
}

std::vector<std::string> GenerationOptions::Typed(std::vector<std::string> texts) const {
  for (std::string& text : texts) text = Typed(text);
  return texts;
}

void GenerationOptions::AddSamplingFlags(Command& command) {
  const std::vector<engine::Setting> settings = engine::Settings(sampler);
  const auto number = [&](const std::string& flag, const char* name, const char* what) {
    const engine::Setting& setting = engine::FindSetting(settings, name);
    const auto* const real = std::get_if<float*>(&setting.value);
    const Target value = real ? Target(*real) : Target(std::get<int*>(setting.value));
    Flag& added = command.Add(flag + " X", value, {setting.low, setting.high}, what);
    setting_flags_.emplace_back(name, &added.ShowDefault());
  };
  command.Add("-s,--seed X", seed, {-1}, "Seed of the random numbers; -1 is another one each time")
      .ShowDefault();
  number("--temp,--temperature", "temperature", "Temperature; 0 takes the most likely token");
  number("--top-k", "top_k", "Keep the K most likely; 0 keeps all");
  number("--top-p", "top_p", "Keep the most likely up to this probability together");
  number("--min-p", "min_p", "Keep those at least this share as likely as the best");
  number("--typical,--typical-p", "typical", "Locally typical sampling; 1 is off");
  number("--repeat-penalty", "repeat_penalty", "Divide logits of recent tokens; 1 is off");
  number("--repeat-last-n", "penalty_last_n", "Tokens the penalties look back on; -1: all");
  number("--presence-penalty", "presence_penalty", "Subtract from logits of recent tokens");
  number("--frequency-penalty", "frequency_penalty", "The same for each time they occurred");
  command.Add("--logit-bias ID+BIAS", logit_bias,
              "ID+BIAS or ID-BIAS: make a token likelier or rarer");
  number("--dynatemp-range", "temperature_range",
         "Temperature from --temp minus this, where the model is sure, to plus this; 0 is off");
  number("--dynatemp-exp", "temperature_exponent",
         "How the entropy becomes that temperature: its power");
  number("--top-nsigma,--top-n-sigma", "top_n_sigma",
         "Keep logits at most this many standard deviations below the best; 0 or less is off");
  number("--xtc-probability", "xtc_probability",
         "Exclude top choices, with this probability; 0 is off");
  number("--xtc-threshold", "xtc_threshold",
         "Those at least this likely are top choices; the least likely of them stays");
  number("--dry-multiplier", "dry.multiplier",
         "DRY: logits of tokens that go on with a repetition fall by this; 0 is off");
  number("--dry-base", "dry.base", "... times this for each token that it is longer");
  number("--dry-allowed-length", "dry.allowed_length",
         "... than this many tokens, which may repeat as they like");
  number("--dry-penalty-last-n", "dry.last_n", "Tokens that DRY looks back on; -1: all");
  command.Add(
      "--dry-sequence-breaker TEXT", dry_breakers,
      "No repetition goes beyond this text (repeatable; none: no limit; default: line end : "
      "\" *)");
  number("--mirostat", "mirostat",
         "2: steer the surprise of the text instead of cutting tokens off; 0 is off");
  number("--mirostat-ent", "mirostat.tau", "The surprise to aim at, in bits");
  number("--mirostat-lr", "mirostat.eta", "How fast Mirostat learns");
  command.Add("--samplers NAMES", samplers, "Their order, for example 'top_k;top_p;temperature'");
  command.Add("--ignore-eos", ignore_eos, "Never end the text by itself");
}

std::string ShownName(std::string_view name) {
  if (name == "typical") return "typical_p";
  return name == "penalty_last_n" ? "repeat_last_n" : std::string(name);
}

std::string SettingsText(const std::vector<engine::Setting>& settings, const Origins& origins) {
  std::vector<std::string> texts;
  constexpr std::string_view kRare[] = {"temperature_", "top_n", "xtc", "dry", "mirostat"};
  const auto add = [&](std::string_view name, const std::string& what) {
    const auto origin = origins.find(name);
    texts.push_back(what + (origin == origins.end() ? "" : " (" + origin->second + ")"));
  };
  for (const engine::Setting& setting : settings) {
    // Those that few know are shown where they are not the default.
    const auto begins = [&](std::string_view word) { return setting.name.starts_with(word); };
    if (std::ranges::any_of(kRare, begins) && !origins.contains(setting.name)) continue;
    add(setting.name, ShownName(setting.name) + " " + Figures(setting.Get(), 7));
  }
  if (origins.contains(engine::kSteps)) add(engine::kSteps, "order of the steps");
  return Joined(texts, ", ") + "; the rest by default";
}

void GenerationOptions::TakeFlags(engine::SamplerOptions& options, Origins& origins) const {
  engine::SamplerOptions given = sampler;
  const std::vector<engine::Setting> from = engine::Settings(given), to = engine::Settings(options);
  for (const auto& [name, flag] : setting_flags_) {
    if (flag->given.empty()) continue;
    engine::FindSetting(to, name).Set(engine::FindSetting(from, name).Get());
    origins[std::string(name)] = "flag";
  }
  if (seed >= 0) origins["seed"] = "flag";
  if (!samplers) return;
  options.steps = ParseSteps(*samplers);
  origins[std::string(engine::kSteps)] = "flag";
}

std::map<std::string_view, std::vector<std::string>> GenerationOptions::FlagNames() const {
  std::map<std::string_view, std::vector<std::string>> names;
  for (const auto& [name, flag] : setting_flags_) names[name] = flag->names;
  return names;
}

engine::SamplerOptions GenerationOptions::Sampler(const engine::Model& model, bool explain,
                                                  Origins& origins) const {
  const tokenizer::Tokenizer& tokenizer = *model.tokenizer;
  const tokenizer::Vocabulary& vocab = tokenizer.vocab();
  engine::SamplerOptions options;
  const auto [names, notes] = engine::ReadSampling(model.file.metadata(), options);
  for (const std::string& note : notes) Note("note: " + gguf::Printable(note));
  for (const std::string_view name : names) origins[std::string(name)] = "file";
  TakeFlags(options, origins);
  if (options.mirostat.version == 1 && origins["mirostat"] == "flag")
    throw UsageError("--mirostat 1: pronk has version 2 of it, which does the same simpler");
  if (!options.dry.Active() && !dry_breakers.empty()) {
    throw UsageError("--dry-sequence-breaker has no effect without --dry-multiplier");
  }
  if (options.dry.Active() && dry_breakers != std::vector<std::string>{"none"}) {
    try {
      options.dry.breakers =
          engine::TokensWith(dry_breakers.empty() ? kDryBreakers : Typed(dry_breakers), tokenizer);
    } catch (const engine::Error& error) {
      throw UsageError("--dry-sequence-breaker: ", error.what());
    }
  }
  options.seed = seed >= 0 ? static_cast<uint64_t>(seed) : std::random_device()();
  for (const std::string& text : logit_bias)
    options.logit_bias.push_back(ParseLogitBias(text, vocab));
  if (ignore_eos) {
    for (const tokenizer::TokenId id : vocab.eog) options.logit_bias.emplace_back(id, -INFINITY);
  }
  if (explain) Note("sampling " + SettingsText(engine::Settings(options), origins));
  return options;
}

void GenerationOptions::AddGrammarFlags(Command& command) {
  command.Add("-j,--json-schema,--json-schema-file FILE", schema,
              "Write JSON that is valid by this schema: a file, or {...}");
  command.Add("--json-object", json_object, "Write a JSON object");
  command.Add("--json-free-space", json_free_space,
              "In JSON, white space as the model wants it: otherwise a space after : and , alone");
  command.Add(
      "--json-open", json_open,
      "With a schema, properties that it does not name, and any order, as JSON Schema allows");
  command.Add("--grammar,--grammar-file FILE", grammar,
              "Write what this grammar (GBNF) allows: a file, or the text with its ::=");
}

std::shared_ptr<const Grammar> GenerationOptions::ReadGrammar(std::string* schema_text) const {
  if (!grammar.empty() + !schema.empty() + json_object > 1) {
    throw UsageError("--grammar, --json-schema and --json-object: give one of them");
  }
  const grammar::SchemaOptions options{
      .free_space = json_free_space,
      .closed = !json_open,
      .ordered = !json_open,
      .note = [](const std::string& what) { Complain("note: " + what); }};
  if (json_object) return std::make_shared<const Grammar>(grammar::JsonObject(options));
  if (!schema.empty()) {
    const auto read = [&](const std::string& text) {
      if (schema_text != nullptr) *schema_text = text;
      return ParseJsonSchema(text, options);
    };
    return std::make_shared<const Grammar>(
        From(schema, IsSchemaText(schema), "--json-schema", read));
  }
  if (json_free_space) throw UsageError("--json-free-space: needs --json-schema or --json-object");
  if (json_open) throw UsageError("--json-open: needs --json-schema");
  if (grammar.empty()) return nullptr;
  const bool is_text = grammar.find("::=") != std::string::npos;
  return std::make_shared<const Grammar>(From(grammar, is_text, "--grammar", grammar::ParseGbnf));
}

void ComplainOfBroken() {
  Complain(
      "warning: some of the model's logits are NaN or infinite, and their tokens were left out: its "
      "weights are broken (pronk inspect --check names them)");
}

bool ComplainIfCut(grammar::Constraint* constraint, engine::StopReason reason) {
  const bool is_whole =
      constraint == nullptr || reason == engine::StopReason::kEos || constraint->may_end();
  if (!is_whole) Complain("note: the text ends before its grammar does, so it is incomplete");
  return !is_whole;
}

void GenerationOptions::AddDraftFlags(Command& command) {
  command
      .Add("--draft N", draft,
           "Guess tokens ahead and check them in one pass; the text stays the same: auto (while it "
           "pays), off, or up to N")
      .ShowDefault();
  command.Add("--draft-max N", draft_max, {1, engine::kMaxDrafts},
              "With --draft auto, guess at most N tokens (default: 15)");
  draft_flag_ =
      &command.Add("--model-draft MODEL", draft_model,
                   "Also -md: a small model of the same vocabulary, or the model's assistant, that "
                   "guesses, too");
}

std::optional<engine::Model> GenerationOptions::LoadDraftModel(const ModelOptions& main) const {
  if (draft_flag_->given.empty()) return {};
  ModelOptions options;
  options.model = draft_model;
  options.named_by = draft_flag_;
  options.override_kv = main.override_kv;
  return LoadModel(options);
}

engine::DraftOptions GenerationOptions::Draft(const std::optional<engine::Model>& model) const {
  engine::DraftOptions options;
  options.on = draft != "off";
  if (draft_max != 0) options.max = draft_max;
  if (draft_max != 0 && draft != "auto")
    throw UsageError("--draft-max has no effect with --draft ", gguf::Quoted(draft));
  if (draft != "off" && draft != "auto") {
    const auto n = gguf::NumberIn<size_t>(draft);
    if (!n || *n > engine::kMaxDrafts) {
      throw UsageError("--draft ", gguf::Quoted(draft), ": expected auto, off or 0 to ",
                       engine::kMaxDrafts);
    }
    options.on = *n > 0;
    options.fixed = *n;
  }
  if (!options.on && !draft_model.empty())
    throw UsageError("--draft ", draft, " and -md: give one of them");
  options.model = model ? &*model : nullptr;
  options.interrupted = Interrupted;
  return options;
}

}  // namespace cli
