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
// ([tokens.size()][embedding_length]) for Logits(). A batch may hold tokens of several sequences,
// one sequence after the other. sequences[i] has the position and the cache of sequence i, and
// where its tokens end in the batch (SequenceSlice, sequence_state.h). Preconditions: every id <
// vocab_size, tokens.size() <= scratch.max_tokens, each sequence fits into its state. Called inside
// pool.Run(). A trace records every operation; then the batch must be one sequence.
void Forward(const Model& model, std::span<const tokenizer::TokenId> tokens,
             std::span<const SequenceSlice> sequences, Scratch& scratch, kernels::ThreadPool& pool,
             Trace* trace = nullptr);

// Runs only the layers, on scratch.x, with the sequences of the pass.
void Layers(const Weights& weights, Pass& pass);

// Called after SequenceState::Undo() of a batch, inside pool.Run(). Recurrent layers run its first
// n tokens again, from their kept input, without matrix products.
void Replay(const Model& model, size_t n, SequenceState& state, Scratch& scratch,
            kernels::ThreadPool& pool);

// Logits [n][vocab_size] of n tokens of the last batch, from `first` on. Called in pool.Run().
void Logits(const Model& model, size_t first, size_t n, Scratch& scratch, kernels::ThreadPool& pool,
            float* logits, Trace* trace = nullptr);

// LogitsOfAllowed() computes for one token only the logits of ids whose bits are set (bit id % 64
// of word id / 64), and leaves the other logits unchanged. Each is as exact as the largest ones of
// Logits(), which does not know the allowed tokens. So sampling from a few tokens uses
// LogitsOfAllowed() even if Logits() has computed all logits. Called in pool.Run().
// ShouldComputeOnlyAllowed() says whether so few bits are set that this takes less time, and the
// model allows it.
bool ShouldComputeOnlyAllowed(const Model& model, std::span<const uint64_t> ids);
void LogitsOfAllowed(const Model& model, size_t token, std::span<const uint64_t> ids,
                     Scratch& scratch, kernels::ThreadPool& pool, float* logits);

}  // namespace engine
