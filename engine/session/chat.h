// Chat: a conversation on top of a session. Every turn renders the whole conversation with the
// model's chat template; the session keeps its state up to the first token that differs and reads
// the rest.
#ifndef PRONK_ENGINE_SESSION_CHAT_H_
#define PRONK_ENGINE_SESSION_CHAT_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "tokenizer/chat_template.h"

namespace engine {

// How a conversation is rendered for a model. The constructors throw tokenizer::TemplateError.
struct ChatForm {
  // By the template of the model's file, or the default (ChatTemplateSource).
  explicit ChatForm(const Model& model);
  explicit ChatForm(std::string_view template_source);

  tokenizer::ChatTemplate chat_template;
  bool is_transcript;       // kTranscriptStop ends a turn, not a token
  ThinkingFormat thinking;  // as the template's source has it
  // Variables of the template besides the conversation: enable_thinking, for example.
  std::vector<std::pair<std::string, tokenizer::Value>> variables;
};

class Chat {
 public:
  Chat(Session& session, std::string system, ChatForm form);

  struct Answer {
    GenerateResult generated;
    size_t n_reused = 0;   // tokens that were already in the session
    size_t n_dropped = 0;  // oldest messages dropped because the context is full
  };
  // Adds the user's text and generates the answer. on_text gets it as it comes, the options'
  // on_thinking the thinking before it. Throws engine::TooLong if not even this one message fits,
  // tokenizer::TemplateError if the template refuses it. The conversation is as before if it throws
  // or is interrupted before the first word.
  Answer Say(const std::string& text, GenerateOptions options,
             const std::function<bool(std::string_view)>& on_text);

  // The tokens that the conversation takes with this text as the next message, before any are
  // dropped. Throws tokenizer::TemplateError if the template refuses it.
  size_t Count(const std::string& text) const;

  // Removes the last question and its answer; returns the question, "" if there is none.
  std::string Undo();
  void Clear() {
    messages_.clear();
    n_dropped_ = 0;
  }

  // Sets the system message of the following turns, "" for none.
  const std::string& system() const { return system_; }
  void SetSystem(std::string system) { system_ = std::move(system); }

  // Sets thinking for the following turns, as engine::SetThinking.
  void SetThinking(std::string_view level) {
    engine::SetThinking(form_.chat_template, level, form_.variables);
  }

  // The whole conversation, dropped messages included, with the system message first if there is
  // one; any model can continue it. Throws engine::Error if the messages do not alternate between
  // question and answer.
  std::vector<tokenizer::Message> Messages() const;
  void SetMessages(std::vector<tokenizer::Message> messages);

 private:
  // With the user's text, without dropped messages.
  std::vector<tokenizer::Message> With(const std::string& text) const;
  // With the system's message before them.
  std::vector<tokenizer::TokenId> Encode(std::span<const tokenizer::Message> messages, size_t room,
                                         const std::function<bool()>& interrupted) const;

  Session& session_;
  std::string system_;
  ChatForm form_;
  std::vector<tokenizer::Message> messages_;  // without the system's
  size_t n_dropped_ = 0;                      // of them, the oldest
};

// The ids of a conversation in the model's format, up to the start of its answer, for a context of
// `room` tokens. Throws tokenizer::TemplateError, and as Encode() (encode.h).
std::vector<tokenizer::TokenId> EncodeChat(const Model& model, const ChatForm& form,
                                           const std::vector<tokenizer::Message>& messages,
                                           size_t room,
                                           const std::function<bool()>& interrupted = nullptr);
// The source of the file's template, or of the default if there is none or it is empty.
std::string_view ChatTemplateSource(const gguf::File& file, const tokenizer::Tokenizer& tokenizer);

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_CHAT_H_
