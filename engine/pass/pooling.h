// From the vectors of a text's positions to one vector for the text, or to its scores.
#pragma once

#include <cstddef>
#include <span>

#include "engine/model/model.h"
#include "engine/pass/scratch.h"
#include "kernels/threads/thread_pool.h"

namespace engine {

// Pools what Forward() left in scratch.x: several whole texts that end at these indices, or, with
// one end, the next tokens of a text, of which `done` were pooled before. pooled is
// [texts][embedding_length], zeros before the first token. Called inside pool.Run().
void Pool(const Model& model, Pooling pooling, std::span<const size_t> ends, size_t done,
          Scratch& scratch, kernels::ThreadPool& pool, float* pooled);

// What follows the last tokens of n texts: the model's matrices, then vectors get length 1. out is
// [n][embedding_length], or scores [n][n_labels]. Overwrites pooled. Called inside pool.Run().
void FinishPooled(const Model& model, Pooling pooling, size_t n, Scratch& scratch,
                  kernels::ThreadPool& pool, float* pooled, float* out);

}  // namespace engine
