// Compares SPM's merges with the sentencepiece library: equal texts must give equal ids. Input:
// tokens (vocabulary_fuzz.h), without any that the library refuses, then the text.
#include <sentencepiece_processor.h>

#include <set>

#include "gguf/utf8.h"
#include "tests/fuzz/vocabulary_fuzz.h"
#include "tests/support/hf_folder.h"
#include "tokenizer/spelling.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  test::VocabSpec all, spec = test::SpmSpec();
  fuzz::AddTokens(input, all);
  std::set<std::string> seen(spec.tokens.begin(), spec.tokens.end());
  for (size_t i = 0; i < all.tokens.size(); ++i) {
    const std::string token = tokenizer::MarkSpaces(all.tokens[i]);
    const bool is_text = !token.empty() && gguf::ValidUtf8Prefix(token) == token.size();
    if (is_text && token.size() <= 1000 && token.find('\0') == token.npos &&
        seen.insert(token).second) {
      spec.Add(token, all.scores[i]);
    }
  }
  const std::string text(input.Rest());
  if (text.empty() || gguf::ValidUtf8Prefix(text) != text.size()) return 0;
  std::string model;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(spec.scores[i]);
    std::string score = test::Varint(2 << 3 | 5);
    score.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
    model += test::ProtoBytes(1, test::ProtoBytes(1, spec.tokens[i]) + score +
                                     test::ProtoNumber(3, static_cast<uint64_t>(spec.types[i])));
  }
  // BPE with byte fallback. Texts are not normalized, but get a space in front.
  model += test::ProtoBytes(2, test::ProtoNumber(3, 2) + test::ProtoNumber(35, 1));
  model += test::ProtoBytes(
      3, test::ProtoNumber(3, 1) + test::ProtoNumber(4, 0) + test::ProtoNumber(5, 1));
  sentencepiece::SentencePieceProcessor library;
  fuzz::Check(library.LoadFromSerializedProto(model).ok());
  std::vector<int> expected;
  fuzz::Check(library.Encode(text, &expected).ok());

  gguf::Writer writer;
  spec.AddTo(writer);
  const std::vector<std::byte> bytes = writer.ToBytes();
  const gguf::File file = gguf::File::Parse("f.gguf", bytes);
  const auto tokenizer = tokenizer::Tokenizer::Create(file);
  fuzz::Check(tokenizer->Encode(text, {.add_special = false}) == expected);
  return 0;
}
