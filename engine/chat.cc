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

Chat::Chat(Session& session, std::string system)
    : session_(session),
      system_(std::move(system)),
      template_(tokenizer::ChatTemplate::Parse(TemplateOf(session.model()))),
      is_transcript_(TemplateOf(session.model()) == tokenizer::kTranscriptTemplate) {}

std::vector<TokenId> Chat::Encode(const std::vector<Message>& messages) const {
  const tokenizer::Tokenizer& tokenizer = *session_.model().tokenizer;
  const tokenizer::Vocabulary& vocab = tokenizer.vocab();
  std::vector<Message> all = messages;
  if (!system_.empty()) all.insert(all.begin(), {"system", system_});
  tokenizer::ChatInput input(all);
  input.bos_token = tokenizer.Piece(vocab.bos, /*special=*/true);
  input.eos_token = tokenizer.Piece(vocab.eos, /*special=*/true);
  const tokenizer::RenderedChat chat = template_.Render(input);
  // Many templates begin with the token that begins a text; it must not stand there twice.
  const bool has_bos = !input.bos_token.empty() && chat.text.starts_with(input.bos_token);
  return tokenizer.Encode(chat.text,
                          {.add_bos = !has_bos, .parse_special = true, .plain = chat.foreign});
}

Chat::Answer Chat::Say(const std::string& text, GenerateOptions options,
                       const std::function<bool(std::string_view)>& on_text) {
  std::vector<Message> messages = messages_;
  messages.push_back({"user", text});
  Answer answer;
  std::vector<TokenId> ids = Encode(messages);
  const size_t room = session_.capacity() - session_.capacity() / kAnswerShare;
  while (ids.size() > room && messages.size() > 2) {  // question and answer go together
    messages.erase(messages.begin(), messages.begin() + 2);
    answer.n_dropped += 2;
    ids = Encode(messages);
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

  if (is_transcript_) options.stop_texts.emplace_back(tokenizer::kTranscriptStop);
  answer.generated = Generate(session_, std::span(ids).subspan(answer.n_reused), options, on_text);
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

}  // namespace engine
