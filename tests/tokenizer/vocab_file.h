// Vocabularies made in tests, as GGUF files that have only the keys of a tokenizer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vocab_spec.h"
#include "tokenizer/tokenizer.h"

namespace test {

using Ids = std::vector<TokenId>;

// Encodes only the text, without the tokens around it.
inline constexpr tokenizer::EncodeOptions kPlain = {.add_special = false};
// Stands for a space in the tokens of SPM, WordPiece and others: U+2581.
inline const std::string kMark = "\u2581";

// An open vocabulary. Throws like Tokenizer::Create.
class VocabFile {
 public:
  explicit VocabFile(const VocabSpec& spec) : file_(Write(spec)) {
    tokenizer_ = tokenizer::Tokenizer::Create(file_);
  }
  const tokenizer::Tokenizer& operator*() const { return *tokenizer_; }
  const tokenizer::Tokenizer* operator->() const { return tokenizer_.get(); }

 private:
  gguf::File Write(const VocabSpec& spec) const {
    gguf::Writer writer = spec.more;
    spec.AddTo(writer);
    const std::string path = dir_.Path("vocab.gguf");
    writer.WriteFile(path);
    return gguf::File::Open(path);
  }

  TempDir dir_;
  gguf::File file_;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
};

}  // namespace test
