// What the plain pass (engine/plain.h) shows: the engine's logits beside its own, and one head's
// attention by hand.
#ifndef PRONK_CLI_TRACE_TRACE_PLAIN_H_
#define PRONK_CLI_TRACE_TRACE_PLAIN_H_

#include <cstddef>
#include <span>
#include <string>

#include "engine/session/session.h"
#include "tokenizer/tokenizer.h"

namespace cli {

// Continues the prompt with up to n tokens by the plain pass, then reads the text with the engine:
// after each token what both would say next, and how far apart their logits are. The session is
// empty and has room for all. Throws engine::Error if the model is no dense llama.
std::string PlainTable(engine::Session& session, std::span<const tokenizer::TokenId> prompt,
                       size_t n);

// The attention of the last token in a layer's head, both counted from 0: query, keys, scores,
// softmax, values and their mean, by the plain pass. Throws engine::Error likewise, or if there is
// no such head.
std::string HeadTable(const engine::Model& model, std::span<const tokenizer::TokenId> tokens,
                      size_t layer, size_t head);

}  // namespace cli

#endif  // PRONK_CLI_TRACE_TRACE_PLAIN_H_
