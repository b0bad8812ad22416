// A folder's tokenizer: the converted file has equal tokens, scores, merges and split patterns.
#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "convert/convert.h"
#include "convert/hf_tokenizer.h"
#include "gguf/file.h"
#include "tests/convert/bpe_json.h"
#include "tests/support/base64.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/hf_folder.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace convert {
namespace {

using test::Json;

using tokenizer::TokenType;

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json Split(const std::string& regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
}

// Returns GGUF's name for these steps, or the error.
std::string NameOf(const Json& steps, bool ignore_merges = false) {
  const Json pre = {{"type", "Sequence"}, {"pretokenizers", steps}};
  std::string name;
  const std::string error = test::ErrorOf([&] {
    name = FindSplitRule(ParseObject("t.json", Json{{"pre_tokenizer", pre}}.dump()), ignore_merges)
               .names[0];
  });
  return error.empty() ? name : error;
}

TEST(ConvertTokenizer, FindsTheWayToCutByItsExpressions) {
  EXPECT_EQ(NameOf({Split(kLlama3), ByteLevel(false)}, true), "llama-bpe");
  EXPECT_EQ(NameOf({Split(kLlama3), ByteLevel(false)}, false), "dbrx");
  EXPECT_EQ(NameOf({Split(kQwen2), ByteLevel(false)}), "qwen2");
  EXPECT_EQ(NameOf(Json::array({ByteLevel(true)})), "gpt-2");
  EXPECT_EQ(NameOf({{{"type", "Digits"}, {"individual_digits", true}}, ByteLevel(true)}), "smollm");
  // The published folder has characters instead of some escapes.
  EXPECT_EQ(NameOf({Split(R"(\p{N}{1,3})"), Split("[一-龥\u3040-ゟ゠-ヿ]+"),
                    Split("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}"
                          "\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|"
                          "\\s+(?!\\S)|\\s+"),
                    ByteLevel(false)}),
            "deepseek-v3");
}

TEST(ConvertTokenizer, RefusesOtherWaysToCut) {
  EXPECT_EQ(NameOf({Split("x+"), ByteLevel(false)}),
            "t.json: pre_tokenizer: expected the expressions of a tokenizer that is known, found "
            "\"x+\"");
  EXPECT_EQ(NameOf(Json::array({{{"type", "Whitespace"}}})),
            "t.json: type: expected Split, Digits, ByteLevel or Sequence, found \"Whitespace\"");
  EXPECT_EQ(NameOf({Split(kLlama3), ByteLevel(true)}).substr(0, 21), "t.json: pre_tokenizer");
  EXPECT_EQ(NameOf(Json::array({{{"type", 5}}})), "t.json: type: expected a text, found 5");
  const std::string many =
      "t.json: pre_tokenizer: expected at most 64 expressions of at most 4096 bytes";
  EXPECT_EQ(NameOf({Split(std::string(4097, 'x')), ByteLevel(false)}), many);
  EXPECT_EQ(NameOf(Json(std::vector(65, Split("x")))), many);
}

TEST(ConvertTokenizer, SpellingsOfAnExpressionAreOne) {
  EXPECT_EQ(CanonicalPattern(R"([a-cbx\-]+)"), CanonicalPattern(R"([-a-cx]+)"));
  EXPECT_EQ(CanonicalPattern(R"([\p{N}])"), CanonicalPattern(R"(\p{N})"));
  EXPECT_EQ(CanonicalPattern(R"([\x{4E00}-\u4e05])"), CanonicalPattern("[一-七丄丅]"));
  EXPECT_NE(CanonicalPattern("[^a]"), CanonicalPattern("[a]"));
  EXPECT_NE(CanonicalPattern("a+"), CanonicalPattern(R"(a\+)"));
  EXPECT_NE(CanonicalPattern(R"(\p{L}+)"), CanonicalPattern(R"(\p{N}+)"));
  for (const char* odd : {"[", "[^", "\\", "\\p", "\\x{", "[a-", "\\u12", "[\xff"}) {
    CanonicalPattern(odd);  // must return
  }
}

TEST(ConvertTokenizer, SentencePieceIsReadAsItIs) {
  test::VocabSpec spec = test::SpmSpec();
  spec.Add("\u2581the", -1.5f);
  spec.Add("<start>", 0, TokenType::kUserDefined);
  const Vocabulary vocab =
      ReadSentencePiece("m", test::SentencePieceModel(spec, 2, /*add_dummy_prefix=*/false));
  EXPECT_EQ(vocab.model, "llama");
  EXPECT_EQ(vocab.tokens, spec.tokens);
  EXPECT_EQ(vocab.scores, spec.scores);
  EXPECT_EQ(vocab.types, spec.types);
  EXPECT_EQ(vocab.add_space_prefix, false);
}

TEST(ConvertTokenizer, DamagedSentencePieceIsRefused) {
  const auto error = [](const std::string& bytes) {
    return test::ErrorOf([&] { ReadSentencePiece("m", bytes); });
  };
  const std::string good = test::SentencePieceModel(test::SpmSpec());
  const std::string none =
      "m: expected a model of sentencepiece, found something else or a part of one";
  EXPECT_EQ(error(""), none);
  EXPECT_EQ(error("{\"json\": 1}"), none);
  EXPECT_EQ(error(good.substr(0, good.size() - 1)), none);
  EXPECT_EQ(error(std::string(11, '\xff')), none);  // a number with too many bytes
  EXPECT_EQ(error("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), none);  // 2^64 - 1 bytes of text
  EXPECT_EQ(error(test::ProtoBytes(1, test::ProtoNumber(3, 7))), none);    // an unknown type
  EXPECT_EQ(
      error(test::SentencePieceModel(test::SpmSpec(), 1)),
      "m: expected a model of sentencepiece that merges pairs (BPE), found another kind (type "
      "1)");
  for (size_t n = 0; n < good.size(); n += 7) error(good.substr(0, n));  // must return
}

// Parses the JSON as text, in which whole numbers have no sign.
Fields Parsed(const Json& json) { return ParseObject("t.json", json.dump()); }

TEST(ConvertTokenizer, TokenizerJsonIsReadAsItIs) {
  const Json vocab = {{"a", 0}, {"b", 1}, {"ab", 2}, {"c", 7}};
  for (const Json& merges :
       {Json::array({"a b"}),
        Json::array({Json::array({"a", "b"})})}) {  // the older and the newer form
    Vocabulary read = ReadTokenizerJson(Parsed(Bpe(vocab, merges)), "llama");
    EXPECT_EQ(read.model, "gpt2");
    EXPECT_EQ(read.pre, "gpt-2");
    EXPECT_EQ(read.merges, std::vector<std::string>{"a b"});
    read.Pad(9);
    EXPECT_EQ(read.tokens, (std::vector<std::string>{"a", "b", "ab", "[PAD3]", "<|end|>", "<tool>",
                                                     "[PAD6]", "c", "[PAD8]"}));
    EXPECT_EQ(read.types[2], TokenType::kNormal);
    EXPECT_EQ(read.types[3], TokenType::kUnused);
    EXPECT_EQ(read.types[4], TokenType::kControl);
    EXPECT_EQ(read.types[5], TokenType::kUserDefined);
  }
}

TEST(ConvertTokenizer, OddTokenizerJsonIsRefused) {
  const auto error = [](const Json& json) {
    return test::ErrorOf([&] { ReadTokenizerJson(Parsed(json), "llama"); });
  };
  EXPECT_EQ(error(Bpe({{"a", 0}, {"b", 0}}, Json::array())),
            "t.json: model.vocab.b: expected a number of its own, found that of \"a\"");
  EXPECT_EQ(error(Bpe({{"a", -1}}, Json::array())),
            "t.json: model.vocab.a: expected a token's number below 1048576");
  EXPECT_EQ(error(Bpe({{"a", 1u << 30}}, Json::array())),
            "t.json: model.vocab.a: expected a token's number below 1048576");
  EXPECT_EQ(error(Bpe({{"a", 0}}, Json::array({1}))),
            "t.json: model.merges: expected pairs of tokens");
  EXPECT_EQ(error({{"model", {{"type", "WordLevel"}}}}),
            "t.json: model.type: expected BPE, WordPiece or Unigram, found \"WordLevel\"");
  EXPECT_EQ(error({{"model", {{"type", "Unigram"}, {"vocab", Json::array({1})}}}}),
            "t.json: model.vocab: expected up to 1048576 pairs of a token and its score");
}

// The Unigram vocabulary of the tests. ToJson() writes its first n tokens as tokenizer.json.
struct Unigram {
  gguf::File file = gguf::File::Open(test::DataPath("unigram/unigram.gguf").string());
  std::unique_ptr<tokenizer::Tokenizer> tokenizer = tokenizer::Tokenizer::Create(file);
  const tokenizer::Vocabulary& vocab = tokenizer->vocab();
  std::string charsmap;

  Unigram() {
    for (const int64_t byte : file.metadata().GetInts("tokenizer.ggml.precompiled_charsmap"))
      charsmap += static_cast<char>(byte);
  }
  Json ToJson(std::string_view map, size_t n) const {
    Json pieces = Json::array(), added = Json::array();
    for (size_t i = 0; i < n; ++i) {
      const std::string token(vocab.tokens[i]);
      pieces.push_back(Json::array({token, vocab.scores[i]}));
      if (i < 4 || token == "<mask>")
        added.push_back({{"id", i}, {"content", token}, {"special", true}});
    }
    const Json space = {{"type", "Metaspace"}, {"prepend_scheme", "always"}};
    return {{"model", {{"type", "Unigram"}, {"unk_id", 3}, {"vocab", pieces}}},
            {"added_tokens", added},
            {"normalizer",
             {{"type", "Sequence"},
              {"normalizers", Json::array({Json{{"type", "Precompiled"},
                                                {"precompiled_charsmap", test::Base64(map)}}})}}},
            {"pre_tokenizer",
             {{"type", "Sequence"},
              {"pretokenizers", Json::array({Json{{"type", "WhitespaceSplit"}}, space})}}}};
  }
};

TEST(ConvertTokenizer, ReadsPiecesWithScores) {
  const Unigram unigram;
  const tokenizer::Vocabulary& old = unigram.vocab;
  const std::string& charsmap = unigram.charsmap;
  for (const size_t cut : {0u, 1u, 2u}) {  // each padding of Base64
    const std::string map = charsmap.substr(0, charsmap.size() - cut);
    const Vocabulary now = ReadTokenizerJson(Parsed(unigram.ToJson(map, old.size())), "bert");
    EXPECT_EQ(now.model, "t5");
    EXPECT_EQ(now.charsmap, map);
    EXPECT_EQ(now.add_space_prefix, std::optional(true));
    EXPECT_EQ(now.scores, old.scores);
    ASSERT_EQ(now.tokens.size(), old.size());
    for (size_t i = 0; i + 1 < old.size(); ++i) {  // JSON cannot mark the last token as unused
      EXPECT_EQ(now.tokens[i], old.tokens[i]);
      EXPECT_EQ(now.types[i], old.types[i]) << i;
    }
  }
}

// XLM-RoBERTa's sentencepiece.bpe.model, whose first three tokens differ, must become the bytes
// that tokenizer.json becomes.
TEST(ConvertTokenizer, FairseqNumbersPieces) {
  const Unigram unigram;
  const size_t n = unigram.vocab.size() - 1;  // without a row that has no token
  test::VocabSpec spec;
  for (const char* token : {"<unk>", "<s>", "</s>"}) spec.Add(token);
  for (size_t i = 4; i + 1 < n; ++i)
    spec.Add(std::string(unigram.vocab.tokens[i]), unigram.vocab.scores[i]);
  const std::string map = test::ProtoBytes(3, test::ProtoBytes(2, unigram.charsmap));
  const auto special = [](const char* id) { return Json{{"SpecialToken", {{"id", id}}}}; };
  Json json = unigram.ToJson(unigram.charsmap, n);
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {special("<s>"), {{"Sequence", {{"id", "A"}}}}, special("</s>")}}};
  const test::TempDir dir;
  test::HfLlama llama;
  const std::string config = R"({"bos_token":"<s>","eos_token":"</s>","sep_token":"</s>"})";
  llama.files = {{"tokenizer.json", json.dump()}, {"tokenizer_config.json", config}};
  Convert(llama.Write(dir), dir.Path("by_json"), {});
  std::filesystem::remove(dir.Path("model/tokenizer.json"));
  const auto convert = [&](const std::string& model) {
    dir.Write("model/sentencepiece.bpe.model", model);
    return test::ErrorOf([&] { Convert(dir.Path("model"), dir.Path("by_pieces"), {}); });
  };
  EXPECT_EQ(convert(test::SentencePieceModel(spec, 1) + map), "");
  EXPECT_EQ(test::ReadText(dir.Path("by_pieces")), test::ReadText(dir.Path("by_json")));
  dir.Write("model/tokenizer_config.json", R"({"tokenizer_class":"CamembertTokenizer"})");
  EXPECT_TRUE(convert(test::SentencePieceModel(spec, 1) + map)
                  .ends_with(": tokenizer_class: expected XLMRobertaTokenizer, found "
                             "\"CamembertTokenizer\""));
  dir.Write("model/tokenizer_config.json", config);
  const std::string path = dir.Path("model/sentencepiece.bpe.model");
  EXPECT_EQ(convert(test::SentencePieceModel(spec, 2)),
            path +
                ": expected a model of sentencepiece of pieces and their scores (Unigram), found "
                "another kind (type 2)");
  spec = test::VocabSpec();
  for (const char* token : {"<unk>", "<s>", "</s>"}) spec.Add(token);
  EXPECT_EQ(convert(test::SentencePieceModel(spec, 1)),
            path + ": expected a model of sentencepiece, found something else or a part of one");
}

// Hugging Face's tokenizers gave the expected ids, with the normalizer and pre-tokenizer of
// transformers' LlamaConverter.
TEST(ConvertTokenizer, LegacySaysWhereASentencePieceModelPutsSpaces) {
  const auto ids = [](const std::string& legacy, const std::string& text, bool has_json = false) {
    const test::TempDir dir;
    test::HfLlama llama;
    llama.files["tokenizer_config.json"] =
        R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":true)" + legacy + "}";
    if (has_json) {  // takes precedence
      llama.files["tokenizer.json"] =
          R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)"
          R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]},"model":{"type":"BPE",)"
          R"("byte_fallback":true,"fuse_unk":true,"unk_token":"<unk>"}})";
    }
    Convert(llama.Write(dir), dir.Path("out"), {});
    const gguf::File file = gguf::File::Open(dir.Path("out"));
    return tokenizer::Tokenizer::Create(file)->Encode(
        text, {.add_special = false, .parse_special = true});
  };
  using Ids = std::vector<tokenizer::TokenId>;
  for (const char* legacy : {"", R"(,"legacy":true)", R"(,"legacy":null)",
                             R"(,"legacy":false,"tokenizer_class":"GemmaTokenizer")"}) {
    EXPECT_EQ(ids(legacy, "a</s>a"), (Ids{261, 2, 261})) << legacy;
    EXPECT_EQ(ids(legacy, " a</s> a"), (Ids{259, 261, 2, 259, 261})) << legacy;
  }
  for (const char* legacy :
       {R"(,"legacy":false)", R"(,"legacy":false,"tokenizer_class":"LlamaTokenizer")"}) {
    EXPECT_EQ(ids(legacy, "a</s>a"), (Ids{261, 2, 260})) << legacy;
    EXPECT_EQ(ids(legacy, " a</s> a"), (Ids{261, 2, 261})) << legacy;
    EXPECT_EQ(ids(legacy, "</s>a a"), (Ids{2, 260, 261})) << legacy;
  }
  EXPECT_EQ(ids(R"(,"legacy":false)", "a</s>a", /*has_json=*/true), (Ids{261, 2, 261}));
}

// Writes a sentencepiece vocabulary as tokenizer.json, with merges instead of scores: texts must
// become the same tokens.
TEST(ConvertTokenizer, MergesStandForScores) {
  const gguf::File pieces = gguf::File::Open(test::DataPath("pieces.gguf").string());
  const auto expected = tokenizer::Tokenizer::Create(pieces);
  const tokenizer::Vocabulary& old = expected->vocab();
  Json vocab = Json::object(), merges = Json::array(), added = Json::array();
  std::map<std::string, size_t> ids;
  std::vector<size_t> by_score;
  for (size_t i = 0; i < old.size(); ++i) {
    const std::string token(old.tokens[i]);
    if (old.types[i] == TokenType::kControl || old.types[i] == TokenType::kUserDefined) {
      added.push_back({{"id", i}, {"content", token}, {"special", true}});
    } else {
      vocab[token] = i;
      ids[token] = i;
      by_score.push_back(i);
    }
  }
  std::ranges::stable_sort(by_score, std::greater(), [&](size_t i) { return old.scores[i]; });
  for (const size_t i : by_score) {
    const std::string token(old.tokens[i]);
    for (size_t at = 1; at < token.size(); ++at) {
      if (!ids.contains(token.substr(0, at)) || !ids.contains(token.substr(at))) continue;
      merges.push_back({token.substr(0, at), token.substr(at)});
    }
  }
  const Vocabulary read = ReadTokenizerJson(
      Parsed({{"added_tokens", added},
              {"pre_tokenizer", {{"type", "Metaspace"}, {"split", false}}},
              {"model",
               {{"type", "BPE"}, {"byte_fallback", true}, {"vocab", vocab}, {"merges", merges}}}}),
      "llama");
  EXPECT_EQ(read.add_space_prefix, true);
  EXPECT_EQ(read.types, old.types);

  gguf::Writer writer;
  test::VocabSpec spec = {
      .model = "llama", .tokens = read.tokens, .scores = read.scores, .types = read.types};
  spec.AddTo(writer);
  const std::vector<std::byte> bytes = writer.ToBytes();
  const gguf::File file = gguf::File::Parse("v", bytes);
  const auto tokenizer = tokenizer::Tokenizer::Create(file);
  for (const char* text :
       {"Once upon a time, there was a little girl named Nora.", "  spaces   and\nlines\n\n", "",
        "ßtraße, naïve — 中文", "The old clockmaker wound the lantern's golden spring twice!"}) {
    EXPECT_EQ(tokenizer->Encode(text, {}), expected->Encode(text, {})) << text;
  }
}

}  // namespace
}  // namespace convert
