// Reads the two formats of a vocabulary, see hf_tokenizer.h.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "convert/hf_tokenizer.h"
#include "convert/split_pattern.h"
#include "gguf/error.h"
#include "tokenizer/spelling.h"

namespace convert {
namespace {

using tokenizer::TokenType;

constexpr float kUnusedScore = -10000;

// The wire format of protocol buffers: a field is a varint, number * 8 + kind, and its value.
class ProtoReader {
 public:
  ProtoReader(const std::string& path, std::string_view bytes) : path_(path), rest_(bytes) {}

  // False at the end.
  bool Next() {
    if (rest_.empty()) return false;
    const uint64_t key = Varint();
    field_ = key >> 3;
    const uint64_t kind = key & 7;
    if (kind == 0) {
      number_ = Varint();
    } else if (kind == 1 || kind == 5) {
      bytes_ = Take(kind == 1 ? 8 : 4);
    } else if (kind == 2) {
      bytes_ = Take(Varint());
    } else {
      Fail();
    }
    return true;
  }
  uint64_t field() const { return field_; }
  uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  float AsFloat() const {
    uint32_t bits = 0;
    if (bytes_.size() == sizeof(bits)) std::memcpy(&bits, bytes_.data(), sizeof(bits));
    return std::bit_cast<float>(bits);
  }
  [[noreturn]] void Fail() const {
    throw gguf::Error(gguf::PrintablePath(path_) +
                      ": expected a model of sentencepiece, found something else or a part of one");
  }

 private:
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(Take(1)[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    Fail();
  }
  std::string_view Take(uint64_t n) {
    if (n > rest_.size()) Fail();
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }

  const std::string& path_;
  std::string_view rest_;
  uint64_t field_ = 0, number_ = 0;
  std::string_view bytes_;
};

void AddPiece(ProtoReader piece, Vocabulary& vocab) {
  std::string text;
  float score = 0;
  auto type = TokenType::kNormal;
  while (piece.Next()) {
    if (piece.field() == 1) text = piece.bytes();
    if (piece.field() == 2) score = piece.AsFloat();
    if (piece.field() == 3) {
      if (piece.number() < 1 || piece.number() > static_cast<uint64_t>(TokenType::kByte)) {
        piece.Fail();
      }
      type = static_cast<TokenType>(piece.number());  // same numbers in GGUF
    }
  }
  vocab.tokens.push_back(std::move(text));
  vocab.scores.push_back(score);
  vocab.types.push_back(type);
}

// The normalizer: steps that change a text before it is split into tokens.
std::vector<Fields> Normalizers(const Fields& tokenizer) {
  const Fields all = tokenizer.Object("normalizer");
  if (all.TextOr("type", "") != "Sequence") return {all};
  return all.Objects("normalizers");
}

// Whether a tokenizer like sentencepiece's puts a space before texts.
bool HasSpacePrefix(const Fields& tokenizer) {
  const Fields all = tokenizer.Object("pre_tokenizer");
  const std::vector<Fields> steps =
      all.IsList("pretokenizers") ? all.Objects("pretokenizers") : std::vector<Fields>{all};
  for (const Fields& pre : steps) {
    if (pre.TextOr("type", "") != "Metaspace") continue;
    return pre.TextOr("prepend_scheme", pre.BoolOr("add_prefix_space", true) ? "first" : "never") !=
           "never";
  }
  return std::ranges::any_of(Normalizers(tokenizer), [](const Fields& step) {
    return step.TextOr("type", "") == "Prepend";
  });
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
        vocab.tokens.size() == kMaxTokens) {
      model.Fail("vocab", "expected up to " + std::to_string(kMaxTokens) +
                              " pairs of a token and its score");
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
    if (!id || *id >= kMaxTokens) {
      tokens.Fail(token, "expected a token's number below " + std::to_string(kMaxTokens));
    }
    const size_t at = *id;
    if (at >= vocab.tokens.size()) {
      vocab.tokens.resize(at + 1);
      vocab.types.resize(at + 1, TokenType::kUnused);
      if (!vocab.scores.empty()) vocab.scores.resize(at + 1);
    }
    if (vocab.types[at] == TokenType::kUnknown && vocab.tokens[at] == token) return;
    if (vocab.types[at] != TokenType::kUnused && vocab.tokens[at] != token) {
      tokens.Fail(token, "expected a number of its own, found that of " +
                             gguf::Quoted(vocab.tokens[at], 40));
    }
    vocab.tokens[at] = token;
    vocab.types[at] = type;
  };
  for (const auto& [token, id] : tokens.json()) add(token, id.Unsigned(), TokenType::kNormal);
  if (!tokenizer.IsList("added_tokens")) return;
  for (const Fields& token : tokenizer.Objects("added_tokens")) {
    add(token.Text("content"), token.json()["id"].Unsigned(),
        token.BoolOr("special", false) ? TokenType::kControl : TokenType::kUserDefined);
  }
}

// Sentencepiece merges by the result's score, which tokenizer.json lacks: earlier merges get larger
// scores.
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

void MarkBytes(Vocabulary& vocab) {
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (tokenizer::ByteOfToken(vocab.tokens[i]) >= 0) vocab.types[i] = TokenType::kByte;
    if (vocab.tokens[i] == "<unk>") vocab.types[i] = TokenType::kUnknown;
  }
}

}  // namespace

void Vocabulary::Pad(size_t n) {
  const bool has_scores = scores.size() == tokens.size() && !tokens.empty();
  tokens.resize(std::max(n, tokens.size()));
  types.resize(tokens.size(), TokenType::kUnused);
  if (has_scores) scores.resize(tokens.size(), kUnusedScore);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty() && types[i] == TokenType::kUnused) {
      tokens[i] = "[PAD" + std::to_string(i) + "]";
    }
  }
}

Vocabulary ReadSentencePiece(const std::string& path, std::string_view bytes) {
  constexpr uint64_t kBpe = 2;
  Vocabulary vocab;
  vocab.model = "llama";
  vocab.pre = "default";
  vocab.add_space_prefix = true;
  uint64_t type = 1;
  ProtoReader model(path, bytes);
  while (model.Next()) {
    if (model.field() == 1) {
      AddPiece({path, model.bytes()}, vocab);
    } else if (model.field() == 2) {
      ProtoReader trainer(path, model.bytes());
      while (trainer.Next()) {
        if (trainer.field() == 3) type = trainer.number();
      }
    } else if (model.field() == 3) {
      ProtoReader normalizer(path, model.bytes());
      while (normalizer.Next()) {
        if (normalizer.field() == 3) vocab.add_space_prefix = normalizer.number() != 0;
      }
    }
    if (vocab.tokens.size() > kMaxTokens) model.Fail();
  }
  if (vocab.tokens.empty()) model.Fail();
  if (type != kBpe) {
    throw gguf::Error(gguf::PrintablePath(path) +
                      ": expected a model of sentencepiece that merges pairs (BPE), found another "
                      "kind (type " +
                      std::to_string(type) + ")");
  }
  return vocab;
}

Vocabulary ReadTokenizerJson(const Fields& tokenizer, std::string_view architecture) {
  const Fields model = tokenizer.Object("model");
  const std::string type = model.TextOr("type", "BPE");
  if (type != "BPE" && type != "WordPiece" && type != "Unigram")
    tokenizer.Fail("model.type",
                   "expected BPE, WordPiece or Unigram, found " + gguf::Quoted(type, 40));
  Vocabulary vocab;
  if (type == "Unigram") {
    vocab.model = "t5";
    vocab.pre = "default";
    vocab.add_space_prefix = HasSpacePrefix(tokenizer);
    ReadPieces(tokenizer, model, vocab);
    ReadTokens(tokenizer, model, vocab);
    return vocab;
  }
  ReadTokens(tokenizer, model, vocab);
  if (type == "WordPiece") {
    // Here tokens that continue a word are marked, there those that begin one.
    for (size_t i = 0; i < vocab.tokens.size(); ++i) {
      std::string& token = vocab.tokens[i];
      if (vocab.types[i] == TokenType::kControl) continue;
      token.starts_with("##") ? token.erase(0, 2) : token.insert(0, tokenizer::kSpaceMark);
    }
    vocab.model = "bert";
    vocab.pre = "default";
    const Fields normalizer = tokenizer.Object("normalizer");
    vocab.lowers = normalizer.BoolOr("lowercase", true);
    if (normalizer.Has("strip_accents")) vocab.strips = normalizer.BoolOr("strip_accents", true);
    return vocab;
  }
  vocab.merges = model.Pairs("merges");
  if (architecture.starts_with("gemma4")) {  // merges characters, not bytes
    vocab.model = "gemma4";
    vocab.add_space_prefix = false;
    MarkBytes(vocab);
    for (size_t i = 0; i < vocab.tokens.size(); ++i) {
      vocab.scores.push_back(-static_cast<float>(i));
    }
  } else if (model.BoolOr("byte_fallback", false)) {
    vocab.model = "llama";
    vocab.pre = "default";
    vocab.add_space_prefix = HasSpacePrefix(tokenizer);
    ScoresByMerges(vocab);
    MarkBytes(vocab);
  } else {
    vocab.model = "gpt2";
    const tokenizer::SplitRule& rule =
        FindSplitRule(tokenizer, model.BoolOr("ignore_merges", false));
    const bool has_own = std::ranges::count(rule.Names(), architecture) > 0;
    vocab.pre = has_own ? architecture : rule.names[0];
  }
  return vocab;
}

}  // namespace convert
