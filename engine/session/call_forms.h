// The formats in which model families write tool calls. A mark in a chat template's source shows
// which format its family uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/json.h"
#include "tokenizer/messages.h"

namespace engine {

// How a family spells a call.
struct CallForm {
  using Calls = std::vector<tokenizer::ToolCall>;
  // What is between open and close; call_grammar.cc writes it, call_forms.cc reads it.
  enum class Body : uint8_t {
    kObject,      // {"name": NAME, "arguments": {...}}
    kMistral,     // NAME, parts[0], {...}, with an id before that; or a list of objects
    kDeepSeek,    // NAME, parts[0], {...}; or "function" and both in a block of code
    kChannel,     // NAME, parts[0], {...}, in a message to the function
    kParameters,  // each argument between marks
    kGemma,       // an object with other quotes
  };

  std::string_view mark;         // in the template
  std::string_view open, close;  // close may be missing, or "": up to the next or the end
  Body body;
  std::array<std::string_view, 7> parts = {};   // of the body
  std::array<std::string_view, 2> around = {};  // around all calls; not text
  bool is_whole = false;                        // an answer is a call from its first byte, or none
  bool is_list = false;                         // kObject: all calls are one list

  // Whether a call may begin with parts[0], without `open`.
  bool MayLackOpen() const { return body == Body::kParameters && !parts[0].empty(); }
  // All of these that may be control tokens, which are decoded to text only on request.
  std::vector<std::string_view> Marks() const;
};

// The form whose mark is in a template's source, or null.
const CallForm* FindCallForm(std::string_view template_source);

// With the function's name, this replaces gpt-oss's header of a message to a function (thinking.h).
inline constexpr std::string_view kCallHeader = "<|channel|>to=functions.";
// How gpt-oss and DeepSeek R1 spell further parts.
inline constexpr std::string_view kBlockOfCode = "\n```json\n", kBlockEnd = "```";

// Whether a schema allows only strings, any or those of a list: kParameters and kGemma write such a
// value without JSON's quotes, and other values as JSON.
bool IsPlainText(const gguf::JsonView& schema);

// Removes the calls between a form's marks from a text, and returns the rest unchanged. The schemas
// in `tools` tell strings from other values.
std::string TakeMarked(const CallForm& form, std::string_view text, const gguf::JsonView& tools,
                       CallForm::Calls& calls);

// Adds the call in a JSON text, or the calls of a list: {"name": ..., "arguments" or "parameters":
// {...}}. Returns false for anything else; some calls may have been added even then.
bool AddObject(std::string_view text, CallForm::Calls& calls);

// The size of a string of JSON that a text begins with.
size_t QuotedSize(std::string_view text);

}  // namespace engine
