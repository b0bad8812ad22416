// Makes a tokenizer.json with byte tokens and merges.
#pragma once

#include "tests/support/json.h"

namespace convert {

inline test::Json ByteLevel(bool use_regex) {
  return {{"type", "ByteLevel"}, {"use_regex", use_regex}};
}

// The tokenizer has two added tokens: <|end|>, which is special, and <tool>.
inline test::Json Bpe(const test::Json& vocab, const test::Json& merges) {
  return {{"pre_tokenizer", ByteLevel(true)},
          {"added_tokens",
           {{{"id", 4}, {"content", "<|end|>"}, {"special", true}},
            {{"id", 5}, {"content", "<tool>"}, {"special", false}}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

}  // namespace convert
