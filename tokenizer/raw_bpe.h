// "gemma4" vocabularies: byte-pair merges as in bpe.h, on text that is spelt as in spm.h.
#ifndef PRONK_TOKENIZER_RAW_BPE_H_
#define PRONK_TOKENIZER_RAW_BPE_H_

#include <memory>

#include "gguf/metadata.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {

// Throws gguf::Error where the vocabulary is absent or broken.
std::unique_ptr<Tokenizer> CreateRawBpe(const gguf::Metadata& metadata);

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_RAW_BPE_H_
