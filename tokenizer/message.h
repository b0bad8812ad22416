// A conversation's messages, as applications have them. A part of <pronk/pronk.h>.
#pragma once

#include <string>
#include <vector>

namespace pronk {

// A tool call: the model asks the application to call one of its functions.
struct ToolCall {
  std::string id;         // the call's id in its conversation
  std::string name;       // the function's name
  std::string arguments;  // a JSON object
};
inline bool operator==(const ToolCall& a, const ToolCall& b) {
  return a.id == b.id && a.name == b.name && a.arguments == b.arguments;
}

struct Message {
  // "system" (only first), "user", "assistant", or "tool" for a function's result. Templates may
  // know further roles.
  std::string role;
  std::string content;
  std::string tool_call_id = {};          // the ToolCall::id that a tool answers
  std::vector<ToolCall> tool_calls = {};  // the assistant's calls
  std::string thinking = {};              // the assistant's thinking; templates may drop it
  std::string name = {};                  // the speaker's or the tool's name; few templates read it
};
inline bool operator==(const Message& a, const Message& b) {
  return a.role == b.role && a.content == b.content && a.tool_call_id == b.tool_call_id &&
         a.tool_calls == b.tool_calls && a.thinking == b.thinking && a.name == b.name;
}

}  // namespace pronk
