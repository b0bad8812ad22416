// A conversation on top of a session. Every turn renders the whole conversation with the model's
// chat template. The session keeps its state up to the first token that differs and reads the rest.
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

#include "engine/answer/tool_calls.h"
#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "gguf/json.h"
#include "grammar/constraint.h"
#include "tokenizer/chat_template.h"

namespace engine {

// A chat template, and the properties that its source and small renderings show.
struct TemplateTraits {
  explicit TemplateTraits(std::string_view template_source);

  tokenizer::ChatTemplate chat_template;
  bool is_transcript;                              // kTranscriptStop, not a token, ends a turn
  ThinkingFormat thinking;                         // found in the template's source
  tokenizer::TextStyle text_style;                 // the form in which it reads content
  std::optional<tokenizer::CallStyle> call_style;  // empty: it shows no calls
  const CallForm* calls;                           // how its model spells calls, or null
  tokenizer::ToolPlace tools_at;                   // where it reads tools
};

// How a conversation is rendered for a model. The constructors throw tokenizer::TemplateError.
struct ChatForm : TemplateTraits {
  // Takes the template of the model's file, or the default (ChatTemplateSource).
  explicit ChatForm(const Model& model);
  explicit ChatForm(std::string_view template_source) : TemplateTraits(template_source) {}

  std::string_view template_with_tools = "";  // the file's second template; "": none
  gguf::JsonView tools = {};                  // the functions that the model may call; absent: none
  ToolChoice tool_choice = {};
  std::string instructions = {};  // appended to the system message
  int64_t thinking_budget = -1;   // as in GenerateOptions
  std::string thinking_message = {};
  std::optional<std::chrono::local_seconds> now = {};  // the template's date; empty: now
  bool begins_answer = true;                           // the text ends where the answer begins
  // Variables of the template besides the conversation: enable_thinking, for example.
  std::vector<std::pair<std::string, tokenizer::Value>> variables;

  // Sets the tools in ReadTools()'s format, and the choice to auto. If the template reads no tools,
  // the file's second template replaces it. Throws engine::Error.
  void SetTools(const std::string& json);
  bool may_call() const { return tools.is_there() && tool_choice.kind != ToolChoice::Kind::kNone; }
  // The grammar of answers: calls of the tools, with `answer`, if not null, as an alternative.
  // Returns `answer` if there is no tool to call. Throws engine::Error.
  std::shared_ptr<const grammar::Grammar> GrammarFor(
      const std::shared_ptr<const grammar::Grammar>& answer,
      const tokenizer::Tokenizer& tokenizer) const;
  // The text of a conversation with this form's additions: tools, variables (before the input's
  // own), date. The texts of bos and eos are the tokenizer's, if it is not null.
  tokenizer::RenderedChat Render(tokenizer::ChatInput input,
                                 const tokenizer::Tokenizer* tokenizer) const;
  // Sets the options that this form determines. keeps_answer: GrammarFor() has an `answer`.
  void Prepare(GenerateOptions& options, bool keeps_answer) const;
};

class Chat {
 public:
  Chat(Session& session, std::string system, ChatForm form);

  struct Answer {
    GenerateResult generated;
    size_t n_reused = 0;   // tokens that the session had already read
    size_t n_dropped = 0;  // the oldest messages, dropped because the context is full
  };
  // Adds the messages, whose last one is the user's or a function's result, and generates the
  // answer. on_text receives it as it is generated, options.on_thinking the thinking before it.
  // Throws engine::Error if a message is out of turn (SetMessages), engine::TooLong if even the
  // last question does not fit, tokenizer::TemplateError if the template refuses the messages. If
  // it throws, the conversation is unchanged. If it is interrupted before the first word, the
  // messages are kept, and Reply({}) answers them.
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

  // The number of tokens with this text as the next message, before drops. Throws as Reply().
  size_t Count(const std::string& text) const;

  // Removes the last question and everything after it. Returns the question, if there is one.
  std::optional<std::string> Undo();
  void Clear() {
    messages_.clear();
    n_dropped_ = 0;
  }

  // Sets the system message of the following turns; "": they have none.
  const std::string& system() const { return system_; }
  void SetSystem(std::string system) { system_ = std::move(system); }

  // Sets the functions that the model may call from the next turn on (ReadTools), and whether it
  // calls them (ReadToolChoice). If it throws engine::Error, nothing changes.
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

  // The whole conversation, including dropped messages, with the system message, if any, first; any
  // model can continue it. SetMessages() throws engine::Error if a message is out of turn: the
  // assistant follows the user; the user, or after calls the functions' results, follow the
  // assistant. The last message may be unanswered.
  std::vector<tokenizer::Message> Messages() const;
  void SetMessages(std::vector<tokenizer::Message> messages);
  // The oldest messages, which the model no longer sees. The system message does not count.
  size_t n_dropped() const { return n_dropped_; }

 private:
  // The messages that were not dropped, followed by `more`.
  std::vector<tokenizer::Message> With(const std::vector<tokenizer::Message>& more) const;
  void Take(ChatForm changed);
  // The constraint of calls, with this one (or null) as the alternative; made when first needed.
  grammar::Constraint& CallConstraint(grammar::Constraint* answer);
  // The ids of the system message and these messages.
  std::vector<tokenizer::TokenId> Encode(std::span<const tokenizer::Message> messages, size_t room,
                                         const std::function<bool()>& should_stop) const;

  Session& session_;
  std::string system_;
  ChatForm form_;
  std::vector<tokenizer::Message> messages_;            // without the system message
  size_t n_dropped_ = 0;                                // dropped from the front of messages_
  std::optional<grammar::Constraint> call_constraint_;  // made from form_'s tools and choice
  std::shared_ptr<const grammar::Grammar> kept_to_ = nullptr;  // besides, or null
};

// A conversation in the model's format. If its template does not show tools, calls or their
// results, they become text (tool_text.h). The template may read the texts of the tokenizer's BOS
// and EOS, unless it is null. Throws tokenizer::TemplateError.
tokenizer::RenderedChat RenderChat(const tokenizer::Tokenizer* tokenizer, const ChatForm& form,
                                   const std::vector<tokenizer::Message>& messages,
                                   const std::function<bool()>& should_stop = nullptr);
// The ids of a conversation in the model's format, up to the start of its answer, for a context of
// `room` tokens. Throws tokenizer::TemplateError, and as Encode() (encode.h).
std::vector<tokenizer::TokenId> EncodeChat(const Model& model, const ChatForm& form,
                                           const std::vector<tokenizer::Message>& messages,
                                           size_t room,
                                           const std::function<bool()>& should_stop = nullptr);
// The source of the file's template, or of the default if the file has none or an empty one.
std::string_view ChatTemplateSource(const gguf::File& file, const tokenizer::Tokenizer& tokenizer);

}  // namespace engine
