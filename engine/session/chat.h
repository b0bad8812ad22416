// A conversation on top of a session. Every turn renders all of it with the model's chat template;
// the session keeps its state up to the first token that differs and reads the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "engine/session/tool_calls.h"
#include "gguf/json.h"
#include "grammar/constraint.h"
#include "tokenizer/chat_template.h"

namespace engine {

// A chat template, and what its source and small renderings tell about it.
struct TemplateTraits {
  explicit TemplateTraits(std::string_view template_source);

  tokenizer::ChatTemplate chat_template;
  bool is_transcript;                              // kTranscriptStop ends a turn, not a token
  ThinkingFormat thinking;                         // found in the template's source
  tokenizer::TextStyle text_style;                 // how it reads what is said
  std::optional<tokenizer::CallStyle> call_style;  // none: it shows no calls
  const CallForm* calls;                           // how its model spells them, or null
  tokenizer::ToolPlace tools_at;                   // where it reads tools
};

// How a conversation is rendered for a model. The constructors throw tokenizer::TemplateError.
struct ChatForm : TemplateTraits {
  // Takes the template of the model's file, or the default (ChatTemplateSource).
  explicit ChatForm(const Model& model);
  explicit ChatForm(std::string_view template_source) : TemplateTraits(template_source) {}

  std::string_view template_with_tools = "";  // the file's second template; "": none
  gguf::JsonView tools = {};                  // what the model may call; absent: nothing
  ToolChoice tool_choice = {};
  std::string instructions = {};  // the end of the system message, for every answer
  int64_t thinking_budget = -1;   // GenerateOptions
  std::string thinking_message = {};
  std::optional<std::chrono::local_seconds> now = {};  // its date; none: the current time
  bool begins_answer = true;                           // after the conversation
  // Variables of the template besides the conversation: enable_thinking, for example.
  std::vector<std::pair<std::string, tokenizer::Value>> variables;

  // Sets the tools as ReadTools() reads them, and the choice to auto. If the template reads no
  // tools, the file's second one takes its place. Throws engine::Error.
  void SetTools(const std::string& json);
  bool may_call() const { return tools.is_there() && tool_choice.kind != ToolChoice::Kind::kNone; }
  // The grammar of answers: calls of the tools, or `answer` as an alternative if it is not null.
  // Returns `answer` if there is nothing to call. Throws engine::Error.
  std::shared_ptr<const grammar::Grammar> GrammarFor(
      const std::shared_ptr<const grammar::Grammar>& answer,
      const tokenizer::Tokenizer& tokenizer) const;
  // The text of a conversation, with what the form adds to it: tools, variables before those of the
  // input, date. The texts of bos and eos are the tokenizer's, if it is not null.
  tokenizer::RenderedChat Render(tokenizer::ChatInput input,
                                 const tokenizer::Tokenizer* tokenizer) const;
  // Sets the options that this form determines. keeps_answer: there is an `answer` as above.
  void Prepare(GenerateOptions& options, bool keeps_answer) const;
};

class Chat {
 public:
  Chat(Session& session, std::string system, ChatForm form);

  struct Answer {
    GenerateResult generated;
    size_t n_reused = 0;   // tokens that were already in the session
    size_t n_dropped = 0;  // oldest messages dropped because the context is full
  };
  // Adds the messages, the last of them the user's or a function's result, and generates the
  // answer. on_text receives it as it is generated, options.on_thinking the thinking before it.
  // Throws engine::Error if a message is out of turn (SetMessages), engine::TooLong if not even the
  // last question fits, tokenizer::TemplateError if the template refuses them. If it throws, the
  // conversation is unchanged. If it is interrupted before the first word, the messages are kept,
  // and Reply({}) answers them.
  Answer Reply(const std::vector<tokenizer::Message>& more, GenerateOptions options,
               const std::function<bool(std::string_view)>& on_text);
  Answer Say(const std::string& text, GenerateOptions options,
             const std::function<bool(std::string_view)>& on_text) {
    return Reply({{"user", text}}, std::move(options), on_text);
  }

  // The two halves of Reply(). The caller generates between them and passes the result to End();
  // options.on_thinking and options.constraint remain the caller's.
  struct Turn {
    std::vector<tokenizer::Message> more;
    std::vector<tokenizer::TokenId> ids;  // the tokens to be run
    GenerateOptions options;
    Answer answer = {};
  };
  Turn Begin(const std::vector<tokenizer::Message>& more, GenerateOptions options);
  Answer End(Turn turn, GenerateResult generated);

  // The tokens with this text as the next message, before any are dropped. Throws as Reply().
  size_t Count(const std::string& text) const;

  // Removes the last question and all after it; returns the question, if there is one.
  std::optional<std::string> Undo();
  void Clear() {
    messages_.clear();
    n_dropped_ = 0;
  }

  // Sets the system message of the following turns, "" for none.
  const std::string& system() const { return system_; }
  void SetSystem(std::string system) { system_ = std::move(system); }

  // Sets what the model may call from the next turn on (ReadTools), and then whether it does
  // (ReadToolChoice). Throws engine::Error, and leaves all as it is.
  void SetTools(const std::string& json);
  void SetToolChoice(std::string_view choice);

  // Sets thinking for the following turns, as engine::SetThinking.
  void SetThinking(std::string_view level) {
    engine::SetThinking(form_.chat_template, level, form_.variables);
  }
  // Sets thinking_budget and thinking_message of GenerateOptions.
  void SetThinkingBudget(int64_t tokens, std::optional<std::string> message = {}) {
    form_.thinking_budget = tokens;
    if (message) form_.thinking_message = std::move(*message);
  }

  // The whole conversation, dropped messages included, with the system message first if there is
  // one; any model can continue it. Throws engine::Error if a message is out of turn: the assistant
  // follows the user; the user, or after calls the functions' results, follow the assistant. The
  // last message may be unanswered.
  std::vector<tokenizer::Message> Messages() const;
  void SetMessages(std::vector<tokenizer::Message> messages);
  // The oldest messages, without the system's, that the model no longer sees.
  size_t n_dropped() const { return n_dropped_; }

 private:
  // The messages that were not dropped, followed by more messages.
  std::vector<tokenizer::Message> With(const std::vector<tokenizer::Message>& more) const;
  void Take(ChatForm changed);
  // The constraint of calls, besides this one or null; it is made when it is first needed.
  grammar::Constraint& CallConstraint(grammar::Constraint* answer);
  // The ids of the messages, with the system's message before them.
  std::vector<tokenizer::TokenId> Encode(std::span<const tokenizer::Message> messages, size_t room,
                                         const std::function<bool()>& interrupted) const;

  Session& session_;
  std::string system_;
  ChatForm form_;
  std::vector<tokenizer::Message> messages_;            // without the system's
  size_t n_dropped_ = 0;                                // how many of the oldest were dropped
  std::optional<grammar::Constraint> call_constraint_;  // made from form_'s tools and choice
  std::shared_ptr<const grammar::Grammar> kept_to_ = nullptr;  // besides, or null
};

// A conversation in the model's format. What its template does not show, tools, calls or their
// results, becomes text (tool_text.h). Throws tokenizer::TemplateError.
tokenizer::RenderedChat RenderChat(const Model& model, const ChatForm& form,
                                   const std::vector<tokenizer::Message>& messages,
                                   const std::function<bool()>& interrupted = nullptr);
// The ids of a conversation in the model's format, up to the start of its answer, for a context of
// `room` tokens. Throws tokenizer::TemplateError, and as Encode() (encode.h).
std::vector<tokenizer::TokenId> EncodeChat(const Model& model, const ChatForm& form,
                                           const std::vector<tokenizer::Message>& messages,
                                           size_t room,
                                           const std::function<bool()>& interrupted = nullptr);
// The source of the file's template, or of the default if there is none or it is empty.
std::string_view ChatTemplateSource(const gguf::File& file, const tokenizer::Tokenizer& tokenizer);

}  // namespace engine
