#include "tokenizer/messages.h"

#include <string_view>
#include <utility>

#include "gguf/error.h"
#include "gguf/utf8.h"

namespace tokenizer {
namespace {

using gguf::JsonQuoted;
using gguf::JsonView;

constexpr size_t kMaxArgumentBytes = 2'000'000;  // of a conversation

// The text with U+FFFD for what is no UTF-8.
std::string ValidUtf8(std::string_view text) {
  std::string valid;
  for (const auto& c : gguf::Characters(text)) valid += gguf::ToUtf8(c.code);
  return valid;
}

Value CallsValue(const std::vector<ToolCall>& calls, bool as_text) {
  std::vector<Value> list;
  list.reserve(calls.size());
  for (const ToolCall& call : calls) {
    const JsonView arguments = ParseArguments(call.arguments);
    const Value function = Value::DictOf(
        {{"name", call.name},
         {"arguments", as_text ? Value(call.arguments) : ToTemplateValue(arguments)}});
    list.push_back(Value::DictOf({{"id", call.id}, {"type", "function"}, {"function", function}}));
  }
  return Value::ListOf(std::move(list));
}

// A member that may be missing or null.
std::string TextOf(const JsonView& item, std::string_view key) {
  const JsonView value = item[key];
  const bool is_none = !value.is_there() || value.kind() == JsonView::Kind::kNull;
  if (!is_none && !value.IsString()) throw gguf::Error(key, ": expected a text");
  return is_none ? "" : value.String();
}

ToolCall ReadCall(const JsonView& json) {
  const JsonView function = json["function"], arguments = function["arguments"];
  ToolCall call = {TextOf(json, "id"), TextOf(function, "name"),
                   arguments.IsString() ? arguments.String() : std::string(arguments.text())};
  if (call.name.empty()) throw gguf::Error("tool_calls: expected a function with a name");
  ParseArguments(call.arguments);
  return call;
}

}  // namespace

Value ToTemplateValue(const JsonView& json) {
  switch (json.kind()) {
    case JsonView::Kind::kBool:
      return json.Bool();
    case JsonView::Kind::kNumber:
      if (const auto whole = json.Signed()) return *whole;
      if (json.text().find_first_of(".eE") == std::string_view::npos)
        return Value::BigInteger(std::string(json.text()));
      return json.Number();
    case JsonView::Kind::kString:
      return json.String();
    case JsonView::Kind::kArray: {
      std::vector<Value> items;
      for (const auto& item : json) items.push_back(ToTemplateValue(item.value));
      return Value::ListOf(std::move(items));
    }
    case JsonView::Kind::kObject: {
      std::vector<std::pair<std::string, Value>> entries;
      for (const auto& [key, value] : json.Members())
        entries.emplace_back(key, ToTemplateValue(value));
      return Value::DictOf(std::move(entries));
    }
    default:
      return {};
  }
}

Value ToTemplateValue(const std::vector<Message>& messages, CallStyle style) {
  std::vector<Value> list;
  list.reserve(messages.size());
  for (const Message& message : messages) {
    const bool calls = !message.tool_calls.empty(), is_empty = message.content.empty();
    list.push_back(Value::DictOf(
        {{"role", message.role},
         {"content", calls && is_empty && style.no_content ? Value() : Value(message.content)}}));
    const auto set = [&](const char* key, Value value) {
      list.back().dict().Set(Value(key), std::move(value));
    };
    const std::string& thinking = message.reasoning_content;
    if (!thinking.empty()) set("reasoning_content", thinking);
    // As gpt-oss calls it, whose template refuses it beside content.
    if (!thinking.empty() && calls && is_empty) set("thinking", thinking);
    if (calls) set("tool_calls", CallsValue(message.tool_calls, style.as_text));
    if (!message.tool_call_id.empty()) set("tool_call_id", message.tool_call_id);
  }
  return Value::ListOf(std::move(list));
}

JsonView ParseArguments(const std::string& text) {
  const JsonView arguments = JsonView::Parse(text, kValueLimits);
  if (!arguments.IsObject()) throw gguf::Error("the arguments of a call are no object");
  return arguments;
}

std::vector<Message> ReadMessages(const JsonView& json) {
  constexpr const char* kExpected = R"(expected a list of {"role": "...", "content": "..."})";
  if (!json.IsArray()) throw gguf::Error(kExpected);
  std::vector<Message> messages;
  size_t n_bytes = 0;  // of arguments, of which templates get values
  for (const auto& [key, item] : json) {
    const JsonView content = item["content"], calls = item["tool_calls"];
    if (!item["role"].IsString() || !(content.IsString() || calls.IsArray()))
      throw gguf::Error(kExpected);
    if (calls.is_there() && !calls.IsArray() && calls.kind() != JsonView::Kind::kNull)
      throw gguf::Error("tool_calls: expected a list");
    messages.push_back({TextOf(item, "role"),
                        TextOf(item, "content"),
                        TextOf(item, "reasoning_content"),
                        {},
                        TextOf(item, "tool_call_id")});
    for (const auto& call : calls) {
      messages.back().tool_calls.push_back(ReadCall(call.value));
      n_bytes += messages.back().tool_calls.back().arguments.size();
    }
    if (n_bytes > kMaxArgumentBytes) throw gguf::Error("tool_calls: have too many arguments");
  }
  return messages;
}

std::string MessagesJson(const std::vector<Message>& messages) {
  const auto quoted = [](const std::string& text) { return JsonQuoted(ValidUtf8(text)); };
  std::string json = "[";
  for (const Message& message : messages) {
    json += (json.size() > 1 ? ",\n {" : "\n {");
    const auto add = [&json](std::string_view key, const std::string& text) {
      json.append(json.back() == '{' ? "\"" : ", \"").append(key).append("\": ") += text;
    };
    add("role", quoted(message.role));
    add("content", quoted(message.content));
    const std::string& thinking = message.reasoning_content;
    if (!thinking.empty()) add("reasoning_content", quoted(thinking));
    std::string calls;
    for (const auto& [id, name, arguments] : message.tool_calls) {
      ParseArguments(arguments);
      calls += (calls.empty() ? "[{\"id\": " : ",\n  {\"id\": ") + quoted(id) +
               R"(, "type": "function", "function": {"name": )" + quoted(name) +
               ", \"arguments\": " + arguments + "}}";
    }
    if (!calls.empty()) add("tool_calls", calls + "]");
    if (!message.tool_call_id.empty()) add("tool_call_id", quoted(message.tool_call_id));
    json += "}";
  }
  return json + "\n]";
}

}  // namespace tokenizer
