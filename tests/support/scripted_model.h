// A model that writes a given script: it answers every prompt with the same tokens, one after the
// other. For tests of the code that handles a text.
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

// The model as a GGUF file. At temperature 0 it begins with the first of these tokens, whatever it
// has read, and ends its text after the last one. At most 30 tokens, each only once. The vocabulary
// also has the bytes, so that the model can read any text. Empty chat_template: the file has none.
std::vector<std::byte> ScriptedModel(const std::vector<ScriptedToken>& script,
                                     const std::string& chat_template);

}  // namespace test
