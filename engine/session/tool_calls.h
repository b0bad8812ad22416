// Finds the calls of functions in what a model writes. A chat template shows by a mark in its
// source how its family spells them. Many models also write a bare object, or a block of code with
// one: {"name": NAME, "arguments": {...}}. That is a call if a function of this name is declared.
// What is not spelt in one of these ways stays text.
#ifndef PRONK_ENGINE_SESSION_TOOL_CALLS_H_
#define PRONK_ENGINE_SESSION_TOOL_CALLS_H_

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
  // What is between open and close; call_grammar.cc writes it, tool_calls.cc reads it.
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

// A JSON array of {"type": "function", "function": {"name": ..., "parameters": SCHEMA, ...}}; ""
// and [] are absent. Throws engine::Error, "tools: WHAT".
gguf::JsonView ReadTools(const std::string& json);
// Their names, in order.
std::vector<std::string> ToolNames(const gguf::JsonView& tools);

// Whether the model may call (OpenAI's tool_choice).
struct ToolChoice {
  enum class Kind : uint8_t { kAuto, kNone, kRequired };
  Kind kind = Kind::kAuto;
  std::string name = {};  // of the only function to call, once; "": any
};
// "auto", "none", "required", or the name of one of these tools. Throws engine::Error.
ToolChoice ReadToolChoice(std::string_view choice, const gguf::JsonView& tools);

// Whether a schema allows any text, or texts of a list: kParameters and kGemma then have it without
// quotes. Other values are JSON.
bool IsPlainText(const gguf::JsonView& schema);

// Takes the calls out of an answer, piece by piece: from the beginning of a call on all is held
// back.
class CallSplitter {
 public:
  // form: null: calls are bare objects. tools: what may be called; absent: marked calls alone.
  CallSplitter(const CallForm* form, gguf::JsonView tools);

  std::string Push(std::string_view text);     // returns what is no call for sure
  std::string Finish(CallForm::Calls& calls);  // and the rest

  // A call has begun for sure: by its marks, or by the name of a function.
  bool has_begun() const { return has_begun_; }
  const std::string& held() const { return held_; }

 private:
  bool BeginsWhole() const;

  const CallForm* form_;
  gguf::JsonView tools_;
  std::vector<std::string> names_;
  std::string held_;
  bool in_call_ = false;  // all is held back from now on
  bool has_begun_ = false;
  bool at_start_ = true;  // of the answer
};

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_TOOL_CALLS_H_
