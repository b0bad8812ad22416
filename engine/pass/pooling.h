// Turns the vectors of a text's positions into one vector for the text, or into its scores.
#pragma once

#include <cstddef>
#include <span>

#include "engine/model/model.h"
#include "engine/pass/scratch.h"
#include "kernels/threads/thread_pool.h"

namespace engine {

// Pools the vectors that Forward() left in scratch.x. They belong to several whole texts that end
// at these indices. If there is only one end, they belong to the next tokens of a text of which
// `done` tokens were pooled before. pooled is [texts][embedding_length], zeros before the first
// token. Called inside pool.Run().
void Pool(const Model& model, Pooling pooling, std::span<const size_t> ends, size_t done,
          Scratch& scratch, kernels::ThreadPool& pool, float* pooled);

// Called inside pool.Run() after the last tokens of n texts: applies the model's matrices and
// scales vectors to length 1. out is [n][embedding_length], or scores [n][n_labels]. Overwrites
// pooled.
void FinishPooled(const Model& model, Pooling pooling, size_t n, Scratch& scratch,
                  kernels::ThreadPool& pool, float* pooled, float* out);

}  // namespace engine
