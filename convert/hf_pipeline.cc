// The fields of a tokenizer.json beside its vocabulary: the steps before and after a text is cut
// into tokens. Each field is carried out, refused by name, or has no effect on ids: convert/README.
#include <algorithm>
#include <initializer_list>
#include <unordered_set>
#include <utility>

#include "convert/hf_tokenizer.h"
#include "gguf/error.h"
#include "tokenizer/spelling.h"

namespace convert {
namespace {

using tokenizer::kSpaceMark;
using tokenizer::TokenType;

// All ways to cut a token in two are tried.
constexpr size_t kLongestChecked = 256;

// An unknown field may change ids.
void ExpectFields(const Fields& object, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.json()) {
    if (std::ranges::find(known, key) == known.end()) object.Fail(key, "this field is not known");
  }
}

// The parts of a step, or of a sequence of steps; none for null.
std::vector<Fields> Steps(const Fields& tokenizer, const char* key, const char* list) {
  const Fields all = tokenizer.Object(key);
  if (!all.is_there()) return {};
  if (all.TextOr("type", "") != "Sequence") return {all};
  ExpectFields(all, {"type", list});
  return all.Objects(list);
}

[[noreturn]] void FailType(const Fields& step, std::string_view expected) {
  step.Fail("type", "expected ", expected, ", found ", gguf::Quoted(step.TextOr("type", ""), 40));
}

// The text of {"String": ...}; empty for {"Regex": ...}, which the caller may know.
std::string LiteralPattern(const Fields& step) {
  const Fields pattern = step.Object("pattern");
  ExpectFields(pattern, {"String", "Regex"});
  return pattern.TextOr("String", "");
}

class NormalizerReader {
 public:
  explicit NormalizerReader(Vocabulary& vocab)
      : vocab_(vocab),
        marks_spaces_(vocab.model == "llama" || vocab.model == "gemma4"),
        pieces_(vocab.model == "bert"),
        unigram_(vocab.model == "t5") {}

  void Read(const std::vector<Fields>& steps) {
    if (pieces_) vocab_.lowers = vocab_.strips = vocab_.cleans = vocab_.splits_ideographs = false;
    for (const Fields& step : steps) ReadStep(step);
    if (marks_spaces_) vocab_.add_space_prefix = prepends_;
    vocab_.normalizer = std::move(words_);
  }
  // Unigram: white space at a text's ends is dropped, runs of spaces become one space.
  bool strips_left() const { return strips_left_; }
  bool strips_right() const { return strips_right_; }
  bool joins_spaces() const { return joins_spaces_; }
  // Whether U+2581 replaces each space.
  bool marks_spaces() const { return has_marks_; }

 private:
  void ReadStep(const Fields& step) {
    const std::string type = step.TextOr("type", "");
    constexpr std::string_view kPlain[] = {"NFC",  "NFD",       "NFKC",
                                           "NFKD", "Lowercase", "StripAccents"};
    if (std::ranges::count(kPlain, type) > 0) {
      ExpectFields(step, {"type"});
      words_.push_back(type);
    } else if (type == "Strip") {
      ExpectFields(step, {"type", "strip_left", "strip_right"});
      if (prepends_ || joins_spaces_) {
        step.Fail("type", "expected Strip before ", prepends_ ? "Prepend" : "Replace");
      }
      const bool left = step.BoolOr("strip_left", true), right = step.BoolOr("strip_right", true);
      strips_left_ |= left;
      strips_right_ |= right;
      if (left) words_.push_back("StripLeft");
      if (right) words_.push_back("StripRight");
    } else if (type == "Prepend") {
      ExpectFields(step, {"type", "prepend"});
      const std::string text = step.Text("prepend");
      if (marks_spaces_ && text == kSpaceMark && !prepends_) {
        prepends_ = true;
      } else {
        words_.insert(words_.end(), {"Prepend", text});
      }
    } else if (type == "Replace") {
      ReadReplace(step);
    } else if (type == "Precompiled" && unigram_) {
      ExpectFields(step, {"type", "precompiled_charsmap"});
      if (strips_left_ || strips_right_ || joins_spaces_) {
        step.Fail("type", "expected Precompiled before Strip and Replace");
      }
      maps_ = true;
    } else if (type == "BertNormalizer" && pieces_ && words_.empty() && !bert_) {
      ExpectFields(step,
                   {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
      bert_ = true;
      vocab_.lowers = step.BoolOr("lowercase", true);
      vocab_.strips = step.BoolOr("strip_accents", *vocab_.lowers);
      vocab_.cleans = step.BoolOr("clean_text", true);
      vocab_.splits_ideographs = step.BoolOr("handle_chinese_chars", true);
    } else {
      FailType(step, "a step that this program supports");
    }
    // sentencepiece applies the table of characters, so it has to come last.
    if (maps_ && type != "Precompiled" && type != "Strip" && !joins_spaces_) {
      step.Fail("type",
                "expected no step after Precompiled but Strip and Replace of runs of spaces");
    }
    // WordPiece cleans and lowers after all other steps.
    if (bert_ && !words_.empty()) step.Fail("type", "expected no step after BertNormalizer");
  }

  void ReadReplace(const Fields& step) {
    ExpectFields(step, {"type", "pattern", "content"});
    const std::string text = LiteralPattern(step), content = step.Text("content");
    if (text.empty()) {
      // Runs of spaces become one space, as in sentencepiece's Unigram.
      const bool joins_spaces = step.Object("pattern").TextOr("Regex", "") == " {2,}" &&
                                (content == " " || content == kSpaceMark);
      if (unigram_ && joins_spaces) {
        joins_spaces_ = true;
        return;
      }
      step.Fail("pattern", "expected a text to replace");
    }
    if (marks_spaces_ && text == " " && content == kSpaceMark) {
      has_marks_ = true;
      return;
    }
    words_.insert(words_.end(), {"Replace", text, content});
  }

  Vocabulary& vocab_;
  bool marks_spaces_, pieces_, unigram_;
  bool prepends_ = false, bert_ = false;
  bool strips_left_ = false, strips_right_ = false, joins_spaces_ = false, maps_ = false;
  bool has_marks_ = false;
  std::vector<std::string> words_;
};

// The white space that a Unigram's text keeps: sentencepiece drops it at the ends and in runs, or
// keeps all of it. Other rules are refused.
void ReadUnigramSpaces(const Fields& tokenizer, const NormalizerReader& normalizer,
                       const std::vector<Fields>& steps, Vocabulary& vocab) {
  const bool splits = std::ranges::any_of(
      steps, [](const Fields& step) { return step.TextOr("type", "") == "WhitespaceSplit"; });
  const bool prepends = vocab.add_space_prefix.value_or(true), maps = !vocab.charsmap.empty();
  if (splits) {
    // WhitespaceSplit drops all white space; the table of characters turns it into spaces.
    if (!maps) tokenizer.Fail("normalizer", "expected Precompiled, since words are apart");
    if (!prepends) tokenizer.Fail("pre_tokenizer", "expected a space before each word");
  } else if (normalizer.joins_spaces()) {
    if (!normalizer.strips_right()) tokenizer.Fail("normalizer", "expected Strip at the right");
    if (!prepends && !normalizer.strips_left())
      tokenizer.Fail("normalizer", "expected Strip at the left");
  } else {
    vocab.trims_spaces = false;
    // The spaces are known only after the table of characters.
    if (maps && (prepends || normalizer.strips_left() || normalizer.strips_right())) {
      tokenizer.Fail("normalizer", "expected a Replace of runs of spaces beside Precompiled");
    }
    if (prepends) vocab.space_prefix = "always";
  }
}

// Metaspace, and steps that do nothing once spaces are marked.
void ReadMetaspace(const std::vector<Fields>& steps, Vocabulary& vocab) {
  const bool unigram = vocab.model == "t5";
  for (const Fields& step : steps) {
    const std::string type = step.TextOr("type", "");
    if (type == "WhitespaceSplit" && unigram) {
      ExpectFields(step, {"type"});
    } else if (type == "Split" && !unigram && LiteralPattern(step) == " ") {
      ExpectFields(step, {"type", "pattern", "behavior", "invert"});
    } else if (type == "Metaspace") {
      ExpectFields(
          step, {"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
      if (step.TextOr("replacement", std::string(kSpaceMark)) != kSpaceMark) {
        step.Fail("replacement", "expected U+2581");
      }
      const std::string scheme =
          step.TextOr("prepend_scheme", step.BoolOr("add_prefix_space", true) ? "always" : "never");
      if (scheme != "always" && scheme != "first" && scheme != "never") {
        step.Fail("prepend_scheme", "expected always, first or never, found ",
                  gguf::Quoted(scheme, 40));
      }
      if (unigram && scheme == "first") step.Fail("prepend_scheme", "expected always or never");
      if (vocab.add_space_prefix.value_or(false)) {
        step.Fail("type", "expected Metaspace or Prepend, found both");
      }
      vocab.add_space_prefix = scheme != "never";
      if (!unigram && scheme != "never") vocab.space_prefix = scheme;
      if (!step.BoolOr("split", true)) continue;
      for (size_t i = 0; i < vocab.tokens.size(); ++i) {
        if (vocab.types[i] != TokenType::kNormal || vocab.tokens[i].size() <= kSpaceMark.size() ||
            vocab.tokens[i].find(kSpaceMark, kSpaceMark.size()) == std::string::npos) {
          continue;
        }
        step.Fail("split", "expected false: a token has a space after something else, ",
                  gguf::Quoted(vocab.tokens[i], 40));
      }
    } else {
      FailType(step, unigram ? "Metaspace or WhitespaceSplit" : "Metaspace");
    }
  }
}

// The special tokens around every text.
void ReadPostProcessor(const std::vector<Fields>& steps, Vocabulary& vocab) {
  for (const Fields& step : steps) {
    const std::string type = step.TextOr("type", "");
    if (type == "ByteLevel") {  // affects only offsets
      ExpectFields(step, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      ExpectFields(step, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    } else if (type == "TemplateProcessing") {
      ExpectFields(step, {"type", "single", "pair", "special_tokens"});
      bool after = false;
      vocab.around.emplace();
      for (const Fields& part :
           step.IsList("single") ? step.Objects("single") : std::vector<Fields>()) {
        ExpectFields(part, {"SpecialToken", "Sequence"});
        if (part.Has("Sequence")) {
          if (std::exchange(after, true)) step.Fail("single", "expected the text once");
        } else {
          (after ? vocab.around->after : vocab.around->before)
              .push_back(part.Object("SpecialToken").Text("id"));
        }
      }
      if (vocab.around->after.size() > 1) {
        step.Fail("single", "expected at most one token after the text, found ",
                  vocab.around->after.size());
      }
    } else {
      FailType(step, "TemplateProcessing, RobertaProcessing, BertProcessing or ByteLevel");
    }
  }
}

// How added tokens are found in a text.
void ReadAddedTokens(const Fields& tokenizer, Vocabulary& vocab) {
  if (!tokenizer.IsList("added_tokens")) return;
  vocab.added.resize(vocab.tokens.size());
  const bool prepends = vocab.add_space_prefix.value_or(false) && vocab.space_prefix.empty();
  bool normalizes = false;
  for (const Fields& token : tokenizer.Objects("added_tokens")) {
    ExpectFields(token,
                 {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    const uint64_t id = token.json()["id"].Unsigned().value_or(kMaxVocabularySize);
    if (id >= vocab.tokens.size())
      token.Fail("id", "expected a number below ", vocab.tokens.size());
    const auto set = [&](const char* key, tokenizer::AddedToken flag) {
      if (token.BoolOr(key, false)) vocab.added[id] = static_cast<uint8_t>(vocab.added[id] | flag);
    };
    set("lstrip", tokenizer::kLstrip);
    set("rstrip", tokenizer::kRstrip);
    set("single_word", tokenizer::kSingleWord);
    // Control tokens are found in the original text, where the origin of each byte is known.
    if (vocab.types[id] != TokenType::kUserDefined) continue;
    if (vocab.normalizer->empty() && !(vocab.model == "llama" && prepends)) continue;
    set("normalized", tokenizer::kNormalized);
    normalizes |= token.BoolOr("normalized", false);
  }
  // A token in a text with a space before it has that space, too.
  if (normalizes && vocab.model == "llama" && prepends) {
    vocab.add_space_prefix = false;
    const std::string mark(kSpaceMark);
    vocab.normalizer->insert(vocab.normalizer->end(), {"Prepend", mark, "Replace", " ", mark});
  }
}

void CheckModel(const Fields& model, const Vocabulary& vocab) {
  const auto expect_none = [&](const char* key) {
    const bool is_none = !model.Has(key) || (model.IsText(key) && model.Text(key).empty()) ||
                         (model.json()[key].IsNumber() && model.Number(key) == 0);
    if (!is_none) model.Fail(key, "expected none");
  };
  const std::string type = model.TextOr("type", "BPE");
  if (type == "BPE") {
    ExpectFields(model,
                 {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                  "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      expect_none(key);
    }
    if (vocab.model == "gpt2") return;
    if (model.BoolOr("ignore_merges", false)) {
      model.Fail("ignore_merges", "expected false for merges of characters");
    }
    const auto n_bytes = std::ranges::count(vocab.types, TokenType::kByte);
    if (!model.BoolOr("fuse_unk", false) && n_bytes < 256) {
      model.Fail("fuse_unk", "expected true, since bytes have no token");
    }
  } else if (type == "WordPiece") {
    ExpectFields(model, {"type", "unk_token", "continuing_subword_prefix",
                         "max_input_chars_per_word", "vocab"});
    if (model.TextOr("continuing_subword_prefix", "##") != "##") {
      model.Fail("continuing_subword_prefix", "expected \"##\"");
    }
  } else {
    ExpectFields(model, {"type", "unk_id", "byte_fallback", "vocab"});
  }
}

}  // namespace

void ReadPipeline(const Fields& tokenizer, Vocabulary& vocab) {
  ExpectFields(tokenizer, {"version", "truncation", "padding", "added_tokens", "normalizer",
                           "pre_tokenizer", "post_processor", "decoder", "model"});
  if (tokenizer.TextOr("version", "1.0") != "1.0") tokenizer.Fail("version", "expected \"1.0\"");
  CheckModel(tokenizer.Object("model"), vocab);
  NormalizerReader normalizer(vocab);
  normalizer.Read(Steps(tokenizer, "normalizer", "normalizers"));
  const std::vector<Fields> steps = Steps(tokenizer, "pre_tokenizer", "pretokenizers");
  if (vocab.model == "llama" || vocab.model == "t5" || vocab.model == "gemma4") {
    ReadMetaspace(steps, vocab);
    if (vocab.model == "t5") ReadUnigramSpaces(tokenizer, normalizer, steps, vocab);
  } else if (vocab.model == "bert") {
    for (const Fields& step : steps) {
      if (step.TextOr("type", "") != "BertPreTokenizer") FailType(step, "BertPreTokenizer");
    }
  }
  ReadPostProcessor(Steps(tokenizer, "post_processor", "processors"), vocab);
  ReadAddedTokens(tokenizer, vocab);
  // A tokenizer.json beside a tokenizer.model may lack both fields.
  bool says_how_to_cut = false;
  for (const auto& [key, value] : tokenizer.json()) {
    says_how_to_cut |= key == "normalizer" || key == "pre_tokenizer";
  }
  const bool has_marks =
      normalizer.marks_spaces() || std::ranges::any_of(steps, [](const Fields& step) {
        return step.TextOr("type", "") == "Metaspace";
      });
  const bool has_mark_tokens =
      vocab.model == "llama" || vocab.model == "t5" || vocab.model == "gemma4";
  if (has_mark_tokens && !has_marks && says_how_to_cut) {
    tokenizer.Fail("pre_tokenizer", "expected Metaspace, since spaces are U+2581 in tokens");
  }
}

std::string WhyNotByScores(const Vocabulary& vocab) {
  std::unordered_set<std::string_view> seen, mergeable;
  const std::unordered_set<std::string_view> listed(vocab.merges.begin(), vocab.merges.end());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (vocab.types[i] == TokenType::kNormal) mergeable.insert(vocab.tokens[i]);
  }
  std::string last;
  for (const std::string& merge : vocab.merges) {
    const size_t space = std::min(merge.find(' '), merge.size() - 1);
    const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
    const std::string whole = left + right;
    const auto token = mergeable.find(whole);
    if (token == mergeable.end() || !mergeable.contains(left) || !mergeable.contains(right)) {
      continue;  // an added token, which is found before
    }
    if (!seen.insert(*token).second && whole != last) {
      return "expected the merges to one token one after the other, found " +
             gguf::Quoted(merge, 80) + " later";
    }
    last = whole;
  }
  std::string merge;
  for (const std::string_view token : mergeable) {
    for (size_t at = 1; at < token.size() && token.size() <= kLongestChecked; ++at) {
      if (!mergeable.contains(token.substr(0, at)) || !mergeable.contains(token.substr(at)))
        continue;
      merge.assign(token).insert(at, " ");
      if (listed.contains(merge)) continue;
      return "expected all pairs of tokens that spell a third, and not " + gguf::Quoted(merge, 80);
    }
  }
  return {};
}

}  // namespace convert
