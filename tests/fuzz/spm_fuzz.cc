// An untrusted sentencepiece vocabulary and an untrusted text. Input: a byte of flags, tokens
// (vocabulary_fuzz.h), for a Unigram vocabulary a length of two bytes and a character table of that
// length, the text. One flag makes the text long.
#include "tests/fuzz/vocabulary_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t flags = input.Byte();
  test::VocabSpec spec;
  if ((flags & 1) != 0) {
    spec = test::SpmSpec();  // otherwise all tokens are in the input
  } else {
    spec.model = "llama";
  }
  fuzz::AddTokens(input, spec);
  if ((flags & 64) != 0) {
    spec.model = "t5";
    std::vector<uint8_t> table(input.Byte() + size_t{256} * input.Byte());
    for (uint8_t& byte : table) byte = input.Byte();
    spec.more.AddArray("tokenizer.ggml.precompiled_charsmap", std::span<const uint8_t>(table));
    spec.more.Add("tokenizer.ggml.remove_extra_whitespaces", (flags & 32) != 0);
  }
  if ((flags & 2) != 0) spec.types.clear();
  if ((flags & 4) != 0) spec.more.Add("tokenizer.ggml.add_space_prefix", false);
  if ((flags & 8) != 0) spec.more.Add("tokenizer.ggml.add_eos_token", true);
  if ((flags & 16) != 0) spec.more.Add("tokenizer.ggml.unknown_token_id", uint32_t{input.Byte()});
  fuzz::UseVocabulary(spec, fuzz::Repeated(input.Rest(), (flags & 128) != 0 ? 100 : 1));
  return 0;
}
