#include "engine/draft/nextn_drafter.h"

#include <algorithm>

#include "engine/draft/controller.h"

namespace engine {

using tokenizer::TokenId;

namespace {

// Tokens behind which drafts begin that the block has not read yet, at most: what is read of a
// prompt, and what is generated without its drafts.
constexpr size_t kMaxUnread = 128;

}  // namespace

NextnDrafter::NextnDrafter(const Model& model, size_t capacity, kernels::KvType kv_type,
                           kernels::Team& team)
    : nextn_(model, {.capacity = capacity, .batch = kMaxUnread, .kv_type = kv_type}, team.size()),
      team_(team),
      n_hidden_(1),  // zeros, before the first token
      hidden_((kMaxUnread + kMaxPassTokens) * nextn_.width()) {}

// The block's text begins at this position, unless it has read up to there.
void NextnDrafter::ForgetBefore(size_t position) {
  if (position < end()) {
    std::copy(hidden(position), hidden(end()), hidden_.begin());
    n_hidden_ = end() - position;
  } else {
    n_hidden_ = 0;
  }
  begin_ = position;
  if (n_read_ < position) start_ = n_read_ = position;
}

void NextnDrafter::Read(std::span<const TokenId> tokens, size_t first, Scratch& scratch) {
  const size_t new_end = first + 1 + tokens.size();
  if (first + 1 > end()) ForgetBefore(first + 1);
  if (new_end - begin_ > hidden_.size() / nextn_.width()) ForgetBefore(new_end - kMaxUnread);
  for (size_t position = std::max(begin_, first + 1); position < new_end; ++position) {
    nextn_.Hidden(scratch.x.row(position - first - 1, nextn_.width()), hidden(position));
  }
  n_hidden_ = new_end - begin_;
}

void NextnDrafter::Cut(size_t n) {
  n_read_ = std::min(n_read_, n);
  if (n < begin_ || n < start_) {  // what stood before is not known any more
    begin_ = start_ = n_read_ = n;
    n_hidden_ = 0;
  } else {
    n_hidden_ = std::min(n_hidden_, n + 1 - begin_);
  }
}

std::optional<size_t> NextnDrafter::Look(std::span<const TokenId> text) {
  const bool is_there = !text.empty() && text.size() - 1 >= begin_ && text.size() <= end();
  if (!is_there) return {};
  return 0;
}

void NextnDrafter::Draft(std::span<const TokenId> text, size_t n, std::vector<TokenId>& drafts) {
  while (n_read_ < text.size()) {
    const size_t count = std::min(text.size() - n_read_, nextn_.max_tokens());
    nextn_.Forward(text.subspan(n_read_, count), hidden(n_read_), n_read_ - start_, team_);
    n_read_ += count;
  }
  // What is read is not needed again, but for the last, behind which the text goes on.
  ForgetBefore(n_read_ - 1);
  for (size_t i = 0; i < n; ++i) {
    const TokenId id = nextn_.Guess(team_);
    drafts.push_back(id);
    const size_t position = n_read_ + i - start_;
    if (i + 1 == n || position == nextn_.capacity()) return;
    nextn_.Forward({&id, 1}, nextn_.OwnHidden(), position, team_);
  }
}

}  // namespace engine
