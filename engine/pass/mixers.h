// The mixers, through which a token reads earlier ones. Each reads `in` and writes s.delta, both
// [tokens][embedding_length]; a layer's plan says which one it has (config.h).
#ifndef PRONK_ENGINE_PASS_MIXERS_H_
#define PRONK_ENGINE_PASS_MIXERS_H_

#include "engine/model/config.h"
#include "engine/model/model.h"
#include "engine/model/weights.h"
#include "engine/pass/pass.h"
#include "engine/pass/scratch.h"

namespace engine {

// The mixer of layer i, by which tokens read others: one of those below.
void MixTokens(const Model& model, size_t i, Mixer mixer, const float* in, Scratch& s, Pass& pass);

// Attention (Vaswani et al. 2017), with the variants that the plan and the tensors ask for.
void Attention(const Config& config, const LayerPlan& plan, const LayerWeights& w, size_t layer,
               const float* in, Scratch& s, Pass& pass);

// Multi-head latent attention: keys and values of all heads come from one short vector, and only
// that is cached (Liu et al. 2024, DeepSeek-V2).
void LatentAttention(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in,
                     Scratch& s, Pass& pass);

// A short convolution between two gates (Liquid AI 2025, LFM2).
void ShortConv(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in,
               Scratch& s, Pass& pass);

// Gated delta net (Yang, Kautz, Hatamizadeh 2024).
void DeltaNet(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in,
              Scratch& s, Pass& pass);

// Mamba (Gu and Dao 2023).
void Mamba(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in, Scratch& s,
           Pass& pass);

// Mamba-2 (Dao and Gu 2024).
void Mamba2(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in, Scratch& s,
            Pass& pass);

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_MIXERS_H_
