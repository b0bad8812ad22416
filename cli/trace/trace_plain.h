// What the plain pass (engine/plain.h) shows. Throws engine::Error if the model is no dense llama.
#ifndef PRONK_CLI_TRACE_TRACE_PLAIN_H_
#define PRONK_CLI_TRACE_TRACE_PLAIN_H_

#include <string>
#include <vector>

#include "engine/session/session.h"

namespace cli {

// Appends up to n tokens by the plain pass, then reads the text with the engine, too: after each
// token what both would say next, and how far apart their logits are. The session is empty.
std::string PlainTable(engine::Session& session, std::vector<tokenizer::TokenId> ids, size_t n);

// How the last token attends by one head, counted from 0: query, keys, scores, softmax, values and
// their mean.
std::string HeadTable(const engine::Model& model, const std::vector<tokenizer::TokenId>& ids,
                      size_t layer, size_t head);

}  // namespace cli

#endif  // PRONK_CLI_TRACE_TRACE_PLAIN_H_
