// Makes room for a longer text, keeps bookmarks, goes back to them, and copies the state of another
// session.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/error.h"
#include "engine/pass/rope.h"
#include "engine/session/memory.h"
#include "engine/session/session.h"

namespace engine {

using tokenizer::TokenId;

bool Session::Reserve(size_t n_positions) {
  const size_t now = state_.capacity();
  if (n_positions <= now) return true;
  const bool is_long = HasLongFactors(model_, n_positions);
  if (n_positions > capacity_ || (position() > 0 && is_long != HasLongFactors(model_, now)))
    return false;
  size_t wanted = std::min(std::max(n_positions, 2 * now), capacity_);
  if (is_long != HasLongFactors(model_, wanted)) wanted = n_positions;
  // The memory filled so far becomes free once its contents are copied.
  uint64_t filled = state_.bytes() / now * position();
  if (scratch_) filled += Scratch::BytesFor(model_.config, plan_.batch, plan_.n_threads);
  const uint64_t memory = std::min(memory_, MachineMemory().available + filled);
  const size_t fits = LongestContext(model_.config, plan_, wanted, memory);
  if (fits < n_positions) {
    capacity_ = std::max(fits, now);
    return false;
  }
  const uint64_t bytes_before = state_.bytes();
  state_.Grow(model_.config, fits);
  if (speculation_) speculation_->Grow(fits);
  plan_.context = fits;
  tokens_.reserve(fits);
  ropes_ = MakeRopes(model_, fits);
  room_for_weights_ -= std::min(room_for_weights_, state_.bytes() - bytes_before);
  ReleaseScratch();  // its pager assumes more memory
  return true;
}

void Session::Bookmark() {
  DropDrafts();
  state_.Snapshot();
  if (!computed_.has_all) return;
  if (!bookmarks_.empty() && bookmarks_.back().position == position()) return;
  if (bookmarks_.size() == SequenceState::kSnapshots) bookmarks_.erase(bookmarks_.begin());
  const float* const row = RowOfLogits();
  bookmarks_.push_back({position(), {row, row + model_.config.vocab_size}});
}

SequenceState& Session::RememberedState() {
  DropDrafts();
  return state_;
}

void Session::Restore(std::span<const TokenId> tokens, std::span<const float> logits) {
  tokens_.assign(tokens.begin(), tokens.end());
  std::ranges::copy(logits, logits_.get());
  computed_.row = 0;
  computed_.has_all = !logits.empty();
  computed_.has_allowed = false;
  bookmarks_.clear();
  if (speculation_) speculation_->Truncate(0);
  state_.Restore(tokens_.size());
  Bookmark();
}

void Session::CopyFrom(Session& other) {
  Rewind(0);
  if (!Reserve(other.state_.capacity()))
    throw NoMemory("there is no memory for a copy of ", other.position(), " tokens");
  std::vector<std::span<std::byte>> chunks;
  other.RememberedState().ForEachChunk(
      other.position(), [&](std::span<std::byte> chunk) { chunks.push_back(chunk); });
  size_t i = 0;
  state_.ForEachChunk(other.position(), [&](std::span<std::byte> chunk) {
    std::ranges::copy(chunks[i++], chunk.begin());
  });
  Restore(other.tokens(), other.has_logits() ? other.logits() : std::span<const float>());
  sampler_ = other.sampler_;
}

size_t Session::Rewind(size_t position) {
  if (position >= tokens_.size()) return tokens_.size();
  DropDrafts();
  tokens_.resize(state_.Rewind(position));
  if (speculation_) speculation_->Truncate(tokens_.size());
  while (!bookmarks_.empty() && bookmarks_.back().position > tokens_.size()) bookmarks_.pop_back();
  computed_.has_all = !bookmarks_.empty() && bookmarks_.back().position == tokens_.size();
  computed_.has_allowed = false;
  computed_.row = 0;
  if (computed_.has_all) std::ranges::copy(bookmarks_.back().logits, logits_.get());
  return tokens_.size();
}

size_t Session::RewindToCommon(std::span<const TokenId> tokens) {
  const auto common =
      static_cast<size_t>(std::ranges::mismatch(tokens, tokens_).in1 - tokens.begin());
  const bool is_other =
      HasLongFactors(model_, tokens.size()) && !HasLongFactors(model_, state_.capacity());
  const size_t reached = Rewind(is_other ? 0 : common);
  return reached == tokens.size() && !computed_.has_all ? Rewind(reached - 1) : reached;
}

}  // namespace engine
