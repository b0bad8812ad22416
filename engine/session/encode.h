// Text on its way into a context: cut into tokens only where it can fit, and as long as somebody
// waits for it.
#ifndef PRONK_ENGINE_SESSION_ENCODE_H_
#define PRONK_ENGINE_SESSION_ENCODE_H_

#include <string_view>
#include <vector>

#include "engine/model/model.h"

namespace engine {

// The ids of a text that is to fit into a context of so many tokens (0: the default). Throws
// engine::TooLong where it does not, before it is cut where its size alone says so: templates and
// people may make any number of bytes. Throws tokenizer::Interrupted as the options say.
//
// A text that is too long by some is returned all the same, so that it can be said how many tokens
// it has: see Session::CheckRoom.
std::vector<tokenizer::TokenId> Encode(const Model& model, std::string_view text,
                                       tokenizer::EncodeOptions options, size_t context);

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_ENCODE_H_
