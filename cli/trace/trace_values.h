// What a token's numbers are in each layer: where attention looks, which experts
// are chosen, and what the model would say if it ended there.
#ifndef PRONK_CLI_TRACE_TRACE_VALUES_H_
#define PRONK_CLI_TRACE_TRACE_VALUES_H_

#include <cstddef>
#include <vector>

#include "engine/session/session.h"
#include "tokenizer/tokenizer.h"

namespace cli {

// A position, a token or an expert, and its part of a whole.
struct Share {
  size_t of;
  double share;
};

struct LayerValues {
  double norm = 0;  // of the residual stream after the layer: the root of the sum of squares
  // The positions that are looked at most, the strongest first: the mean of all heads, then each
  // head. Empty where the layer has no attention.
  std::vector<Share> attention;
  std::vector<std::vector<Share>> heads;
  double attention_sum = 0;  // of all positions; what is missing to 1 goes to sinks
  std::vector<Share> experts;
  // "Logit lens" (nostalgebraist 2020): output norm and output matrix applied to the stream as it
  // is here. Empty where the model joins several streams after its last layer.
  std::vector<Share> next;
};

// Decodes the last of the tokens, those before it being in the session already; watches it, and
// leaves the session after it. One entry for each layer.
std::vector<LayerValues> WatchToken(engine::Session& session, tokenizer::TokenId id);

}  // namespace cli

#endif  // PRONK_CLI_TRACE_TRACE_VALUES_H_
