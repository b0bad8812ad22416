// The kinds of tokenizers, chosen by tokenizer.ggml.model, each in its own file.
#pragma once

#include <cstddef>
#include <memory>

#include "gguf/metadata.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {

// These functions throw gguf::Error if the vocabulary is absent or broken. rows: as for
// Tokenizer::Create().

// "llama" (spm.cc): merges by scores, as sentencepiece. Llama 1 and 2, Mistral, Gemma, Phi-3.
std::unique_ptr<Tokenizer> CreateSpm(const gguf::Metadata& metadata, size_t rows);

// "t5" (unigram.cc): the most likely pieces by their scores (Kudo 2018), by the sentencepiece
// library. XLM-RoBERTa.
std::unique_ptr<Tokenizer> CreateUnigram(const gguf::Metadata& metadata, size_t rows);

// "gpt2" (bpe.cc): byte-level BPE (Llama 3, Qwen). Also throws if tokenizer.ggml.pre is unknown.
std::unique_ptr<Tokenizer> CreateBpe(const gguf::Metadata& metadata, size_t rows);

// "gemma4" (raw_bpe.cc): byte-pair merges on text spelt as in SPM.
std::unique_ptr<Tokenizer> CreateRawBpe(const gguf::Metadata& metadata, size_t rows);

// "bert" (wordpiece.cc): WordPiece. BERT and other encoders.
std::unique_ptr<Tokenizer> CreateWordPiece(const gguf::Metadata& metadata, size_t rows);

}  // namespace tokenizer
