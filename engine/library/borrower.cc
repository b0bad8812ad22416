// An engine session with the options and limits of pronk.h.
#include "engine/error.h"
#include "engine/library/handles.h"
#include "engine/sampling/settings.h"
#include "engine/session/session_file.h"

namespace library {

engine::GenerateOptions Borrower::OptionsFor(const pronk::Limits& limits,
                                             std::shared_ptr<const grammar::Grammar> wanted) {
  if (wanted != grammar) {
    grammar = std::move(wanted);
    constraint.reset();
    if (grammar != nullptr) constraint.emplace(grammar, *model->tokenizer);
  }
  engine::CheckRange("max_tokens", limits.max_tokens, -1, engine::kMaxTokens);
  engine::GenerateOptions result = {.max_tokens = limits.max_tokens,
                                    .stop_texts = limits.stops,
                                    .prompt_progress = Marked(limits.on_prompt),
                                    .constraint = constraint ? &*constraint : nullptr};
  engine::CheckRange("n_likeliest", limits.n_likeliest, -1, engine::kMaxTokens);
  result.n_likeliest = limits.n_likeliest;
  if (limits.on_token) result.on_token = Marked(limits.on_token);
  if (limits.on_logits) {
    result.on_logits = [call = Marked(limits.on_logits)](std::span<float> logits) {
      return call(logits.data(), logits.size());
    };
  }
  return result;
}

pronk::MemoryUse Borrower::memory() const {
  return {model->file.tensor_bytes(), static_cast<std::size_t>(session.state().bytes()),
          session.scratch_bytes()};
}

void Borrower::Save(const std::string& path) {
  if (!session.has_logits()) throw engine::Error(path, ": nothing was read that could be saved");
  engine::SaveSession(session, path);
}

}  // namespace library
