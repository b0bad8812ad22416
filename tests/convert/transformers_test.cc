// Converts small models of Hugging Face's own classes, and compares their logits with the classes'.
// tests/transformers/golden.py made the files of data/transformers and describes them.
#include "tests/support/transformers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "convert/convert.h"
#include "convert/source.h"
#include "engine/model/model.h"
#include "engine/session/embedder.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/hf_folder.h"
#include "tests/support/json.h"
#include "tests/support/logits.h"
#include "tests/support/temp_dir.h"

namespace convert {
namespace {

using test::Json;

// Computes number i of a tensor, from -1/2 to 1/2.
class Hashed {
 public:
  explicit Hashed(std::string_view name) {
    for (const char c : name) seed_ = (seed_ ^ static_cast<uint8_t>(c)) * 16777619u;
  }
  float At(size_t i) const {
    uint32_t x = seed_ + static_cast<uint32_t>(i) * 2654435761u;
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    x ^= x >> 16;
    return static_cast<float>(x >> 8) * 0x1p-24f - 0.5f;
  }

 private:
  uint32_t seed_ = 2166136261u;
};

// `kind` is, for example, "64x32 0 -2", or " 0 -2" for a single number.
test::HfTensor Tensor(const std::string& name, const std::string& kind) {
  test::HfTensor tensor;
  const size_t end = kind.find(' ');
  std::istringstream shape(kind.substr(0, end)), rest(kind.substr(end));
  size_t n = 1;
  for (std::string dim; std::getline(shape, dim, 'x');) {
    tensor.shape.push_back(std::stoull(dim));
    n *= tensor.shape.back();
  }
  float offset = 0;
  int exponent = 0;
  rest >> offset >> exponent;
  const float scale = std::ldexp(1.0f, exponent);
  const Hashed hashed(name);
  for (size_t i = 0; i < n; ++i) tensor.values.push_back(offset + scale * hashed.At(i));
  return tensor;
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::DataPath("transformers"))) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".json" && !name.starts_with("tokenizer"))
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Returns the vectors of three poolings, in golden.py's order.
std::vector<float> Vectors(const engine::Model& model, const std::vector<tokenizer::TokenId>& ids,
                           const engine::SessionOptions& options) {
  std::vector<float> all;
  for (const engine::Pooling pooling :
       {engine::Pooling::kMean, engine::Pooling::kFirst, engine::Pooling::kLast}) {
    engine::Embedder embedder(model, options, pooling);
    embedder.Embed({&ids, 1}, [&](size_t, size_t, std::span<const float> row) {
      all.insert(all.end(), row.begin(), row.end());
      return true;
    });
  }
  return all;
}

// Writes a golden model as a folder.
void WriteFolder(const std::string& model, const Json& golden, const test::TempDir& dir) {
  dir.Write("config.json", golden["config"].dump());
  if (golden.contains("files")) {
    std::filesystem::create_directory(dir.Path("1_Pooling"));
    for (const auto& [name, file] : golden["files"].items()) dir.Write(name, file.dump());
  }
  for (const char* const file : {"tokenizer.json", "tokenizer_config.json"})
    dir.Write(file, test::ReadText(test::DataPath("transformers/" + std::string(file))));
  if (model == "gemma4_text") {  // merges of characters, with marked spaces
    Json tokenizer = Json::parse(test::ReadText(dir.Path("tokenizer.json")));
    tokenizer["pre_tokenizer"] = nullptr;
    tokenizer["decoder"] = nullptr;
    tokenizer["normalizer"] = {
        {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
    dir.Write("tokenizer.json", tokenizer.dump());
  }
  test::HfTensors tensors;
  for (const auto& [kind, names] : golden["tensors"].items()) {
    for (const Json& name : names)
      tensors[name.get<std::string>()] = Tensor(name.get<std::string>(), kind);
  }
  dir.Write("model.safetensors", test::Safetensors(tensors));
}

class TransformersTest : public testing::TestWithParam<std::string> {};

TEST_P(TransformersTest, HasTheLogitsOfTheClass) {
  const Json golden =
      Json::parse(test::ReadText(test::DataPath("transformers/" + GetParam() + ".json")));
  const test::TempDir dir;
  WriteFolder(GetParam(), golden, dir);
  const Report report = Convert(dir.Path(""), dir.Path("out.gguf"), {});
  for (const std::string& name : report.left_out) EXPECT_TRUE(name.starts_with("pooler.")) << name;
  const engine::Model model = engine::Model::Load(dir.Path("out.gguf"));
  std::vector<tokenizer::TokenId> ids;
  for (const Json& id : golden["ids"]) ids.push_back(id.get<int>());
  const engine::SessionOptions options = {
      .context = ids.size() + 16, .n_threads = 1, .kv_type = kernels::KvType::kF32};
  const bool embeds = golden.contains("vectors");
  const std::vector<float> all =
      embeds ? Vectors(model, ids, options) : test::AllLogits(model, ids, options);
  std::vector<float> found, expected;
  const size_t n = embeds ? model.config.embedding_length : model.config.vocab_size;
  const auto step = golden["step"].get<size_t>();
  for (const Json& row : golden["rows"]) {
    for (size_t i = 0; i < n; i += step) found.push_back(all[row.get<size_t>() * n + i]);
  }
  for (const Json& x : golden[embeds ? "vectors" : "logits"]) expected.push_back(x.get<float>());
  EXPECT_LT(test::Nmse(found, expected), 1e-9);
  if (embeds) return;
  // Drafts are verified in such passes: a few tokens on two threads must have the bits of single
  // tokens.
  const auto in_passes_of = [&](size_t n_tokens, int n_threads) {
    return test::AllLogits(model, ids,
                           {.context = ids.size(), .batch = n_tokens, .n_threads = n_threads});
  };
  EXPECT_TRUE(in_passes_of(7, 2) == in_passes_of(1, 1));
}

// Decay rates are exp(A_log), and llama.cpp passes them unchanged to a sigmoid. With negative rates
// in the file, every decay would be different.
TEST(Transformers, Ling3HasPositiveRatesOfDecay) {
  const Json golden =
      Json::parse(test::ReadText(test::DataPath("transformers/bailing_hybrid.json")));
  const test::TempDir dir;
  WriteFolder("bailing_hybrid", golden, dir);
  Convert(dir.Path(""), dir.Path("out.gguf"), {});
  std::string file = test::ReadText(dir.Path("out.gguf"));
  const std::string log = "model.layers.0.attention.A_log";
  std::string kind;
  for (const auto& [each, names] : golden["tensors"].items())
    if (std::ranges::count(names, Json(log)) > 0) kind = each;
  std::vector<float> rates = Tensor(log, kind).values;
  const auto bytes = [&] {
    return std::string(reinterpret_cast<const char*>(rates.data()), rates.size() * sizeof(float));
  };
  for (float& rate : rates) rate = static_cast<float>(std::exp(double{rate}));
  const std::string positive = bytes();
  ASSERT_NE(file.find(positive), std::string::npos);
  for (float& rate : rates) rate = -rate;
  file.replace(file.find(positive), positive.size(), bytes());
  dir.Write("out.gguf", file);
  const std::string error = test::ErrorOf([&] { engine::Model::Load(dir.Path("out.gguf")); });
  EXPECT_NE(error.find("blk.0.ssm_a: expected numbers above 0"), std::string::npos) << error;
}

TEST(Transformers, HaveAllArchitecturesWithoutAFile) {
  std::set<std::string, std::less<>> found;
  for (const std::string& name : Names()) {
    const std::string path = test::DataPath("transformers/" + name + ".json");
    const Json config = Json::parse(test::ReadText(path))["config"];
    found.emplace(FindSource(ParseObject(path, config.dump())).family.name);
  }
  for (const std::string& name : test::MadeWhileTesting())
    EXPECT_TRUE(found.contains(name)) << name;
}

INSTANTIATE_TEST_SUITE_P(Models, TransformersTest, testing::ValuesIn(Names()),
                         [](const auto& tested) { return test::TestName(tested.param); });

}  // namespace
}  // namespace convert
