// The checked vocabulary of a file: the first step to token ids. kinds.h builds on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"

namespace tokenizer {

using TokenId = int32_t;

// The vocabulary's main key, for messages.
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";

// tokenizer.ggml.token_type
enum class TokenType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

// Where a space is put before a text that begins without a special token.
enum class SpacePrefix : uint8_t {
  kNone,
  kEach,             // and before each text after a special token
  kEachUnlessSpace,  // kEach, unless the text begins with a space
  kFirst,            // only where the whole text begins, unless it begins with a space
};

// How an added token is found in a text: with the white space before or after it, and only where no
// letter or digit is beside it; in the normalized text.
enum AddedToken : uint8_t { kLstrip = 1, kRstrip = 2, kSingleWord = 4, kNormalized = 8 };

// Views into the file: the gguf::File must outlive it.
struct Vocabulary {
  // The file's own spelling (SPM: U+2581 for a space, <0x0A>; BPE: byte alphabet).
  std::vector<std::string_view> tokens;
  std::vector<float> scores;                       // SPM only, else empty
  std::vector<TokenType> types;                    // one per token
  TokenId bos = -1, eos = -1, eot = -1, unk = -1;  // -1: none
  TokenId sep = -1;                                // between two texts
  std::vector<TokenId> eog;                        // all ids that end a generation, ascending
  std::vector<TokenId> suppressed;                 // ids that are never sampled
  std::vector<std::string> notes;                  // ignored parts of the file, one line each
  bool add_bos = false, add_eos = false;           // put around every text
  bool add_sep = false;                            // put between two texts
  bool ends_with_sep = false;                      // put after every text
  std::vector<TokenId> after_bos;                  // put after bos, if bos is put before a text
  SpacePrefix space_prefix = SpacePrefix::kNone;
  bool add_space_prefix = false;  // a space is put: Decode removes it
  std::vector<uint8_t> added;     // AddedToken by token; empty if no token has one

  size_t size() const { return tokens.size(); }
  bool Has(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < tokens.size(); }
  bool IsEog(TokenId id) const;
  bool IsControl(TokenId id) const;
  uint8_t AddedFlags(TokenId id) const {
    return added.empty() ? uint8_t{0} : added[static_cast<size_t>(id)];
  }
};

// The differences between kinds.
struct VocabularyDefaults {
  // SPM or unigram: scores are read (0 if the file has none). If the file does not say, types
  // follow from spellings, control tokens 1 and 2 are bos and eos, and a space begins texts.
  bool is_sentencepiece = false;
  // The defaults if the file has no tokenizer.ggml.add_bos_token or add_eos_token.
  bool add_bos = false, add_eos = false;
  // Rows of the embedding. Tokens beyond these must be unused or control tokens, and are cut off.
  size_t rows = SIZE_MAX;
};

// Limits; a file beyond one is refused. The longest tokens in use are runs of several hundred
// spaces.
inline constexpr size_t kMaxTokenBytes = 1 << 14;

// The most bytes of all tokens: sentencepiece stores each several times. The largest vocabularies
// in use have 3 million bytes.
inline constexpr size_t kMaxVocabularyBytes = size_t{1} << 24;

// Tokens and merges take more memory than file space. The largest vocabularies have half a million.
inline constexpr size_t kMaxVocabularySize = size_t{1} << 20;
inline constexpr size_t kMaxMerges = size_t{1} << 20;

// Throws gguf::Error unless an array has `least` to `most` elements. Called before they are copied:
// there may be many.
void CheckCount(const gguf::Metadata& metadata, std::string_view key, size_t least, size_t most,
                std::string_view elements);

// Throws gguf::Error naming the key if something is missing or invalid.
//
// The ids that end a generation are eos, eot, eom and every token spelt like a known marker (the
// table is in vocabulary.cc). Such a token is a control token whatever type the file gives it,
// except for spellings that may also be text, such as </s>.
Vocabulary ReadVocabulary(const gguf::Metadata& metadata, const VocabularyDefaults& defaults);

// The byte of a token spelt <0x00> to <0xFF>, or -1 for another spelling.
int ByteOfToken(std::string_view token);

// The tokens of type kByte, by byte; -1: none.
using ByteTokens = std::array<TokenId, 256>;

// The byte tokens of plain-text vocabularies: they replace a character that has no token. Throws
// gguf::Error if byte tokens are missing and there is no unknown token.
ByteTokens FindByteTokens(const gguf::Metadata& metadata, const Vocabulary& vocab);

}  // namespace tokenizer
