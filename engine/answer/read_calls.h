// Reads the calls in a model's text, each in the format of its family.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/answer/call_forms.h"
#include "gguf/json.h"
#include "tokenizer/messages.h"

namespace engine {

using Calls = std::vector<tokenizer::ToolCall>;

// Removes the calls between a form's marks from a text, and returns the rest unchanged. The schemas
// in `tools` tell strings from other values.
std::string TakeMarked(const CallForm& form, std::string_view text, const gguf::JsonView& tools,
                       Calls& calls);

// Adds the call in a JSON text, or the calls of a list: {"name": ..., "arguments" or "parameters":
// {...}}. Returns false for any other text, but may have added some calls of a list.
bool AddObject(std::string_view text, Calls& calls);

// The size of the string that begins a text: its first byte is the quote, and a backslash escapes
// the next byte.
size_t QuotedSize(std::string_view text);

// Families with kParameters and kGemma write strings without JSON's quotes, and other values as
// JSON. A value is such a string if its schema allows only strings, perhaps from a list, and
// perhaps null.
struct PlainText {
  gguf::JsonView schema;  // the strings' schema
  bool may_be_null = false;
};
// The result is empty if the value is written as JSON.
std::optional<PlainText> FindPlainText(const gguf::JsonView& schema);

// The names of a list of tools (ReadTools), in order.
std::vector<std::string> ToolNames(const gguf::JsonView& tools);

}  // namespace engine
