// Each step's work on a text.
#include "tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include "gguf/error.h"
#include "gguf/utf8.h"
#include "tokenizer/characters.h"
#include "tokenizer/normal_form.h"
#include "tokenizer/spelling.h"
#include "tokenizer/unicode_data.h"

namespace tokenizer {
namespace {

using Form = std::pair<std::string_view, NormalForm>;
constexpr Form kForms[] = {{"NFC", NormalForm::kNfc},
                           {"NFD", NormalForm::kNfd},
                           {"NFKC", NormalForm::kNfkc},
                           {"NFKD", NormalForm::kNfkd}};

const Form* FindForm(std::string_view name) {
  const auto* const form = std::ranges::find(kForms, name, &Form::first);
  return form == std::end(kForms) ? nullptr : form;
}

std::string Lowercase(std::string_view text) { return ToLowerCase(text); }
std::string StripLeft(std::string_view text) {
  return std::string(text.substr(Leading(IsWhiteSpace, text)));
}
std::string StripRight(std::string_view text) {
  return std::string(text.substr(0, text.size() - Trailing(IsWhiteSpace, text)));
}

// Steps without arguments.
using PlainStep = std::pair<std::string_view, std::string (*)(std::string_view)>;
constexpr PlainStep kPlainSteps[] = {{"Lowercase", Lowercase},
                                     {"StripAccents", WithoutMarks},
                                     {"StripLeft", StripLeft},
                                     {"StripRight", StripRight}};

}  // namespace

std::string WithoutMarks(std::string_view text) {
  static const CharacterSet marks(kMarks);
  std::string out;
  for (const auto& [c, bytes] : gguf::Characters(text)) {
    if (c < 0x300 || !marks.Has(c)) out += bytes;
  }
  return out;
}

Normalizer::Normalizer(const gguf::Metadata& metadata, std::string_view otherwise) {
  constexpr size_t kMaxWords = 48, kMaxText = 256;
  if (!metadata.Has(kNormalizerKey)) {
    if (!otherwise.empty()) steps_.push_back({otherwise, {}, {}});
    return;
  }
  const std::vector<std::string_view> words = metadata.GetStrings(kNormalizerKey);
  if (words.size() > kMaxWords)
    metadata.Fail(kNormalizerKey, "expected at most ", kMaxWords, " words");
  size_t growth = 1;
  for (size_t i = 0; i < words.size(); ++i) {
    Step step{words[i], {}, {}};
    const bool replaces = step.name == "Replace", prepends = step.name == "Prepend";
    const bool is_form = FindForm(step.name) != nullptr;
    const size_t n_arguments = replaces ? 2 : prepends ? 1 : 0;
    const auto* const plain = std::ranges::find(kPlainSteps, step.name, &PlainStep::first);
    if (!replaces && !prepends && !is_form && plain == std::end(kPlainSteps)) {
      metadata.Fail(
          kNormalizerKey,
          "expected NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, StripLeft, StripRight, "
          "Replace or Prepend, found ",
          gguf::Quoted(step.name, 40));
    }
    if (words.size() - i <= n_arguments) {
      metadata.Fail(kNormalizerKey, "expected ", n_arguments, " texts after ", step.name);
    }
    if (replaces) step.what = words[++i];
    if (replaces || prepends) step.with = words[++i];
    const auto is_text = [](std::string_view text) {
      return text.size() <= kMaxText && gguf::ValidUtf8Prefix(text) == text.size();
    };
    if ((replaces && step.what.empty()) || !is_text(step.what) || !is_text(step.with)) {
      metadata.Fail(kNormalizerKey, "expected texts of at most ", kMaxText, " bytes for ",
                    step.name);
    }
    if (replaces)
      growth *= std::max(size_t{1}, (step.with.size() + step.what.size() - 1) / step.what.size());
    if (step.name.starts_with("NFK")) growth *= kMaxFormGrowth;
    if (step.name.starts_with("NF")) growth = std::max(growth, size_t{3});
    if (growth > kMaxGrowth) {
      metadata.Fail(kNormalizerKey, "expected steps that make a text at most ", kMaxGrowth,
                    " times as long");
    }
    steps_.push_back(step);
  }
}

std::string Normalizer::operator()(std::string_view text) const {
  std::string now(text);
  for (const Step& step : steps_) {
    if (const auto* const form = FindForm(step.name)) {
      now = ToNormalForm(now, form->second);
    } else if (step.name == "Replace") {
      now = ReplaceAll(now, step.what, step.with);
    } else if (step.name == "Prepend") {
      if (!now.empty()) now.insert(0, step.with);
    } else {
      now = std::ranges::find(kPlainSteps, step.name, &PlainStep::first)->second(now);
    }
  }
  return now;
}

}  // namespace tokenizer
