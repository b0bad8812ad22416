// What a model thinks before it answers, told apart from the answer, and the switch that chat
// templates have for it.
#ifndef PRONK_ENGINE_SESSION_THINKING_H_
#define PRONK_ENGINE_SESSION_THINKING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
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
  std::string_view open, close;  // of tags
  // What marks are made of. Where these are control tokens, their text has to be asked for.
  std::array<std::string_view, 5> tokens = {};
};

// What the source of a chat template says of it: templates spell the marks to drop the thinking of
// answers that were given before, or to begin one.
ThinkingFormat FindThinkingFormat(std::string_view template_source);

// Those of a format's marks that are control tokens of this vocabulary.
std::vector<tokenizer::TokenId> MarkTokens(const ThinkingFormat& format,
                                           const tokenizer::Tokenizer& tokenizer);

// Text as it is generated, piece by piece, cut into thinking and answer. Marks may be split over
// pieces; white space around thinking belongs to neither. In the form with tags, only what the
// answer begins with is thinking: tags in the middle of a text are text.
class ThinkingSplitter {
 public:
  enum class Part : uint8_t { kThinking, kAnswer };
  using Sink = std::function<void(std::string_view text, Part part)>;

  // prompt_end: the end of what the model has read, with control tokens spelt out; some templates
  // begin the thinking.
  ThinkingSplitter(const ThinkingFormat& format, std::string_view prompt_end);

  void Push(std::string_view text, const Sink& sink);
  void Finish(const Sink& sink);  // what was held back

  // What the next token belongs to. kEither: nothing is there yet, and the model may think first.
  enum class Place : uint8_t { kThinking, kEither, kAnswer };
  Place place() const;

 private:
  enum class State : uint8_t { kStart, kThinking, kBehind, kAnswer, kHeader };
  // Each works on what is held, and returns whether there is more to be done with it.
  bool Start(const Sink& sink);
  bool Think(const Sink& sink);
  bool Channels(const Sink& sink);
  void EndHeader(const Sink& sink);
  void Emit(size_t n_bytes, Part part, const Sink& sink);

  ThinkingFormat format_;
  State state_ = State::kAnswer;
  std::string held_;
  std::string header_;         // of a message: "analysis", "commentary to=functions.add"
  bool has_thinking_ = false;  // something of it was handed on
  bool has_answer_ = false;
  bool is_closed_ = false;  // the prompt ends behind thinking, or a message is the answer
};

// A template's variable for thinking, and the values it takes.
struct ThinkingSwitch {
  std::string variable;     // "" where the template has none
  bool has_levels = false;  // "low", "medium", "high"; else true and false
};

// Found by rendering a question with each of the variables that templates read.
ThinkingSwitch FindThinkingSwitch(const tokenizer::ChatTemplate& chat_template);

// What a person asks for: "on", "off", "low", "medium" or "high".
inline constexpr std::array kThinkingLevels = {"on", "off", "low", "medium", "high"};

// Sets the variable among a template's variables so that the model thinks as asked. Throws
// engine::Error, in a sentence, where the template has no switch for that.
void SetThinking(const tokenizer::ChatTemplate& chat_template, std::string_view level,
                 std::vector<std::pair<std::string, tokenizer::Value>>& variables);

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_THINKING_H_
