// How byte-level BPE splits text into words before it merges bytes: each model's tokenizer has its
// own regular expressions, which a GGUF file names (tokenizer.ggml.pre).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizer {

struct SplitRule {
  std::array<std::string_view, 16> names;  // values of tokenizer.ggml.pre; the first is our name
  // Regular expressions, applied in turn: each splits every piece of the previous one into its
  // matches and the text between, as if the piece were a text of its own.
  std::array<std::string_view, 6> patterns;
  bool ignore_merges = false;  // a word that is a token is not merged but taken as that token
  bool add_bos = false;        // default if the file has no tokenizer.ggml.add_bos_token
  bool add_sep = false;        // default if the file has no tokenizer.ggml.add_sep_token
  bool composes = false;       // texts are composed first (NFC) if the file has no normalizer
  bool drops_rest = false;     // text between matches of the last pattern is not a word

  // The names and patterns, without the empty rest of the arrays.
  std::span<const std::string_view> Names() const { return Filled(names); }
  std::span<const std::string_view> Patterns() const { return Filled(patterns); }
  static std::span<const std::string_view> Filled(std::span<const std::string_view> all) {
    return all.first(static_cast<size_t>(std::find(all.begin(), all.end(), "") - all.begin()));
  }
};

// All known rules.
std::span<const SplitRule> SplitRules();
// The rule with this name, or nullptr.
const SplitRule* FindSplitRule(std::string_view name);
// All names, for messages: "llama-bpe, llama3, ...".
std::string SplitRuleNames();

// The compiled patterns of a rule. Immutable: threads may share it.
class Splitter {
 public:
  explicit Splitter(const SplitRule& rule);
  ~Splitter();

  // Calls `word` for each word of the text, valid UTF-8, in order; joined, they are the text.
  void Split(std::string_view text, const std::function<void(std::string_view)>& word) const {
    Cut(text, /*keeps_rest=*/true, word);
  }
  // Split without the text between matches of the last pattern.
  void Match(std::string_view text, const std::function<void(std::string_view)>& word) const {
    Cut(text, /*keeps_rest=*/false, word);
  }

 private:
  struct Pattern;
  struct Run;
  void Cut(std::string_view text, bool keeps_rest,
           const std::function<void(std::string_view)>& word) const;
  std::vector<std::unique_ptr<Pattern>> patterns_;
};

}  // namespace tokenizer
