// Follows the large model's text with a smaller session.
#include "engine/session/model_drafter.h"

#include <algorithm>
#include <string>

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "gguf/error.h"

namespace engine {
namespace {

using tokenizer::TokenId;

// Keeps threads, context and cache type. The small model itself runs without drafts.
SessionOptions DraftSession(const SessionOptions& options) {
  SessionOptions of_draft = options;
  of_draft.draft = {};
  of_draft.sampling = {};
  of_draft.sampling.temperature = 0;
  return of_draft;
}

}  // namespace

void CheckSameVocabulary(const Model& model, const Model& draft) {
  const tokenizer::Vocabulary& a = model.tokenizer->vocab();
  const tokenizer::Vocabulary& b = draft.tokenizer->vocab();
  const size_t n = std::min(a.size(), b.size());
  for (size_t id = 0; id < n; ++id) {
    if (a.tokens[id] == b.tokens[id]) continue;
    throw Error("the draft model has another vocabulary: token ", id, " is ",
                gguf::Quoted(std::string(b.tokens[id])), ", and ",
                gguf::Quoted(std::string(a.tokens[id])), " in the model that it drafts for");
  }
}

ModelDrafter::ModelDrafter(const Model& model, const Model& draft, const SessionOptions& options)
    : should_stop_(options.draft.should_stop),
      cost_(static_cast<double>(draft.BytesPerToken()) /
            static_cast<double>(model.BytesPerToken())) {
  CheckSameVocabulary(model, draft);
  n_common_ = std::min(model.tokenizer->vocab().size(), draft.tokenizer->vocab().size());
  session_ = std::make_unique<Session>(draft, DraftSession(options));
}

ModelDrafter::~ModelDrafter() = default;

std::optional<size_t> ModelDrafter::FindDrafts(std::span<const TokenId> text) {
  if (has_bad_logits_ || text.empty() || text.size() >= session_->capacity()) return {};
  const size_t n_known = session_->model().config.vocab_size;
  const auto is_unknown = [&](TokenId id) { return static_cast<size_t>(id) >= n_known; };
  if (std::ranges::any_of(text, is_unknown)) return {};
  return 0;
}

void ModelDrafter::Draft(std::span<const TokenId> text, size_t n, std::vector<TokenId>& drafts) {
  try {
    Write(text, n, drafts);
  } catch (const Error&) {  // the text does not depend on drafts
    has_bad_logits_ = true;
  }
}

void ModelDrafter::Write(std::span<const TokenId> text, size_t n, std::vector<TokenId>& drafts) {
  Session& session = *session_;
  const size_t position = session.RewindToCommon(text);
  const bool is_read = session.Prefill(text.subspan(position),
                                       [&](size_t) { return !should_stop_ || !should_stop_(); });
  if (!is_read) return;
  for (size_t i = 0; i < n; ++i) {
    const TokenId id = session.Sample();
    if (static_cast<size_t>(id) >= n_common_) return;
    drafts.push_back(id);
    if (i + 1 == n || session.position() == session.capacity()) return;
    if (wants_more && !wants_more(ProbabilityOf(session.logits(), id))) return;
    session.Decode(id);
  }
}

}  // namespace engine
