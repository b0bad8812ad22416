#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gguf/error.h"
#include "tokenizer/bpe.h"
#include "tokenizer/raw_bpe.h"
#include "tokenizer/spm.h"
#include "tokenizer/utf8.h"

namespace tokenizer {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// One of the ascending spans has a byte of [begin, end).
bool Touches(std::span<const ByteSpan> spans, size_t begin, size_t end) {
  const auto it = std::upper_bound(spans.begin(), spans.end(), begin,
                                   [](size_t at, const ByteSpan& span) { return at < span.end; });
  return it != spans.end() && it->begin < end;
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::Create(const gguf::File& file) {
  const gguf::Metadata& metadata = file.metadata();
  const std::string_view model = metadata.GetString(kModel);
  std::unique_ptr<Tokenizer> tokenizer;
  if (model == "llama") {
    tokenizer = CreateSpm(metadata);
  } else if (model == "gpt2") {
    tokenizer = CreateBpe(metadata);
  } else if (model == "gemma4") {
    tokenizer = CreateRawBpe(metadata);
  } else {
    metadata.Fail(kModel,
                  "expected \"llama\", \"gpt2\" or \"gemma4\", found " + gguf::Quoted(model));
  }
  tokenizer->FindSpecials();
  return tokenizer;
}

Tokenizer::Tokenizer(Vocabulary vocab) : vocab_(std::move(vocab)), index_(vocab_.tokens) {}

void Tokenizer::FindSpecials() {
  std::vector<SpecialMatcher::Entry> user_defined;
  std::vector<SpecialMatcher::Entry> specials;
  for (size_t i = 0; i < vocab_.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const TokenType type = TypeOf(id);
    if (type == TokenType::kUserDefined) {
      user_defined.push_back({TextOf(id), id});
      specials.push_back(user_defined.back());
    } else if (type == TokenType::kControl || type == TokenType::kUnknown) {
      specials.push_back({std::string(Spelling(id)), id});
    }
  }
  user_defined_ = SpecialMatcher(std::move(user_defined));
  specials_ = SpecialMatcher(std::move(specials));
}

std::vector<TokenId> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<TokenId> out;
  if (options.add_bos && vocab_.add_bos && vocab_.bos >= 0) out.push_back(vocab_.bos);
  const SpecialMatcher& matcher = options.parse_special ? specials_ : user_defined_;
  for (size_t at = 0; at < text.size();) {
    SpecialMatcher::Match match = matcher.Find(text, at);
    while (match.length > 0 && TypeOf(match.id) != TokenType::kUserDefined &&
           Touches(options.plain, match.begin, match.begin + match.length)) {
      match = matcher.Find(text, match.begin + 1);
    }
    if (match.begin > at) EncodeBytes(text.substr(at, match.begin - at), out);
    if (match.length > 0) out.push_back(match.id);
    at = match.begin + match.length;
  }
  if (options.add_bos && vocab_.add_eos && vocab_.eos >= 0) out.push_back(vocab_.eos);
  return out;
}

// Text between special tokens: what is valid UTF-8 goes to the family's algorithm, other bytes
// become tokens one by one. A byte that the vocabulary cannot express at all is left out.
void Tokenizer::EncodeBytes(std::string_view text, std::vector<TokenId>& out) const {
  for (bool first = true; !text.empty(); first = false) {
    const size_t valid = ValidUtf8Prefix(text);
    EncodeText(text.substr(0, valid), first, out);
    text.remove_prefix(valid);
    while (!text.empty() && NextUtf8(text).kind != Utf8Kind::kValid) {
      const TokenId byte = ByteToken(static_cast<uint8_t>(text[0]));
      const TokenId id = byte >= 0 ? byte : vocab_.unk;
      if (id >= 0) out.push_back(id);
      text.remove_prefix(1);
    }
  }
}

std::string Tokenizer::Piece(TokenId id, bool special) const {
  if (!vocab_.Has(id)) return "";
  const TokenType type = TypeOf(id);
  if (type == TokenType::kControl || type == TokenType::kUnknown) {
    return special ? std::string(Spelling(id)) : "";
  }
  return TextOf(id);
}

std::string Tokenizer::Decode(const std::vector<TokenId>& ids, bool special) const {
  std::string text;
  bool after_special = true;
  for (const TokenId id : ids) {
    if (!vocab_.Has(id)) continue;
    const std::string piece = Piece(id, special);
    const TokenType type = TypeOf(id);
    const bool is_special = type == TokenType::kControl || type == TokenType::kUserDefined;
    const bool strip =
        vocab_.add_space_prefix && after_special && !is_special && piece.starts_with(' ');
    text.append(piece, strip ? 1 : 0);
    after_special = is_special;
  }
  return text;
}

std::string StreamDecoder::Push(std::string_view bytes) {
  pending_ += bytes;
  std::string_view left = pending_;
  std::string out;
  while (!left.empty()) {
    const Utf8Step step = NextUtf8(left);
    if (step.kind == Utf8Kind::kIncomplete) break;
    out += step.kind == Utf8Kind::kValid ? left.substr(0, step.length) : kReplacement;
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
