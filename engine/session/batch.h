// Batch: several texts generated together. One pass runs a token of each text and reads the weights
// once; attention and recurrences use each text's own state. A text has the same bits as alone,
// whatever other texts are in the batch (engine/README.md, Guarantees).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/pass/scratch.h"
#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "kernels/threads/thread_pool.h"

namespace engine {

class Batch {
 public:
  // n_threads 0: as kernels::DefaultThreads(). Throws engine::Error if the machine lacks memory.
  explicit Batch(const Model& model, int n_threads = 0);

  // Reads the prompt in passes of this session alone. The session must be of the same model; it
  // belongs to the batch until its text has ended. Returns the text's number: 0, 1, ... Throws as
  // Generate().
  size_t Add(Session& session, std::span<const tokenizer::TokenId> prompt, GenerateOptions options,
             Generation::OnText on_text);

  struct Ended {
    size_t number;
    GenerateResult result;
  };
  // Adds a token to each text, or several that its grammar forces. Returns the texts that have
  // ended. An exception from a text's callback ends only that text, and the next call continues the
  // other texts; an exception from a pass ends all texts.
  std::vector<Ended> Step();

  size_t size() const { return texts_.size() + ended_.size(); }  // texts not yet returned

  // Session::DecodeTogether() of any number of sessions whose texts are not in this batch.
  void Decode(std::span<const Session::SessionAndToken> next);
  const kernels::ThreadPool& pool() const { return pool_; }

 private:
  struct Text {
    size_t number;
    Session& session;
    Generation generation;
    std::span<const tokenizer::TokenId> unread = {};  // the result of generation.Next()
  };
  bool Advance(Text& text, bool is_alone);

  kernels::ThreadPool pool_;
  Scratch scratch_;
  std::vector<float> logits_;  // [tokens of a pass][vocab_size]
  size_t n_added_ = 0;
  std::vector<std::unique_ptr<Text>> texts_;
  std::vector<Ended> ended_;
};

}  // namespace engine
