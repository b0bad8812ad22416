// Parses and renders a template, and finds its style of calls and text.
#include "tokenizer/chat_template.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "tokenizer/jinja/interpreter/interpreter.h"
#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/values/runtime.h"

namespace tokenizer {
namespace {

// A copy of a value, which the template may change. foreign: its strings are not the template's.
Value Copy(jinja::Runtime& rt, const Value& value, bool foreign) {
  const Nesting nesting = rt.OneLevel();
  if (value.IsString()) {
    rt.GrantFor(value.view().size());
    return jinja::Text(value.view(), foreign);
  }
  if (value.IsList()) {
    jinja::Values items;
    for (const Value& item : value.list().items) items.push_back(Copy(rt, item, foreign));
    return rt.Make(std::move(items), value.list().kind);
  }
  if (!value.IsDict()) return value;
  Value out = rt.Make(jinja::Dict());
  for (const auto& [key, item] : value.dict().entries) {
    out.dict().Set(Copy(rt, key, foreign), Copy(rt, item, foreign));
  }
  return out;
}

bool IsPlainWord(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c == '-';
  });
}

Value CopyMessages(jinja::Runtime& rt, const Value& messages) {
  Value out = Copy(rt, messages, /*foreign=*/true);
  if (!out.IsList()) return out;
  for (const Value& message : out.list().items) {
    if (!message.IsDict()) continue;
    const Value* role = message.dict().Find(Value("role"));
    if (role == nullptr || !role->IsString() || !IsPlainWord(role->view())) continue;
    message.dict().Set(Value("role"), Value(role->view()));
  }
  return out;
}

}  // namespace

const std::string_view kChatMlTemplate =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

const std::string_view kTranscriptTemplate =
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{{ message.content | trim + '\n\n' }}"
    "{% else %}{{ message.role | capitalize + ': ' + message.content | trim + '\n' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}";

std::string_view DefaultChatTemplate(const Tokenizer& tokenizer) {
  const bool has_chatml = tokenizer.Find("<|im_start|>") >= 0 && tokenizer.Find("<|im_end|>") >= 0;
  return has_chatml ? kChatMlTemplate : kTranscriptTemplate;
}

std::chrono::local_seconds LocalNow() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  const std::chrono::local_days date(std::chrono::year(local.tm_year + 1900) / (local.tm_mon + 1) /
                                     local.tm_mday);
  return date + std::chrono::hours(local.tm_hour) + std::chrono::minutes(local.tm_min) +
         std::chrono::seconds(local.tm_sec);
}

struct ChatTemplate::Program {
  jinja::Block block;
};

ChatTemplate ChatTemplate::Parse(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) Fail("longer than ", kMaxTemplateBytes, " bytes");
  ChatTemplate out;
  out.program_ = std::make_shared<Program>(Program{jinja::ParseTemplate(source)});
  return out;
}

RenderedChat ChatTemplate::Render(const ChatInput& input) const {
  jinja::Runtime rt(jinja::Limits(), input.should_stop);
  jinja::Interpreter interpreter(rt, input.now.value_or(LocalNow()));
  interpreter.SetVariable("messages", CopyMessages(rt, input.messages));
  interpreter.SetVariable("tools", Copy(rt, input.tools, /*foreign=*/true));
  interpreter.SetVariable("documents", Value());
  interpreter.SetVariable("add_generation_prompt", Value(input.add_generation_prompt));
  interpreter.SetVariable("bos_token", Value(input.bos_token));
  interpreter.SetVariable("eos_token", Value(input.eos_token));
  for (const auto& [name, value] : input.extra) {
    interpreter.SetVariable(name, Copy(rt, value, /*foreign=*/false));
  }
  const jinja::Text text = interpreter.Render(program_->block);
  return {std::string(text.view()), {text.foreign().begin(), text.foreign().end()}};
}

std::optional<CallStyle> FindCallStyle(const ChatTemplate& chat_template) {
  const std::vector<Message> messages = {
      {"user", "Why?"},
      {"assistant", "", "", {{"call00001", "pronk_f", R"({"x": "pronk_x"})"}}},
      {.role = "tool", .content = "So.", .tool_call_id = "call00001"}};
  for (const CallStyle style : {CallStyle{false, false}, CallStyle{false, true},
                                CallStyle{true, false}, CallStyle{true, true}}) {
    try {
      const std::string text = chat_template.Render(ChatInput(messages, style)).text;
      const bool shows_name = text.find("pronk_f") != text.npos;
      const bool shows_id = text.find("call00001") != text.npos;  // Kimi's contain the name
      if ((shows_name || shows_id) && text.find("pronk_x") != text.npos) return style;
    } catch (const TemplateError&) {  // a style that the template refuses
    }
  }
  return std::nullopt;
}

ToolPlace FindToolPlace(const ChatTemplate& chat_template) {
  const auto tools = gguf::JsonView::Parse(
      R"([{"type": "function", "function": {"name": "pronk_f", "description": "", "parameters":
          {"type": "object", "properties": {"x": {"type": "string", "description": ""}},
           "required": ["x"]}}}])");
  const auto shown = [&](const std::vector<Message>& messages, ToolPlace place) -> std::string {
    ChatInput input(messages);
    input.now = std::chrono::local_seconds();
    if (place == ToolPlace::kVariable) input.tools = ToTemplateValue(tools);
    if (place == ToolPlace::kSystem) input.messages = WithTools(input.messages, tools);
    try {
      return chat_template.Render(input).text;
    } catch (const TemplateError&) {
      return "";
    }
  };
  const std::vector<Message> question = {{"user", "Why?"}}, both = {{"system", "So."}, question[0]};
  for (const auto& messages : {question, both}) {
    if (shown(messages, ToolPlace::kVariable) != shown(messages, ToolPlace::kNone))
      return ToolPlace::kVariable;
  }
  const bool differs = shown(both, ToolPlace::kSystem) != shown(both, ToolPlace::kNone);
  return differs ? ToolPlace::kSystem : ToolPlace::kNone;
}

TextStyle FindTextStyle(const ChatTemplate& chat_template) {
  const auto shows = [&](const std::vector<Message>& messages, TextStyle style) {
    try {
      const std::string text = chat_template.Render(ChatInput(messages, {}, style)).text;
      return std::ranges::all_of(
          messages, [&](const Message& m) { return text.find(m.content) != text.npos; });
    } catch (const TemplateError&) {
      return false;
    }
  };
  const std::vector<Message> question = {{"user", "pronk_q"}};
  const std::vector<Message> both = {{"system", "pronk_s"}, {"user", "pronk_q"}};
  TextStyle style;
  style.as_parts = !shows(question, style) && shows(question, {.as_parts = true});
  const TextStyle without = {.as_parts = style.as_parts, .no_system = true};
  style.no_system = !shows(both, style) && shows(both, without);
  return style;
}

}  // namespace tokenizer
