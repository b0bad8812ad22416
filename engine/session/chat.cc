// Renders the turns of a conversation, and reads only their new tokens.
#include "engine/session/chat.h"

#include <algorithm>
#include <iterator>

#include "engine/answer/call_grammar.h"
#include "engine/answer/tool_text.h"
#include "engine/error.h"
#include "engine/session/encode.h"
#include "gguf/error.h"

namespace engine {
namespace {

using tokenizer::Message;
using tokenizer::TokenId;

// 1 / kAnswerShare of a full context remains free for an answer.
constexpr size_t kAnswerShare = 4;

// Throws if a message is out of turn, or if a call after the first n_checked messages does not
// parse.
void CheckTurns(std::span<const Message> messages, size_t n_checked) {
  std::string_view expected = "user";
  bool may_return = false;  // a function may return a result
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    const std::vector<tokenizer::ToolCall>& calls = messages[i].tool_calls;
    const std::string number = "message " + std::to_string(i + 1);
    if (role != expected && !(may_return && role == "tool")) {
      throw Error(number, ": expected one by '", expected, "', found one by '", role, "'");
    }
    try {
      for (const tokenizer::ToolCall& call : calls) {
        if (i >= n_checked) tokenizer::ParseArguments(call.arguments);
      }
    } catch (const gguf::Error& error) {
      throw Error(number, ": ", error.what());
    }
    may_return = role == "tool" || !calls.empty();
    expected = role == "assistant" ? "user" : "assistant";
  }
}

std::vector<Message> WithInstructions(std::vector<Message> messages,
                                      const std::string& instructions) {
  if (instructions.empty()) return messages;
  if (messages.empty() || messages.front().role != "system")
    messages.insert(messages.begin(), {"system", ""});
  std::string& system = messages.front().content;
  system += (system.empty() ? "" : "\n\n") + instructions;
  return messages;
}

}  // namespace

std::string_view ChatTemplateSource(const gguf::File& file, const tokenizer::Tokenizer& tokenizer) {
  const std::string_view own = file.metadata().GetStringOr("tokenizer.chat_template", "");
  return own.empty() ? tokenizer::DefaultChatTemplate(tokenizer) : own;
}

ChatForm::ChatForm(const Model& model)
    : ChatForm(ChatTemplateSource(model.file, *model.tokenizer)) {
  template_with_tools = model.file.metadata().GetStringOr("tokenizer.chat_template.tool_use", "");
}

TemplateTraits::TemplateTraits(std::string_view template_source)
    : chat_template(tokenizer::ChatTemplate::Parse(template_source)),
      is_transcript(template_source == tokenizer::kTranscriptTemplate),
      thinking(FindThinkingFormat(template_source)),
      text_style(tokenizer::FindTextStyle(chat_template)),
      calls(FindCallForm(template_source)),
      tools_at(template_source.find("tools") == template_source.npos
                   ? tokenizer::ToolPlace::kNone
                   : tokenizer::FindToolPlace(chat_template)) {
  text_style.no_developer = template_source.find("developer") == template_source.npos;
  if (template_source.find("tool_calls") != template_source.npos)
    call_style = tokenizer::FindCallStyle(chat_template);
}

void ChatForm::SetTools(const std::string& json) {
  const gguf::JsonView read = ReadTools(json);
  if (read.is_there() && tools_at == tokenizer::ToolPlace::kNone) {
    TemplateTraits& traits = *this;
    if (!template_with_tools.empty()) traits = TemplateTraits(template_with_tools);
    // ToolInstructions() asks for bare objects.
    if (tools_at == tokenizer::ToolPlace::kNone) calls = nullptr;
  }
  tools = read;
  tool_choice = {};
}

std::shared_ptr<const grammar::Grammar> ChatForm::GrammarFor(
    const std::shared_ptr<const grammar::Grammar>& answer,
    const tokenizer::Tokenizer& tokenizer) const {
  if (!may_call()) return answer;
  const bool must_call = tool_choice.kind == ToolChoice::Kind::kRequired;
  return std::make_shared<const grammar::Grammar>(
      CallGrammar(calls, tools, tool_choice, must_call ? nullptr : answer.get(), tokenizer));
}

void ChatForm::Prepare(GenerateOptions& options, bool keeps_answer) const {
  options.thinking = thinking;
  options.thinking_budget = thinking_budget;
  options.thinking_message = thinking_message;
  if (is_transcript) options.stop_texts.emplace_back(tokenizer::kTranscriptStop);
  if (!may_call()) return;
  options.calls = calls;
  options.tools = tools;
  options.thinking.has_calls = true;
  options.constrains_calls = tool_choice.kind == ToolChoice::Kind::kAuto && !keeps_answer;
}

tokenizer::RenderedChat ChatForm::Render(tokenizer::ChatInput input,
                                         const tokenizer::Tokenizer* tokenizer) const {
  if (may_call() && tools_at == tokenizer::ToolPlace::kSystem) {
    input.messages = tokenizer::WithTools(input.messages, tools);
  } else if (may_call() && tools_at == tokenizer::ToolPlace::kVariable) {
    input.tools = tokenizer::ToTemplateValue(tools);
  }
  input.extra.insert(input.extra.begin(), variables.begin(), variables.end());
  input.now = now;
  input.add_generation_prompt = begins_answer;
  if (tokenizer != nullptr) {
    input.bos_token = tokenizer->Piece(tokenizer->vocab().bos, /*special=*/true);
    input.eos_token = tokenizer->Piece(tokenizer->vocab().eos, /*special=*/true);
  }
  return chat_template.Render(input);
}

tokenizer::RenderedChat RenderChat(const tokenizer::Tokenizer* tokenizer, const ChatForm& form,
                                   const std::vector<Message>& messages,
                                   const std::function<bool()>& should_stop) {
  const bool reads_tools = form.tools_at != tokenizer::ToolPlace::kNone;
  const bool has_calls = std::ranges::any_of(
      messages, [](const Message& message) { return !message.tool_calls.empty(); });
  std::vector<Message> shown =
      reads_tools || form.call_style || !has_calls ? messages : ResultsAsUsers(messages);
  if (form.may_call() && !reads_tools)
    shown = WithInstructions(std::move(shown), ToolInstructions(form.tools));
  shown = WithInstructions(std::move(shown), form.instructions);
  std::vector<SpeltCalls> spelt;
  for (Message& message : shown) {
    if (form.call_style || message.tool_calls.empty()) continue;
    spelt.push_back(SpellCalls(form.calls, message.tool_calls));
    message.content += spelt.back().text;
    message.tool_calls.clear();
  }
  tokenizer::ChatInput input(shown, form.call_style.value_or(tokenizer::CallStyle()),
                             form.text_style);
  input.should_stop = should_stop;
  tokenizer::RenderedChat chat = form.Render(std::move(input), tokenizer);
  MakeMarksOwn(spelt, chat);
  return chat;
}

std::vector<TokenId> EncodeChat(const Model& model, const ChatForm& form,
                                const std::vector<Message>& messages, size_t room,
                                const std::function<bool()>& should_stop) {
  const tokenizer::RenderedChat chat =
      RenderChat(model.tokenizer.get(), form, messages, should_stop);
  // Many templates begin with the BOS token; it must not be added twice.
  const std::string bos = model.tokenizer->Piece(model.tokenizer->vocab().bos, /*special=*/true);
  const bool has_bos = !bos.empty() && chat.text.starts_with(bos);
  return Encode(model, chat.text,
                {.add_special = !has_bos,
                 .parse_special = true,
                 .plain = chat.foreign,
                 .should_stop = &should_stop},
                room);
}

Chat::Chat(Session& session, std::string system, ChatForm form)
    : session_(session), system_(std::move(system)), form_(std::move(form)) {}

std::vector<Message> Chat::With(const std::vector<Message>& more) const {
  std::vector<Message> messages = messages_;
  messages.insert(messages.end(), more.begin(), more.end());
  CheckTurns(messages, messages_.size());
  if (messages.empty() || messages.back().role == "assistant")
    throw Error("there is no message to answer");
  messages.erase(messages.begin(), messages.begin() + static_cast<ptrdiff_t>(n_dropped_));
  return messages;
}

std::vector<TokenId> Chat::Encode(std::span<const Message> messages, size_t room,
                                  const std::function<bool()>& should_stop) const {
  std::vector<Message> all(messages.begin(), messages.end());
  if (!system_.empty()) all.insert(all.begin(), {"system", system_});
  return EncodeChat(session_.model(), form_, all, room, should_stop);
}

size_t Chat::Count(const std::string& text) const {
  constexpr size_t kAnyRoom = size_t{1} << 40;
  return Encode(With({{"user", text}}), kAnyRoom, nullptr).size();
}

Chat::Answer Chat::Reply(const std::vector<Message>& more, GenerateOptions options,
                         const std::function<bool(std::string_view)>& on_text) {
  Turn turn = Begin(more, std::move(options));
  GenerateResult generated = Generate(session_, turn.ids, turn.options, on_text);
  return End(std::move(turn), std::move(generated));
}

Chat::Turn Chat::Begin(const std::vector<Message>& more, GenerateOptions options) {
  size_t n_bytes = 0;
  for (const Message& message : more) {  // a template may drop their thinking
    n_bytes += message.content.size();
    for (const tokenizer::ToolCall& call : message.tool_calls) n_bytes += call.arguments.size();
  }
  CheckTextSize(session_.model(), n_bytes, session_.capacity());
  std::vector<Message> messages = With(more);
  std::vector<size_t> questions;  // where turns begin; the oldest turns are dropped
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role == "user") questions.push_back(i);
  }
  const auto encode = [&](size_t turn) {
    return Encode(std::span(messages).subspan(questions[turn]), session_.capacity(),
                  options.should_stop);
  };
  const size_t room = session_.capacity() - session_.capacity() / kAnswerShare;
  std::vector<TokenId> ids;
  const auto fits = [&](size_t turn) {
    try {
      ids = encode(turn);
      return ids.size() <= room;
    } catch (const TooLong&) {
      return false;
    }
  };
  Answer answer;
  size_t first = 0;  // the first turn that is kept
  if (!fits(0)) {    // only rendering shows how many tokens a conversation has: bisect
    for (size_t enough = questions.size() - 1; first < enough;) {
      const size_t middle = (first + enough) / 2;
      if (fits(middle)) {
        enough = middle;
      } else {
        first = middle + 1;
      }
    }
    ids = encode(first);
    answer.n_dropped = questions[first];
  }
  if (ids.size() > session_.capacity()) {
    ThrowNoRoom(ids.size(), /*at_least=*/false, session_.capacity(), session_.model().config);
  }
  if (ids.empty()) throw Error("the chat template renders the conversation as an empty text");

  answer.n_reused = session_.RewindToCommon(ids);
  // Recurrent layers cannot rewind later to where the next turn diverges from this one: a template
  // may drop the thinking, or render past answers differently.
  if (session_.state().is_recurrent()) {
    messages.push_back({"assistant", "1"});
    messages.push_back({"user", "2"});
    try {
      const std::vector<TokenId> next = encode(first);
      session_.BookmarkAt(static_cast<size_t>(std::ranges::mismatch(ids, next).in1 - ids.begin()));
    } catch (const std::exception&) {  // everything is read again
    }
    messages.resize(messages.size() - 2);
  }
  options.bookmarks = true;
  options.is_answer = true;

  form_.Prepare(options, options.constraint != nullptr);
  if (form_.may_call()) options.constraint = &CallConstraint(options.constraint);
  for (const Message& message : messages_) options.n_calls += message.tool_calls.size();
  ids.erase(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(answer.n_reused));
  return {more, std::move(ids), std::move(options), std::move(answer)};
}

Chat::Answer Chat::End(Turn turn, GenerateResult generated) {
  n_dropped_ += turn.answer.n_dropped;
  generated.n_dropped = n_dropped_;
  messages_.insert(messages_.end(), turn.more.begin(), turn.more.end());
  const bool is_empty =
      generated.text.empty() && generated.thinking.empty() && generated.tool_calls.empty();
  if (generated.stop_reason != StopReason::kInterrupted || !is_empty) {
    messages_.push_back(
        {"assistant", generated.text, "", generated.tool_calls, generated.thinking});
  }
  turn.answer.generated = std::move(generated);
  return std::move(turn.answer);
}

std::optional<std::string> Chat::Undo() {
  const auto last = std::find_if(messages_.rbegin(), messages_.rend(),
                                 [](const Message& message) { return message.role == "user"; });
  if (last == messages_.rend()) return std::nullopt;
  std::string question = last->content;
  messages_.erase(std::prev(last.base()), messages_.end());
  n_dropped_ = 0;  // more may fit again
  return question;
}

void Chat::SetTools(const std::string& json) {
  ChatForm changed = form_;
  changed.SetTools(json);
  Take(std::move(changed));
}

void Chat::SetToolChoice(std::string_view choice) {
  ChatForm changed = form_;
  changed.tool_choice = ReadToolChoice(choice, form_.tools);
  Take(std::move(changed));
}

// Throws before anything changes if a tool's schema is not supported.
void Chat::Take(ChatForm changed) {
  changed.GrammarFor(nullptr, *session_.model().tokenizer);
  form_ = std::move(changed);
  call_constraint_.reset();
}

grammar::Constraint& Chat::CallConstraint(grammar::Constraint* answer) {
  const auto wanted = answer == nullptr ? nullptr : answer->grammar();
  if (!call_constraint_ || wanted != kept_to_) {
    const tokenizer::Tokenizer& tokenizer = *session_.model().tokenizer;
    call_constraint_.emplace(form_.GrammarFor(wanted, tokenizer), tokenizer);
    kept_to_ = wanted;
  }
  return *call_constraint_;
}

std::vector<Message> Chat::Messages() const {
  std::vector<Message> all = messages_;
  if (!system_.empty()) all.insert(all.begin(), {"system", system_});
  return all;
}

void Chat::SetMessages(std::vector<Message> messages) {
  std::string system;
  if (!messages.empty() && messages.front().role == "system") {
    system = std::move(messages.front().content);
    messages.erase(messages.begin());
  }
  CheckTurns(messages, 0);
  system_ = std::move(system);
  messages_ = std::move(messages);
  n_dropped_ = 0;
}

}  // namespace engine
