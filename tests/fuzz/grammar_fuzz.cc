// An untrusted grammar or schema, and a text followed through it. Input: a line with the text, then
// the grammar, or a schema if it begins with '{'.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "grammar/constraint.h"
#include "grammar/gbnf.h"
#include "grammar/grammar.h"
#include "grammar/json_schema.h"
#include "tests/fuzz/input.h"
#include "tests/support/vocab_spec.h"

namespace {

// Byte tokens, and tokens of several bytes.
const tokenizer::Tokenizer& Tokens() {
  static const std::vector<std::byte> bytes = [] {
    test::VocabSpec spec = test::SpmSpec();
    for (const char* const token :
         {"ab", "abc", "\"}", "\":", "\",", "12", "true", "{\"a\":", "€"}) {
      spec.Add(token, -1);
    }
    gguf::Writer writer;
    spec.AddTo(writer);
    return writer.ToBytes();
  }();
  static const gguf::File file = gguf::File::Parse("f.gguf", bytes);
  static const std::unique_ptr<tokenizer::Tokenizer> tokenizer = tokenizer::Tokenizer::Create(file);
  return *tokenizer;
}

void Check(bool holds) {
  if (!holds) std::abort();
}

// A mask must agree with each token tried alone.
void CheckMask(grammar::Constraint& constraint) {
  const std::span<const uint64_t> mask = constraint.Allowed();
  for (size_t i = 0; i < Tokens().vocab().size(); ++i) {
    Check((mask[i / 64] >> (i % 64) & 1) == constraint.Allows(static_cast<tokenizer::TokenId>(i)));
  }
}

void Follow(grammar::Grammar grammar, std::string_view text) {
  grammar::Constraint constraint(std::make_shared<const grammar::Grammar>(std::move(grammar)),
                                 Tokens());
  for (size_t i = 0; !constraint.done(); ++i) {
    CheckMask(constraint);
    const std::vector<tokenizer::TokenId> forced = constraint.Forced();
    for (const tokenizer::TokenId id : forced) constraint.Accept(id);
    if (!forced.empty() && i < 100) continue;
    if (text.empty()) return;
    constraint.AcceptText(text.substr(0, 1));
    text.remove_prefix(1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.Line();
  const std::string source(input.Rest());
  try {
    Follow(source.starts_with('{') ? grammar::ParseJsonSchema(source) : grammar::ParseGbnf(source),
           text);
  } catch (const grammar::Error&) {
  }
  return 0;
}
