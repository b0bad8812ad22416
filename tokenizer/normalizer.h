// The changes of a text before it is cut into tokens: a list of steps, as in the
// "normalizer" of Hugging Face's tokenizer.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"

namespace tokenizer {

// The words of the steps, each a name and its arguments: "NFC", "NFD", "NFKC", "NFKD", "Lowercase",
// "StripAccents", "StripLeft", "StripRight", "Replace" A B, "Prepend" A.
inline constexpr std::string_view kNormalizerKey = "tokenizer.pronk.normalizer";

class Normalizer {
 public:
  Normalizer() = default;
  // Reads the file's steps, or `otherwise` if it has none. Throws gguf::Error if they are unknown,
  // or may make a text more than kMaxGrowth times as long.
  Normalizer(const gguf::Metadata& metadata, std::string_view otherwise);

  bool empty() const { return steps_.empty(); }
  // Normalizes valid UTF-8, in linear time.
  std::string operator()(std::string_view text) const;

  static constexpr size_t kMaxGrowth = 64;

 private:
  struct Step {
    std::string_view name, what, with;
  };
  std::vector<Step> steps_;  // views into the file
};

// The text with all marks removed.
std::string WithoutMarks(std::string_view text);

}  // namespace tokenizer
