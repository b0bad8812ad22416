#include "engine/session/chat.h"

#include <algorithm>

#include "engine/error.h"
#include "engine/session/encode.h"

namespace engine {
namespace {

using tokenizer::Message;
using tokenizer::TokenId;

// The reciprocal of the part of a full context that is left for an answer.
constexpr size_t kAnswerShare = 4;

}  // namespace

std::string_view ChatTemplateSource(const gguf::File& file, const tokenizer::Tokenizer& tokenizer) {
  const std::string_view own = file.metadata().GetStringOr("tokenizer.chat_template", "");
  return own.empty() ? tokenizer::DefaultChatTemplate(tokenizer) : own;
}

ChatForm::ChatForm(const Model& model)
    : ChatForm(ChatTemplateSource(model.file, *model.tokenizer)) {}

ChatForm::ChatForm(std::string_view template_source)
    : chat_template(tokenizer::ChatTemplate::Parse(template_source)),
      is_transcript(template_source == tokenizer::kTranscriptTemplate),
      thinking(FindThinkingFormat(template_source)) {}

std::vector<TokenId> EncodeChat(const Model& model, const ChatForm& form,
                                const std::vector<Message>& messages, size_t room,
                                const std::function<bool()>& interrupted) {
  const tokenizer::Tokenizer& tokenizer = *model.tokenizer;
  const tokenizer::Vocabulary& vocab = tokenizer.vocab();
  tokenizer::ChatInput input(messages);
  input.extra = form.variables;
  input.interrupted = interrupted;
  input.bos_token = tokenizer.Piece(vocab.bos, /*special=*/true);
  input.eos_token = tokenizer.Piece(vocab.eos, /*special=*/true);
  const tokenizer::RenderedChat chat = form.chat_template.Render(input);
  // Many templates begin with the BOS token; it must not be added twice.
  const bool has_bos = !input.bos_token.empty() && chat.text.starts_with(input.bos_token);
  return Encode(model, chat.text,
                {.add_bos = !has_bos,
                 .parse_special = true,
                 .plain = chat.foreign,
                 .interrupted = &interrupted},
                room);
}

Chat::Chat(Session& session, std::string system, ChatForm form)
    : session_(session), system_(std::move(system)), form_(std::move(form)) {}

std::vector<Message> Chat::With(const std::string& text) const {
  std::vector<Message> messages(messages_.begin() + static_cast<ptrdiff_t>(n_dropped_),
                                messages_.end());
  messages.push_back({"user", text});
  return messages;
}

std::vector<TokenId> Chat::Encode(std::span<const Message> messages, size_t room,
                                  const std::function<bool()>& interrupted) const {
  std::vector<Message> all(messages.begin(), messages.end());
  if (!system_.empty()) all.insert(all.begin(), {"system", system_});
  return EncodeChat(session_.model(), form_, all, room, interrupted);
}

size_t Chat::Count(const std::string& text) const {
  constexpr size_t kAnyRoom = size_t{1} << 40;
  return Encode(With(text), kAnyRoom, nullptr).size();
}

Chat::Answer Chat::Say(const std::string& text, GenerateOptions options,
                       const std::function<bool(std::string_view)>& on_text) {
  CheckTextSize(session_.model(), text.size(), session_.capacity());
  std::vector<Message> messages = With(text);
  // Drops the oldest questions and answers.
  const auto encode = [&](size_t n_dropped_pairs) {
    return Encode(std::span(messages).subspan(2 * n_dropped_pairs), session_.capacity(),
                  options.interrupted);
  };
  const size_t room = session_.capacity() - session_.capacity() / kAnswerShare;
  std::vector<TokenId> ids;
  const auto fits = [&](size_t n_dropped_pairs) {
    try {
      ids = encode(n_dropped_pairs);
      return ids.size() <= room;
    } catch (const TooLong&) {
      return false;
    }
  };
  Answer answer;
  if (!fits(0)) {  // only the template can say what a conversation takes: bisect
    size_t n_pairs = 0;
    for (size_t enough = messages.size() / 2; n_pairs < enough;) {
      const size_t middle = (n_pairs + enough) / 2;
      if (fits(middle)) {
        enough = middle;
      } else {
        n_pairs = middle + 1;
      }
    }
    ids = encode(n_pairs);
    answer.n_dropped = 2 * n_pairs;
    messages.erase(messages.begin(), messages.begin() + static_cast<ptrdiff_t>(answer.n_dropped));
  }
  if (ids.size() > session_.capacity()) {
    ThrowNoRoom(ids.size(), /*at_least=*/false, session_.capacity(), session_.model().config);
  }
  if (ids.empty()) throw Error("the chat template makes nothing of the conversation");

  answer.n_reused = session_.RewindToCommon(ids);
  // Recurrent layers cannot rewind later to where the next turn diverges from this one: a template
  // may drop the thinking, or render past answers differently.
  if (session_.state().is_recurrent()) {
    messages.push_back({"assistant", "1"});
    messages.push_back({"user", "2"});
    try {
      const std::vector<TokenId> next = encode(0);
      session_.BookmarkAt(static_cast<size_t>(std::ranges::mismatch(ids, next).in1 - ids.begin()));
    } catch (const std::exception&) {  // then everything is read again
    }
    messages.resize(messages.size() - 2);
  }
  options.bookmarks = true;

  options.thinking = form_.thinking;
  if (form_.is_transcript) options.stop_texts.emplace_back(tokenizer::kTranscriptStop);
  answer.generated = Generate(session_, std::span(ids).subspan(answer.n_reused), options, on_text);
  const GenerateResult& generated = answer.generated;
  const bool is_empty = generated.text.empty() && generated.thinking.empty();
  if (generated.stop_reason == StopReason::kInterrupted && is_empty) return answer;
  messages_.push_back({"user", text});
  messages_.push_back({"assistant", generated.text, generated.thinking});
  n_dropped_ += answer.n_dropped;
  return answer;
}

std::string Chat::Undo() {
  if (messages_.size() < 2) return "";
  std::string question = messages_[messages_.size() - 2].content;
  messages_.resize(messages_.size() - 2);
  n_dropped_ = 0;  // more may fit again
  return question;
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
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string_view expected = i % 2 == 0 ? "user" : "assistant";
    if (messages[i].role != expected) {
      throw Error("message " + std::to_string(i + 1) + " is by '" + messages[i].role +
                  "', and it is the turn of '" + std::string(expected) + "'");
    }
  }
  if (messages.size() % 2 != 0) throw Error("the last question has no answer");
  system_ = std::move(system);
  messages_ = std::move(messages);
  n_dropped_ = 0;
}

}  // namespace engine
