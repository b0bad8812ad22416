// Numbers of each layer: where attention looks, the chosen experts, the prediction if it were last.
#pragma once

#include <cstddef>
#include <span>
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
  double norm = 0;  // root of the residual stream's sum of squares after the layer
  // Attention's weights, [n_heads][positions so far], 0 before a window. They sum to 1, with sinks
  // to less. Empty if the layer has no attention.
  std::vector<std::vector<double>> heads;
  std::vector<Share> experts;
  // "Logit lens" (nostalgebraist 2020): output norm and output matrix applied to the residual
  // stream here. Empty if the model joins several streams after its last layer.
  std::vector<Share> next;
};

struct TokenValues {
  double probability = 0;  // this token's, given the tokens before; 0 if there are none
  std::vector<LayerValues> layers;
  std::vector<Share> next;  // the most likely tokens after it
};

// The `most` largest shares or fewer, the largest first; a Share's `of` is its index.
std::vector<Share> Largest(std::span<const double> shares, size_t most);
// The mean of the heads' attention, [positions so far].
std::vector<double> MeanOfHeads(const LayerValues& layer);

// Appends tokens to the session one by one, decodes them, and records each.
std::vector<TokenValues> WatchTokens(engine::Session& session,
                                     std::span<const tokenizer::TokenId> tokens);

}  // namespace cli
