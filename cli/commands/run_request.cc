// Reads requests: the members of a line of --jsonl, or a file of --messages.
#include "cli/commands/run_request.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/sampling/settings.h"
#include "gguf/error.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"

namespace cli {
namespace {

constexpr std::string_view kFields =
    "prompt, messages, id, seed, n_predict, max_tokens, max_completion_tokens, stop, json_schema, "
    "response_format, grammar, logprobs, top_logprobs, n_probs, n, model";

// Fields that clients of servers send, and that change no answer.
bool IsIdle(std::string_view key) {
  constexpr std::string_view kIdle[] = {"stream",  "stream_options", "cache_prompt",
                                        "id_slot", "service_tier",   "store",
                                        "user",    "metadata",       "timings_per_token"};
  return std::ranges::find(kIdle, key) != std::end(kIdle);
}

// The value of one field.
class Field {
 public:
  Field(const std::string& key, const JsonView& value) : key_(key), value_(value) {}

  [[noreturn]] void Fail(const std::string& expected) const {
    throw engine::Error(key_, ": expected ", expected, ", found ",
                        gguf::Printable(value_.Compact(), 40));
  }
  double Number(double low, double high, bool is_whole) const {
    const double number = value_.IsNumber() ? value_.Number() : NAN;
    if (!(number >= low && number <= high) || (is_whole && number != std::floor(number))) {
      Fail(Format("a %s from %s to %s", is_whole ? "whole number" : "number",
                  Figures(low, 7).c_str(), Figures(high, 7).c_str()));
    }
    return number;
  }
  int64_t Whole(double low, double high) const {
    return static_cast<int64_t>(Number(low, high, /*is_whole=*/true));
  }
  std::string Text() const {
    if (!value_.IsString()) Fail("a text");
    return value_.String();
  }
  std::vector<std::string> Texts() const {
    if (!value_.IsArray()) return {Text()};
    std::vector<std::string> texts;
    for (const auto& [key, item] : value_) {
      if (!item.IsString()) Fail("a text or a list of texts");
      texts.push_back(item.String());
    }
    return texts;
  }
  // The value of a setting: a number, or the texts that its flag takes. The latter are checked by
  // reading them into the setting.
  RunRequest::Value ValueOf(const engine::Setting& setting) const {
    if (setting.is_number()) {
      const double number = Number(setting.low, setting.high, setting.is_whole());
      if (setting.name == "mirostat" && number == 1) Fail("0 or 2 (version 2 of Mirostat)");
      return number;
    }
    std::vector<std::string> texts;
    if (setting.name == "logit_bias") {
      texts = Biases();
    } else if (setting.name == "steps") {
      for (const std::string& name : Texts()) texts.push_back(name);
      texts = {Joined(texts, ";")};
    } else if (setting.name == "dry.breakers") {
      texts = Texts();
      texts.insert(texts.begin(), "none");
    } else {
      if (!value_.IsBool()) Fail("true or false");
      texts = {value_.Bool() ? "true" : "false"};
    }
    for (const std::string& text : texts) {
      if (const std::string fault = setting.Read(text); !fault.empty())
        throw engine::Error(key_, ": ", fault);
    }
    return texts;
  }
  // llama-server's [[ID, BIAS], ...], where false forbids a token, or OpenAI's {"ID": BIAS}.
  std::vector<std::string> Biases() const {
    std::vector<std::string> texts;
    const auto add = [&](const std::string& id, const JsonView& bias) {
      const bool is_never = bias.IsBool() && !bias.Bool();
      if (!bias.IsNumber() && !is_never) Fail("[[ID, BIAS], ...] or {\"ID\": BIAS, ...}");
      texts.push_back(id + (is_never ? "-inf" : Format("%+.9g", bias.Number())));
    };
    for (const auto& [key, item] : value_) {
      if (value_.IsObject()) {
        add(key, item);
      } else {
        std::vector<JsonView::Member> pair;
        for (const auto& member : item) pair.push_back(member);
        add(pair.size() == 2 ? std::string(pair[0].value.text()) : "",
            pair.size() == 2 ? pair[1].value : JsonView());
      }
    }
    return texts;
  }
  // The schema of a response_format; "": any object; none: any text.
  std::optional<std::string> Schema() const {
    const JsonView type = value_["type"];
    const std::string name = type.IsString() ? type.String() : "";
    if (name == "text") return std::nullopt;
    const JsonView schema = value_["schema"];
    if (name == "json_object") return schema.is_there() ? std::string(schema.text()) : "";
    const std::string whole(value_.text());
    std::string inner = SchemaIn(whole);
    if (name != "json_schema" || inner == whole) {
      Fail(R"({"type": "text"}, {"type": "json_object"} or )"
           R"({"type": "json_schema", "json_schema": {"schema": {...}}})");
    }
    return inner;
  }

 private:
  const std::string& key_;
  const JsonView& value_;
};

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
  RunRequest request = flags_;
  pronk::Sampling defaults;
  const std::vector<engine::Setting> settings = engine::Settings(defaults);
  std::string place;  // the field, for messages
  const auto take_messages = [&](const JsonView& value) {
    request.messages = tokenizer::ReadMessages(value);
    const std::string last = request.messages.empty() ? "" : request.messages.back().role;
    if (last != "user" && last != "tool")
      throw engine::Error("expected a question at the end, found ",
                          last.empty() ? "nothing" : "a message by " + gguf::Quoted(last));
  };
  bool has_prompt = json.IsString(), wants = request.n_likeliest.has_value();
  if (has_prompt) request.prompt = json.String();
  size_t n_likeliest = request.n_likeliest.value_or(0);
  const auto find_setting = [&](const std::string& key) {
    return engine::FindSetting(settings, key == "dry_sequence_breakers" ? "dry.breakers" : key);
  };
  std::string form;  // the field that has set the grammar
  const auto set_grammar = [&](const std::string& key, const std::string* text, bool is_schema) {
    if (text != nullptr && !std::exchange(form, key).empty())
      throw engine::Error("there is another grammar in the same request");
    request.grammar = text == nullptr ? nullptr : ReadGrammar(*text, is_schema, name);
    request.schema = text == nullptr || !is_schema ? "" : *text;
  };
  const auto is_field = [&](const std::string& key) {
    const std::string all = ", " + std::string(kFields) + ",";
    return IsIdle(key) || all.find(", " + key + ",") != std::string::npos ||
           find_setting(key) != nullptr;
  };
  const auto take = [&](const std::string& key, const JsonView& value) {
    const Field field(key, value);
    const auto is = [&](std::string_view one) { return key == one; };
    if (is("prompt")) {
      request.prompt = field.Text();
      has_prompt = true;
    } else if (is("messages")) {
      place = "messages: ";
      take_messages(value);
    } else if (is("id")) {
      request.id = value;
    } else if (is("model")) {  // part of a request to a server; here -m says which model answers
      field.Text();
    } else if (is("seed")) {
      const int64_t seed = field.Whole(-1, 0x1p53);
      if (seed >= 0) request.settings.emplace_back("seed", static_cast<double>(seed));
    } else if (is("n")) {
      field.Whole(1, 1);
    } else if (is("n_predict") || is("num_predict") || is("max_tokens") ||
               is("max_completion_tokens")) {
      request.max_tokens = field.Whole(-2, engine::kMaxTokens);
    } else if (is("stop")) {
      request.stop_texts = field.Texts();
    } else if (is("json_schema")) {
      place = "json_schema: ";
      const std::string schema = SchemaIn(std::string(value.text()));
      set_grammar(key, &schema, /*is_schema=*/true);
    } else if (is("response_format")) {
      const std::optional<std::string> schema = field.Schema();
      place = "response_format: ";
      set_grammar(key, schema ? &*schema : nullptr, /*is_schema=*/true);
    } else if (is("grammar")) {
      place = "grammar: ";
      const std::string text = field.Text();
      set_grammar(key, text.empty() ? nullptr : &text, /*is_schema=*/false);
    } else if (is("logprobs") && value.IsBool()) {
      wants = value.Bool();
    } else if (is("logprobs") || is("top_logprobs") || is("n_probs")) {
      n_likeliest = static_cast<size_t>(field.Whole(0, engine::kMaxTokens));
      wants = wants || n_likeliest > 0 || !is("n_probs");  // llama-server's 0 is none
    } else if (!IsIdle(key)) {
      const engine::Setting* const setting = find_setting(key);
      if (setting == nullptr) {
        throw engine::Error(gguf::Quoted(key, 40), ": there is no such field; there are ", kFields,
                            ", and the settings: temperature, top_k, top_p, min_p, ...");
      }
      request.settings.emplace_back(setting->name, field.ValueOf(*setting));
    }
  };
  try {
    if (json.IsArray()) take_messages(json);
    for (const auto& [key, value] :
         json.IsObject() ? json.Members() : std::vector<JsonView::Member>()) {
      place.clear();
      // A null field counts as missing, but its name must be valid.
      const bool is_absent = value.kind() == JsonView::Kind::kNull && key != "id";
      if (!is_absent || !is_field(key)) take(key, value);
    }
    place.clear();
    if (has_prompt == !request.messages.empty()) {
      throw engine::Error(has_prompt ? "prompt and messages: expected one of them"
                                     : "expected a string, or an object with \"prompt\" or "
                                       "\"messages\"");
    }
  } catch (const gguf::Fault& error) {
    throw engine::Error(name, ": ", place, error.what());
  }
  request.n_likeliest = wants ? std::optional(n_likeliest) : std::nullopt;
  return request;
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
