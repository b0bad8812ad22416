// Generates several texts in shared passes.
#include "engine/session/batch.h"

#include <algorithm>
#include <utility>

#include "engine/session/memory.h"
#include "kernels/threads/default_threads.h"

namespace engine {

using tokenizer::TokenId;

void Session::DecodeTogether(std::span<const SessionAndToken> next, Scratch& scratch,
                             kernels::ThreadPool& pool, float* logits) {
  std::vector<TokenId> ids;
  std::vector<SequenceSlice> texts;
  ids.reserve(next.size());
  texts.reserve(next.size());
  for (const auto& [session, id, allowed] : next) session.Claim({&id, 1});
  for (const auto& [session, id, allowed] : next) {
    session.DropDrafts();
    ids.push_back(id);
    texts.push_back(session.SliceFrom(session.position(), ids.size()));
  }
  const Model& model = next[0].session.model_;
  const size_t n = next.size(), width = model.config.vocab_size;
  pool.Run([&] {
    Forward(model, ids, texts, scratch, pool);
    Logits(model, 0, n, scratch, pool, logits);
    for (size_t i = 0; i < n; ++i) {
      const std::span<const uint64_t> allowed = next[i].allowed;
      if (!ShouldComputeOnlyAllowed(model, allowed)) continue;
      LogitsOfAllowed(model, i, allowed, scratch, pool, logits + i * width);
    }
  });
  for (size_t i = 0; i < n; ++i) {
    Session& session = next[i].session;
    std::copy_n(logits + i * width, width, session.logits_.get());
    session.computed_.row = 0;
    session.computed_.has_all = true;
    session.computed_.has_allowed = false;
    ++session.n_passes_;
    session.tokens_.push_back(ids[i]);
    session.state_.Extend(session.position());
    if (session.speculation_) session.speculation_->Truncate(session.position());
  }
}

Batch::Batch(const Model& model, int n_threads)
    : pool_(n_threads > 0 ? n_threads : kernels::DefaultThreads().generating,
            kernels::Oversubscription::kRunOnCaller),
      scratch_(model.config,
               PlanMemory(model.config, model.file.file_bytes(),
                          {.context = kMaxDecodeTokens,
                           .batch = kMaxDecodeTokens,
                           .n_threads = pool_.size(),
                           .pass_tokens = kMaxDecodeTokens},
                          MachineMemory().available)
                   .batch,
               pool_.size()),
      logits_(scratch_.max_tokens * model.config.vocab_size) {}

size_t Batch::Add(Session& session, std::span<const TokenId> prompt, GenerateOptions options,
                  Generation::OnText on_text) {
  std::unique_ptr<Text> text(
      new Text{n_added_, session, Generation(session, std::move(options), std::move(on_text))});
  text->generation.RunPrompt(prompt);
  session.ReleaseScratch();
  texts_.push_back(std::move(text));
  return n_added_++;
}

// Picks the text's next tokens. Reads them, except a single token, which is left for the shared
// pass. Returns false if the text has ended.
bool Batch::Advance(Text& text, bool is_alone) {
  if (text.unread.empty()) text.unread = text.generation.Next();
  if (text.unread.empty()) {
    ended_.push_back({text.number, text.generation.Finish()});
    return false;
  }
  if (is_alone || text.unread.size() > 1) {
    text.generation.RunPicked();
    text.unread = {};
  }
  if (!is_alone) text.session.ReleaseScratch();  // also if the text was alone before
  return true;
}

void Batch::Decode(std::span<const Session::SessionAndToken> next) {
  while (!next.empty()) {
    const size_t n = std::min(next.size(), scratch_.max_tokens);
    Session::DecodeTogether(next.first(n), scratch_, pool_, logits_.data());
    next = next.subspan(n);
  }
}

std::vector<Batch::Ended> Batch::Step() {
  const bool is_alone = texts_.size() == 1;  // then it may have drafts
  for (size_t i = 0; i < texts_.size();) {
    const auto place = texts_.begin() + static_cast<ptrdiff_t>(i);
    std::unique_ptr<Text> text = std::move(*place);
    texts_.erase(place);  // if this throws, the text is gone
    if (!Advance(*text, is_alone)) continue;
    texts_.insert(texts_.begin() + static_cast<ptrdiff_t>(i++), std::move(text));
  }
  auto texts = std::exchange(texts_, {});  // if a pass throws, all texts end
  std::vector<Session::SessionAndToken> next;
  next.reserve(texts.size());
  for (const auto& text : texts) {
    const auto unread = std::exchange(text->unread, {});
    if (!unread.empty()) {
      next.push_back({text->session, unread[0], text->generation.AllowedNext()});
    }
  }
  Decode(next);
  texts_ = std::move(texts);
  return std::exchange(ended_, {});
}

}  // namespace engine
