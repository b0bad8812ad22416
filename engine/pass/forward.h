// The forward pass: from token ids to logits.
#ifndef PRONK_ENGINE_PASS_FORWARD_H_
#define PRONK_ENGINE_PASS_FORWARD_H_

#include <cstddef>
#include <span>

#include "engine/model/model.h"
#include "engine/pass/rope.h"
#include "engine/pass/scratch.h"
#include "engine/pass/sequence_state.h"
#include "engine/pass/trace.h"
#include "kernels/machine/team.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// Sends a batch of tokens through all layers. tokens[i] stands at position first_position + i; what
// the layers remember of earlier positions is in the state, and this batch's is added to it. ropes
// are those of Config::ropes. Leaves the batch's residual stream in scratch.x
// ([tokens.size()][embedding_length]) for Logits(). Preconditions: every id < vocab_size,
// tokens.size() <= scratch.max_tokens, first_position + tokens.size() <= state.capacity(). To be
// called inside team.Run(). A trace, where given, gets a step for every operation.
void Forward(const Model& model, std::span<const RopeAngles> ropes,
             std::span<const tokenizer::TokenId> tokens, size_t first_position,
             SequenceState& state, Scratch& scratch, kernels::Team& team, Trace* trace = nullptr);

// After SequenceState::Undo() of a batch: recurrent layers read its first n tokens again, which
// takes no products. To be called inside team.Run().
void ReadAgain(const Model& model, size_t n, SequenceState& state, Scratch& scratch,
               kernels::Team& team);

// Logits of n tokens of the last batch, from its index `first` on: logits is [n][vocab_size].
// To be called inside team.Run().
void Logits(const Model& model, size_t first, size_t n, Scratch& scratch, kernels::Team& team,
            float* logits, Trace* trace = nullptr);

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_FORWARD_H_
