// Calls as text, their marks in a rendered conversation, and a conversation without calls.
#include "engine/answer/tool_text.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "gguf/json.h"

namespace engine {
namespace {

using gguf::JsonQuoted;
using gguf::JsonView;
using tokenizer::ByteSpan;
using tokenizer::Message;
using Body = CallForm::Body;

// NAME(key="value", ...)
std::string InPython(const tokenizer::ToolCall& call) {
  std::string text = call.name + "(";
  for (const auto& [key, value] : tokenizer::ParseArguments(call.arguments).Members()) {
    const JsonView::Kind kind = value.kind();
    text += (text.ends_with('(') ? "" : ", ") + key + "=";
    text += kind == JsonView::Kind::kNull   ? "None"
            : kind != JsonView::Kind::kBool ? value.Compact()
            : value.Bool()                  ? "True"
                                            : "False";
  }
  return text + ")";
}

std::string InJson(const tokenizer::ToolCall& call) {
  return "{\"name\": " + JsonQuoted(call.name) + ", \"arguments\": " + call.arguments + "}";
}

ptrdiff_t Occurrences(std::string_view text, std::string_view part) {
  ptrdiff_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

}  // namespace

SpeltCalls SpellCalls(const CallForm* form, const std::vector<tokenizer::ToolCall>& calls) {
  const bool is_python = form != nullptr && form->body == Body::kPython;
  const bool is_kimi = form != nullptr && form->body == Body::kKimi;
  const bool is_list = form != nullptr && form->is_list && (is_python || form->IsPlainObject());
  SpeltCalls spelt;
  if (!is_kimi && !is_list) {
    for (const tokenizer::ToolCall& call : calls)
      spelt.text += (spelt.text.empty() ? "" : "\n") + InJson(call);
    return spelt;
  }
  const auto mark = [&](std::string_view text) {
    const size_t begin = spelt.text.size();
    spelt.text += text;
    if (!text.empty()) spelt.marks.push_back({begin, spelt.text.size()});
  };
  mark(form->around[0]);
  if (is_list) mark(form->open);
  if (is_list) spelt.text += "[";
  for (const tokenizer::ToolCall& call : calls) {
    if (is_kimi) {
      mark(form->open);
      spelt.text += call.id;
      mark(form->parts[0]);
      spelt.text += call.arguments;
      mark(form->close);
    } else {
      spelt.text += &call == &calls.front() ? "" : ", ";
      spelt.text += is_python ? InPython(call) : InJson(call);
    }
  }
  if (is_list) spelt.text += "]";
  if (is_list) mark(form->close);
  mark(form->around[1]);
  return spelt;
}

std::string ToolInstructions(const JsonView& tools) {
  std::string text = "You can call these functions:\n";
  for (const auto& [key, tool] : tools) text += tool["function"].Compact() + "\n";
  return text +
         "To call a function, answer with nothing but a JSON object: "
         "{\"name\": FUNCTION, \"arguments\": {NAME: VALUE, ...}}. "
         "When you have the result, answer the question in words.";
}

std::vector<Message> ResultsAsUsers(const std::vector<Message>& messages) {
  std::vector<Message> changed;
  std::map<std::string, std::string> names;  // [id of a call]
  bool was_result = false;
  for (const Message& message : messages) {
    for (const tokenizer::ToolCall& call : message.tool_calls) names[call.id] = call.name;
    const bool is_result = message.role == "tool";
    if (is_result) {
      const auto found = names.find(message.tool_call_id);
      const std::string name = found != names.end() ? found->second : message.name;
      const std::string text =
          "Result" + (name.empty() ? "" : " of " + name) + ":\n" + message.content;
      if (was_result) {
        changed.back().content += "\n\n" + text;
      } else {
        changed.push_back({"user", text});
      }
    } else {
      changed.push_back(message);
    }
    was_result = is_result;
  }
  return changed;
}

void MakeMarksOwn(const std::vector<SpeltCalls>& spelt, tokenizer::RenderedChat& chat) {
  for (const SpeltCalls& one : spelt) {
    if (one.marks.empty()) continue;
    const auto is_same = [&](const SpeltCalls& other) { return other.text == one.text; };
    if (Occurrences(chat.text, one.text) != std::ranges::count_if(spelt, is_same)) return;
  }
  std::vector<ByteSpan> marks;
  size_t from = 0;
  for (const SpeltCalls& one : spelt) {
    const size_t at = chat.text.find(one.text, from);
    if (at == chat.text.npos) continue;  // the template omitted it
    for (const ByteSpan& mark : one.marks) marks.push_back({at + mark.begin, at + mark.end});
    from = at + one.text.size();
  }
  std::vector<ByteSpan> foreign;
  auto mark = marks.begin();
  for (ByteSpan span : chat.foreign) {
    while (mark != marks.end() && mark->end <= span.begin) ++mark;
    for (; mark != marks.end() && mark->begin < span.end; ++mark) {
      if (span.begin < mark->begin) foreign.push_back({span.begin, mark->begin});
      span.begin = mark->end;
      if (span.begin >= span.end) break;
    }
    if (span.begin < span.end) foreign.push_back(span);
  }
  chat.foreign = std::move(foreign);
}

}  // namespace engine
