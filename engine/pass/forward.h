// The forward pass: from token ids to logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/model/model.h"
#include "engine/pass/scratch.h"
#include "engine/pass/sequence_state.h"
#include "engine/pass/trace.h"
#include "kernels/threads/thread_pool.h"
#include "tokenizer/tokenizer.h"

namespace engine {

class Pass;

// Sends a batch of tokens through all layers and leaves its residual stream in scratch.x
// ([tokens.size()][embedding_length]) for Logits(). A batch may hold tokens of several texts, one
// text after the other. texts[i] is text i: its position, its cache, and where its tokens end in
// the batch (TextSpan, sequence_state.h). Preconditions: every id < vocab_size,
// tokens.size() <= scratch.max_tokens, each text fits into its state. Called inside pool.Run().
// With a trace, which records every operation, the batch must be one text.
void Forward(const Model& model, std::span<const tokenizer::TokenId> tokens,
             std::span<const TextSpan> texts, Scratch& scratch, kernels::ThreadPool& pool,
             Trace* trace = nullptr);

// The layers alone: from scratch.x to scratch.x, with the texts of the pass.
void Layers(const Weights& weights, Pass& pass);

// After SequenceState::Undo() of a batch: recurrent layers read its first n tokens again, from
// their kept input, without any products. Called inside pool.Run().
void Replay(const Model& model, size_t n, SequenceState& state, Scratch& scratch,
            kernels::ThreadPool& pool);

// The logits [n][vocab_size] of n tokens of the last batch, from `first` on. Called in pool.Run().
void Logits(const Model& model, size_t first, size_t n, Scratch& scratch, kernels::ThreadPool& pool,
            float* logits, Trace* trace = nullptr);

// LogitsOf() computes for one token only the logits whose bits are set (bit id % 64 of word id /
// 64), and leaves the rest unchanged. All are as exact as the largest are in Logits(), which does
// not know which tokens are allowed; so sampling from a few tokens uses these even if all logits
// have been computed. Called in pool.Run(). IsWorthLogitsOf() says whether so few bits are set that
// this takes less time, and the model allows it.
bool IsWorthLogitsOf(const Model& model, std::span<const uint64_t> ids);
void LogitsOf(const Model& model, size_t token, std::span<const uint64_t> ids, Scratch& scratch,
              kernels::ThreadPool& pool, float* logits);

}  // namespace engine
