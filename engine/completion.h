// The results of generation: a text, why it ended, and its tokens one by one. A part of
// <pronk/pronk.h>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/message.h"

namespace pronk {

enum class StopReason : std::uint8_t {
  kEos,          // the model or the grammar ended the text: it is complete
  kStop,         // a stop text was generated
  kLength,       // the limit of tokens is reached
  kContext,      // the context is full
  kInterrupted,  // the caller's function returned false
};

// A token of the text or the thinking, reported before its text. Log probabilities are computed
// from the model's logits before sampling changes them. A token that the grammar forced has none.
struct Token {
  struct Likely {
    std::int32_t id;
    float log_probability;  // the natural logarithm
  };
  std::int32_t id;
  double seconds;                 // since the prompt was read
  float log_probability;          // NaN: not computed
  std::vector<Likely> likeliest;  // the first is the likeliest
};

struct Completion {
  std::string text = {};  // whole UTF-8 characters, without stop texts and thinking
  StopReason stop_reason = StopReason::kLength;
  std::size_t n_prompt = 0;     // prompt tokens read, not counting earlier turns
  std::size_t n_unread = 0;     // prompt tokens left when the reading was interrupted
  std::size_t n_generated = 0;  // tokens generated
  double prompt_seconds = 0;
  double generate_seconds = 0;
  // Used by chats:
  std::string thinking = {};              // before the text, by a model that thinks
  std::vector<ToolCall> tool_calls = {};  // not part of the text
  std::size_t n_dropped = 0;              // the oldest messages, which the model no longer sees
};

}  // namespace pronk
