// A conversation: as the program and its library hold it, as JSON, and as a template reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/json.h"
#include "tokenizer/jinja/values/value.h"
#include "tokenizer/message.h"

namespace tokenizer {

// A value that a template can read. From JSON: ToTemplateValue(); else Value(), Value(true),
// Value(int64_t{1}), Value(0.5), Value("text"), Value::ListOf({...}), Value::DictOf({...}).
using jinja::Value;

using pronk::Message;
using pronk::ToolCall;

// Templates differ in how they read calls.
struct CallStyle {
  bool as_text = false;     // arguments are JSON, not an object
  bool no_content = false;  // beside calls, empty content is None
};

// Templates also differ in how they read texts.
struct TextStyle {
  bool as_parts = false;      // content is a list, [{"type": "text", "text": "..."}]
  bool no_system = false;     // a system message stands before the next question
  bool no_developer = false;  // OpenAI's role of that name is a system
  bool operator==(const TextStyle&) const = default;
};

// Where a template reads the functions that a model may call.
enum class ToolPlace : uint8_t {
  kNone,
  kVariable,  // `tools`, a list
  kSystem,    // the system message's key `tools`, the JSON of a list of functions (Phi-4-mini)
};

// JSON as deep as its reader allows.
Value ToTemplateValue(const gguf::JsonView& json);
// A list of dictionaries. Throws gguf::Error if a call's arguments are not an object.
Value ToTemplateValue(const std::vector<Message>& messages, CallStyle style = {},
                      TextStyle texts = {});
// Adds these functions, a list in OpenAI's form, to the system message. A conversation without a
// system message gets one.
Value WithTools(const Value& messages, const gguf::JsonView& tools);
// Converts a conversation of either style to this one; content with parts other than text is kept
// as it is.
Value Styled(const Value& messages, TextStyle style);

// Limits for JSON from outside: a template's value takes up to 600 bytes, so all values 40 MB.
inline constexpr gguf::JsonLimits kValueLimits = {.values = size_t{1} << 16};
// The arguments of a call. Throws gguf::Error if the text is not an object.
gguf::JsonView ParseArguments(const std::string& text);

// The layout that other programs use, too:
//
//     [{"role": "user", "content": "Is it warm in Rome?"},
//      {"role": "assistant", "content": "", "reasoning_content": "I look.", "tool_calls":
//       [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"in": "Rome"}}}]},
//      {"role": "tool", "content": "22", "tool_call_id": "1"}]
//
// Arguments may also be that object's text, and content null or a list of parts, [{"type": "text",
// "text": "..."}], whose texts are joined by line feeds. Reading throws gguf::Error.
std::vector<Message> ReadMessages(const gguf::JsonView& json);
std::string MessagesJson(const std::vector<Message>& messages);

}  // namespace tokenizer
