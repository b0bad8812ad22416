// Reads requests: the members of a line of --jsonl, or a file of --messages.
#include "cli/commands/run_request.h"

#include <algorithm>
#include <functional>
#include <sstream>

#include "cli/commands/request_field.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/sampling/settings.h"
#include "gguf/error.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"

namespace cli {
namespace {

// A request while its fields are read.
class Builder {
 public:
  using GrammarReader = std::function<std::shared_ptr<const grammar::Grammar>(
      const std::string& text, bool is_schema)>;

  Builder(const RunRequest& flags, GrammarReader read_grammar)
      : request_(flags),
        read_grammar_(std::move(read_grammar)),
        wants_likeliest_(flags.n_likeliest.has_value()),
        n_likeliest_(flags.n_likeliest.value_or(0)) {}

  // A prompt, a list of messages, or an object. Throws engine::Error, gguf::Error.
  RunRequest Build(const JsonView& json);

 private:
  struct Row {
    std::string_view name;
    void (Builder::*take)(const RequestField& field);
  };
  static const std::vector<Row>& Rows();
  // The row of a field; null for settings and unknown fields.
  static const Row* FindRow(std::string_view name);
  static std::string Names();

  const engine::Setting* FindSetting(const std::string& name) const {
    return engine::FindSetting(settings_, name == "dry_sequence_breakers" ? "dry.breakers" : name);
  }
  void Take(const RequestField& field);
  void TakePrompt(const RequestField& field) {
    request_.prompt = field.Text();
    has_prompt_ = true;
  }
  void TakeMessages(const RequestField& field);
  void TakeId(const RequestField& field) { request_.id = field.value(); }
  void TakeSeed(const RequestField& field);
  void TakeLength(const RequestField& field) {
    request_.max_tokens = field.Whole(-2, engine::kMaxTokens);
  }
  void TakeStops(const RequestField& field) { request_.stop_texts = field.Texts(); }
  void TakeSchema(const RequestField& field) {
    SetGrammar(field, SchemaIn(std::string(field.value().text())), /*is_schema=*/true);
  }
  void TakeFormat(const RequestField& field) { SetGrammar(field, field.Schema(), true); }
  void TakeGrammar(const RequestField& field) {
    const std::string text = field.Text();
    SetGrammar(field, text.empty() ? std::nullopt : std::optional(text), /*is_schema=*/false);
  }
  void TakeLikeliest(const RequestField& field);
  void TakeCount(const RequestField& field) { field.Whole(1, 1); }
  void TakeModel(const RequestField& field) { field.Text(); }  // -m says which model answers
  void Ignore(const RequestField&) {}

  // text: none: any answer, which the flags do not restrict either.
  void SetGrammar(const RequestField& field, const std::optional<std::string>& text,
                  bool is_schema);

  RunRequest request_;
  GrammarReader read_grammar_;
  pronk::Sampling defaults_;
  std::vector<engine::Setting> settings_ = engine::Settings(defaults_);
  bool has_prompt_ = false, has_grammar_ = false;
  bool wants_likeliest_;
  size_t n_likeliest_;
};

const std::vector<Builder::Row>& Builder::Rows() {
  static const std::vector<Row> rows = {
      {"prompt", &Builder::TakePrompt},
      {"messages", &Builder::TakeMessages},
      {"id", &Builder::TakeId},
      {"seed", &Builder::TakeSeed},
      {"n_predict", &Builder::TakeLength},
      {"num_predict", &Builder::TakeLength},
      {"max_tokens", &Builder::TakeLength},
      {"max_completion_tokens", &Builder::TakeLength},
      {"stop", &Builder::TakeStops},
      {"json_schema", &Builder::TakeSchema},
      {"response_format", &Builder::TakeFormat},
      {"grammar", &Builder::TakeGrammar},
      {"logprobs", &Builder::TakeLikeliest},
      {"top_logprobs", &Builder::TakeLikeliest},
      {"n_probs", &Builder::TakeLikeliest},
      {"n", &Builder::TakeCount},
      {"model", &Builder::TakeModel},
      // What clients of servers send, and what changes no answer.
      {"stream", &Builder::Ignore},
      {"stream_options", &Builder::Ignore},
      {"cache_prompt", &Builder::Ignore},
      {"id_slot", &Builder::Ignore},
      {"service_tier", &Builder::Ignore},
      {"store", &Builder::Ignore},
      {"user", &Builder::Ignore},
      {"metadata", &Builder::Ignore},
      {"timings_per_token", &Builder::Ignore},
  };
  return rows;
}

const Builder::Row* Builder::FindRow(std::string_view name) {
  const auto found = std::ranges::find(Rows(), name, &Row::name);
  return found == Rows().end() ? nullptr : &*found;
}

std::string Builder::Names() {
  std::vector<std::string_view> names;
  for (const Row& row : Rows()) {
    if (row.take != &Builder::Ignore) names.push_back(row.name);
  }
  return Joined(names, ", ");
}

void Builder::Take(const RequestField& field) {
  if (const Row* const row = FindRow(field.key())) return (this->*row->take)(field);
  const engine::Setting* const setting = FindSetting(field.key());
  if (setting == nullptr) {
    throw engine::Error(gguf::Quoted(field.key(), 40), ": there is no such field; there are ",
                        Names(), ", and the settings: temperature, top_k, top_p, min_p, ...");
  }
  request_.settings.emplace_back(setting->name, field.ValueOf(*setting));
}

void Builder::TakeMessages(const RequestField& field) {
  try {
    request_.messages = tokenizer::ReadMessages(field.value());
    const std::string last = request_.messages.empty() ? "" : request_.messages.back().role;
    if (last == "user" || last == "tool") return;
    throw gguf::Error("expected a question at the end, found ",
                      last.empty() ? "nothing" : "a message by " + gguf::Quoted(last));
  } catch (const gguf::Error& error) {
    if (field.key().empty()) throw;
    throw engine::Error(field.key(), ": ", error.what());
  }
}

void Builder::TakeSeed(const RequestField& field) {
  const int64_t seed = field.Whole(-1, 0x1p53);
  if (seed >= 0) request_.settings.emplace_back("seed", static_cast<double>(seed));
}

void Builder::TakeLikeliest(const RequestField& field) {
  if (field.key() == "logprobs" && field.value().IsBool()) {
    wants_likeliest_ = field.value().Bool();
    return;
  }
  n_likeliest_ = static_cast<size_t>(field.Whole(0, engine::kMaxTokens));
  // With llama-server 0 means none.
  wants_likeliest_ = wants_likeliest_ || n_likeliest_ > 0 || field.key() != "n_probs";
}

void Builder::SetGrammar(const RequestField& field, const std::optional<std::string>& text,
                         bool is_schema) {
  if (!text && has_grammar_) return;
  if (text && std::exchange(has_grammar_, true))
    throw engine::Error(field.key(), ": there is another grammar in the same request");
  try {
    request_.grammar = text ? read_grammar_(*text, is_schema) : nullptr;
  } catch (const gguf::Fault& error) {
    throw engine::Error(field.key(), ": ", error.what());
  }
  request_.schema = text && is_schema ? *text : "";
}

RunRequest Builder::Build(const JsonView& json) {
  if (json.IsString()) TakePrompt({"", json});
  if (json.IsArray()) TakeMessages({"", json});
  for (const auto& [key, value] :
       json.IsObject() ? json.Members() : std::vector<JsonView::Member>()) {
    // A null field counts as missing, but its name must be valid.
    const bool is_absent = value.kind() == JsonView::Kind::kNull && key != "id";
    if (is_absent && (FindRow(key) != nullptr || FindSetting(key) != nullptr)) continue;
    Take({key, value});
  }
  if (has_prompt_ == !request_.messages.empty()) {
    throw engine::Error(has_prompt_ ? "prompt and messages: expected one of them"
                                    : "expected a string, or an object with \"prompt\" or "
                                      "\"messages\"");
  }
  request_.source = json;
  request_.n_likeliest = wants_likeliest_ ? std::optional(n_likeliest_) : std::nullopt;
  return std::move(request_);
}

}  // namespace

pronk::Sampling RunRequest::SamplingOver(pronk::Sampling base) const {
  const std::vector<engine::Setting> all = engine::Settings(base);
  for (const auto& [name, value] : settings) {
    const engine::Setting& setting = *engine::FindSetting(all, name);
    if (const double* const number = std::get_if<double>(&value)) {
      setting.Set(*number);
    } else {
      for (const std::string& text : std::get<std::vector<std::string>>(value)) setting.Read(text);
    }
  }
  return base;
}

std::shared_ptr<const grammar::Grammar> RequestReader::ReadGrammar(const std::string& text,
                                                                   bool is_schema,
                                                                   const std::string& name) {
  auto& grammar = grammars_[(is_schema ? "schema " : "grammar ") + text];
  if (grammar != nullptr) return grammar;
  const grammar::SchemaOptions options = generation_.ForSchemas(name);
  return grammar = std::make_shared<const grammar::Grammar>(
             !is_schema     ? grammar::ParseGbnf(text)
             : text.empty() ? grammar::JsonObject(options)
                            : grammar::ParseJsonSchema(text, options));
}

RunRequest RequestReader::Read(const JsonView& json, const std::string& name) {
  Builder builder(flags_, [&](const std::string& text, bool is_schema) {
    return ReadGrammar(text, is_schema, name);
  });
  try {
    return builder.Build(json);
  } catch (const gguf::Fault& error) {
    throw engine::Error(name, ": ", error.what());
  }
}

// Blank lines are not requests, but count in line numbers.
std::vector<RunRequest> RequestReader::ReadLines(const std::string& path) {
  std::vector<RunRequest> requests;
  std::istringstream lines(ReadText(path));
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = (path == "-" ? "stdin" : path) + ", line " + std::to_string(++number);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const JsonView json = ParseJson(line, name);
    requests.push_back(Read(json.IsArray() ? JsonView() : json, name));
    requests.back().line = number;
  }
  return requests;
}

RunRequest RequestReader::ReadMessages(const std::string& path) {
  RunRequest request = Read(ReadJson(path), path == "-" ? "stdin" : path);
  if (request.messages.empty())
    throw engine::Error(path == "-" ? "stdin" : path, ": expected a list of messages");
  return request;
}

}  // namespace cli
