#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "gguf/error.h"
#include "gguf/utf8.h"
#include "tokenizer/families.h"

namespace tokenizer {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::Create(const gguf::File& file, size_t rows) {
  const gguf::Metadata& metadata = file.metadata();
  const std::string_view model = metadata.GetString(kModel);
  const std::string_view pre = metadata.GetStringOr("tokenizer.ggml.pre", "");
  std::unique_ptr<Tokenizer> tokenizer;
  // Ollama's files name what the vocabulary looks like, and the way it merges as a split pattern.
  const bool raw = model == "gemma4" || (model == "llama" && pre == "gemma4");
  if (raw) {
    tokenizer = CreateRawBpe(metadata, rows);
  } else if (model == "llama" || model == "t5") {
    tokenizer = CreateSpm(metadata, rows, /*unigram=*/model == "t5");
  } else if (model == "gpt2") {
    tokenizer = CreateBpe(metadata, rows);
  } else if (model == "bert") {
    tokenizer = CreateWordPiece(metadata, rows);
  } else {
    metadata.Fail(kModel, "expected \"llama\", \"t5\", \"gpt2\", \"gemma4\" or \"bert\", found ",
                  gguf::Quoted(model));
  }
  tokenizer->FindSpecials();
  return tokenizer;
}

Tokenizer::Tokenizer(Vocabulary vocab) : vocab_(std::move(vocab)), index_(vocab_.tokens) {}

void Tokenizer::FindSpecials() {
  const auto is_special = [](TokenType type) {
    return type == TokenType::kUserDefined || type == TokenType::kControl ||
           type == TokenType::kUnknown;
  };
  std::vector<SpecialMatcher::Entry> entries;
  entries.reserve(
      static_cast<size_t>(std::count_if(vocab_.types.begin(), vocab_.types.end(), is_special)));
  for (size_t i = 0; i < vocab_.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const TokenType type = TypeOf(id);
    if (type == TokenType::kUserDefined) {
      std::string text = TextOf(id);
      const bool respelt = text != Spelling(id);
      entries.push_back({respelt ? respelt_.emplace_back(std::move(text)) : Spelling(id), id});
    } else if (is_special(type)) {
      entries.push_back({Spelling(id), id, /*user_defined=*/false});
    }
  }
  specials_ = SpecialMatcher(std::move(entries));
}

std::vector<TokenId> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  IdList out(options.most_ids, options.interrupted);
  try {
    EncodeAll(text, options, out);
  } catch (const IdList::Full&) {
  }
  return out.Take();
}

void Tokenizer::EncodeAll(std::string_view text, const EncodeOptions& options, IdList& out) const {
  if (options.add_bos && vocab_.add_bos && vocab_.bos >= 0) out.push_back(vocab_.bos);
  const std::function<void()> tick = [&] { out.Look(); };
  SpecialMatcher::Search search(specials_, text, options.parse_special, options.plain, tick);
  for (size_t at = 0; at < text.size();) {
    const SpecialMatcher::Match match = search.Next(at);
    if (match.begin > at) EncodeBytes(text.substr(at, match.begin - at), out);
    if (match.length > 0) out.push_back(match.id);
    at = match.begin + match.length;
  }
  if (options.add_bos && vocab_.add_eos && vocab_.eos >= 0) out.push_back(vocab_.eos);
  if (options.add_bos && vocab_.ends_with_sep && vocab_.sep >= 0) out.push_back(vocab_.sep);
}

// Text between special tokens: valid UTF-8 goes to the family's algorithm, other bytes become
// tokens one by one. A byte that the vocabulary cannot express is dropped.
void Tokenizer::EncodeBytes(std::string_view text, IdList& out) const {
  for (bool first = true; !text.empty(); first = false) {
    const size_t valid = gguf::ValidUtf8Prefix(text);
    EncodeText(text.substr(0, valid), first, out);
    text.remove_prefix(valid);
    while (!text.empty() && gguf::NextUtf8(text).kind != gguf::Utf8Kind::kValid) {
      Append(ByteToken(static_cast<uint8_t>(text[0])), out);
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
