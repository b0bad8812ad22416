// Turns messages into the model's text: a file's chat template (metadata key
// tokenizer.chat_template) is a Jinja program, whose output goes to Tokenizer::Encode.
//
// Templates are rendered as by the transformers library's apply_chat_template: trim_blocks and
// lstrip_blocks on, tojson without HTML escapes, raise_exception and strftime_now defined. They are
// untrusted programs, limited by jinja/values/runtime.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/errors.h"
#include "tokenizer/messages.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {

struct ChatInput {
  ChatInput() = default;
  explicit ChatInput(const std::vector<Message>& all, CallStyle style = {}, TextStyle texts = {})
      : messages(ToTemplateValue(all, style, texts)) {}

  Value messages;                     // a list of dictionaries
  Value tools;                        // a list of dictionaries, or None
  bool add_generation_prompt = true;  // end where the assistant's answer begins
  std::string bos_token, eos_token;   // the tokens' texts; empty: the vocabulary has none
  std::optional<std::chrono::local_seconds> now;     // strftime_now's; empty: the current time
  std::vector<std::pair<std::string, Value>> extra;  // more variables, for example enable_thinking
  // Called regularly during rendering; true ends it with tokenizer::Interrupted.
  std::function<bool()> should_stop;
};

struct RenderedChat {
  std::string text;
  // The bytes of `text` that came from messages and tools, ascending: control tokens spelt there
  // are plain text. Roles that are plain words (letters, digits, _ and -) count as the template's
  // own, since many templates build control tokens from them, as in <|user|>.
  std::vector<ByteSpan> foreign;
};

// The limit for templates; the longest in use have 20,000 bytes.
inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

class ChatTemplate {
 public:
  // Throws TemplateError if the source is malformed.
  static ChatTemplate Parse(std::string_view source);

  // Throws TemplateError: the template called raise_exception (its message is message()), broke the
  // language's rules, or reached a limit. Any number of threads may render at once.
  RenderedChat Render(const ChatInput& input) const;

 private:
  struct Program;
  ChatTemplate() = default;
  std::shared_ptr<const Program> program_;
};

// The form in which the template expects tool calls; empty if it does not show them. Renders a
// small conversation.
std::optional<CallStyle> FindCallStyle(const ChatTemplate& chat_template);
// Where it reads tools: tests whether they change its output for a question.
ToolPlace FindToolPlace(const ChatTemplate& chat_template);
// The form in which it expects texts: tests whether it shows a question and a system message
// before.
TextStyle FindTextStyle(const ChatTemplate& chat_template);

// The template for files without one: ChatML if the vocabulary has <|im_start|> and <|im_end|>,
// else a plain transcript, which a base model can continue:
//
//     Be kind.
//
//     User: Hello!
//     Assistant:
//
// A program that uses the transcript must stop at kTranscriptStop, since no token ends a turn.
extern const std::string_view kChatMlTemplate;
extern const std::string_view kTranscriptTemplate;
inline constexpr std::string_view kTranscriptStop = "\nUser:";
std::string_view DefaultChatTemplate(const Tokenizer& tokenizer);

// The current local time.
std::chrono::local_seconds LocalNow();

}  // namespace tokenizer
