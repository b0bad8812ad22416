// A model that writes what it is told: every prompt is answered by the same tokens, one after the
// other. For tests of what is done with a text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace test {

struct ScriptedToken {
  std::string text;
  tokenizer::TokenType type = tokenizer::TokenType::kNormal;
};

// As a GGUF file. At temperature 0 it begins with the first of these tokens, whatever it has read,
// and ends its text after the last one. At most 30, each only once; the vocabulary has the bytes
// besides, so that it can read anything. Empty chat_template: none.
std::vector<std::byte> ScriptedModel(const std::vector<ScriptedToken>& script,
                                     const std::string& chat_template);

}  // namespace test
