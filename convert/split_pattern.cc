// The expressions with which a tokenizer.json splits text, as rules that GGUF names (split.h).
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "convert/hf_tokenizer.h"
#include "gguf/error.h"
#include "gguf/utf8.h"

namespace convert {
namespace {

// One element of an expression: a character, or text that is copied (\p{L}, \s, a bracket).
struct Atom {
  uint32_t code = 0;
  std::string text;  // empty for a character
};

class Parser {
 public:
  explicit Parser(std::string_view pattern) : rest_(pattern) {}

  std::string Canonical() {
    std::string out;
    while (!rest_.empty()) {
      if (rest_.starts_with('[')) {
        out += Class();
      } else {
        const bool is_operator = std::string_view("()|?*+{}^$.").find(rest_[0]) != rest_.npos;
        const Atom atom = Next();
        out += !atom.text.empty() ? atom.text
               : is_operator      ? std::string(1, static_cast<char>(atom.code))
                                  : Spelt(atom.code);
      }
    }
    return out;
  }

 private:
  static std::string Spelt(uint32_t code) {
    const bool plain = (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
                       (code >= 'a' && code <= 'z') || code == '\'' || code == ' ';
    return plain ? std::string(1, static_cast<char>(code)) : "<" + std::to_string(code) + ">";
  }

  Atom Next() {
    if (rest_[0] == '\\' && rest_.size() > 1) return Escape();
    const gguf::Utf8Step step = gguf::NextUtf8(rest_);
    rest_.remove_prefix(step.length);
    return {step.code, ""};
  }

  Atom Escape() {
    const char kind = rest_[1];
    const auto take = [&](size_t n) { return std::exchange(rest_, rest_.substr(n)).substr(0, n); };
    if (kind == 'p' || kind == 'P') {
      const size_t end = rest_.find('}');
      return {0, std::string(take(end == rest_.npos ? 2 : end + 1))};
    }
    if (kind == 'x' || kind == 'u') {  // \x{4E00}, \u4e00
      const bool braces = rest_.substr(2).starts_with('{');
      const char* const first = rest_.data() + (braces ? 3 : 2);
      const char* const last = rest_.data() + rest_.size();
      uint32_t code = 0;
      const size_t most = braces ? 6 : kind == 'x' ? 2 : 4;
      const char* const end = std::from_chars(first, std::min(last, first + most), code, 16).ptr;
      take(static_cast<size_t>(end - rest_.data()) + (braces && end != last ? 1 : 0));
      return {code, ""};
    }
    take(2);
    constexpr std::string_view kLetters = "rnt", kControls = "\r\n\t";
    const size_t i = kLetters.find(kind);
    if (i != kLetters.npos) return {static_cast<uint8_t>(kControls[i]), ""};
    const bool is_letter = (kind >= 'a' && kind <= 'z') || (kind >= 'A' && kind <= 'Z');
    return is_letter ? Atom{0, std::string("\\") + kind} : Atom{static_cast<uint8_t>(kind), ""};
  }

  // [...]: its ranges merged and sorted, then the copied texts.
  std::string Class() {
    rest_.remove_prefix(1);
    const bool negated = rest_.starts_with('^');
    if (negated) rest_.remove_prefix(1);
    std::vector<std::pair<uint32_t, uint32_t>> ranges;
    std::set<std::string> texts;
    while (!rest_.empty() && rest_[0] != ']') {
      const Atom first = Next();
      if (!first.text.empty()) {
        texts.insert(first.text);
        continue;
      }
      Atom last = first;
      if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        rest_.remove_prefix(1);
        last = Next();
      }
      ranges.emplace_back(first.code, std::max(first.code, last.code));
    }
    if (!rest_.empty()) rest_.remove_prefix(1);
    std::sort(ranges.begin(), ranges.end());
    std::vector<std::pair<uint32_t, uint32_t>> joined;
    for (const auto& [low, high] : ranges) {
      if (!joined.empty() && low <= joined.back().second + 1) {
        joined.back().second = std::max(joined.back().second, high);
      } else {
        joined.emplace_back(low, high);
      }
    }
    if (!negated && joined.empty() && texts.size() == 1) return *texts.begin();
    std::string out = negated ? "[^" : "[";
    for (const auto& [low, high] : joined) {
      out += Spelt(low) + (low == high ? "" : "-" + Spelt(high));
    }
    for (const std::string& text : texts) out += text;
    return out + "]";
  }

  std::string_view rest_;
};

constexpr std::string_view kAnyCase = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
constexpr std::string_view kBothCases = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";

// The expressions of one step, or of a sequence of steps.
void AddPatterns(const Fields& step, std::vector<std::string>& patterns) {
  const std::string type = step.TextOr("type", "");
  if (type == "Sequence") {
    for (const Fields& inner : step.Objects("pretokenizers")) {
      if (inner.TextOr("type", "") == "Sequence") {
        step.Fail("pretokenizers", "expected steps, found a sequence in a sequence");
      }
      AddPatterns(inner, patterns);
    }
  } else if (type == "Split") {
    patterns.push_back(step.Object("pattern").Text("Regex"));
    // An expression that matches all text leaves nothing between matches, so keeping only matches
    // keeps everything.
    const std::string behavior = step.TextOr("behavior", "Isolated");
    const bool inverts = step.BoolOr("invert", false);
    const bool keeps_matches =
        behavior == "Removed" && inverts && patterns.back().ends_with("|\\s+");
    if (!keeps_matches && (behavior != "Isolated" || inverts)) {
      step.Fail("behavior", "expected Isolated and not inverted, found ",
                gguf::Quoted(behavior, 40));
    }
  } else if (type == "WhitespaceSplit") {
    patterns.emplace_back(R"(\S+)");
  } else if (type == "Digits") {
    patterns.push_back(step.BoolOr("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
  } else if (type == "ByteLevel") {
    if (!step.BoolOr("use_regex", true)) return;
    patterns.emplace_back(tokenizer::FindSplitRule("gpt-2")->patterns[0]);
  } else if (type == "Punctuation" && step.TextOr("behavior", "Isolated") == "Isolated") {
    patterns.emplace_back(R"(\p{P})");
  } else {
    step.Fail("type", "expected Split, Digits, ByteLevel or Sequence, found ",
              gguf::Quoted(type, 40));
  }
}

std::vector<Fields> PreSteps(const Fields& step) {
  if (step.TextOr("type", "") == "Sequence") return step.Objects("pretokenizers");
  return {step};
}

bool EndsWithBytes(const Fields& step) {
  const std::vector<Fields> steps = PreSteps(step);
  return !steps.empty() && steps.back().TextOr("type", "") == "ByteLevel";
}

}  // namespace

std::string CanonicalPattern(std::string_view pattern) {
  std::string text(pattern);
  for (size_t at = 0; (at = text.find(kAnyCase, at)) != std::string::npos;) {
    text.replace(at, kAnyCase.size(), kBothCases);
  }
  return Parser(text).Canonical();
}

bool PutsSpaceBefore(const Fields& tokenizer) {
  const std::vector<Fields> steps = PreSteps(tokenizer.Object("pre_tokenizer"));
  for (const Fields& step : steps) {
    if (step.TextOr("type", "") != "ByteLevel" || !step.BoolOr("add_prefix_space", false)) continue;
    // The space would be put before each part that other steps have cut.
    if (&step != &steps[0]) step.Fail("add_prefix_space", "expected false after other steps");
    return true;
  }
  return false;
}

const tokenizer::SplitRule& FindSplitRule(const Fields& tokenizer, bool ignore_merges) {
  const Fields step = tokenizer.Object("pre_tokenizer");
  std::vector<std::string> patterns;
  AddPatterns(step, patterns);
  // Known tokenizers are far below this limit; comparing takes time.
  constexpr size_t kMaxPatterns = 64, kMaxBytes = 4096;
  const bool too_long = std::ranges::any_of(
      patterns, [](const std::string& pattern) { return pattern.size() > kMaxBytes; });
  if (patterns.size() > kMaxPatterns || too_long) {
    tokenizer.Fail("pre_tokenizer", "expected at most ", kMaxPatterns, " expressions of at most ",
                   kMaxBytes, " bytes");
  }
  if (!EndsWithBytes(step)) tokenizer.Fail("pre_tokenizer", "expected ByteLevel as the last step");
  const tokenizer::SplitRule* best = nullptr;
  for (const tokenizer::SplitRule& rule : tokenizer::SplitRules()) {
    const bool same = std::ranges::equal(
        rule.Patterns(), patterns, [](std::string_view ours, const std::string& theirs) {
          return CanonicalPattern(ours) == CanonicalPattern(theirs);
        });
    // Programs know gpt-oss by the name of GPT-4o, though it treats whole words as this one does.
    const bool is_alike = rule.names[0] == "granite-embed-multi-97m";
    const bool fits_better = best == nullptr || (best->ignore_merges != ignore_merges &&
                                                 rule.ignore_merges == ignore_merges && !is_alike);
    if (same && fits_better) best = &rule;
  }
  if (best != nullptr) return *best;
  std::string found;
  for (const std::string& pattern : patterns) {
    found += (found.empty() ? "" : ", ") + gguf::Quoted(pattern, 200);
  }
  tokenizer.Fail("pre_tokenizer", "expected the expressions of a tokenizer that is known, found ",
                 found);
}

}  // namespace convert
