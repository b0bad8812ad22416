// Cuts a text at special tokens, encodes the rest by kind, decodes ids.
#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "gguf/error.h"
#include "gguf/utf8.h"
#include "tokenizer/characters.h"
#include "tokenizer/kinds.h"
#include "tokenizer/spelling.h"

namespace tokenizer {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
// A character of a word: \w in regular expressions.
constexpr SplitRule kWordCharacter = {
    .names = {},
    .patterns = {R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}])"}};

// Names of split patterns whose vocabularies merge characters instead of bytes.
constexpr std::string_view kRawNames[] = {"gemma4", "granite-embed-multi-311m", "sarvam-moe"};

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::Create(const gguf::File& file, size_t rows) {
  const gguf::Metadata& metadata = file.metadata();
  const std::string_view model = metadata.GetString(kModel);
  const std::string_view pre = metadata.GetStringOr("tokenizer.ggml.pre", "");
  std::unique_ptr<Tokenizer> tokenizer;
  // In Ollama's files `model` tells how tokens are spelt, and `pre` (the split pattern) how they
  // merge.
  const bool raw = model == "gemma4" || (model == "llama" && pre == "gemma4") ||
                   (model == "gpt2" && std::ranges::count(kRawNames, pre) > 0);
  if (raw) {
    tokenizer = CreateRawBpe(metadata, rows);
  } else if (model == "llama") {
    tokenizer = CreateSpm(metadata, rows);
  } else if (model == "t5") {
    tokenizer = CreateUnigram(metadata, rows);
  } else if (model == "gpt2") {
    tokenizer = CreateBpe(metadata, rows);
  } else if (model == "bert") {
    tokenizer = CreateWordPiece(metadata, rows);
  } else {
    metadata.Fail(kModel, "expected \"llama\", \"t5\", \"gpt2\", \"gemma4\" or \"bert\", found ",
                  gguf::Quoted(model));
  }
  tokenizer->FindSpecials(metadata);
  return tokenizer;
}

Tokenizer::Tokenizer(Vocabulary vocab) : vocab_(std::move(vocab)), index_(vocab_.tokens) {}

void Tokenizer::FindSpecials(const gguf::Metadata& metadata) {
  normalizer_ = Normalizer(metadata, DefaultNormalizer());
  const auto is_special = [](TokenType type) {
    return type == TokenType::kUserDefined || type == TokenType::kControl ||
           type == TokenType::kUnknown;
  };
  std::vector<SpecialMatcher::Entry> entries, normalized;
  entries.reserve(
      static_cast<size_t>(std::count_if(vocab_.types.begin(), vocab_.types.end(), is_special)));
  for (size_t i = 0; i < vocab_.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const TokenType type = TypeOf(id);
    const uint8_t added = vocab_.AddedFlags(id);
    if (type == TokenType::kUserDefined) {
      // Where U+2581 is a space, the token is found in either spelling.
      const bool in_normal = (added & kNormalized) != 0;
      std::string text = in_normal ? normalizer_(TextOf(id)) : TextOf(id);
      auto& list = in_normal ? normalized : entries;
      if (!in_normal) list.push_back({Spelling(id), id});
      if (in_normal || text != Spelling(id)) {
        list.push_back({respelt_.emplace_back(std::move(text)), id});
      }
    } else if (is_special(type)) {
      entries.push_back({Spelling(id), id, /*user_defined=*/false});
    }
    if ((added & kSingleWord) != 0 && word_ == nullptr) {
      word_ = std::make_unique<const Splitter>(kWordCharacter);
    }
  }
  specials_ = SpecialMatcher(std::move(entries));
  finds_normalized_ = !normalized.empty();
  normalized_ = SpecialMatcher(std::move(normalized));
}

std::vector<TokenId> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  IdList out(options.max_ids, options.should_stop);
  try {
    EncodeAll(text, options, out);
  } catch (const IdList::Full&) {
  }
  return out.Take();
}

void Tokenizer::EncodeAll(std::string_view text, const EncodeOptions& options, IdList& out) const {
  if (options.add_special && vocab_.add_bos) {
    if (vocab_.bos >= 0) out.push_back(vocab_.bos);
    for (const TokenId id : vocab_.after_bos) out.push_back(id);
  }
  const std::function<void()> tick = [&] { out.Check(); };
  SpecialMatcher::Search search(specials_, text, options.parse_special, options.plain, tick);
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const SpecialMatcher::Match match = search.Next(at);
    if (match.length == 0) break;
    at = match.begin + match.length;
    const uint8_t added = vocab_.AddedFlags(match.id);
    if ((added & kSingleWord) != 0 && IsInWord(text, match.begin, at)) continue;
    if (match.begin > done) {
      std::string_view before = text.substr(done, match.begin - done);
      if ((added & kLstrip) != 0) before.remove_suffix(Trailing(IsWhiteSpace, before));
      if (!before.empty()) EncodeBytes(before, done == 0, out);
    }
    out.push_back(match.id);
    // A token may lie in the white space that the previous token absorbed, which is not encoded
    // again.
    if (done < at)
      done = at + ((added & kRstrip) != 0 ? Leading(IsWhiteSpace, text.substr(at)) : 0);
  }
  if (done < text.size()) EncodeBytes(text.substr(done), done == 0, out);
  if (options.add_special && vocab_.add_eos && vocab_.eos >= 0) out.push_back(vocab_.eos);
  if (options.add_special && vocab_.ends_with_sep && vocab_.sep >= 0) out.push_back(vocab_.sep);
}

// Whether the character before or after these bytes belongs to a word (\w).
bool Tokenizer::IsInWord(std::string_view text, size_t begin, size_t end) const {
  bool found = false;
  const auto look = [&](std::string_view character) {
    if (gguf::ValidUtf8Prefix(character) != character.size()) return;
    word_->Match(character, [&](std::string_view) { found = true; });
  };
  if (begin > 0) look(CharBefore(text, begin).bytes);
  if (end < text.size()) look(text.substr(end, gguf::NextUtf8(text.substr(end)).length));
  return found;
}

// Text between special tokens: valid UTF-8 goes to the kind's algorithm, other bytes become
// tokens one by one. A byte that the vocabulary cannot express is dropped. at_start: no token of
// the text comes before it.
void Tokenizer::EncodeBytes(std::string_view text, bool at_start, IdList& out) const {
  for (bool first = true; !text.empty(); first = false) {
    const size_t valid = gguf::ValidUtf8Prefix(text);
    const std::string_view part = text.substr(0, valid);
    if (normalizer_.empty()) {
      EncodeNormalized(part, first, at_start, out);
    } else if (const std::string normal = normalizer_(part); !normal.empty() || part.empty()) {
      EncodeNormalized(normal, first, at_start, out);  // no space is put before an empty text
    }
    text.remove_prefix(valid);
    while (!text.empty() && gguf::NextUtf8(text).kind != gguf::Utf8Kind::kValid) {
      Append(ByteToken(static_cast<uint8_t>(text[0])), out);
      text.remove_prefix(1);
    }
  }
}

void Tokenizer::EncodeNormalized(std::string_view text, bool first, bool at_start,
                                 IdList& out) const {
  if (!finds_normalized_) {
    EncodeText(text, GetsSpace(text, first, at_start), out);
    return;
  }
  const std::function<void()> tick = [&] { out.Check(); };
  SpecialMatcher::Search search(normalized_, text, /*control=*/false, {}, tick);
  for (size_t at = 0; at < text.size();) {
    const SpecialMatcher::Match match = search.Next(at);
    const std::string_view before = text.substr(at, match.begin - at);
    if (!before.empty()) EncodeText(before, GetsSpace(before, first, at_start && at == 0), out);
    if (match.length > 0) out.push_back(match.id);
    at = match.begin + match.length;
  }
}

// Whether a space goes before this text. first: the first part since a special token; at_start: no
// token of the text comes before it.
bool Tokenizer::GetsSpace(std::string_view text, bool first, bool at_start) const {
  const bool has_space = text.starts_with(' ') || text.starts_with(kSpaceMark);
  switch (vocab_.space_prefix) {
    case SpacePrefix::kNone:
      return false;
    case SpacePrefix::kEach:
      return first;
    case SpacePrefix::kEachUnlessSpace:
      return first && !has_space;
    case SpacePrefix::kFirst:
      return first && at_start && !has_space;
  }
  return false;
}

std::string Tokenizer::Piece(TokenId id, bool special) const {
  if (!vocab_.Has(id)) return "";
  const TokenType type = TypeOf(id);
  if (type == TokenType::kControl || type == TokenType::kUnknown) {
    return special ? std::string(Spelling(id)) : "";
  }
  if (type == TokenType::kByte) return {static_cast<char>(ByteOfToken(Spelling(id)))};
  return TextOf(id);
}

std::string Tokenizer::Decode(const std::vector<TokenId>& ids, bool special) const {
  std::string text;
  bool after_special = true;
  for (const TokenId id : ids) {
    if (!vocab_.Has(id)) continue;
    const std::string piece = Piece(id, special);
    const TokenType type = TypeOf(id);
    const bool is_special = type == TokenType::kControl || type == TokenType::kUserDefined ||
                            type == TokenType::kUnknown;
    const bool strip =
        vocab_.add_space_prefix && after_special && !is_special && piece.starts_with(' ');
    text.append(piece, strip ? 1 : 0);
    after_special = is_special && vocab_.space_prefix != SpacePrefix::kFirst;
  }
  return text;
}

std::string StreamDecoder::Push(std::string_view bytes) {
  pending_ += bytes;
  std::string_view left = pending_;
  std::string out;
  while (!left.empty()) {
    const gguf::Utf8Step step = gguf::NextUtf8(left);
    if (step.kind == gguf::Utf8Kind::kIncomplete) break;
    out += step.kind == gguf::Utf8Kind::kValid ? left.substr(0, step.length) : kReplacement;
    left.remove_prefix(step.length);
  }
  pending_ = std::string(left);
  return out;
}

std::string StreamDecoder::Finish() {
  const bool incomplete = !std::exchange(pending_, {}).empty();
  return std::string(incomplete ? kReplacement : "");
}

}  // namespace tokenizer
