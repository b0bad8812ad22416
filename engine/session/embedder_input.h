// An Embedder's input in addition to a text: a model's stored prompts, and a reranker's pairs of a
// query and a document.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/model.h"

namespace engine {

// The prompt with this name, or the default prompt, which the file puts before a text to be
// embedded. Throws engine::Error if the file lacks the name.
std::string PromptOf(const Model& model, const std::optional<std::string>& name = {});

// The ids of a query and a document for a reranker: by the file's template for them, or else with
// the tokens that begin, separate and end texts.
std::vector<tokenizer::TokenId> EncodePair(const Model& model, std::string_view query,
                                           std::string_view document, size_t room);

}  // namespace engine
