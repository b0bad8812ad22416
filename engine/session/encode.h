// Text on its way into a context: cut into tokens only if it can fit.
#ifndef PRONK_ENGINE_SESSION_ENCODE_H_
#define PRONK_ENGINE_SESSION_ENCODE_H_

#include <string_view>
#include <vector>

#include "engine/model/model.h"

namespace engine {

// The context of a session that is given none: what the model was trained for, at most 4096.
size_t DefaultContext(const Config& config);

// Throws engine::TooLong: `needed` tokens, or at least that many, do not fit into `room`.
[[noreturn]] void ThrowNoRoom(size_t needed, bool at_least, size_t room, const Config& config);

// Throws engine::TooLong if a text of n_bytes cannot fit into `room` tokens, however it is cut.
// Takes no time, unlike cutting a hundred megabytes.
void CheckTextSize(const Model& model, size_t n_bytes, size_t room);

// The ids of a text that has to fit into `room` tokens. Throws engine::TooLong if it cannot, before
// cutting it where its size alone says so (templates and people may make any number of bytes), and
// tokenizer::Interrupted as the options say. A text that is slightly too long is returned all the
// same, so that Session::CheckRoom can say how many tokens it has.
std::vector<tokenizer::TokenId> Encode(const Model& model, std::string_view text,
                                       tokenizer::EncodeOptions options, size_t room);

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_ENCODE_H_
