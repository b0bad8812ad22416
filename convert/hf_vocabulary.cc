// Reads vocabularies that are text, see hf_tokenizer.h.
#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "convert/hf_tokenizer.h"
#include "gguf/error.h"
#include "gguf/number.h"
#include "tokenizer/spelling.h"
#include "tokenizer/word_merger.h"

namespace convert {
namespace {

using tokenizer::TokenType;

constexpr float kUnusedScore = -10000;

// The normalizer: steps that change a text before it is split into tokens.
std::vector<Fields> Normalizers(const Fields& tokenizer) {
  const Fields all = tokenizer.Object("normalizer");
  if (all.TextOr("type", "") != "Sequence") return {all};
  return all.Objects("normalizers");
}

std::string FromBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  for (size_t n = 0; n < text.size() && kDigits.find(text[n]) != std::string_view::npos; ++n) {
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(text[n]));
    if (n % 4 != 0) out += static_cast<char>(bits >> (6 - 2 * (n % 4)) & 0xFF);
  }
  return out;
}

// Pieces with their scores, in the order of their numbers.
void ReadPieces(const Fields& tokenizer, const Fields& model, Vocabulary& vocab) {
  for (const auto& [none, piece] : model.json()["vocab"]) {
    std::vector<JsonView> pair;
    for (const auto& [no_key, value] : piece) pair.push_back(value);
    if (pair.size() != 2 || !pair[0].IsString() || !pair[1].IsNumber() ||
        vocab.tokens.size() == kMaxVocabularySize) {
      model.Fail("vocab", "expected up to ", kMaxVocabularySize, " pairs of a token and its score");
    }
    vocab.tokens.push_back(pair[0].String());
    vocab.scores.push_back(static_cast<float>(pair[1].Number()));
  }
  vocab.types.resize(vocab.tokens.size(), TokenType::kNormal);
  const uint64_t unknown = model.UintOr("unk_id", 0);
  if (unknown < vocab.types.size()) vocab.types[unknown] = TokenType::kUnknown;
  for (const Fields& step : Normalizers(tokenizer)) {
    if (step.TextOr("type", "") == "Precompiled")
      vocab.charsmap = FromBase64(step.TextOr("precompiled_charsmap", ""));
  }
}

void ReadTokens(const Fields& tokenizer, const Fields& model, Vocabulary& vocab) {
  const Fields tokens = model.IsObject("vocab") ? model.Object("vocab") : Fields();
  const auto add = [&](const std::string& token, std::optional<uint64_t> id, TokenType type) {
    if (!id || *id >= kMaxVocabularySize) {
      tokens.Fail(token, "expected a token's number below ", kMaxVocabularySize);
    }
    const size_t at = *id;
    vocab.Grow(at + 1, 0);
    if (vocab.types[at] == TokenType::kUnknown && vocab.tokens[at] == token) return;
    if (vocab.types[at] != TokenType::kUnused && vocab.tokens[at] != token) {
      tokens.Fail(token, "expected a number of its own, found that of ",
                  gguf::Quoted(vocab.tokens[at], 40));
    }
    vocab.tokens[at] = token;
    vocab.types[at] = type;
  };
  for (const auto& [token, id] : tokens.json()) add(token, id.Unsigned(), TokenType::kNormal);
  if (!tokenizer.IsList("added_tokens")) return;
  for (const Fields& token : tokenizer.Objects("added_tokens")) {
    add(token.Text("content"), token.json()["id"].Unsigned(),
        token.BoolOr("special", false) || LooksSpecial(token.Text("content"))
            ? TokenType::kControl
            : TokenType::kUserDefined);
  }
}

// Sentencepiece merges by score, which tokenizer.json lacks: earlier merges get larger scores.
void ScoresByMerges(Vocabulary& vocab) {
  std::map<std::string, float> scores;
  for (size_t i = 0; i < vocab.merges.size(); ++i) {
    std::string text = vocab.merges[i];
    const size_t space = text.find(' ');
    if (space != std::string::npos) text.erase(space, 1);
    scores.emplace(std::move(text), -static_cast<float>(i));
  }
  const auto last = -static_cast<float>(vocab.merges.size());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const auto found = scores.find(vocab.tokens[i]);
    vocab.scores.push_back(found != scores.end() ? found->second : last);
  }
  vocab.merges.clear();
}

// Added tokens that are spaces, such as Gemma's, are matched before spaces become U+2581. So in the
// library only merges turn a run of spaces into such a token.
void MergeSpaces(const Fields& tokenizer, const Fields& model, Vocabulary& vocab) {
  if (!model.IsObject("vocab") || !tokenizer.IsList("added_tokens")) return;
  const Fields tokens = model.Object("vocab");
  for (const Fields& token : tokenizer.Objects("added_tokens")) {
    const std::string text = token.Text("content");
    const size_t id = token.json()["id"].Unsigned().value_or(kMaxVocabularySize);
    const bool has_flags =
        std::ranges::any_of(std::array{"normalized", "lstrip", "rstrip", "single_word"},
                            [&](const char* flag) { return token.BoolOr(flag, false); });
    if (id < vocab.types.size() && vocab.types[id] == TokenType::kUserDefined && IsSpaces(text) &&
        tokens.Has(text) && !has_flags) {
      vocab.types[id] = TokenType::kNormal;
    }
  }
}

void MarkBytes(Vocabulary& vocab, std::string_view unknown) {
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (tokenizer::ByteOfToken(vocab.tokens[i]) >= 0) vocab.types[i] = TokenType::kByte;
    if (vocab.tokens[i] == unknown) vocab.types[i] = TokenType::kUnknown;
  }
}

// The bytes of tokens by rank, from lines with a token in base64 and its rank.
std::vector<std::string> ReadRanks(const std::string& path, std::string_view text) {
  std::vector<std::string> tokens;
  while (!text.empty() && tokens.size() <= tokenizer::kMaxVocabularySize) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t space = std::min(line.find(' '), line.size());
    const std::string token = FromBase64(line.substr(0, space));
    const auto rank = gguf::NumberIn<size_t>(line.substr(std::min(space + 1, line.size())));
    const size_t n_digits = (token.size() * 4 + 2) / 3;
    if (token.empty() || (token.size() + 2) / 3 * 4 != space || rank != tokens.size() ||
        line.substr(n_digits, space - n_digits).find_first_not_of('=') != line.npos) {
      gguf::Fail(path, "line ", tokens.size() + 1, ": expected a token in base64 and its rank, ",
                 tokens.size(), ", found ", gguf::Quoted(line, 40));
    }
    tokens.push_back(token);
  }
  return tokens;
}

}  // namespace

bool IsSpaces(std::string_view token) {
  while (token.starts_with(tokenizer::kSpaceMark))
    token.remove_prefix(tokenizer::kSpaceMark.size());
  return token.empty();
}

void Vocabulary::Grow(size_t n, float score) {
  if (n <= tokens.size()) return;
  tokens.resize(n);
  types.resize(n, TokenType::kUnused);
  if (!scores.empty()) scores.resize(n, score);
}

void Vocabulary::Pad(size_t n) {
  Grow(n, kUnusedScore);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty() && types[i] == TokenType::kUnused) {
      tokens[i] = "[PAD" + std::to_string(i) + "]";
    }
  }
}

// Merges a token's bytes by all lower ranks; the two symbols that remain are its merge.
Vocabulary ReadTiktoken(const std::string& path, std::string_view text) {
  constexpr size_t kReserved = 256;
  const std::vector<std::string> tokens = ReadRanks(path, text);
  Vocabulary vocab;
  vocab.model = "gpt2";
  vocab.pre = "kimi-k2";
  std::array<tokenizer::TokenId, 256> bytes;
  bytes.fill(-1);
  size_t n_bytes = 0;  // bytes of the spellings
  for (const std::string& token : tokens) {
    if (token.size() == 1)
      bytes[static_cast<uint8_t>(token[0])] = static_cast<tokenizer::TokenId>(vocab.tokens.size());
    tokenizer::AppendSpelling(token, vocab.tokens.emplace_back());
    n_bytes += vocab.tokens.back().size();
    if (vocab.tokens.back().size() > tokenizer::kMaxTokenBytes ||
        n_bytes > tokenizer::kMaxVocabularyBytes ||
        vocab.tokens.size() + kReserved > tokenizer::kMaxVocabularySize) {
      gguf::Fail(path, "expected at most ", tokenizer::kMaxVocabularySize - kReserved,
                 " tokens of ", tokenizer::kMaxTokenBytes, " bytes and of ",
                 tokenizer::kMaxVocabularyBytes,
                 " together in GPT-2's spelling, found more at rank ", vocab.tokens.size() - 1);
    }
  }
  if (std::ranges::count(bytes, -1) > 0) gguf::Fail(path, "expected a token for each byte");
  tokenizer::MergeTable merges(tokens.size());
  tokenizer::WordMerger merger{tokenizer::ListedPairs(merges)};
  std::vector<tokenizer::TokenId> symbols, left;
  for (size_t i = 0; i < tokens.size(); ++i) {
    symbols.clear();
    left.clear();
    for (const char byte : tokens[i]) symbols.push_back(bytes[static_cast<uint8_t>(byte)]);
    merger.Merge(symbols, left);
    if (left.size() != 2) continue;  // a byte, or a token that no text becomes
    merges.Add({left[0], left[1], static_cast<tokenizer::TokenId>(i)});
    vocab.merges.push_back(vocab.tokens[left[0]] + " " + vocab.tokens[left[1]]);
  }
  vocab.types.resize(tokens.size(), TokenType::kNormal);
  for (size_t i = 0; i < kReserved; ++i)
    vocab.tokens.push_back("<|reserved_token_" + std::to_string(vocab.tokens.size()) + "|>");
  vocab.types.resize(vocab.tokens.size(), TokenType::kControl);
  return vocab;
}

Vocabulary ReadTokenizerJson(const Fields& tokenizer, std::string_view architecture, bool raw_bpe) {
  const Fields model = tokenizer.Object("model");
  const std::string type = model.TextOr("type", "BPE");
  if (type != "BPE" && type != "WordPiece" && type != "Unigram")
    tokenizer.Fail("model.type", "expected BPE, WordPiece or Unigram, found ",
                   gguf::Quoted(type, 40));
  Vocabulary vocab;
  if (type == "Unigram") {
    vocab.model = "t5";
    vocab.pre = "default";
    ReadPieces(tokenizer, model, vocab);
    ReadTokens(tokenizer, model, vocab);
    if (model.BoolOr("byte_fallback", false)) MarkBytes(vocab, "");
    ReadPipeline(tokenizer, vocab);
    return vocab;
  }
  ReadTokens(tokenizer, model, vocab);
  if (type == "WordPiece") {
    const std::string unknown = model.TextOr("unk_token", "[UNK]");  // not in the loop: it searches
    // tokenizer.json marks tokens that continue a word; GGUF marks tokens that begin one.
    for (size_t i = 0; i < vocab.tokens.size(); ++i) {
      std::string& token = vocab.tokens[i];
      const bool is_normal = vocab.types[i] == TokenType::kNormal;
      if (is_normal && token == unknown) vocab.types[i] = TokenType::kUnknown;
      if (vocab.types[i] != TokenType::kNormal) continue;
      token.starts_with("##") ? token.erase(0, 2) : token.insert(0, tokenizer::kSpaceMark);
    }
    vocab.model = "bert";
    vocab.pre = "default";
    if (model.Has("max_input_chars_per_word")) {
      vocab.max_word_characters = model.UintOr("max_input_chars_per_word", 0);
    }
    ReadPipeline(tokenizer, vocab);
    return vocab;
  }
  vocab.merges = model.Pairs("merges");
  if (raw_bpe) {
    vocab.model = "gemma4";
    MarkBytes(vocab, model.TextOr("unk_token", "<unk>"));
    MergeSpaces(tokenizer, model, vocab);
    for (size_t i = 0; i < vocab.tokens.size(); ++i) vocab.scores.push_back(-static_cast<float>(i));
  } else if (model.BoolOr("byte_fallback", false)) {
    vocab.model = "llama";
    vocab.pre = "default";
    MarkBytes(vocab, model.TextOr("unk_token", "<unk>"));
    const std::vector<TokenType> types = vocab.types;
    MergeSpaces(tokenizer, model, vocab);
    std::string why_not = WhyNotByScores(vocab);
    if (!why_not.empty()) {  // Gemma 3: scores do not tell the order of its merges of spaces
      vocab.types = types;
      why_not = WhyNotByScores(vocab);
    }
    if (!why_not.empty()) model.Fail("merges", why_not);
    ScoresByMerges(vocab);
  } else {
    vocab.model = "gpt2";
    const bool ignore_merges = model.BoolOr("ignore_merges", false);
    const tokenizer::SplitRule& rule = FindSplitRule(tokenizer, ignore_merges);
    if (rule.ignore_merges != ignore_merges) vocab.ignore_merges = ignore_merges;
    if (PutsSpaceBefore(tokenizer)) vocab.space_prefix = "always";
    const bool has_own = std::ranges::count(rule.Names(), architecture) > 0;
    vocab.pre = has_own ? architecture : rule.names[0];
    const std::string post = tokenizer.Object("post_processor").TextOr("type", "");
    if (vocab.pre == "gpt-2" && post == "RobertaProcessing") vocab.pre = "roberta-bpe";
  }
  ReadPipeline(tokenizer, vocab);
  return vocab;
}

}  // namespace convert
