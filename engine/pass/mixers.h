// The mixers: each token gathers from those before it, `in` to s.delta. Which layer has which, its
// plan says (config.h).
#ifndef PRONK_ENGINE_PASS_MIXERS_H_
#define PRONK_ENGINE_PASS_MIXERS_H_

#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "engine/pass/pass.h"
#include "engine/pass/scratch.h"
#include "engine/pass/sequence_state.h"
#include "kernels/attention/attention.h"

namespace engine {

// Attention (Vaswani et al. 2017), with what families do otherwise.
void Attention(const Config& config, const LayerPlan& plan, const LayerWeights& w,
               const kernels::KvLayer& cache, const float* in, Scratch& s, Pass& pass);

// Attention whose keys and values are made of one short vector for all heads, which alone is kept
// (DeepSeek-V2, 2024).
void LatentAttention(const LayerPlan& plan, const LayerWeights& w, const kernels::KvLayer& kv,
                     const float* in, Scratch& s, Pass& pass);

// A short convolution between two gates (LFM2, Liquid AI 2025).
void ShortConv(const LayerPlan& plan, const LayerWeights& w, SequenceState::Recurrent state,
               const float* in, Scratch& s, Pass& pass);

// Gated delta net (Yang, Kautz, Hatamizadeh 2024).
void DeltaNet(const LayerPlan& plan, const LayerWeights& w, SequenceState::Recurrent state,
              const float* in, Scratch& s, Pass& pass);

// Mamba-2 (Dao and Gu 2024).
void Mamba2(const LayerPlan& plan, const LayerWeights& w, SequenceState::Recurrent state,
            const float* in, Scratch& s, Pass& pass);

// Of one of the last three, the recurrence again over the first tokens of a batch that was undone
// (SequenceState::Undo): the state is then as if the batch had been no longer.
void RecurAgain(const LayerPlan& plan, const LayerWeights& w, SequenceState::Recurrent state,
                Scratch& s, Pass& pass);

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_MIXERS_H_
