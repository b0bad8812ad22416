// One head of a gated delta net or of Mamba-2, see recurrence-inl.h. Internal to kernels/.
#pragma once

#include <cstddef>

namespace kernels {

// A head's state, and its numbers of n_tokens tokens; pointers point to the numbers of the first
// token.
struct RecurrentHead {
  const float* key;     // [n_keys]
  const float* query;   // [n_keys]
  const float* value;   // [n_columns]
  size_t stride;        // floats of key, query and value from token to token
  const float* dt;      // one number
  const float* scale;   // one number
  size_t gate_stride;   // floats of dt and scale from token to token
  float a;              // without `decays`, the state decays by exp(dt * a)
  const float* decays;  // [n_keys]: the decay of each row of the state, or null
  size_t decay_stride;  // floats of decays from token to token
  float skip;           // times value is added to out
  float* state;         // [n_keys][n_columns]
  float* out;           // [n_columns]
  size_t out_stride;    // floats from token to token
  size_t n_keys;
  size_t n_columns;
  size_t n_tokens;
};

}  // namespace kernels
