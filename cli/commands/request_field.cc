// Reads the values of fields.
#include "cli/commands/request_field.h"

#include <cmath>

#include "cli/output/text.h"
#include "engine/error.h"
#include "gguf/error.h"

namespace cli {

void RequestField::Fail(const std::string& expected) const {
  throw engine::Error(key_, ": expected ", expected, ", found ",
                      gguf::Printable(value_.Compact(), 40));
}

double RequestField::Number(double low, double high, bool is_whole) const {
  const double number = value_.IsNumber() ? value_.Number() : NAN;
  if (!(number >= low && number <= high) || (is_whole && number != std::floor(number))) {
    Fail(Format("a %s from %s to %s", is_whole ? "whole number" : "number", Figures(low, 7).c_str(),
                Figures(high, 7).c_str()));
  }
  return number;
}

int64_t RequestField::Whole(double low, double high) const {
  return static_cast<int64_t>(Number(low, high, /*is_whole=*/true));
}

std::string RequestField::Text() const {
  if (!value_.IsString()) Fail("a text");
  return value_.String();
}

std::vector<std::string> RequestField::Texts() const {
  if (!value_.IsArray()) return {Text()};
  std::vector<std::string> texts;
  for (const auto& [key, item] : value_) {
    if (!item.IsString()) Fail("a text or a list of texts");
    texts.push_back(item.String());
  }
  return texts;
}

std::optional<std::string> RequestField::Schema() const {
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

RunRequest::Value RequestField::ValueOf(const engine::Setting& setting) const {
  if (setting.is_number()) {
    const double number = Number(setting.low, setting.high, setting.is_whole());
    const std::string fault = setting.Fault(number);
    if (!fault.empty()) throw engine::Error(key_, ": ", fault);
    return number;
  }
  std::vector<std::string> texts;
  if (setting.name == "logit_bias") {
    texts = Biases();
  } else if (setting.name == "steps") {
    texts = {Joined(Texts(), ";")};
  } else if (setting.name == "dry.breakers") {
    texts = Texts();
    texts.insert(texts.begin(), "none");
  } else {
    if (!value_.IsBool()) Fail("true or false");
    texts = {value_.Bool() ? "true" : "false"};
  }
  for (const std::string& text : texts) {
    const std::string fault = setting.Read(text);
    if (!fault.empty()) throw engine::Error(key_, ": ", fault);
  }
  return texts;
}

// Biases as the flag takes them, "7+1.5". A request has llama-server's [[ID, BIAS], ...], where
// false forbids a token, or OpenAI's {"ID": BIAS}.
std::vector<std::string> RequestField::Biases() const {
  std::vector<std::string> texts;
  const auto add = [&](const std::string& id, const JsonView& bias) {
    const bool is_never = bias.IsBool() && !bias.Bool();
    if (!bias.IsNumber() && !is_never) Fail("[[ID, BIAS], ...] or {\"ID\": BIAS, ...}");
    texts.push_back(id + (is_never ? "-inf" : Format("%+.9g", bias.Number())));
  };
  if (!value_.IsArray() && !value_.IsObject()) add("", {});
  for (const auto& [key, item] : value_) {
    if (value_.IsObject()) {
      add(key, item);
      continue;
    }
    std::vector<JsonView> pair;
    for (const auto& [none, part] : item) pair.push_back(part);
    if (pair.size() != 2) add("", {});
    add(std::string(pair[0].text()), pair[1]);
  }
  return texts;
}

}  // namespace cli
