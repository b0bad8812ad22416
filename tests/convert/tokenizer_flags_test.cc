// Tests a folder's files beside the vocabulary: special and added tokens, flags and templates.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convert/convert.h"
#include "gguf/file.h"
#include "tests/convert/bpe_json.h"
#include "tests/support/error_of.h"
#include "tests/support/hf_folder.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"
#include "tokenizer/tokenizer.h"

namespace convert {
namespace {

using test::Json;

// Two templates of a list are used. A template in its own file takes precedence.
TEST(ConvertTokenizer, NamedTemplates) {
  const auto templates = [](const std::map<std::string, std::string>& files) {
    const test::TempDir dir;
    test::HfLlama llama;
    llama.files["tokenizer_config.json"] =
        R"({"bos_token":"<s>","chat_template":[{"name":"default","template":"a"},)"
        R"({"name":"tool_use","template":"b"},{"name":"rag","template":"c"}]})";

    const std::string folder = llama.Write(dir);
    std::filesystem::create_directory(folder + "/additional_chat_templates");
    for (const auto& [name, text] : files) dir.Write("model/" + name, text);
    Convert(folder, dir.Path("out"), {});
    const gguf::File file = gguf::File::Open(dir.Path("out"));
    return std::string(file.metadata().GetString("tokenizer.chat_template")) + " " +
           std::string(file.metadata().GetString("tokenizer.chat_template.tool_use"));
  };
  EXPECT_EQ(templates({}), "a b");
  EXPECT_EQ(templates({{"chat_template.jinja", "d"}}), "d b");
  EXPECT_EQ(templates({{"additional_chat_templates/tool_use.jinja", "e"}}), "a e");
}

// Convert() writes these keys besides the vocabulary.
TEST(ConvertTokenizer, SpecialTokensAndTemplate) {
  const test::TempDir dir;
  test::HfLlama llama;
  llama.files["added_tokens.json"] = R"({"<tool>":262})";
  llama.files["tokenizer_config.json"] =
      R"({"bos_token":"<s>","add_bos_token":false,"chat_template":"from the config",)"
      R"("added_tokens_decoder":{"1":{"content":"<s>","special":true},)"
      R"("263":{"content":"<|im_end|>","special":false}}})";
  llama.files["special_tokens_map.json"] = R"({"eos_token":{"content":"</s>"}})";
  llama.files["generation_config.json"] = R"({"eos_token_id":[2,263]})";
  llama.config += R"(,"eos_token_id":[2,5])";
  llama.files["chat_template.jinja"] = "from a file of its own";
  Convert(llama.Write(dir), dir.Path("out"), {});
  const gguf::File file = gguf::File::Open(dir.Path("out"));
  const gguf::Metadata& keys = file.metadata();
  EXPECT_EQ(keys.GetUint("tokenizer.ggml.bos_token_id"), 1u);
  EXPECT_EQ(keys.GetUint("tokenizer.ggml.eos_token_id"), 2u);
  EXPECT_EQ(keys.GetUint("tokenizer.ggml.eot_token_id"), 263u);
  EXPECT_EQ(keys.GetInts("tokenizer.ggml.eos_token_ids"), (std::vector<int64_t>{2, 263, 5}));
  EXPECT_FALSE(keys.Has("tokenizer.ggml.padding_token_id"));
  EXPECT_FALSE(keys.GetBoolOr("tokenizer.ggml.add_bos_token", true));
  EXPECT_EQ(keys.GetString("tokenizer.chat_template"), "from a file of its own");
  const std::vector<int64_t> types = keys.GetInts("tokenizer.ggml.token_type");
  ASSERT_EQ(types.size(), 264u);  // the embedding's rows
  EXPECT_EQ(types[0], 2);
  EXPECT_EQ(types[1], 3);
  EXPECT_EQ(types[262], 4);  // <tool> is plain text for readers
  EXPECT_EQ(types[263], 3);  // <|im_end|> is special, although the folder denies it
}

// Converts a folder with this tokenizer, and opens the file.
gguf::File Converted(const test::TempDir& dir, const Json& tokenizer, const std::string& config) {
  test::HfLlama llama;
  llama.files = {{"tokenizer.json", tokenizer.dump()}, {"tokenizer_config.json", config}};
  Convert(llama.Write(dir), dir.Path("out"), {});
  return gguf::File::Open(dir.Path("out"));
}

// Tokens that continue a word lose their mark; tokens that begin a word get one.
TEST(ConvertTokenizer, WordPieces) {
  const test::TempDir dir;
  const Json model = {
      {"type", "WordPiece"},
      {"vocab", {{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}, {"ab", 3}, {"##b", 4}, {"a", 5}}}};
  const Json added = {{{"id", 1}, {"content", "[CLS]"}, {"special", true}},
                      {{"id", 2}, {"content", "[SEP]"}, {"special", true}},
                      {{"id", 0}, {"content", "[UNK]"}, {"special", true}}};
  const Json normalizer = {
      {"type", "BertNormalizer"}, {"lowercase", false}, {"strip_accents", true}};
  const gguf::File file =
      Converted(dir, {{"added_tokens", added}, {"normalizer", normalizer}, {"model", model}},
                R"({"cls_token":"[CLS]","sep_token":"[SEP]","unk_token":"[UNK]"})");
  const gguf::Metadata& keys = file.metadata();
  EXPECT_FALSE(keys.GetBoolOr("tokenizer.ggml.normalizer.lowercase", true));
  EXPECT_TRUE(keys.GetBoolOr("tokenizer.ggml.normalizer.strip_accents", false));
  EXPECT_FALSE(keys.Has("tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(tokenizer::Tokenizer::Create(file)->Encode("abb \u00e4 x", {}),
            (std::vector<tokenizer::TokenId>{1, 3, 4, 5, 0, 2}));
}

// The flags of transformers' BERT class replace tokenizer.json's rules for letters.
TEST(ConvertTokenizer, BertsOwnFlagsComeFirst) {
  const test::TempDir dir;
  const auto flags = [&](const std::string& config) {
    const Json model = {{"type", "WordPiece"}, {"vocab", {{"[UNK]", 0}, {"a", 1}}}};
    const Json normalizer = {{"type", "BertNormalizer"}, {"lowercase", false}};
    const gguf::File file =
        Converted(dir, {{"normalizer", normalizer}, {"model", model}}, "{" + config + "}");
    const gguf::Metadata& keys = file.metadata();
    return std::vector<bool>{keys.GetBoolOr("tokenizer.ggml.normalizer.lowercase", true),
                             keys.GetBoolOr("tokenizer.ggml.normalizer.strip_accents", true),
                             keys.GetBoolOr("tokenizer.pronk.handle_chinese_chars", true)};
  };
  using Flags = std::vector<bool>;
  EXPECT_EQ(flags(""), (Flags{false, false, true}));
  const std::string bert = R"("tokenizer_class":"BertTokenizer")";
  EXPECT_EQ(flags(bert), (Flags{true, true, true}));
  EXPECT_EQ(flags(bert + R"(,"do_lower_case":false,"tokenize_chinese_chars":false)"),
            (Flags{false, false, false}));
  EXPECT_EQ(flags(R"("tokenizer_class":"BertTokenizerFast","strip_accents":false)"),
            (Flags{true, false, true}));
}

// A token that the template adds after every text is its end token.
TEST(ConvertTokenizer, TheTemplateOfATextIsKept) {
  const test::TempDir dir;
  const auto special = [](const char* id) { return Json{{"SpecialToken", {{"id", id}}}}; };
  const Json sequence = {{"Sequence", {{"id", "A"}}}};
  Json tokenizer = Bpe({{"a", 0}, {"[CLS]", 1}, {"[SEP]", 2}, {"aa", 3}}, {"a a"});
  const std::string config = R"({"bos_token":"[CLS]","sep_token":"[SEP]","eos_token":"<|end|>"})";
  for (const bool ends : {false, true}) {
    Json single = {special("[CLS]"), sequence};
    if (ends) single.push_back(special("[SEP]"));
    tokenizer["post_processor"] = {{"type", "TemplateProcessing"}, {"single", single}};
    const gguf::File file = Converted(dir, tokenizer, config);
    const gguf::Metadata& keys = file.metadata();
    EXPECT_TRUE(keys.GetBoolOr("tokenizer.ggml.add_bos_token", false));
    EXPECT_EQ(keys.GetBoolOr("tokenizer.ggml.add_eos_token", false), ends);
    EXPECT_EQ(keys.GetBoolOr("tokenizer.ggml.add_sep_token", false), ends);
    EXPECT_EQ(keys.GetUint("tokenizer.ggml.eos_token_id"), ends ? 2u : 4u);
    EXPECT_EQ(keys.GetUint("tokenizer.ggml.seperator_token_id"), 2u);
  }
}

// A token before every text is BOS, whatever tokenizer_config.json calls it. As in transformers, a
// flag like add_bos_token has an effect in Llama's class, but not in PreTrainedTokenizer.
TEST(ConvertTokenizer, ATokenBeforeTheTextIsBos) {
  const test::TempDir dir;
  Json tokenizer = Bpe({{"a", 0}, {"<s>", 1}, {"b", 2}, {"aa", 3}}, {"a a"});
  using Ids = std::vector<tokenizer::TokenId>;
  const auto ids = [&](const std::string& config) {
    const gguf::File file = Converted(dir, tokenizer, config);
    return tokenizer::Tokenizer::Create(file)->Encode("aa", {});
  };
  EXPECT_EQ(ids("{}"), (Ids{3}));
  EXPECT_EQ(ids(R"({"bos_token":"<s>","add_bos_token":true,"tokenizer_class":"LlamaTokenizer"})"),
            (Ids{1, 3}));
  EXPECT_EQ(ids(R"({"bos_token":"<s>","add_bos_token":true,)"
                R"("tokenizer_class":"PreTrainedTokenizerFast"})"),
            (Ids{3}));
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}}};
  for (const char* config : {"{}", R"({"cls_token":"<s>"})", R"({"bos_token":"<|end|>"})",
                             R"({"add_bos_token":false,"tokenizer_class":"GPT2Tokenizer"})"}) {
    EXPECT_EQ(ids(config), (Ids{1, 3})) << config;
  }
}

// tokenizer.model lacks tokens that were added later; only tokenizer.json may have them.
TEST(ConvertTokenizer, AddedTokensOfTokenizerJsonBesideTokenizerModel) {
  const test::TempDir dir;
  test::HfLlama llama;
  Json tokenizer = {{"added_tokens",
                     {{{"id", 1}, {"content", "<s>"}, {"special", true}},
                      {{"id", 262}, {"content", "<think>"}, {"special", true}},
                      {{"id", 263}, {"content", "[TOOL]"}, {"special", false}}}}};
  llama.files["tokenizer.json"] = tokenizer.dump();
  Convert(llama.Write(dir), dir.Path("out"), {});
  const gguf::File file = gguf::File::Open(dir.Path("out"));
  const auto ours = tokenizer::Tokenizer::Create(file);
  EXPECT_EQ(ours->Find("<think>"), 262);
  EXPECT_EQ(file.metadata().GetInts("tokenizer.ggml.token_type")[262], 3);
  const auto ids = ours->Encode("x[TOOL]", {});
  EXPECT_EQ(ids.back(), 263);
}

// BOS is null in Qwen's folder; the number in its config.json was used only in training.
TEST(ConvertTokenizer, NullIsNoBos) {
  const test::TempDir dir;
  test::HfLlama llama;
  llama.config += R"(,"bos_token_id":1)";
  for (const bool is_null : {false, true}) {
    llama.files["tokenizer_config.json"] = is_null ? R"({"bos_token":null})" : "{}";
    Convert(llama.Write(dir), dir.Path("out"), {});
    const gguf::File file = gguf::File::Open(dir.Path("out"));
    EXPECT_EQ(file.metadata().Has("tokenizer.ggml.bos_token_id"), !is_null);
  }
}

TEST(ConvertTokenizer, OddFilesBesideItAreRefused) {
  const auto error = [](const std::string& file, const std::string& text) {
    const test::TempDir dir;
    test::HfLlama llama;
    llama.files[file] = text;
    const std::string folder = llama.Write(dir);
    const std::string what = test::ErrorOf([&] { Convert(folder, dir.Path("out"), {}); });
    return what.starts_with(folder + "/") ? what.substr(folder.size() + 1) : what;
  };
  for (const std::string number : {"", "99999999999999999999", "-1", "1x"}) {
    EXPECT_EQ(error("tokenizer_config.json",
                    R"({"added_tokens_decoder":{")" + number + R"(":{"content":"a"}}})"),
              "tokenizer_config.json: added_tokens_decoder." + number +
                  ": expected a token's number and the token");
  }
  EXPECT_EQ(error("tokenizer.json", R"({"post_processor":{"type":5}})"),
            "tokenizer.json: post_processor.type: expected a text, found 5");
  EXPECT_EQ(
      error("tokenizer.json",
            R"({"post_processor":{"type":"Sequence","processors":[{"type":"TemplateProcessing",)"
            R"("single":[{"SpecialToken":{"id":7}}]}]}})"),
      "tokenizer.json: SpecialToken.id: expected a text, found 7");
  EXPECT_EQ(error("tokenizer_config.json", ""),
            "tokenizer_config.json: expected a text file, found an empty file");
}

// Tokens beyond the embedding's rows: added tokens are dropped, other tokens are an error.
TEST(ConvertTokenizer, TokensWithoutAnEmbedding) {
  const test::TempDir dir;
  test::HfLlama llama;
  llama.files["added_tokens.json"] = R"({"<image>":264,"<|sound|>":270})";
  const Report report = Convert(llama.Write(dir), dir.Path("out"), {});
  EXPECT_EQ(report.notes,
            (std::vector<std::string>{"7 tokens have no row in the embedding and are left out"}));
  EXPECT_EQ(gguf::File::Open(dir.Path("out")).metadata().GetStrings("tokenizer.ggml.tokens").size(),
            264u);
  test::VocabSpec vocab = test::SpmSpec();
  while (vocab.tokens.size() < 265) vocab.Add("t" + std::to_string(vocab.tokens.size()));
  llama.files = {{"tokenizer.model", test::SentencePieceModel(vocab)}};
  const std::string folder = llama.Write(dir, "many");
  EXPECT_EQ(test::ErrorOf([&] { Convert(folder, dir.Path("out"), {}); }),
            folder + ": tokenizer: expected at most 264 tokens, the embedding's rows, found 265");
}

}  // namespace
}  // namespace convert
