// One head of a gated delta net or of Mamba-2, see recurrence-inl.h. Internal to kernels/.
#pragma once

#include <cstddef>

namespace kernels {

// The head's state and n_tokens tokens; pointers are to the first token's.
struct RecurrentHead {
  const float* key;     // [n_keys]
  const float* query;   // [n_keys]
  const float* value;   // [n_columns]
  size_t stride;        // floats from token to token of these three
  const float* dt;      // one number
  const float* scale;   // likewise
  size_t gate_stride;   // floats from token to token of these two
  float a;              // the state decays by exp(dt * a), or
  const float* decays;  // each row by its own [n_keys], where not null
  size_t decay_stride;  // floats from token to token
  float skip;           // times value is added to out
  float* state;         // [n_keys][n_columns]
  float* out;           // [n_columns]
  size_t out_stride;    // floats from token to token
  size_t n_keys;
  size_t n_columns;
  size_t n_tokens;
};

}  // namespace kernels
