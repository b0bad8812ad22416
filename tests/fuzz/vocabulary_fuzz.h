// Shared by the fuzzers of the tokenizers: makes a vocabulary and a text from a fuzzer's bytes, and
// checks what must hold for any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/error.h"
#include "gguf/file.h"
#include "tests/fuzz/input.h"
#include "tests/support/vocab_spec.h"
#include "tokenizer/tokenizer.h"

namespace fuzz {

inline void Check(bool holds) {
  if (!holds) std::abort();
}

// Repeats the text n times, up to 64 KB, but at least once.
inline std::string Repeated(std::string_view text, size_t n) {
  std::string repeated(text);
  while (--n > 0 && repeated.size() + text.size() <= size_t{1} << 16 && n < SIZE_MAX) {
    repeated += text;
  }
  return repeated;
}

// Reads lines up to an empty line: a byte with the type, a byte with the score, the token. If the
// type's highest bit is set, the token is long: a byte follows, its repetitions divided by 64.
inline void AddTokens(Input& input, test::VocabSpec& spec) {
  for (std::string_view line = input.Line(); !line.empty(); line = input.Line()) {
    Input token(reinterpret_cast<const uint8_t*>(line.data()), line.size());
    const uint8_t type = token.Byte();
    const auto score = static_cast<float>(static_cast<int8_t>(token.Byte()));
    const size_t n = (type & 0x80) != 0 ? size_t{1} + 64 * token.Byte() : 1;
    spec.Add(Repeated(token.Rest(), n), score, static_cast<test::TokenType>(type % 8));
  }
}

// Encodes and decodes the text in every way, with a vocabulary that may be refused. Half of the
// text is plain: no control token is found there.
inline void UseVocabulary(const test::VocabSpec& spec, std::string_view text) {
  try {
    gguf::Writer writer = spec.more;
    spec.AddTo(writer);
    const std::vector<std::byte> bytes = writer.ToBytes();
    const gguf::File file = gguf::File::Parse("f.gguf", bytes);
    const auto tokenizer = tokenizer::Tokenizer::Create(file);
    for (const bool special : {false, true}) {
      const tokenizer::ByteSpan half = {text.size() / 2, text.size()};
      const auto ids = tokenizer->Encode(text, {.parse_special = special, .plain = {&half, 1}});
      tokenizer->Encode(text, {.max_ids = 10});
      for (const test::TokenId id : ids) Check(tokenizer->vocab().Has(id));
      tokenizer::StreamDecoder decoder;
      for (const test::TokenId id : ids) decoder.Push(tokenizer->Piece(id, special));
      decoder.Finish();
      tokenizer->Decode(ids, special);
    }
  } catch (const gguf::Error&) {
  }
}

}  // namespace fuzz
