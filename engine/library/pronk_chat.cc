// Chat of pronk.h: a conversation by a model's template.
#include "engine/library/guarded.h"
#include "engine/library/handles.h"
#include "engine/sampling/settings.h"
#include "engine/session/session_file.h"

namespace pronk {

using library::Guarded;
using library::Marked;
using library::Use;

Chat::Chat(const Model& model, std::string system, const Options& options)
    : impl_(Guarded([&] { return std::make_shared<Impl>(model, std::move(system), options); })) {}

Completion Chat::Say(const std::string& text, const OnText& on_text, const Limits& limits) {
  const auto question = Guarded([&] { return std::vector<Message>{{"user", text}}; });
  return Answer(question, on_text, limits);
}

Completion Chat::Answer(const std::vector<Message>& messages, const OnText& on_text,
                        const Limits& limits) {
  return Use(impl_, [&](Impl& impl) -> Completion {
    return impl.Free().Reply(messages, impl.OptionsFor(limits), Marked(on_text)).generated;
  });
}

std::vector<Message> Chat::History() const {
  return Use(impl_, [](Impl& impl) { return impl.chat.Messages(); });
}
void Chat::SetHistory(const std::vector<Message>& messages) {
  Use(impl_, [&](Impl& impl) { impl.Free().SetMessages(messages); });
}
void Chat::SetTools(const std::string& json) {
  Use(impl_, [&](Impl& impl) { impl.Free().SetTools(json); });
}
void Chat::SetToolChoice(const std::string& choice) {
  Use(impl_, [&](Impl& impl) { impl.Free().SetToolChoice(choice); });
}
std::size_t Chat::Count(const std::string& text) {
  return Use(impl_, [&](Impl& impl) { return impl.chat.Count(text); });
}
void Chat::SetThinking(const std::string& level) {
  Use(impl_, [&](Impl& impl) { impl.Free().SetThinking(level); });
}
void Chat::SetThinkingBudget(int tokens, const std::string& message) {
  Use(impl_, [&](Impl& impl) {
    engine::CheckRange("thinking budget", tokens, -1, engine::kMaxTokens);
    impl.Free().SetThinkingBudget(tokens, message);
  });
}
void Chat::OnThinking(const OnText& on_thinking) {
  Use(impl_, [&](Impl& impl) { impl.on_thinking = on_thinking; });
}
void Chat::Clear() {
  Use(impl_, [](Impl& impl) { impl.Free().Clear(); });
}
MemoryUse Chat::memory() const {
  return Use(impl_, [](Impl& impl) { return impl.memory(); });
}
void Chat::Save(const std::string& path) {
  Use(impl_, [&](Impl& impl) { impl.Save(path); });
}
void Chat::Load(const std::string& path) {
  Use(impl_, [&](Impl& impl) {
    impl.Free();
    engine::LoadSession(impl.session, path);
  });
}

}  // namespace pronk
