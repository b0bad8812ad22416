// A folder's tokenizer as the keys of a GGUF file: tokenizer.model (sentencepiece), tokenizer.json
// or another vocabulary, and the files beside it with special tokens and the chat template.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/source.h"
#include "tokenizer/split.h"
#include "tokenizer/vocabulary.h"

namespace convert {

using tokenizer::kMaxVocabularySize;

struct Vocabulary {
  std::string model;  // tokenizer.ggml.model
  std::string pre;    // tokenizer.ggml.pre
  std::vector<std::string> tokens;
  std::vector<float> scores;  // empty for byte-level BPE
  std::vector<tokenizer::TokenType> types;
  std::vector<std::string> merges;
  std::optional<bool> add_space_prefix;
  std::optional<bool> lowers, strips;             // word pieces: case and accents of a text
  std::optional<bool> cleans, splits_ideographs;  // word pieces: control characters; Chinese
  std::optional<uint64_t> max_word_characters;    // word pieces
  std::optional<bool> ignore_merges;              // if not as the rule of `pre`
  std::string space_prefix;                       // tokenizer.pronk.space_prefix; "" for none
  // Steps before a text is cut (tokenizer/normalizer.h); empty if the folder does not say.
  std::optional<std::vector<std::string>> normalizer;
  std::vector<uint8_t> added;  // tokenizer::AddedToken by token; may be shorter
  // Tokens that are put before and after every text.
  struct Around {
    std::vector<std::string> before, after;
  };
  std::optional<Around> around;
  std::string charsmap;      // Unigram: precompiled_charsmap
  bool trims_spaces = true;  // Unigram: remove_extra_whitespaces

  // Grows to n tokens; new tokens are unused, without a text, with `score` if tokens have scores.
  void Grow(size_t n, float score);
  // Grow with a text for each new token.
  void Pad(size_t n);
};

// The readers throw gguf::Error. Reads tokenizer.model; or XLM-RoBERTa's sentencepiece.bpe.model,
// which is Unigram despite its name and is renumbered as Fairseq does.
Vocabulary ReadSentencePiece(const std::string& path, std::string_view bytes, bool fairseq = false);
// Reads Kimi's tiktoken.model: lines of a token in base64 and its rank; then 256 reserved tokens.
Vocabulary ReadTiktoken(const std::string& path, std::string_view text);
// The fields of a tokenizer.json beside its vocabulary (hf_pipeline.cc). Throws gguf::Error for a
// field that may change ids and that this program does not support.
void ReadPipeline(const Fields& tokenizer, Vocabulary& vocab);
// Why merging by scores differs from merging by the vocabulary's list; empty if it does not.
std::string WhyNotByScores(const Vocabulary& vocab);
// Whether a token is spelt like a control token: some folders mark such tokens as ordinary ones.
bool LooksSpecial(std::string_view token);
// Whether a token consists of space marks (U+2581) only.
bool IsSpaces(std::string_view token);
// Reads tokenizer.json. Of GGUF's names for a pre-tokenizer, the family's own is preferred.
Vocabulary ReadTokenizerJson(const Fields& tokenizer, std::string_view architecture,
                             bool raw_bpe = false);

// An expression that splits text, in a canonical spelling (split_pattern.cc): if two are equal,
// they match the same texts.
std::string CanonicalPattern(std::string_view pattern);
// The rule that GGUF names (split.h) with the patterns of "pre_tokenizer"; of several, the first
// one with the same ignore_merges, or the first. Throws gguf::Error if there is no such rule.
const tokenizer::SplitRule& FindSplitRule(const Fields& tokenizer, bool ignore_merges);

// Whether "pre_tokenizer" puts a space before a text.
bool PutsSpaceBefore(const Fields& tokenizer);

// Adds the tokenizer's keys, for n_rows tokens, the rows of the embedding. Throws gguf::Error.
void AddTokenizer(const Source& source, uint64_t n_rows, OutModel& model);

}  // namespace convert
