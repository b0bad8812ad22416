// Vocabularies made in the tests, as the keys of a GGUF file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/writer.h"
#include "tokenizer/vocabulary.h"

namespace test {

using tokenizer::TokenId;
using tokenizer::TokenType;

// The contents of the file; empty members make no keys.
struct VocabSpec {
  std::string model;
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<TokenType> types;
  std::vector<std::string> merges;
  gguf::Writer more = gguf::Writer();  // further keys

  TokenId Add(const std::string& token, float score = 0, TokenType type = TokenType::kNormal) {
    tokens.push_back(token);
    scores.push_back(score);
    types.push_back(type);
    return static_cast<TokenId>(tokens.size() - 1);
  }

  void AddTo(gguf::Writer& writer) const {
    if (!model.empty()) writer.Add("tokenizer.ggml.model", model);
    if (!pre.empty()) writer.Add("tokenizer.ggml.pre", pre);
    if (!tokens.empty()) AddStrings(writer, "tokenizer.ggml.tokens", tokens);
    if (!scores.empty()) {
      writer.AddArray("tokenizer.ggml.scores", std::span<const float>(scores));
    }
    if (!types.empty()) {
      std::vector<int32_t> numbers;
      for (const TokenType type : types) numbers.push_back(static_cast<int32_t>(type));
      writer.AddArray("tokenizer.ggml.token_type", std::span<const int32_t>(numbers));
    }
    if (!merges.empty()) AddStrings(writer, "tokenizer.ggml.merges", merges);
  }

 private:
  static void AddStrings(gguf::Writer& writer, std::string_view key,
                         const std::vector<std::string>& strings) {
    const std::vector<std::string_view> views(strings.begin(), strings.end());
    writer.AddStrings(key, views);
  }
};

// Llama's layout: <unk>, <s>, </s>, then the 256 byte tokens (ids 3 to 258).
inline VocabSpec SpmSpec() {
  VocabSpec spec = {.model = "llama"};
  spec.Add("<unk>", 0, TokenType::kUnknown);
  spec.Add("<s>", 0, TokenType::kControl);
  spec.Add("</s>", 0, TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kHex[] = "0123456789ABCDEF";
    spec.Add(std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">", 0, TokenType::kByte);
  }
  return spec;
}
inline constexpr TokenId kFirstByte = 3;  // in SpmSpec

// The character that represents a byte in GPT-2's alphabet, computed as in GPT-2's own code.
inline std::string ByteCharacter(int wanted) {
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const int character = printable ? byte : next++;
    if (byte != wanted) continue;
    if (character < 0x80) return std::string(1, static_cast<char>(character));
    return {static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 0x3F))};
  }
  return "";
}

// A vocabulary of the 256 bytes: the id of a byte is the byte.
inline VocabSpec BpeSpec(const std::string& pre) {
  VocabSpec spec = {.model = "gpt2", .pre = pre};
  for (int byte = 0; byte < 256; ++byte) spec.Add(ByteCharacter(byte));
  return spec;
}

// Adds a merge and, if it is new, the token that it makes. Returns that token.
inline TokenId AddMerge(VocabSpec& spec, const std::string& left, const std::string& right) {
  spec.merges.push_back(left + " " + right);
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (spec.tokens[i] == left + right) return static_cast<TokenId>(i);
  }
  return spec.Add(left + right);
}

}  // namespace test
