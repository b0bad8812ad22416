// Tests each field of tokenizer.json: the ids equal those of Hugging Face's library, or an error
// names the field. tests/data/make_tokenizer_json.py made the cases.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "convert/convert.h"
#include "gguf/file.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/hf_folder.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"
#include "tokenizer/tokenizer.h"

namespace convert {
namespace {

using test::Json;
using Ids = std::vector<tokenizer::TokenId>;

// A llama with 300 tokens.
test::HfLlama Folder(const Json& tokenizer, const std::string& base) {
  test::HfLlama llama;
  llama.config.replace(llama.config.find("264"), 3, "300");
  llama.Add("model.embed_tokens.weight", {300, 32});
  llama.files = {
      {"tokenizer.json", tokenizer.dump()},
      {"tokenizer_config.json", base == "words" ? R"({"cls_token":"[CLS]","sep_token":"[SEP]"})"
                                                : R"({"bos_token":"<s>","eos_token":"<|end|>"})"}};
  return llama;
}

Json Changed(Json tokenizer, const Json& changes) {
  for (const auto& [key, value] : changes.items()) {
    if (key != "model") {
      tokenizer[key] = value;
      continue;
    }
    for (const auto& [inner, change] : value.items()) tokenizer["model"][inner] = change;
  }
  return tokenizer;
}

TEST(ConvertTokenizerJson, EachFieldIsCarriedOutOrRefused) {
  const Json golden = Json::parse(test::ReadText(test::DataPath("tokenizer_json.json").string()));
  const test::TempDir dir;
  size_t n = 0;
  for (const Json& one : golden["cases"]) {
    const auto base = one["base"].get<std::string>();
    SCOPED_TRACE(base + ": " + one["changes"].dump());
    const test::HfLlama folder = Folder(Changed(golden["bases"][base], one["changes"]), base);
    const std::string name = "model" + std::to_string(n++);
    const std::string path = folder.Write(dir, name);
    const std::string error = test::ErrorOf([&] { Convert(path, dir.Path("out"), {}); });
    if (one.contains("refused")) {
      EXPECT_NE(error.find(one["refused"].get<std::string>() + ": "), std::string::npos) << error;
      continue;
    }
    ASSERT_EQ(error, "");
    const gguf::File file = gguf::File::Open(dir.Path("out"));
    const auto tokenizer = tokenizer::Tokenizer::Create(file);
    size_t i = 0;
    for (const Json& text : golden["texts"][base]) {
      EXPECT_EQ(tokenizer->Encode(text.get<std::string>(), {.parse_special = true}),
                one["ids"][i++].get<Ids>())
          << text.dump();
    }
  }
  EXPECT_GT(n, 100u);
}

}  // namespace
}  // namespace convert
