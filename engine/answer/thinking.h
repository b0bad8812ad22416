// Separates a model's thinking from its answer, and finds the thinking switch of a chat template.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// How a family marks its thinking.
//
//     tags       <think> 17 is prime... </think> Yes.
//     channels   <|channel|>analysis<|message|>17 is prime...<|end|>
//                <|start|>assistant<|channel|>final<|message|>Yes.
struct ThinkingFormat {
  enum class Kind : uint8_t { kNone, kTags, kChannels };
  Kind kind = Kind::kNone;
  std::string_view open, close;  // the tags around it
  // The marks around an answer after tags; not part of it. If the first mark is "", an answer may
  // end with the second alone.
  std::string_view answer_open = "", answer_close = "";
  // All marks. Marks that are control tokens are decoded to text only on request.
  std::array<std::string_view, 5> tokens = {};
  // If set, messages in channels to functions are part of the answer, each after kCallHeader and
  // the name (tool_calls.h); otherwise they are thinking.
  bool has_calls = false;
};

// The text that ends the thinking, as the model would write it. In channels with calls the next
// message's channel is left open, unless it must be the answer.
std::string EndOfThinking(const ThinkingFormat& format, bool must_answer);

// The format whose marks appear in a chat template's source: templates use them to drop the
// thinking of earlier answers or to begin one.
ThinkingFormat FindThinkingFormat(std::string_view template_source);

// White space around marks, and a text without white space at its ends.
inline constexpr std::string_view kBlank = " \t\r\n";
std::string_view Trimmed(std::string_view text);

// The number of bytes at the text's end that may begin the (non-empty) mark.
size_t BegunMark(std::string_view text, std::string_view mark);

// The marks that are tokens of this vocabulary.
std::vector<tokenizer::TokenId> MarkTokens(std::span<const std::string_view> marks,
                                           const tokenizer::Tokenizer& tokenizer);

// Splits generated text, piece by piece, into thinking and answer. Marks may span pieces. White
// space around thinking belongs to neither. Tags count only at the beginning, not in an answer.
class ThinkingSplitter {
 public:
  enum class Part : uint8_t { kThinking, kAnswer };
  using Sink = std::function<void(std::string_view text, Part part)>;

  // prompt_end: the prompt's end, control tokens spelt: some templates begin the thinking.
  ThinkingSplitter(const ThinkingFormat& format, std::string_view prompt_end);

  void Push(std::string_view text, const Sink& sink);
  void Finish(const Sink& sink);  // the text still held back

  // The next token's part. kEither: there is no text yet, and the model may think.
  enum class Place : uint8_t { kThinking, kEither, kAnswer };
  Place place() const;
  // The next token's text is thinking: no mark and no header is expected before it.
  bool is_thinking() const { return state_ == State::kThinking; }

 private:
  enum class State : uint8_t { kStart, kThinking, kClosed, kAnswer, kHeader };
  // Each processes held_ and returns whether more of it can be processed.
  bool Start();
  bool Think(const Sink& sink);
  void BeginAnswer();
  bool Answer(const Sink& sink);
  bool Channels(const Sink& sink);
  void EndHeader(const Sink& sink);
  void Emit(size_t n_bytes, Part part, const Sink& sink);

  ThinkingFormat format_;
  State state_ = State::kAnswer;
  std::string held_;
  std::string header_;         // a message's header: "analysis", "commentary to=functions.add"
  size_t channel_ = 0;         // where the channel's name begins in header_
  bool has_thinking_ = false;  // some thinking was passed on
  bool has_answer_ = false;
  bool is_wrapped_ = false;  // answer_close may follow
  bool is_closed_ = false;   // the prompt ends after thinking, or a message is the answer
};

// A template's variable that switches thinking.
struct ThinkingSwitch {
  std::string variable;     // "" if the template has none
  bool has_levels = false;  // "low", "medium", "high"; else true, false
};

// Finds the switch: renders a question with each variable that templates are known to read.
ThinkingSwitch FindThinkingSwitch(const tokenizer::ChatTemplate& chat_template);

inline constexpr std::array kThinkingLevels = {"on", "off", "low", "medium", "high"};

// Sets the template's variable so that the model thinks as requested (one of kThinkingLevels).
// Throws engine::Error if the template has no switch for that.
void SetThinking(const tokenizer::ChatTemplate& chat_template, std::string_view level,
                 std::vector<std::pair<std::string, tokenizer::Value>>& variables);

}  // namespace engine
