// The vocabulary as the file has it, checked: the first stop on the way from a file to token ids.
// What is done with it is up to the families, spm.h, bpe.h and raw_bpe.h.
#ifndef PRONK_TOKENIZER_VOCABULARY_H_
#define PRONK_TOKENIZER_VOCABULARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"

namespace tokenizer {

using TokenId = int32_t;

// The key of what it is made of, for messages.
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";

// tokenizer.ggml.token_type
enum class TokenType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

// Views into the file: the gguf::File must outlive it.
struct Vocabulary {
  // The file's own spelling (SPM: U+2581 for a space, <0x0A>; BPE: byte alphabet).
  std::vector<std::string_view> tokens;
  std::vector<float> scores;                       // SPM only, else empty
  std::vector<TokenType> types;                    // one per token
  TokenId bos = -1, eos = -1, eot = -1, unk = -1;  // -1: none
  std::vector<TokenId> eog;                        // all ids that end a generation, ascending
  bool add_bos = false, add_eos = false;           // put around every text
  bool add_space_prefix = false;                   // SPM: a text starts as if after a space

  size_t size() const { return tokens.size(); }
  bool Has(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < tokens.size(); }
  bool IsEog(TokenId id) const;
  bool IsControl(TokenId id) const;
};

// What differs by family.
struct VocabularyDefaults {
  // A "llama" vocabulary: there must be scores (else they are not read). Where the file does not
  // tell, tokens get their types by spelling, control tokens 1 and 2 are bos and eos, and texts get
  // a space before them (else never).
  bool llama = false;
  bool add_bos = false;  // where there is no tokenizer.ggml.add_bos_token
};

// A token longer than this is refused. The longest in use are runs of some hundred spaces.
inline constexpr size_t kMaxTokenBytes = 1 << 14;

// More bytes of all tokens together are refused: sentencepiece keeps each of them several times.
// The largest vocabularies in use have three millions.
inline constexpr size_t kMaxVocabularyBytes = size_t{1} << 24;

// More tokens are refused, and more merges (bpe.h), so that what a vocabulary takes in memory is
// bounded by more than the size of its file. The largest in use have half a million.
inline constexpr size_t kMaxTokens = size_t{1} << 20;
inline constexpr size_t kMaxMerges = size_t{1} << 20;

// Throws gguf::Error naming the key where something is missing or cannot be true.
//
// The ids that end a generation are eos, eot, eom and every token spelt like one of the known
// markers (the table is in vocabulary.cc); a token spelt so is a control token, whatever type the
// file says, but for spellings that may also be text, as </s>.
Vocabulary ReadVocabulary(const gguf::Metadata& metadata, const VocabularyDefaults& defaults);

// The byte that a token of type kByte stands for, spelt <0x00> to <0xFF>, or -1 for another
// spelling.
int ByteOfToken(std::string_view token);

// The tokens of type kByte, by byte; -1: none.
using ByteTokens = std::array<TokenId, 256>;

// For vocabularies whose tokens are text: what is no token becomes those of its bytes. Throws
// gguf::Error where some are missing and there is no unknown token to take their place.
ByteTokens FindByteTokens(const gguf::Metadata& metadata, const Vocabulary& vocab);

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_VOCABULARY_H_
