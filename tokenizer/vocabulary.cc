// Tokens, scores and types from the metadata, checked against each other.
#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "gguf/error.h"

namespace tokenizer {
namespace {

constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";

// Tokens that end a generation, whatever eos is: common formats' ends of a turn, message or text.
enum class Marks : uint8_t { kTurn, kMessage };
struct EndMarker {
  std::string_view token;
  Marks end_of;
  // Most spellings do not occur in text by chance and count whatever type the file gives them.
  // Other spellings may be text (Gemma has HTML's </s>) and count only as control tokens.
  bool only_control = false;
  // The marker counts only in vocabularies with the token `with`, and without `without`.
  std::string_view with = {}, without = {};
};

// If the file has no key for eot, the first end of a turn here that is in the vocabulary is used.
constexpr EndMarker kEndMarkers[] = {
    {"<|eot_id|>", Marks::kTurn},  // Llama 3
    {"<|im_end|>", Marks::kTurn},  // ChatML: Qwen, SmolLM, LFM2, OLMo 3
    {.token = "<|end|>",           // Phi-3. In gpt-oss the message ends, and another one may follow
     .end_of = Marks::kTurn,
     .without = "<|return|>"},
    {"<|return|>", Marks::kTurn},                  // gpt-oss
    {"<end_of_turn>", Marks::kTurn},               // Gemma 2, 3
    {"<turn|>", Marks::kTurn},                     // Gemma 4
    {"<|eot|>", Marks::kTurn},                     // Llama 4
    {"<|end_of_turn|>", Marks::kTurn},             // OpenChat
    {"<end_of_utterance>", Marks::kTurn},          // SmolVLM
    {"[|endofturn|]", Marks::kTurn},               // EXAONE
    {"<｜hy_place▁holder▁no▁2｜>", Marks::kTurn},  // Hunyuan, dense
    {"<|eos|>", Marks::kTurn},                     // Hunyuan
    {"<|end_of_sentence|>", Marks::kTurn},         // ERNIE 4.5
    {"<EOT>", Marks::kTurn},                       // CodeLlama and others, in three spellings
    {"_<EOT>", Marks::kTurn},                      //
    {"< EOT >", Marks::kTurn},                     //
    {"[EOT]", Marks::kTurn, true},                 // Kimi
    {"<｜end▁of▁sentence｜>", Marks::kTurn},       // DeepSeek
    {"<|user|>", Marks::kTurn, true, "<|observation|>"},     // GLM 4: the user's turn begins
    {"<|observation|>", Marks::kMessage, true, "<|user|>"},  // GLM 4: a tool is to answer
    {"<|call|>", Marks::kMessage},                           // gpt-oss: to a tool
    {"<|eom_id|>", Marks::kMessage},                         // Llama 3.1: to a tool
    {"<|eom|>", Marks::kMessage},                            // Llama 4: to a tool
    {"<|tool_response>", Marks::kMessage},                   // Gemma 4: a tool is to answer
    {"<start_function_response>", Marks::kMessage},          // FunctionGemma: a tool is to answer
    {"<|endoftext|>", Marks::kMessage},                      // GPT-2, Qwen base, Phi, GLM 4, OLMo 2
    {"<|fim_pad|>", Marks::kMessage},                        // Qwen Coder, where code is filled in
    {"<fim_pad>", Marks::kMessage},                          // StarCoder
    {"<|repo_name|>", Marks::kMessage},                      // Qwen Coder: another repository
    {"<|file_sep|>", Marks::kMessage},                       // Qwen Coder: another file
    {"<file_sep>", Marks::kMessage},                         // StarCoder
    {"<|file_separator|>", Marks::kMessage},                 // CodeGemma
    {"<|end_of_text|>", Marks::kMessage},                    // Llama 3 base, Granite
    {"</s>", Marks::kMessage, true},                         // Llama 2, Mistral, ERNIE
    {"<eos>", Marks::kMessage, true},                        // Gemma
    {"[EOS]", Marks::kMessage, true},                        // Kimi
};

std::vector<std::string_view> ReadTokens(const gguf::Metadata& metadata) {
  CheckCount(metadata, kTokensKey, 1, kMaxVocabularySize, "tokens");
  std::vector<std::string_view> tokens = metadata.GetStrings(kTokensKey);
  uint64_t n_bytes = 0;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() > kMaxTokenBytes) {
      metadata.Fail(kTokensKey, "expected tokens of at most ", kMaxTokenBytes,
                    " bytes, found token ", id, " of ", tokens[id].size());
    }
    n_bytes += tokens[id].size();
  }
  if (n_bytes > kMaxVocabularyBytes) {
    metadata.Fail(kTokensKey, "expected tokens of at most ", kMaxVocabularyBytes,
                  " bytes together, found ", n_bytes);
  }
  return tokens;
}

std::vector<float> ReadScores(const gguf::Metadata& metadata, size_t n_tokens) {
  if (!metadata.Has(kScores)) return std::vector<float>(n_tokens);
  CheckCount(metadata, kScores, n_tokens, n_tokens, "elements, one per token");
  std::vector<float> scores = metadata.GetFloats(kScores);
  const auto nan =
      std::find_if(scores.begin(), scores.end(), [](float s) { return std::isnan(s); });
  if (nan != scores.end()) {
    metadata.Fail(kScores, "expected numbers, found NaN for token ", nan - scores.begin());
  }
  return scores;
}

// The type of a token in a sentencepiece vocabulary without types.
TokenType TypeBySpelling(std::string_view token) {
  if (token == "<unk>") return TokenType::kUnknown;
  if (token == "<s>" || token == "</s>") return TokenType::kControl;
  return ByteOfToken(token) >= 0 ? TokenType::kByte : TokenType::kNormal;
}

std::vector<TokenType> ReadTypes(const gguf::Metadata& metadata,
                                 const std::vector<std::string_view>& tokens,
                                 bool is_sentencepiece) {
  std::vector<TokenType> types(tokens.size(), TokenType::kNormal);
  if (!metadata.Has(kTypes)) {
    for (size_t i = 0; is_sentencepiece && i < tokens.size(); ++i)
      types[i] = TypeBySpelling(tokens[i]);
    return types;
  }
  CheckCount(metadata, kTypes, tokens.size(), tokens.size(), "elements, one per token");
  const std::vector<int64_t> numbers = metadata.GetInts(kTypes);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0) continue;  // "undefined": some converters write it for plain tokens
    if (numbers[i] < 0 || numbers[i] > static_cast<int64_t>(TokenType::kByte)) {
      metadata.Fail(kTypes, "expected types 1 to 6, found ", numbers[i], " for token ", i);
    }
    types[i] = static_cast<TokenType>(numbers[i]);
    if (types[i] == TokenType::kByte && ByteOfToken(tokens[i]) < 0) {
      metadata.Fail(kTokensKey, "expected a byte token (<0x00> to <0xFF>), found ",
                    gguf::Quoted(tokens[i]), " as token ", i);
    }
  }
  return types;
}

// A special id by its key; -1, also as a u32, means none. An id beyond the vocabulary counts as a
// missing key.
TokenId ReadId(const gguf::Metadata& metadata, std::string_view key, Vocabulary& vocab,
               TokenId fallback) {
  if (!metadata.Has(key)) return fallback;
  const int64_t id = metadata.GetInt(key);
  if (id == -1 || id == UINT32_MAX) return -1;
  if (id >= 0 && std::cmp_less(id, vocab.size())) return static_cast<TokenId>(id);
  vocab.notes.push_back(std::string(key) + ": " + std::to_string(id) + " is not one of the " +
                        std::to_string(vocab.size()) + " tokens, and is ignored");
  return fallback;
}

// The ids of a list that are tokens; empty if there is no such key.
std::vector<TokenId> ReadIds(const gguf::Metadata& metadata, std::string_view key,
                             const Vocabulary& vocab) {
  std::vector<TokenId> ids;
  if (!metadata.Has(key)) return ids;
  for (const int64_t id : metadata.GetInts(key)) {
    if (id >= 0 && std::cmp_less(id, vocab.size())) ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

// Cuts off the tokens without a row of the embedding.
void CutSurplus(const gguf::Metadata& metadata, size_t rows, Vocabulary& vocab) {
  const size_t n = vocab.size();
  for (size_t i = rows; i < n; ++i) {
    if (vocab.types[i] == TokenType::kUnused || vocab.types[i] == TokenType::kControl) continue;
    metadata.Fail(kTokensKey, n, " tokens, but token_embd.weight has ", rows, " rows, and token ",
                  i, " is neither unused nor a control token");
  }
  vocab.tokens.resize(rows);
  vocab.types.resize(rows);
  vocab.scores.resize(std::min(vocab.scores.size(), rows));
  vocab.notes.push_back(std::string(kTokensKey) + ": the last " + std::to_string(n - rows) +
                        " have no row of the embedding, and are ignored");
}

TokenId FirstOfType(const Vocabulary& vocab, TokenType type) {
  const auto found = std::find(vocab.types.begin(), vocab.types.end(), type);
  return found == vocab.types.end() ? -1 : static_cast<TokenId>(found - vocab.types.begin());
}

void ReadSpecialIds(const gguf::Metadata& metadata, bool is_sentencepiece, Vocabulary& vocab) {
  const auto default_id = [&](TokenId id) {
    return is_sentencepiece && vocab.IsControl(id) ? id : -1;
  };
  vocab.bos = ReadId(metadata, "tokenizer.ggml.bos_token_id", vocab, default_id(1));
  vocab.eos = ReadId(metadata, "tokenizer.ggml.eos_token_id", vocab, default_id(2));
  vocab.sep = ReadId(metadata, "tokenizer.ggml.seperator_token_id", vocab, -1);  // spelt so
  vocab.eot = ReadId(metadata, "tokenizer.ggml.eot_token_id", vocab, -1);
  vocab.unk = ReadId(metadata, "tokenizer.ggml.unknown_token_id", vocab,
                     FirstOfType(vocab, TokenType::kUnknown));
  vocab.eog = ReadIds(metadata, "tokenizer.ggml.eos_token_ids", vocab);
  vocab.suppressed = ReadIds(metadata, "tokenizer.ggml.suppress_tokens", vocab);
}

SpacePrefix ReadSpacePrefix(const gguf::Metadata& metadata, bool is_sentencepiece) {
  constexpr std::string_view kKey = "tokenizer.pronk.space_prefix";
  if (!metadata.Has(kKey)) {
    return is_sentencepiece && metadata.GetBoolOr("tokenizer.ggml.add_space_prefix", true)
               ? SpacePrefix::kEach
               : SpacePrefix::kNone;
  }
  const std::string_view name = metadata.GetString(kKey);
  if (name == "first") return SpacePrefix::kFirst;
  if (name == "always") return SpacePrefix::kEachUnlessSpace;
  metadata.Fail(kKey, "expected \"first\" or \"always\", found ", gguf::Quoted(name, 40));
}

bool ContainsAnyCase(std::string_view text, std::string_view lower) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
  return std::search(text.begin(), text.end(), lower.begin(), lower.end(), same) != text.end();
}

// How added tokens are found. Published files have no keys for it: it follows from names.
void ReadAdded(const gguf::Metadata& metadata, Vocabulary& vocab) {
  const auto set = [&](TokenId id, AddedToken flag) {
    vocab.added.resize(vocab.size());
    uint8_t& flags = vocab.added[static_cast<size_t>(id)];
    flags = static_cast<uint8_t>(flags | flag);
  };
  constexpr std::pair<const char*, AddedToken> kKeys[] = {
      {"tokenizer.pronk.lstrip", kLstrip},
      {"tokenizer.pronk.rstrip", kRstrip},
      {"tokenizer.pronk.single_word", kSingleWord},
      {"tokenizer.pronk.normalized", kNormalized},
  };
  bool has_key = false;
  for (const auto& [key, flag] : kKeys) {
    has_key |= metadata.Has(key);
    for (const TokenId id : ReadIds(metadata, key, vocab)) set(id, flag);
  }
  const std::string_view name = metadata.GetStringOr("general.name", "");
  const std::string_view pre = metadata.GetStringOr("tokenizer.ggml.pre", "");
  if (has_key) return;
  const bool is_phi = ContainsAnyCase(name, "phi-3") || ContainsAnyCase(name, "phi3");
  const std::string_view mask = pre == "modern-bert"          ? "[MASK]"
                                : pre.starts_with("jina-v2-") ? "<mask>"
                                                              : "";
  for (size_t i = 0; i < vocab.size() && (is_phi || !mask.empty()); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view token = vocab.tokens[i];
    const bool is_kept = token == "<unk>" || token == "<s>" || token == "<|endoftext|>";
    const bool is_added = vocab.IsControl(id) || vocab.types[i] == TokenType::kUserDefined;
    if (is_phi && is_added && !is_kept) set(id, kRstrip);
    if (token == mask) set(id, kLstrip);
  }
}

// The token for each row of the table; -1: none.
std::array<TokenId, std::size(kEndMarkers)> FindSpellings(const Vocabulary& vocab) {
  std::array<TokenId, std::size(kEndMarkers)> ids;
  ids.fill(-1);
  for (size_t i = 0; i < vocab.size(); ++i) {
    const std::string_view token = vocab.tokens[i];
    if (token.empty() || std::string_view("<_[").find(token[0]) == std::string_view::npos) continue;
    const auto* const marker = std::ranges::find(kEndMarkers, token, &EndMarker::token);
    if (marker == std::end(kEndMarkers)) continue;
    const auto id = static_cast<TokenId>(i);
    if (marker->only_control && !vocab.IsControl(id)) continue;
    ids[static_cast<size_t>(marker - kEndMarkers)] = id;
  }
  return ids;
}

// Fills eog and, if the file has no key for it, eot. Makes the end markers control tokens.
void FindEndMarkers(Vocabulary& vocab, const std::vector<TokenId>& more) {
  const auto ids = FindSpellings(vocab);
  const auto has = [&](std::string_view token) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (kEndMarkers[i].token == token) return ids[i] >= 0;
    }
    return false;
  };
  for (size_t i = 0; i < ids.size(); ++i) {
    const EndMarker& marker = kEndMarkers[i];
    if (ids[i] < 0) continue;
    vocab.types[static_cast<size_t>(ids[i])] = TokenType::kControl;
    if (!marker.with.empty() && !has(marker.with)) continue;
    if (has(marker.without)) {
      if (vocab.eot == ids[i]) vocab.eot = -1;  // some files of gpt-oss have this eot
      continue;
    }
    vocab.eog.push_back(ids[i]);
    if (vocab.eot < 0 && marker.end_of == Marks::kTurn) vocab.eot = ids[i];
  }
  for (const TokenId id : {vocab.eos, vocab.eot}) {
    if (id >= 0) vocab.eog.push_back(id);
  }
  for (const TokenId id : more) {
    if (id >= 0) vocab.eog.push_back(id);
  }
  std::sort(vocab.eog.begin(), vocab.eog.end());
  vocab.eog.erase(std::unique(vocab.eog.begin(), vocab.eog.end()), vocab.eog.end());
}

}  // namespace

void CheckCount(const gguf::Metadata& metadata, std::string_view key, size_t least, size_t most,
                std::string_view elements) {
  const gguf::Value* const value = metadata.Find(key);
  if (value == nullptr || value->type != gguf::ValueType::kArray) return;  // a getter refuses it
  if (value->count >= least && value->count <= most) return;
  const std::string range = least < most ? std::to_string(least) + " to " : "";
  metadata.Fail(key, "expected ", range, most, " ", elements, ", found ", value->count);
}

bool Vocabulary::IsEog(TokenId id) const { return std::binary_search(eog.begin(), eog.end(), id); }

bool Vocabulary::IsControl(TokenId id) const {
  return Has(id) && types[static_cast<size_t>(id)] == TokenType::kControl;
}

Vocabulary ReadVocabulary(const gguf::Metadata& metadata, const VocabularyDefaults& defaults) {
  Vocabulary vocab;
  vocab.tokens = ReadTokens(metadata);
  if (defaults.is_sentencepiece) vocab.scores = ReadScores(metadata, vocab.size());
  vocab.types = ReadTypes(metadata, vocab.tokens, defaults.is_sentencepiece);
  if (vocab.size() > defaults.rows) CutSurplus(metadata, defaults.rows, vocab);
  ReadSpecialIds(metadata, defaults.is_sentencepiece, vocab);
  std::vector<TokenId> ends;
  for (const char* const name : {"eom", "fim_pad", "fim_rep", "fim_sep"}) {
    ends.push_back(
        ReadId(metadata, "tokenizer.ggml." + std::string(name) + "_token_id", vocab, -1));
  }
  FindEndMarkers(vocab, ends);
  vocab.add_bos = metadata.GetBoolOr("tokenizer.ggml.add_bos_token", defaults.add_bos);
  vocab.add_eos = metadata.GetBoolOr("tokenizer.ggml.add_eos_token", defaults.add_eos);
  vocab.add_sep = metadata.GetBoolOr("tokenizer.ggml.add_sep_token", false);
  vocab.after_bos = ReadIds(metadata, "tokenizer.pronk.after_bos", vocab);
  vocab.space_prefix = ReadSpacePrefix(metadata, defaults.is_sentencepiece);
  vocab.add_space_prefix = vocab.space_prefix != SpacePrefix::kNone;
  ReadAdded(metadata, vocab);
  return vocab;
}

int ByteOfToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  return error == std::errc() && end == token.data() + 5 ? static_cast<int>(value) : -1;
}

ByteTokens FindByteTokens(const gguf::Metadata& metadata, const Vocabulary& vocab) {
  ByteTokens bytes;
  bytes.fill(-1);
  for (size_t i = 0; i < vocab.size(); ++i) {
    if (vocab.types[i] != TokenType::kByte) continue;
    bytes[static_cast<size_t>(ByteOfToken(vocab.tokens[i]))] = static_cast<TokenId>(i);
  }
  const auto n_missing = std::count(bytes.begin(), bytes.end(), -1);
  if (n_missing > 0 && vocab.unk < 0) {
    metadata.Fail(kTokensKey, "expected an unknown token or byte tokens for all 256 bytes, found ",
                  256 - n_missing, " byte tokens and no unknown one");
  }
  return bytes;
}

}  // namespace tokenizer
