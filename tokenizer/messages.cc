// Messages from JSON and back, with tool calls and parts.
#include "tokenizer/messages.h"

#include <optional>
#include <string_view>
#include <utility>

#include "gguf/error.h"
#include "gguf/utf8.h"

namespace tokenizer {
namespace {

using gguf::JsonQuoted;
using gguf::JsonView;

constexpr size_t kMaxArgumentBytes = 2'000'000;  // bytes of a conversation's arguments

// The text with U+FFFD for invalid UTF-8.
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

// A message's content: a text, or parts that are texts.
std::string ContentOf(const JsonView& message) {
  const JsonView content = message["content"];
  if (!content.IsArray()) return TextOf(message, "content");
  std::string text;
  for (const auto& [key, part] : content) {
    const JsonView type = part["type"];
    if (!type.IsString() || type.String() != "text" || !part["text"].IsString()) {
      throw gguf::Error("content: expected parts {\"type\": \"text\", \"text\": ...}, found ",
                        type.IsString() ? gguf::Quoted(type.String()) : part.KindName());
    }
    text += (text.empty() ? "" : "\n") + part["text"].String();
  }
  return text;
}

// The text of parts that are all texts, joined by line feeds; a text is unchanged.
std::optional<std::string> TextOfContent(const Value& content) {
  if (content.IsString()) return std::string(content.view());
  if (!content.IsList()) return std::nullopt;
  std::string text;
  for (const Value& part : content.list().items) {
    const Value* const type = part.IsDict() ? part.dict().Find(Value("type")) : nullptr;
    const Value* const words = part.IsDict() ? part.dict().Find(Value("text")) : nullptr;
    if (type == nullptr || !type->IsString() || type->view() != "text" || words == nullptr ||
        !words->IsString())
      return std::nullopt;
    text += (text.empty() ? "" : "\n") + std::string(words->view());
  }
  return text;
}

constexpr const char* kDeveloper = "developer";
// Phi-4-mini's system message, where there is no other.
constexpr const char* kWithTools = "You are a helpful assistant with some tools.";

bool IsBy(const Value& message, std::string_view role) {
  const Value* const by = message.IsDict() ? message.dict().Find(Value("role")) : nullptr;
  return by != nullptr && by->IsString() && by->view() == role;
}

Value ContentValue(const std::string& text, TextStyle style) {
  if (!style.as_parts) return text;
  return Value::ListOf({Value::DictOf({{"type", "text"}, {"text", text}})});
}

ToolCall ReadCall(const JsonView& json) {
  const JsonView function = json["function"], arguments = function["arguments"];
  const bool has_arguments = arguments.is_there() && arguments.kind() != JsonView::Kind::kNull;
  ToolCall call = {TextOf(json, "id"), TextOf(function, "name"),
                   arguments.IsString() ? arguments.String() : std::string(arguments.text())};
  if (call.name.empty()) throw gguf::Error("tool_calls: expected a function with a name");
  // Clients send nothing, null or "" for a function without arguments.
  if (!has_arguments || call.arguments.find_first_not_of(" \t\r\n") == std::string::npos)
    call.arguments = "{}";
  try {
    ParseArguments(call.arguments);
  } catch (const gguf::Error& error) {
    throw gguf::Error("tool_calls: ", gguf::Printable(call.name), ": arguments: ", error.what());
  }
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

Value Styled(const Value& messages, TextStyle style) {
  if (!messages.IsList()) return messages;
  std::vector<Value> styled;
  std::string system;  // system messages since the last question
  const auto flush = [&] {
    if (system.empty()) return;
    styled.push_back(Value::DictOf(
        {{"role", "user"}, {"content", ContentValue(std::exchange(system, ""), style)}}));
  };
  for (const Value& message : messages.list().items) {
    const Value* const content = message.IsDict() ? message.dict().Find(Value("content")) : nullptr;
    const std::optional<std::string> text = content ? TextOfContent(*content) : std::nullopt;
    if (!text) {
      styled.push_back(message);
      continue;
    }
    const bool is_developer = style.no_developer && IsBy(message, kDeveloper);
    if (style.no_system && (is_developer || IsBy(message, "system"))) {
      system += (system.empty() ? "" : "\n\n") + *text;
      continue;
    }
    if (!IsBy(message, "user")) flush();
    std::string whole = std::exchange(system, "");
    whole += (whole.empty() ? "" : "\n\n") + *text;
    styled.push_back(Value::DictOf({}));
    for (const auto& [key, value] : message.dict().entries) {
      const std::string_view name = key.IsString() ? key.view() : "";
      const bool is_system = name == "role" && is_developer;
      styled.back().dict().Set(key, name == "content" ? ContentValue(whole, style)
                                    : is_system       ? Value("system")
                                                      : value);
    }
  }
  flush();
  return Value::ListOf(std::move(styled));
}

Value WithTools(const Value& messages, const JsonView& tools) {
  if (!messages.IsList()) return messages;
  std::vector<JsonView> functions;
  for (const auto& [key, tool] : tools) functions.push_back(tool["function"]);
  std::vector<Value> list(messages.list().items.begin(), messages.list().items.end());
  if (list.empty() || !IsBy(list.front(), "system")) {
    list.insert(list.begin(), Value::DictOf({{"role", "system"}, {"content", kWithTools}}));
  }
  Value system = Value::DictOf({});
  for (const auto& [key, value] : list.front().dict().entries) system.dict().Set(key, value);
  system.dict().Set(Value("tools"), Value(JsonView::Array(functions).Compact()));
  list.front() = system;
  return Value::ListOf(std::move(list));
}

Value ToTemplateValue(const std::vector<Message>& messages, CallStyle style, TextStyle texts) {
  std::vector<Value> list;
  list.reserve(messages.size());
  for (const Message& message : messages) {
    const bool calls = !message.tool_calls.empty(), is_empty = message.content.empty();
    const bool is_system = texts.no_developer && message.role == kDeveloper;
    list.push_back(Value::DictOf(
        {{"role", is_system ? "system" : message.role},
         {"content", calls && is_empty && style.no_content ? Value() : Value(message.content)}}));
    const auto set = [&](const char* key, Value value) {
      list.back().dict().Set(Value(key), std::move(value));
    };
    const std::string& thinking = message.thinking;
    if (!thinking.empty()) set("reasoning_content", thinking);
    // gpt-oss's name for it; that template refuses it beside content.
    if (!thinking.empty() && calls && is_empty) set("thinking", thinking);
    if (calls) set("tool_calls", CallsValue(message.tool_calls, style.as_text));
    if (!message.tool_call_id.empty()) set("tool_call_id", message.tool_call_id);
    if (!message.name.empty()) set("name", message.name);
  }
  const Value all = Value::ListOf(std::move(list));
  return texts.as_parts || texts.no_system ? Styled(all, texts) : all;
}

JsonView ParseArguments(const std::string& text) {
  const JsonView arguments = JsonView::Parse(text, kValueLimits);
  if (!arguments.IsObject()) throw gguf::Error("the arguments of a call must be a JSON object");
  return arguments;
}

std::vector<Message> ReadMessages(const JsonView& json) {
  constexpr const char* kExpected = R"(expected a list of {"role": "...", "content": "..."})";
  if (!json.IsArray()) throw gguf::Error(kExpected);
  std::vector<Message> messages;
  size_t n_bytes = 0;  // bytes of the arguments that templates get as values
  for (const auto& [key, item] : json) {
    const JsonView content = item["content"], calls = item["tool_calls"];
    // An assistant's message may have thinking, a refusal or calls alone.
    const bool may_lack = calls.IsArray() || TextOf(item, "role") == "assistant";
    const bool lacks = !content.is_there() || content.kind() == JsonView::Kind::kNull;
    if (!item["role"].IsString() ||
        !(content.IsString() || content.IsArray() || (lacks && may_lack)))
      throw gguf::Error("message ", messages.size() + 1,
                        R"(: expected {"role": "...", "content": a text or parts})");
    for (const std::string_view other : {"images", "audio"}) {  // Ollama's form of them
      if (item[other].size() > 0)
        throw gguf::Error("message ", messages.size() + 1, ": ", other, ": only texts can be read");
    }
    if (calls.is_there() && !calls.IsArray() && calls.kind() != JsonView::Kind::kNull)
      throw gguf::Error("tool_calls: expected a list");
    messages.push_back({TextOf(item, "role"),
                        ContentOf(item),
                        TextOf(item, "tool_call_id"),
                        {},
                        TextOf(item, "reasoning_content"),
                        TextOf(item, "name")});
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
    const std::string& thinking = message.thinking;
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
    if (!message.name.empty()) add("name", quoted(message.name));
    json += "}";
  }
  return json + "\n]";
}

}  // namespace tokenizer
