// Chat: a conversation on top of a session.
//
// Every turn the whole conversation goes through the model's chat template, and only what the
// session has not read yet is computed: the cache is kept up to the first token that differs.
#ifndef PRONK_ENGINE_SESSION_CHAT_H_
#define PRONK_ENGINE_SESSION_CHAT_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "tokenizer/chat_template.h"

namespace engine {

// How a conversation is put to a model. The constructors throw tokenizer::TemplateError.
struct ChatForm {
  // By the template that the model's file carries, or the documented default (ChatTemplateSource).
  explicit ChatForm(const Model& model);
  explicit ChatForm(std::string_view template_source);

  tokenizer::ChatTemplate chat_template;
  bool is_transcript;       // no token ends a turn: kTranscriptStop does
  ThinkingFormat thinking;  // as the template's source has it
  // What the template can read besides the conversation: enable_thinking, for example.
  std::vector<std::pair<std::string, tokenizer::Value>> variables;
};

class Chat {
 public:
  Chat(Session& session, std::string system, ChatForm form);

  struct Answer {
    GenerateResult generated;
    size_t n_reused = 0;   // tokens that were in the cache already
    size_t n_dropped = 0;  // oldest messages given up because the context is full
  };
  // Adds the user's text and answers it. on_text gets the answer as it comes; what is thought
  // before it goes to the options' on_thinking, and into the conversation apart from the answer.
  // Throws engine::TooLong where not even this one message fits, tokenizer::TemplateError where the
  // template refuses it; the conversation is then as before, and also where it was interrupted
  // before the first word.
  Answer Say(const std::string& text, GenerateOptions options,
             const std::function<bool(std::string_view)>& on_text);

  // Takes the last question and its answer back; the question, or "" where there is none.
  std::string Undo();
  void Clear() { messages_.clear(); }

  // What the model is told before the conversation; "" for nothing. Holds for every turn to come.
  const std::string& system() const { return system_; }
  void SetSystem(std::string system) { system_ = std::move(system); }

  // For the turns to come; as engine::SetThinking.
  void SetThinking(std::string_view level) {
    engine::SetThinking(form_.chat_template, level, form_.variables);
  }

  // The whole conversation, the system's message first where there is one; it can be taken up
  // again, by any model. Throws engine::Error where the messages are not questions and answers in
  // turn.
  std::vector<tokenizer::Message> Messages() const;
  void SetMessages(std::vector<tokenizer::Message> messages);

 private:
  Session& session_;
  std::string system_;
  ChatForm form_;
  std::vector<tokenizer::Message> messages_;  // without the system's
};

// The ids of a conversation as the model wants to see it, up to where its answer begins, for a
// context of `room` tokens. Throws tokenizer::TemplateError, and as Encode() (encode.h).
std::vector<tokenizer::TokenId> EncodeChat(const Model& model, const ChatForm& form,
                                           const std::vector<tokenizer::Message>& messages,
                                           size_t room,
                                           const std::function<bool()>& interrupted = nullptr);
// The template that the model's file carries, or the documented default where there is none or
// nothing in it: its source.
std::string_view ChatTemplateSource(const gguf::File& file, const tokenizer::Tokenizer& tokenizer);

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_CHAT_H_
