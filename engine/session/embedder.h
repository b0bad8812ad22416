// Embedder: turns whole texts into vectors, or pairs of texts into scores, several in a pass. Like
// a Session, it owns all mutable state and borrows the model.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/pass/rope.h"
#include "engine/pass/scratch.h"
#include "engine/pass/sequence_state.h"
#include "engine/session/memory.h"
#include "engine/session/session.h"
#include "kernels/threads/thread_pool.h"

namespace engine {

class Embedder {
 public:
  // options.batch: tokens in a pass, which may hold several texts. pooling: replaces the file's.
  // Throws engine::Error if the model supports no such pooling, or the machine lacks memory.
  Embedder(const Model& model, const SessionOptions& options, std::optional<Pooling> pooling = {});

  size_t width() const;  // numbers in a result: a vector, or a score for each label
  // The most tokens of a text. The state and scratch grow up to this size, as memory allows.
  size_t capacity() const;

  // Throws engine::TooLong if a text does not fit, engine::Error for an empty text or unknown
  // tokens.
  void Check(std::span<const tokenizer::TokenId> text) const;

  // Receives results [first, first + n) as [n][width] as they come; returning false ends the run.
  using Results = std::function<bool(size_t first, size_t n, std::span<const float> rows)>;
  // Throws as Check(). A text's bits do not depend on the number of threads.
  void Embed(std::span<const std::vector<tokenizer::TokenId>> texts, const Results& results);

 private:
  size_t Longest() const;
  void Reserve(size_t n_tokens);
  void Read(std::span<const tokenizer::TokenId> tokens, std::span<const size_t> ends);

  const Model& model_;
  SessionOptions options_;
  Pooling pooling_;
  kernels::ThreadPool pool_;
  MemoryPlan plan_;
  size_t capacity_;
  size_t batch_;
  std::vector<RopeAngles> ropes_;
  std::unique_ptr<SequenceState> state_;
  std::unique_ptr<Scratch> scratch_;
  std::vector<float> pooled_, results_;  // [texts][embedding_length], [texts][width]
};

}  // namespace engine
