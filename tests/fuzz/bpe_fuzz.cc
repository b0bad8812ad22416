// An untrusted BPE vocabulary (of bytes or of plain text) and an untrusted text. Input: a byte of
// flags, a line with the name of the split pattern, tokens (vocabulary_fuzz.h), lines of merges up
// to an empty line, the text. One flag makes the text long.
#include "tests/fuzz/vocabulary_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t flags = input.Byte();
  const std::string pre(input.Line());
  test::VocabSpec spec;
  if ((flags & 1) != 0) {  // otherwise all tokens are in the input
    spec = (flags & 32) != 0 ? test::SpmSpec() : test::BpeSpec(pre);
  } else {
    spec.model = "gpt2";
    spec.pre = pre;
  }
  fuzz::AddTokens(input, spec);
  for (std::string_view merge = input.Line(); !merge.empty(); merge = input.Line()) {
    const size_t space = merge.find(' ');
    if ((flags & 2) != 0 && space != 0 && space < merge.size() - 1) {
      // The merged token is added too, so that merges of merges are reached.
      test::AddMerge(spec, std::string(merge.substr(0, space)),
                     std::string(merge.substr(space + 1)));
    } else {
      spec.merges.emplace_back(merge);
    }
  }
  if ((flags & 32) != 0) spec.model = "gemma4";
  if ((flags & 4) != 0) spec.types.clear();
  if ((flags & 8) != 0) spec.more.Add("tokenizer.ggml.add_bos_token", true);
  if ((flags & 16) != 0) spec.more.Add("tokenizer.ggml.bos_token_id", uint32_t{input.Byte()});
  fuzz::UseVocabulary(spec, fuzz::Repeated(input.Rest(), (flags & 128) != 0 ? 100 : 1));
  return 0;
}
