// The length of a context, and the ids of a text that fits into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/model.h"

namespace engine {

// Stands for the default context: at first at most 4096 positions, later up to the model's training
// context.
inline constexpr size_t kDefaultContext = SIZE_MAX;

// The positions of a session at first: `requested`, or for 0 the model's training context.
size_t ContextOf(const Config& config, size_t requested = kDefaultContext);
// The number of positions that the session may grow to.
size_t MaxContextOf(const Config& config, size_t requested = kDefaultContext);

// Throws engine::TooLong: `needed` tokens (at_least: or more) do not fit into `room`. in_memory:
// the number of tokens for which there is memory; 0: unknown.
[[noreturn]] void ThrowNoRoom(size_t needed, bool at_least, size_t room, const Config& config,
                              size_t in_memory = 0);

// Throws engine::Error if an id is outside the vocabulary.
void CheckIds(std::span<const tokenizer::TokenId> ids, const Config& config);

// Throws engine::TooLong if no tokenization of a text of n_bytes can fit into `room` tokens. This
// takes no time, unlike tokenizing a hundred megabytes.
void CheckTextSize(const Model& model, size_t n_bytes, size_t room);

// The ids of a text that must fit into `room` tokens. Throws engine::TooLong if it cannot, before
// tokenizing if its size alone shows it (templates and users may make any number of bytes), and
// tokenizer::Interrupted as the options say. A text that is slightly too long is returned anyway,
// so that Session::CheckRoom can report its number of tokens.
std::vector<tokenizer::TokenId> Encode(const Model& model, std::string_view text,
                                       tokenizer::EncodeOptions options, size_t room);

// The ids of the text so far followed by a prompt, tokenized as one text, as far as the ids
// determine the text so far. Its last tokens may change; its characters do not.
std::vector<tokenizer::TokenId> EncodeAfter(const Model& model,
                                            std::span<const tokenizer::TokenId> so_far,
                                            std::string_view prompt,
                                            const tokenizer::EncodeOptions& options, size_t room);

}  // namespace engine
