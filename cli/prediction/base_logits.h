// A file of a model's predictions for a text, to compare other models with. The format is
// llama-perplexity's (--kl-divergence-base).
//
//     "_logits_"                              8 bytes
//     i32 n_ctx, n_vocab, n_chunk             tokens of a window; of the vocabulary; windows
//     i32 tokens[n_chunk][n_ctx]              the text
//     for each prediction that counts (text_windows.h):
//       f32 scale, least                      ln(probability) = least + scale * code
//       u16 codes[n_vocab]                    and one for padding if n_vocab is odd
//
// A logit more than 16 below the largest one gets the code 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/prediction/text_windows.h"
#include "gguf/mapped_file.h"
#include "gguf/output_file.h"

namespace cli {

class BaseLogitsWriter {
 public:
  // Throws gguf::Error if the path is one of the inputs.
  BaseLogitsWriter(const std::string& path, const TextWindows& windows, size_t n_vocab);
  // The next prediction.
  void Write(std::span<const float> logits);
  void Commit() { file_.Commit(); }

 private:
  gguf::OutputFile file_;
  std::vector<uint16_t> row_;
};

class BaseLogits {
 public:
  // Throws gguf::Error if the file has another format, is cut off, or has another vocabulary size
  // than n_vocab; engine::Error if printed text would go into it.
  BaseLogits(const std::string& path, size_t n_vocab);

  const TextWindows& windows() const { return windows_; }
  // ln(probability) of every token, of the i-th prediction that counts; valid until the next call.
  // Throws gguf::Error if the file's numbers are invalid.
  std::span<const float> LogProbabilities(size_t i);
  // Whether this token of the last LogProbabilities() has the least number that the file can hold:
  // its probability may be smaller.
  bool IsLeast(tokenizer::TokenId id) const {
    return is_cut_ && row_[static_cast<size_t>(id)] == least_;
  }

 private:
  std::string path_;
  gguf::MappedFile file_;
  TextWindows windows_;
  size_t first_row_ = 0;    // offset in bytes
  std::vector<float> row_;  // [n_vocab]
  float least_ = 0;         // the row's least logit
  bool is_cut_ = false;     // the row has the largest range that the file can hold
};

}  // namespace cli
