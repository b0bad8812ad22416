// A token's numbers in each layer: where attention looks, which experts are chosen, and the model's
// prediction if it ended there.
#ifndef PRONK_CLI_TRACE_TRACE_VALUES_H_
#define PRONK_CLI_TRACE_TRACE_VALUES_H_

#include <cstddef>
#include <vector>

#include "engine/session/session.h"
#include "tokenizer/tokenizer.h"

namespace cli {

// A position, a token or an expert, and its share of the whole.
struct Share {
  size_t of;
  double share;
};

struct LayerValues {
  double norm = 0;  // of the residual stream after the layer: the root of the sum of squares
  // The most attended positions, the largest share first: the mean over all heads, then each head.
  // Empty if the layer has no attention.
  std::vector<Share> attention;
  std::vector<std::vector<Share>> heads;
  double attention_sum = 0;  // over all positions; the rest to 1 goes to sinks
  std::vector<Share> experts;
  // "Logit lens" (nostalgebraist 2020): output norm and output matrix applied to the residual
  // stream here. Empty if the model joins several streams after its last layer.
  std::vector<Share> next;
};

// Decodes the last of the tokens, with those before it already in the session, and records it. The
// session then includes it. One entry per layer.
std::vector<LayerValues> WatchToken(engine::Session& session, tokenizer::TokenId id);

}  // namespace cli

#endif  // PRONK_CLI_TRACE_TRACE_VALUES_H_
