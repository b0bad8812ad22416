// The formats in which model families write tool calls. A mark in a chat template's source shows
// which format its family uses.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace engine {

// How a family spells a call.
struct CallForm {
  // The text between open and close; call_grammar.cc writes it, read_calls.cc reads it.
  enum class Body : uint8_t {
    kObject,       // {"name": NAME, "arguments": {...}}; parts: a mark before it, the keys of the
                   // name and, before that, of an id, if they are others
    kNamedObject,  // {NAME: {...}}
    kNamed,        // NAME, parts[0], {...}
    kMistral,      // NAME, parts[1] and an id, parts[0], {...}; or a list of objects
    kDeepSeek,     // NAME, parts[0], {...}; or "function" and both in a block of code
    kKimi,         // functions.NAME:0, which is the call's id, parts[0], {...}
    kChannel,      // NAME, parts[0], {...}, in a message to the function
    kParameters,   // each argument between marks
    kGemma,        // parts[0], NAME, and an object with other quotes, parts[1]
    kPython,       // NAME(key="value", ...), each in a line or all in a list
  };

  std::string_view mark;         // a text in the template
  std::string_view open, close;  // close may be missing; "": at the next open or the end
  Body body;
  std::array<std::string_view, 7> parts = {};   // marks inside the body
  std::array<std::string_view, 2> around = {};  // marks around all calls; not text
  bool is_whole = false;  // an answer is a call from its first byte or from around[0] on
  bool is_list = false;   // all calls are one list between open and close

  // Whether a call may begin with parts[0], without `open`.
  bool MayLackOpen() const { return body == Body::kParameters && !parts[0].empty(); }
  // Objects have the keys that most families use.
  bool IsPlainObject() const { return body == Body::kObject && parts[1].empty(); }
  // All marks that may be control tokens, which are decoded to text only on request.
  std::vector<std::string_view> Marks() const;
};

// The form whose mark a template's source has, or null.
const CallForm* FindCallForm(std::string_view template_source);

// With the function's name, this replaces gpt-oss's header of a message to a function (thinking.h).
inline constexpr std::string_view kCallHeader = "<|channel|>to=functions.";
// Further marks of gpt-oss and DeepSeek R1.
inline constexpr std::string_view kBlockOfCode = "\n```json\n", kBlockEnd = "```";
// Kimi writes this before the name of a function.
inline constexpr std::string_view kKimiPrefix = "functions.";

}  // namespace engine
