// "gpt2" vocabularies: byte-level byte-pair encoding (BPE). Llama 3, Qwen, SmolLM.
#ifndef PRONK_TOKENIZER_BPE_H_
#define PRONK_TOKENIZER_BPE_H_

#include <memory>

#include "gguf/metadata.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {

// Throws gguf::Error where the vocabulary is absent or broken, or where the split pattern that
// tokenizer.ggml.pre names is not known.
std::unique_ptr<Tokenizer> CreateBpe(const gguf::Metadata& metadata);

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_BPE_H_
