// Declares the flags of sampling, grammars and drafts, and turns them into the engine's options.
#include "cli/options/generation_options.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <variant>

#include "cli/command.h"
#include "cli/options/loading.h"
#include "cli/output/text.h"
#include "cli/terminal/charset.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"
#include "gguf/json.h"
#include "gguf/number.h"
#include "grammar/gbnf.h"

namespace cli {
namespace {

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

}  // namespace

bool IsGrammarText(const std::string& given) { return given.find("::=") != std::string::npos; }

bool IsSchemaText(const std::string& given) {
  const size_t begin = given.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && (given[begin] == '{' || given[begin] == '[');
}

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
              "Read escapes such as \\n in -p, --system, -r, --dry-sequence-breaker");
}

std::string GenerationOptions::ResolveEscapes(const std::string& text) const {
  return escape ? Unescaped(text) : text;
}

std::vector<std::string> GenerationOptions::ResolveEscapes(std::vector<std::string> texts) const {
  for (std::string& text : texts) text = ResolveEscapes(text);
  return texts;
}

void GenerationOptions::AddSamplingFlags(Command& command) {
  sampling.seed = pronk::Default<int64_t>(-1);
  for (const engine::Setting& setting : engine::Settings(sampling)) {
    const std::string flags(setting.flags), help(setting.help);
    if (setting.is_number()) {
      const Target target = std::visit(
          [](auto* variable) -> Target {
            if constexpr (std::is_constructible_v<Target, decltype(variable)>) return variable;
            return static_cast<bool*>(nullptr);
          },
          setting.variable);
      // Flags take seeds that a double cannot represent.
      const bool is_seed = setting.name == "seed";
      command.Add(flags, target, {setting.low, is_seed ? HUGE_VAL : setting.high}, help)
          .ShowDefault();
    } else if (const auto* const is_on = std::get_if<bool*>(&setting.variable)) {
      command.Add(flags, **is_on, help);
    } else {
      command.Add(flags, texts_[setting.name], help);
    }
  }
}

std::string SettingsText(const std::vector<engine::Setting>& settings, const OriginOf& origin_of) {
  std::vector<std::string> texts;
  constexpr std::string_view kRare[] = {"temperature_", "top_n", "xtc", "dry", "mirostat"};
  for (const engine::Setting& setting : settings) {
    const std::string origin = origin_of(setting);
    const auto begins = [&](std::string_view word) { return setting.name.starts_with(word); };
    // Rarely used settings are shown only if they differ from the default.
    const bool is_usual = setting.is_number() && std::ranges::none_of(kRare, begins);
    if (!is_usual && origin.empty()) continue;
    texts.push_back(setting.is_number()
                        ? std::string(setting.name) + " " + Figures(setting.Get(), 7)
                    : setting.name == "steps" ? "order of the steps"
                                              : std::string(setting.name));
    if (!origin.empty()) texts.back() += " (" + origin + ")";
  }
  return Joined(texts, ", ") + "; the rest by default";
}

std::string OriginName(const engine::Setting& setting) {
  constexpr const char* kNames[] = {"", "file", "flag"};
  return kNames[static_cast<size_t>(setting.origin())];
}

pronk::Sampling GenerationOptions::SamplingFor(const engine::Model& model, bool explain) const {
  pronk::Sampling options = sampling;
  for (const engine::Setting& setting : engine::Settings(options)) {
    const auto texts = texts_.find(setting.name);
    if (texts == texts_.end()) continue;
    const std::string flag(setting.flags.substr(0, setting.flags.find(' ')));
    const bool may_have_escapes = setting.name == "dry.breakers";
    for (const std::string& text :
         may_have_escapes ? ResolveEscapes(texts->second) : texts->second) {
      const std::string fault = setting.Read(text);
      if (!fault.empty()) throw UsageError(flag, ": ", fault);
    }
  }
  if (options.mirostat.version.is_set() && options.mirostat.version == 1)
    throw UsageError("--mirostat 1: pronk has only version 2, which does the same more simply");
  if (!options.dry.IsOn() && options.dry.breakers.is_set()) {
    throw UsageError("--dry-sequence-breaker has no effect without --dry-multiplier");
  }
  try {
    for (const std::string& note :
         engine::ResolveSampling(model.file.metadata(), *model.tokenizer, options))
      Note("note: " + gguf::Printable(note));
  } catch (const engine::Error& error) {  // a token that this model does not have
    throw UsageError(error.what());
  }
  if (explain) {
    std::vector<engine::Setting> settings = engine::Settings(options);
    // The seed has a line of its own.
    std::erase_if(settings, [](const engine::Setting& setting) { return setting.name == "seed"; });
    Note("sampling " + SettingsText(settings, OriginName));
  }
  return options;
}

void GenerationOptions::AddGrammarFlags(Command& command) {
  command.Add(
      "-j,--json-schema,--json-schema-file FILE", schema,
      "Write JSON that this schema allows: a file, or {...}; OpenAI's response_format works, too");
  command.Add("--json-object", json_object, "Write a JSON object");
  command.Add(
      "--json-free-space", json_free_space,
      "Let the model choose the white space in JSON; otherwise one space follows each : and ,");
  command.Add("--json-open", json_open,
              "Allow properties that the schema does not name, in any order, as JSON Schema does");
  command.Add("--grammar,--grammar-file FILE", grammar,
              "Write what this GBNF grammar allows: a file, or the grammar itself (with ::=)");
}

grammar::SchemaOptions GenerationOptions::ForSchemas(const std::string& name) const {
  const std::string note = name.empty() ? "note: " : "note: " + name + ": ";
  return {.free_space = json_free_space,
          .closed = !json_open,
          .has_closed =
              [note] {
                Complain(note +
                         "objects get only the properties that the schema names; --json-open "
                         "allows others, too");
              },
          .ordered = !json_open,
          .note = [note](const std::string& what) { Complain(note + what); }};
}

std::string SchemaIn(const std::string& text) {
  gguf::JsonView json;
  try {
    json = gguf::JsonView::Parse(text);
  } catch (const gguf::Error&) {
    return text;  // ParseJsonSchema() says what is wrong
  }
  const gguf::JsonView type = json["type"], outer = json["json_schema"];
  const bool is_format = type.IsString() && type.String() == "json_schema";
  const gguf::JsonView& holder = is_format && outer.IsObject() ? outer : json;
  const gguf::JsonView schema = holder["schema"];
  const bool has_schema =
      is_format ? schema.is_there() : schema.IsObject() && json["name"].IsString();
  return has_schema ? std::string(schema.text()) : text;
}

std::shared_ptr<const Grammar> GenerationOptions::ReadGrammar(std::string* schema_text,
                                                              bool has_requests) const {
  if (!grammar.empty() + !schema.empty() + json_object > 1) {
    throw UsageError("--grammar, --json-schema and --json-object: give one of them");
  }
  const grammar::SchemaOptions options = ForSchemas();
  if (json_object) return std::make_shared<const Grammar>(grammar::JsonObject(options));
  if (!schema.empty()) {
    const auto read = [&](const std::string& text) {
      const std::string inner = SchemaIn(text);
      if (schema_text != nullptr) *schema_text = inner;
      return ParseJsonSchema(inner, options);
    };
    return std::make_shared<const Grammar>(
        From(schema, IsSchemaText(schema), "--json-schema", read));
  }
  if (json_free_space && !has_requests)
    throw UsageError("--json-free-space: needs --json-schema or --json-object");
  if (json_open && !has_requests) throw UsageError("--json-open: needs --json-schema");
  if (grammar.empty()) return nullptr;
  return std::make_shared<const Grammar>(
      From(grammar, IsGrammarText(grammar), "--grammar", grammar::ParseGbnf));
}

void ComplainOfBadLogits() {
  Complain(
      "warning: some of the model's logits are NaN or infinite, and their tokens were left out: "
      "its "
      "weights are broken (pronk inspect --check names them)");
}

bool ComplainIfCut(grammar::Constraint* constraint, pronk::StopReason reason,
                   const std::string& name) {
  const bool is_whole =
      constraint == nullptr || reason == pronk::StopReason::kEos || constraint->may_end();
  if (!is_whole)
    Complain("note: " + (name.empty() ? "" : name + ": ") +
             "the text is incomplete: it stops before its grammar does");
  return !is_whole;
}

void GenerationOptions::AddDraftFlags(Command& command) {
  command
      .Add("--draft N", draft,
           "Guess tokens ahead and check them in one pass: auto (while it pays), off, or up to N "
           "tokens")
      .ShowDefault();
  command.Add("--draft-max N", draft_max, {1, engine::kMaxDrafts},
              "With --draft auto, guess at most N tokens (default: 15)");
  draft_flag_ = &command.Add("--model-draft MODEL", draft_model,
                             "Also -md: a small model that also guesses: one with the same "
                             "vocabulary, or the model's assistant");
}

std::optional<engine::Model> GenerationOptions::LoadDraftModel(const ModelOptions& main) const {
  if (draft_flag_->given.empty()) return {};
  ModelOptions options;
  options.model = draft_model;
  options.named_by = draft_flag_;
  options.override_kv = main.override_kv;
  return LoadModel(options);
}

engine::DraftOptions GenerationOptions::ForDrafts(const std::optional<engine::Model>& model) const {
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
  options.should_stop = Interrupted;
  return options;
}

}  // namespace cli
