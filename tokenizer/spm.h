// "llama" vocabularies: what the sentencepiece library makes of text (SPM). Llama 1 and 2, Mistral,
// TinyLlama, Gemma, Phi-3.
#ifndef PRONK_TOKENIZER_SPM_H_
#define PRONK_TOKENIZER_SPM_H_

#include <memory>

#include "gguf/metadata.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {

// Throws gguf::Error where the vocabulary is absent or broken.
std::unique_ptr<Tokenizer> CreateSpm(const gguf::Metadata& metadata);

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_SPM_H_
