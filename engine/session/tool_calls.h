// Finds the calls of functions in what a model writes. A chat template shows by a mark in its
// source how its family spells them; what is not spelt so stays text.
#ifndef PRONK_ENGINE_SESSION_TOOL_CALLS_H_
#define PRONK_ENGINE_SESSION_TOOL_CALLS_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/json.h"
#include "tokenizer/messages.h"

namespace engine {

// How a family spells a call.
struct CallForm {
  using Calls = std::vector<tokenizer::ToolCall>;
  // Adds the calls in a text between open and close; false if it has none or anything else.
  using Read = bool (*)(const CallForm& form, std::string_view inside, const gguf::JsonView& tools,
                        Calls& calls);

  std::string_view mark;         // in the template
  std::string_view open, close;  // close may be missing, or "": up to the next or the end
  Read read;
  std::array<std::string_view, 7> parts = {};   // inside, as `read` knows them
  std::array<std::string_view, 2> around = {};  // the calls, once: no text
  bool is_whole = false;                        // an answer is a call from its first byte, or none

  // All of these that may be control tokens, which have text only on request.
  std::vector<std::string_view> Marks() const;
};

// The form whose mark is in a template's source, or null.
const CallForm* FindCallForm(std::string_view template_source);

// What gpt-oss's header of a message to a function becomes (thinking.h), before the message.
inline constexpr std::string_view kCallHeader = "<|channel|>to=functions.";

// Takes the calls out of an answer, piece by piece: from a call's first mark on all is held back.
class CallSplitter {
 public:
  // form: null for no calls. tools: as SetTools() has them, for the types of untyped arguments.
  CallSplitter(const CallForm* form, gguf::JsonView tools);

  std::string Push(std::string_view text);     // returns what is no call for sure
  std::string Finish(CallForm::Calls& calls);  // and the rest

 private:
  const CallForm* form_;
  gguf::JsonView tools_;
  std::string held_;
  bool in_call_ = false;
};

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_TOOL_CALLS_H_
