// The ids of a text during tokenizing. The text may be long and untrusted: the caller can
// interrupt, and a limit on the number of ids ends tokenizing.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "tokenizer/errors.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_cache.h"

namespace tokenizer {

class IdList {
 public:
  struct Full {};  // thrown, see below

  IdList(size_t most, const std::function<bool()>* should_stop)
      : most_(most), should_stop_(should_stop) {}

  // Throws as Check(), from time to time.
  void push_back(TokenId id) {
    ids_.push_back(id);
    if (ids_.size() % kStep == 0) Check();
  }
  // Throws Interrupted if the caller asks to stop, Full if there are more ids than `most`.
  void Check() const {
    if (should_stop_ != nullptr && *should_stop_ && (*should_stop_)()) throw Interrupted();
    if (ids_.size() > most_) throw Full();
  }
  size_t size() const { return ids_.size(); }
  // Appends n of the ids again, from `begin` on.
  void Repeat(size_t begin, size_t n) {
    for (size_t i = begin; i < begin + n; ++i) push_back(ids_[i]);
  }
  WordCache& words() { return words_; }
  std::vector<TokenId> Take() { return std::move(ids_); }

 private:
  static constexpr size_t kStep = 1024;  // ids between two calls of Check()

  std::vector<TokenId> ids_;
  WordCache words_;
  size_t most_;
  const std::function<bool()>* should_stop_;
};

}  // namespace tokenizer
