#include "engine/chat.h"

#include <algorithm>
#include <utility>

#include "engine/error.h"

namespace engine {
namespace {

using tokenizer::Message;
using tokenizer::TokenId;

// Room that a full context leaves for an answer, in parts of it.
constexpr size_t kAnswerShare = 4;

std::string_view TemplateOf(const Model& model) {
  const std::string_view own = model.file.metadata().GetStringOr("tokenizer.chat_template", "");
  return own.empty() ? tokenizer::DefaultChatTemplate(*model.tokenizer) : own;
}

}  // namespace

tokenizer::ChatTemplate ChatTemplateOf(const Model& model) {
  return tokenizer::ChatTemplate::Parse(TemplateOf(model));
}

bool IsTranscript(const Model& model) {
  return TemplateOf(model) == tokenizer::kTranscriptTemplate;
}

std::vector<TokenId> EncodeChat(const Model& model, const tokenizer::ChatTemplate& chat_template,
                                const std::vector<Message>& messages) {
  const tokenizer::Tokenizer& tokenizer = *model.tokenizer;
  const tokenizer::Vocabulary& vocab = tokenizer.vocab();
  tokenizer::ChatInput input(messages);
  input.bos_token = tokenizer.Piece(vocab.bos, /*special=*/true);
  input.eos_token = tokenizer.Piece(vocab.eos, /*special=*/true);
  const tokenizer::RenderedChat chat = chat_template.Render(input);
  // Many templates begin with the token that begins a text; it must not stand there twice.
  const bool has_bos = !input.bos_token.empty() && chat.text.starts_with(input.bos_token);
  return tokenizer.Encode(chat.text,
                          {.add_bos = !has_bos, .parse_special = true, .plain = chat.foreign});
}

Chat::Chat(Session& session, std::string system)
    : session_(session), system_(std::move(system)), template_(ChatTemplateOf(session.model())) {}

Chat::Answer Chat::Say(const std::string& text, GenerateOptions options,
                       const std::function<bool(std::string_view)>& on_text) {
  std::vector<Message> messages = messages_;
  messages.push_back({"user", text});
  const auto encode = [&] {
    std::vector<Message> all = messages;
    if (!system_.empty()) all.insert(all.begin(), {"system", system_});
    return EncodeChat(session_.model(), template_, all);
  };
  Answer answer;
  std::vector<TokenId> ids = encode();
  const size_t room = session_.capacity() - session_.capacity() / kAnswerShare;
  while (ids.size() > room && messages.size() > 2) {  // question and answer go together
    messages.erase(messages.begin(), messages.begin() + 2);
    answer.n_dropped += 2;
    ids = encode();
  }
  if (ids.size() > session_.capacity()) {
    throw Error("the message needs " + std::to_string(ids.size()) +
                " tokens, and the context has room for " + std::to_string(session_.capacity()) +
                " (set with -c)");
  }

  // At least one token must be read for there to be logits.
  const std::span<const TokenId> cached = session_.tokens();
  const auto [differs, unused] =
      std::mismatch(ids.begin(), ids.end() - 1, cached.begin(), cached.end());
  answer.n_reused = static_cast<size_t>(differs - ids.begin());
  session_.Rewind(answer.n_reused);

  if (IsTranscript(session_.model())) options.stop_texts.emplace_back(tokenizer::kTranscriptStop);
  answer.generated = Generate(session_, std::span(ids).subspan(answer.n_reused), options, on_text);
  if (answer.generated.stop_reason == StopReason::kInterrupted && answer.generated.text.empty()) {
    return answer;
  }
  messages.push_back({"assistant", answer.generated.text});
  messages_ = std::move(messages);
  return answer;
}

std::string Chat::Undo() {
  if (messages_.size() < 2) return "";
  std::string question = messages_[messages_.size() - 2].content;
  messages_.resize(messages_.size() - 2);
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
}

}  // namespace engine
