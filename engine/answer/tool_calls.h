// Finds tool calls in a model's output: in the format of its family (call_forms.h), or, as many
// models write them, as a bare object, perhaps in a code block: {"name": NAME, "arguments": {...}}.
// Such an object is a call if a function of this name is declared. Any other text stays text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/answer/call_forms.h"
#include "engine/answer/read_calls.h"
#include "gguf/json.h"

namespace engine {

// A JSON array of {"type": "function", "function": {"name": ..., "parameters": SCHEMA, ...}}; ""
// and [] are absent. Throws engine::Error, "tools: WHAT".
gguf::JsonView ReadTools(const std::string& json);

// Whether the model may call (OpenAI's tool_choice).
struct ToolChoice {
  enum class Kind : uint8_t { kAuto, kNone, kRequired };
  Kind kind = Kind::kAuto;
  std::string name = {};  // the only function that may be called, once; "": any
};
// "auto", "none", "required", or the name of one of these tools. Throws engine::Error.
ToolChoice ReadToolChoice(std::string_view choice, const gguf::JsonView& tools);

// Removes the calls from an answer, piece by piece. Once a call has begun, all text is held back.
class CallSplitter {
 public:
  // form: null: calls are bare objects. tools: the functions that may be called; absent: only
  // marked calls are found.
  CallSplitter(const CallForm* form, gguf::JsonView tools);

  std::string Push(std::string_view text);  // returns text that cannot be a call
  std::string Finish(Calls& calls);         // adds the calls, returns the rest

  // Whether a call has certainly begun: by its marks, or by the name of a function.
  bool has_begun() const { return has_begun_; }
  const std::string& held() const { return held_; }

 private:
  bool BeginsWhole() const;
  // Whether held_ may contain calls in the family's form.
  bool MayHaveMarked() const;

  const CallForm* form_;
  gguf::JsonView tools_;
  std::vector<std::string> names_;
  std::string held_;
  bool in_call_ = false;  // all text is held back from now on
  bool has_begun_ = false;
  bool at_start_ = true;  // the answer has no text yet
};

}  // namespace engine
