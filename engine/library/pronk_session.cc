// Session of pronk.h: prompts, completions and scores of one text.
#include <algorithm>
#include <cmath>

#include "engine/library/guarded.h"
#include "engine/library/handles.h"
#include "engine/sampling/log_probabilities.h"
#include "engine/sampling/settings.h"
#include "engine/session/session_file.h"

namespace pronk {

using library::Guarded;
using library::Marked;
using library::Use;

Session::Session(const Model& model, const Options& options)
    : impl_(Guarded([&] {
        return std::make_shared<Impl>(model.impl_, options.draft ? options.draft->impl_ : nullptr,
                                      options);
      })) {}

Completion Session::Complete(const Prompt& prompt, const OnText& on_text, const Limits& limits) {
  return Use(impl_, [&](Impl& impl) -> Completion {
    engine::Session& session = impl.Free();
    const engine::GenerateOptions options = impl.OptionsFor(limits, limits.grammar.impl_);
    return engine::Generate(session, impl.ToRead(prompt, limits.reading), options, Marked(on_text));
  });
}

std::vector<Token> Session::Score(const Prompt& prompt, int n_likeliest, const Reading& reading) {
  return Use(impl_, [&](Impl& impl) {
    engine::CheckRange("n_likeliest", n_likeliest, 0, engine::kMaxTokens);
    engine::Session& session = impl.Free();
    if (impl.n_text != 0 && session.position() > 0) impl.Settle();
    const std::size_t n_before = impl.Text().size();
    std::vector<tokenizer::TokenId> ids =
        library::IdsOf(*impl.model, prompt, reading, impl.Text(), session.capacity());
    impl.CheckRoom(ids);
    // Needs the logits of the token before the first scored one.
    const auto common =
        static_cast<size_t>(std::ranges::mismatch(ids, impl.Text()).in1 - ids.begin());
    size_t n_read = std::min(common, n_before);
    if (n_read < session.position() || !session.has_logits())
      n_read = session.Rewind(n_read == 0 ? 0 : n_read - 1);
    impl.n_text = SIZE_MAX;
    std::vector<Token> tokens;
    const auto add = [&](size_t at, std::span<const float> logits) {
      if (at < common || at >= ids.size()) return;
      tokens.push_back({ids[at], 0, NAN, {}});
      if (logits.empty()) return;
      engine::SetLogProbabilities(tokens.back(), logits, static_cast<size_t>(n_likeliest));
    };
    add(n_read, session.has_logits() ? session.logits() : std::span<const float>());
    const std::size_t width = impl.model->config.vocab_size;
    session.PrefillAllLogits(std::span(ids).subspan(n_read), [&](size_t first, size_t n,
                                                                 std::span<const float> rows) {
      for (size_t i = 0; i < n; ++i) {
        add(n_read + first + i + 1, rows.subspan(i * width, impl.model->tokenizer->vocab().size()));
      }
    });
    return tokens;
  });
}

std::vector<std::int32_t> Session::tokens() const {
  return Use(impl_, [](Impl& impl) {
    const auto tokens = impl.Text();
    return std::vector<std::int32_t>(tokens.begin(), tokens.end());
  });
}
std::vector<float> Session::logits() const {
  return Use(impl_, [](Impl& impl) -> std::vector<float> {
    if (impl.Text().empty()) return {};
    impl.Settle();
    const auto logits = impl.session.logits();
    return {logits.begin(), logits.end()};
  });
}
void Session::Clear() { Truncate(0); }
void Session::Truncate(std::size_t n) {
  Use(impl_, [&](Impl& impl) {
    impl.CheckFree();
    impl.n_text = std::min(n, impl.Text().size());
  });
}
Session Session::Copy() const {
  return Use(impl_, [](Impl& impl) {
    impl.CheckFree();
    auto copy = std::make_shared<Impl>(impl.model, impl.draft, impl.options);
    copy->session.CopyFrom(impl.session);
    copy->n_text = impl.n_text;
    return Session(std::move(copy));
  });
}
MemoryUse Session::memory() const {
  return Use(impl_, [](Impl& impl) { return impl.memory(); });
}
void Session::Save(const std::string& path) {
  Use(impl_, [&](Impl& impl) {
    if (impl.Text().empty()) throw Error(path + ": nothing was read that could be saved");
    impl.Settle();
    impl.Save(path);
  });
}
void Session::Load(const std::string& path) {
  Use(impl_, [&](Impl& impl) {
    engine::LoadSession(impl.Free(), path);
    impl.n_text = SIZE_MAX;
  });
}

}  // namespace pronk
