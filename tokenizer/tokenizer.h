// Text to token ids and back, with the vocabulary that a GGUF file carries.
//
// Two families exist: "llama" vocabularies (sentencepiece, here SPM; spm.h) and "gpt2" vocabularies
// (byte-level byte-pair encoding, BPE; bpe.h). What they share is here: special tokens, options, and
// the way back from ids to bytes.
#ifndef PRONK_TOKENIZER_TOKENIZER_H_
#define PRONK_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace tokenizer {

using TokenId = int32_t;

// tokenizer.ggml.token_type
enum class TokenType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

// The vocabulary as the file has it, checked. Views into the file: the gguf::File must outlive it.
struct Vocabulary {
  std::vector<std::string_view> tokens;  // the file's own spelling (SPM: U+2581 for a space, <0x0A>; BPE: byte alphabet)
  std::vector<float> scores;             // SPM only, else empty
  std::vector<TokenType> types;          // one per token
  TokenId bos = -1, eos = -1, eot = -1, unk = -1;  // -1: none
  std::vector<TokenId> eog;              // all ids that end a generation, ascending
  bool add_bos = false, add_eos = false, add_space_prefix = true;

  size_t size() const { return tokens.size(); }
  bool IsEog(TokenId id) const;
  bool IsControl(TokenId id) const;
};

struct EncodeOptions {
  bool add_bos = true;         // put bos (and eos) where the vocabulary asks for them
  bool parse_special = false;  // "<|eot_id|>" in the text is the token and not eight characters
};

class Tokenizer {
 public:
  // Reads the vocabulary of a file. Throws gguf::Error where it is absent or broken.
  static std::unique_ptr<Tokenizer> Create(const gguf::File& file);
  virtual ~Tokenizer() = default;

  const Vocabulary& vocab() const { return vocab_; }
  // Any bytes are text: what is no valid UTF-8 becomes byte tokens (or the unknown token), as llama.cpp does.
  std::vector<TokenId> Encode(std::string_view text, const EncodeOptions& options = {}) const;
  // The bytes of one token; control tokens are empty unless `special`. An id outside the vocabulary is "".
  std::string Piece(TokenId id, bool special = false) const;
  // The bytes of many tokens. An SPM text loses the space that add_space_prefix put before it.
  std::string Decode(const std::vector<TokenId>& ids, bool special = false) const;
  // The id of a token spelt exactly so, or -1.
  TokenId Find(std::string_view token) const;

 protected:
  explicit Tokenizer(Vocabulary vocab);
  // Text without special tokens. `first`: it is at the start of the input or follows a special token.
  virtual void EncodeText(std::string_view text, bool first, std::vector<TokenId>& out) const = 0;
  virtual std::string TextOf(TokenId id) const = 0;  // bytes of a token that is not control
  Vocabulary vocab_;
};

// Bytes of tokens in, whole UTF-8 characters out: keeps the first bytes of a character until its last one
// has come. Invalid bytes are passed on as U+FFFD.
class StreamDecoder {
 public:
  // What can be printed now.
  std::string Push(std::string_view bytes);
  // The end: an incomplete character comes out as U+FFFD.
  std::string Finish();

 private:
  std::string pending_;
};

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_TOKENIZER_H_
