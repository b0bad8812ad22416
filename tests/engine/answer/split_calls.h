// Splits an answer into text and calls; templates that show calls.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/answer/thinking.h"
#include "engine/answer/tool_calls.h"
#include "gguf/json.h"
#include "tokenizer/messages.h"

namespace engine {

// A template that writes every call c, with its name n and its arguments a.
inline std::string ShowsCalls(const std::string& each, const std::string& begin = "",
                              const std::string& end = "") {
  return "{% for m in messages %}{{ m.content or '' }}{% if m.tool_calls %}" + begin +
         "{% for c in m.tool_calls %}{% set n, a = c.function.name, c.function.arguments %}" +
         each + "{% endfor %}" + end + "{% endif %}{% endfor %}";
}

struct Parts {
  std::string text;
  Calls calls;
  bool operator==(const Parts&) const = default;
};

inline Parts SplitCalls(const std::string& source, const std::string& written, size_t piece = 1000,
                        const std::string& tools = "[]") {
  ThinkingFormat thinking = FindThinkingFormat(source);
  thinking.has_calls = true;
  ThinkingSplitter splitter(thinking, "<|start|>assistant");
  CallSplitter calls(FindCallForm(source), gguf::JsonView::Parse(tools));
  Parts parts;
  const auto sink = [&](std::string_view text, ThinkingSplitter::Part part) {
    if (part == ThinkingSplitter::Part::kAnswer) parts.text += calls.Push(text);
  };
  for (size_t at = 0; at < written.size(); at += piece) {
    splitter.Push(written.substr(at, piece), sink);
  }
  splitter.Finish(sink);
  parts.text += calls.Finish(parts.calls);
  return parts;
}

}  // namespace engine
