// Input of an Embedder beside a text: a model's stored prompts, and a reranker's pairs of a query
// and a document.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/model.h"

namespace engine {

// The prompt that the file puts before a text to be embedded: the one of this name, or the default.
// Throws engine::Error for a name that the file does not have.
std::string PromptOf(const Model& model, const std::optional<std::string>& name = {});

// The ids of a query and a document for a reranker, by the file's template for them, else with the
// tokens that begin, separate and end texts.
std::vector<tokenizer::TokenId> EncodePair(const Model& model, std::string_view query,
                                           std::string_view document, size_t room);

}  // namespace engine
