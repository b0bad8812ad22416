// The forms in which families of models spell calls of functions. A chat template shows by a mark
// in its source which form its family uses.
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
  std::array<std::string_view, 2> around = {};  // the calls, once: no text
  bool is_whole = false;                        // an answer is a call from its first byte, or none

  // All of these that may be control tokens, which have text only on request.
  std::vector<std::string_view> Marks() const;
};

// The form whose mark is in a template's source, or null.
const CallForm* FindCallForm(std::string_view template_source);

// What gpt-oss's header of a message to a function becomes (thinking.h), before the message.
inline constexpr std::string_view kCallHeader = "<|channel|>to=functions.";
// How gpt-oss and DeepSeek R1 spell further parts.
inline constexpr std::string_view kBlockOfCode = "\n```json\n", kBlockEnd = "```";

// Whether a schema allows any text, or texts of a list: kParameters and kGemma then have it without
// quotes. Other values are JSON.
bool IsPlainText(const gguf::JsonView& schema);

// Takes the calls between a form's marks out of a text, and returns the rest as it was. tools:
// whose schemas tell texts from other values.
std::string TakeMarked(const CallForm& form, std::string_view text, const gguf::JsonView& tools,
                       CallForm::Calls& calls);

// Adds the call that a text of JSON is, or those of a list: {"name": ..., "arguments" or
// "parameters": {...}}. False if it is anything else; some may be added even then.
bool AddObject(std::string_view text, CallForm::Calls& calls);

// The size of a string of JSON that a text begins with.
size_t QuotedSize(std::string_view text);

}  // namespace engine
