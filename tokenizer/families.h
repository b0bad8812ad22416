// The three families of tokenizers, by what tokenizer.ggml.model says: each in a file of its own.
#ifndef PRONK_TOKENIZER_FAMILIES_H_
#define PRONK_TOKENIZER_FAMILIES_H_

#include <memory>

#include "gguf/metadata.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {

// All throw gguf::Error where the vocabulary is absent or broken.

// "llama" (spm.cc): scores, by the sentencepiece library. Llama 1 and 2, Mistral, TinyLlama, Gemma,
// Phi-3.
std::unique_ptr<Tokenizer> CreateSpm(const gguf::Metadata& metadata);

// "gpt2" (bpe.cc): byte-level byte-pair encoding. Llama 3, Qwen, SmolLM. Also throws where the
// split pattern that tokenizer.ggml.pre names is not known.
std::unique_ptr<Tokenizer> CreateBpe(const gguf::Metadata& metadata);

// "gemma4" (raw_bpe.cc): byte-pair merges on text that is spelt as SPM spells it.
std::unique_ptr<Tokenizer> CreateRawBpe(const gguf::Metadata& metadata);

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_FAMILIES_H_
