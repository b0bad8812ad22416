// A sentencepiece vocabulary and a text, both a stranger's. Input: a byte of flags, tokens
// (vocabulary_fuzz.h), the text, which one of the flags makes long.
#include "tests/fuzz/vocabulary_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t flags = input.Byte();
  test::VocabSpec spec;
  if ((flags & 1) != 0) {
    spec = test::SpmSpec();  // else the input has all there is
  } else {
    spec.model = "llama";
  }
  fuzz::AddTokens(input, spec);
  if ((flags & 2) != 0) spec.types.clear();
  if ((flags & 4) != 0) spec.more.Add("tokenizer.ggml.add_space_prefix", false);
  if ((flags & 8) != 0) spec.more.Add("tokenizer.ggml.add_eos_token", true);
  if ((flags & 16) != 0) spec.more.Add("tokenizer.ggml.unknown_token_id", uint32_t{input.Byte()});
  fuzz::UseVocabulary(spec, fuzz::Repeated(input.Rest(), (flags & 128) != 0 ? 100 : 1));
  return 0;
}
