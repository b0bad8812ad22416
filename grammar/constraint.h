// Constraint: a grammar's interface for the sampler during generation.
//
//     for (;;) {
//       id = sampler.Sample(logits, constraint.Allowed());
//       if (the id ends a text) break;
//       constraint.Accept(id);
//       if (constraint.done()) break;     // nothing can follow
//       constraint.Forced()               // can be read as a batch: nothing else can follow
//     }
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "grammar/token_masks.h"
#include "grammar/token_trie.h"
#include "grammar/written_parts.h"
#include "tokenizer/tokenizer.h"

namespace grammar {

// Follows one text at a time; cached results are reused for the next. Not thread-safe.
class Constraint {
 public:
  // The tokenizer must outlive it. Throws grammar::Error if it lacks a token of the grammar.
  Constraint(std::shared_ptr<const Grammar> grammar, const tokenizer::Tokenizer& tokenizer);

  // Begins a new text.
  void Restart();
  // The text has not begun, since the model thinks first: until Begin() every token is allowed
  // except tokens that end the generation. A grammar that covers the thinking does not wait.
  void Wait() { waiting_ = !grammar_->covers_thinking(); }
  void Begin() { waiting_ = false; }
  // Also allows `opening`, which begins the thinking, as the first token; accepting it acts as
  // Wait().
  void MayWait(tokenizer::TokenId opening) {
    if (!grammar_->covers_thinking()) opening_ = opening;
  }
  bool waiting() const { return waiting_; }
  const std::shared_ptr<const Grammar>& grammar() const { return grammar_; }

  // A bit for each id that may come next (bit id % 64 of word id / 64). It is set for tokens that
  // end a generation if the text may end, never for control tokens. Valid until the next call.
  // Throws grammar::Error if the vocabulary has no token for the required text.
  std::span<const uint64_t> Allowed();
  bool Allows(tokenizer::TokenId id);
  // Appends a token to the text. Throws grammar::Error if it is not allowed.
  void Accept(tokenizer::TokenId id);
  // Appends text that does not come as a token.
  void AcceptText(std::string_view text);
  // Appends text in which tokens that the grammar names are spelt out.
  void AcceptSpelt(std::string_view text);

  // The only possible next tokens, as the tokenizer splits them; empty if there is a choice. They
  // end before a token that later text could change. The caller accepts them one by one.
  std::vector<tokenizer::TokenId> Forced();

  // The text is complete: nothing may follow.
  bool done() { return !waiting_ && matcher_.MustEnd(at_); }
  // The text may end here.
  bool may_end() { return !waiting_ && matcher_.MayEnd(at_); }

 private:
  SetId After(tokenizer::TokenId id);
  void MoveTo(SetId next, std::string_view text);
  std::vector<tokenizer::TokenId> Cut(std::string_view text) const;

  std::shared_ptr<const Grammar> grammar_;
  const tokenizer::Tokenizer& tokenizer_;
  NamedTokens named_;
  std::unique_ptr<const TokenTrie> own_trie_;  // for a grammar that names tokens
  const TokenTrie& trie_;
  Matcher matcher_;
  TokenMasks masks_;
  TokenMasks::Mask all_but_end_;  // while waiting
  SetId at_;
  bool waiting_ = false;
  tokenizer::TokenId opening_ = -1;
  WrittenParts written_;
  TokenMasks::Mask changed_;              // mask with the opening token or without repeated keys
  std::vector<tokenizer::TokenId> last_;  // the last few tokens of the text
};

}  // namespace grammar
