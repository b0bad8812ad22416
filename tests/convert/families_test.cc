// Converts every family there and back: data/hf_folder.py writes each small model as a published
// folder, and the converted folder must equal the model bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "convert/convert.h"
#include "convert/source.h"
#include "engine/model/family.h"
#include "engine/model/model.h"
#include "gguf/load.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/guesses.h"
#include "tests/support/hf_folder.h"
#include "tests/support/json.h"
#include "tests/support/logits.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wrong_json.h"

namespace convert {
namespace {

using test::Json;

std::string DataOf(const gguf::TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.data), tensor.bytes};
}

std::vector<float> FloatsOf(const gguf::TensorView& tensor) {
  EXPECT_EQ(tensor.dtype, gguf::DType::kF32);
  std::vector<float> floats(tensor.elements());
  std::memcpy(floats.data(), tensor.data, tensor.bytes);
  return floats;
}

std::vector<float> Logits(const engine::Model& model, const std::filesystem::path& ids_file) {
  std::ifstream in(ids_file);
  const std::vector<tokenizer::TokenId> ids{std::istream_iterator<tokenizer::TokenId>(in), {}};
  EXPECT_GE(ids.size(), 8u);
  if (model.config.backbone_length > 0) return test::Guess(test::Backbone(), model, ids, 2).logits;
  return test::Results(model, ids, {.context = 1024, .n_threads = 1});
}

// No folder becomes NVFP4, the older keys of two families, MiMo's joined matrix or a Qwen3 with two
// layers of a classifier. Converting rounds BitNet, so its own test rounds the weights first. The
// models of MiniMax-01 and BLOOM were made from folders (transformers_test.cc).
bool IsLeftOut(const std::string& name) {
  return name.starts_with("bitnet") || name.ends_with("nvfp4") || name.ends_with("legacy") ||
         name.ends_with("-qkv") || name == "qwen3-rerank" || name == "minimax-01" ||
         name == "bloom";
}

bool HasPython() { return test::RunProgram({"/bin/sh", "-c", "python3 -c ''"}, "").status == 0; }

// Writes models as folders. The list alternates the names of files and folders.
void WriteFolders(const std::vector<std::string>& files_and_folders, int shards, int padding = 0) {
  std::vector<std::string> args = {"/bin/sh", "-c", "exec python3 \"$@\"", "sh",
                                   test::DataPath("hf_folder.py")};
  args.insert(args.end(), files_and_folders.begin(), files_and_folders.end());
  args.insert(args.end(),
              {"--shards", std::to_string(shards), "--padding", std::to_string(padding)});
  const test::Finished made = test::RunProgram(args, "");
  ASSERT_EQ(made.status, 0) << made.err;
}

void ExpectSameWeights(const engine::Model& after, const engine::Model& before) {
  for (const gguf::TensorView& old : before.file.tensors()) {
    const gguf::TensorView* const now = after.file.FindTensor(old.name);
    ASSERT_NE(now, nullptr) << old.name;
    EXPECT_EQ(now->dims, old.dims) << old.name;
    if (old.dtype == now->dtype) {
      EXPECT_TRUE(DataOf(*now) == DataOf(old)) << old.name;
    } else {  // folders have floats
      EXPECT_EQ(old.dtype, gguf::DType::kQ4_0) << old.name;
    }
  }
  EXPECT_EQ(after.file.tensors().size(), before.file.tensors().size());
}

// Replaces each value of config.json by a wrong value: this gives a one-line error or a file.
void ExpectNoHarmByConfig(const std::string& folder, const std::string& out) {
  static size_t next = 0;
  const std::string path = folder + "/config.json";
  const Json config = Json::parse(test::ReadText(path));
  for (const test::JsonPlace& place : test::Places(config)) {
    Json damaged = config;
    test::At(damaged, place) = test::WrongValues()[next++ % test::WrongValues().size()];
    const std::string text = damaged.dump();
    test::WriteBytes(path, std::as_bytes(std::span(text)));
    SCOPED_TRACE(test::PathOf(place) + " " + text.substr(0, 2000));
    test::ErrorOf([&] { Convert(folder, out, {}); });
  }
}

// Replaces each kind of tensor by a scalar: the error names the file and the tensor. If one number
// may be enough, the result is a file.
void ExpectNoHarmByShapes(const std::string& folder, const std::string& out) {
  size_t n_refused = 0, n_all = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const std::string path = entry.path(), bytes = test::ReadText(path);
    const size_t length = gguf::Load<uint64_t>(reinterpret_cast<const std::byte*>(bytes.data()));
    const Json head = Json::parse(bytes.substr(8, length));
    for (const auto& [name, tensor] : head.items()) {
      if (name.find("layers.") != std::string::npos && name.find("layers.0.") == std::string::npos)
        continue;
      if (name.find("experts.") != std::string::npos && name.find("experts.0") == std::string::npos)
        continue;
      if (name == "__metadata__") continue;
      Json damaged = head;
      const size_t elements =
          std::accumulate(tensor["shape"].begin(), tensor["shape"].end(), size_t{1},
                          [](size_t n, const Json& dim) { return n * dim.get<size_t>(); });
      if (elements == 1) continue;
      const size_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
      damaged[name]["shape"] = Json::array();
      damaged[name]["data_offsets"] = {begin, begin + (end - begin) / elements};
      const std::string text = damaged.dump();
      std::string all(8, '\0');
      const uint64_t new_length = text.size();
      std::memcpy(all.data(), &new_length, sizeof(new_length));
      all += text + bytes.substr(8 + length);
      test::WriteBytes(path, std::as_bytes(std::span(all)));
      SCOPED_TRACE(name);
      const std::string error = test::ErrorOf([&] { Convert(folder, out, {}); });
      ++n_all;
      if (error.empty()) continue;
      ++n_refused;
      EXPECT_TRUE(error.starts_with(folder)) << error;
      EXPECT_TRUE(test::Has(error, ": tensor "));
      EXPECT_TRUE(test::Has(error, "expected"));
      EXPECT_TRUE(test::Has(error, "found"));
    }
    test::WriteBytes(path, std::as_bytes(std::span(bytes)));
  }
  EXPECT_GE(n_refused + 2, n_all);
}

TEST(ConvertFamilies, FoldersBecomeTheModelsThatTheyWere) {
  if (!HasPython()) GTEST_SKIP() << "no python3";
  std::vector<std::filesystem::path> paths = test::SmallModels();
  for (const char* const plain : {"llama", "llama-linear", "llama-yarn", "qwen2", "qwen3"}) {
    paths.push_back(test::DataPath("tiny/" + std::string(plain) + ".gguf"));
  }
  paths.push_back(test::DataPath("assistants/gemma4.gguf"));
  for (const auto& entry : std::filesystem::directory_iterator(test::DataPath("vectors"))) {
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path());
  }
  std::erase_if(paths, [](const auto& path) { return IsLeftOut(path.stem()); });
  EXPECT_GE(paths.size(), 84u);
  const test::TempDir dir;
  std::vector<std::string> whole, in_parts;  // so Python starts only twice, which is faster
  for (size_t i = 0; i < paths.size(); ++i) {
    std::vector<std::string>& names = i % 4 == 0 ? in_parts : whole;
    names.insert(names.end(), {paths[i], dir.Path(std::to_string(i))});
  }
  WriteFolders(whole, 1);
  WriteFolders(in_parts, 3);
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::filesystem::path& path = paths[i];
    const std::string name = path.stem();
    SCOPED_TRACE(name);
    const std::string folder = dir.Path(std::to_string(i)), out = dir.Path("out.gguf");
    const Report report = Convert(folder, out, {});
    EXPECT_TRUE(report.left_out.empty());
    const engine::Model before = engine::Model::Load(path), after = engine::Model::Load(out);
    ExpectSameWeights(after, before);
    // Equal logits show that the keys are equal, too.
    const bool has_ids = std::filesystem::exists(path.parent_path() / "ids.txt");
    const auto ids = has_ids ? path.parent_path() / "ids.txt" : test::DataPath("families/ids.txt");
    const double error = test::Nmse(Logits(after, ids), Logits(before, ids));
    EXPECT_LE(error, name.starts_with("gemma3n") ? 1e-3 : 0);  // its table is Q4_0
    EXPECT_EQ(after.config.nextn.has_value(), before.config.nextn.has_value());
    EXPECT_EQ(after.config.pooling, before.config.pooling);
    ExpectNoHarmByShapes(folder, dir.Path("damaged.gguf"));
    ExpectNoHarmByConfig(folder, dir.Path("damaged.gguf"));
  }
}

// Rounds by BitNet's definition: x / m to the nearest of -1, 0 and 1, times m, the mean of all |x|.
std::vector<float> Rounded(const std::vector<float>& weights) {
  double mean = 0;
  for (const float x : weights) mean += std::abs(x) / static_cast<double>(weights.size());
  std::vector<float> rounded;
  for (const float x : weights) {
    rounded.push_back(static_cast<float>(std::clamp(std::round(x / mean), -1.0, 1.0) * mean));
  }
  return rounded;
}

// A folder of trained weights becomes a model with weights -m, 0 and m. This model in its published
// form, four weights to a byte, becomes itself.
TEST(ConvertFamilies, BitNetIsRoundedOnce) {
  if (!HasPython()) GTEST_SKIP() << "no python3";
  Options as_floats = {.type = gguf::DType::kF32};
  for (const std::string name : {"bitnet", "bitnet-relu2"}) {
    SCOPED_TRACE(name);
    const std::string path = test::DataPath("families/" + name + ".gguf");
    const test::TempDir dir;
    WriteFolders({path, dir.Path("trained")}, 1);
    Convert(dir.Path("trained"), dir.Path("rounded.gguf"), as_floats);
    const engine::Model trained = engine::Model::Load(path);
    const engine::Model rounded = engine::Model::Load(dir.Path("rounded.gguf"));
    EXPECT_EQ(rounded.config.activation, trained.config.activation);
    for (const gguf::TensorView& now : rounded.file.tensors()) {
      const std::vector<float> before = FloatsOf(*trained.file.FindTensor(now.name));
      const bool is_rounded = now.name.starts_with("blk.") && now.n_dims == 2;
      const std::vector<float> expected = is_rounded ? Rounded(before) : before;
      const std::vector<float> found = FloatsOf(now);
      for (size_t i = 0; i < found.size(); ++i) {  // converting has m and 1 / m as floats
        ASSERT_NEAR(found[i], expected[i], 2e-7 * std::abs(expected[i])) << now.name << " " << i;
      }
    }
    WriteFolders({dir.Path("rounded.gguf"), dir.Path("packed")}, 1);
    Convert(dir.Path("packed"), dir.Path("again.gguf"), as_floats);
    const engine::Model again = engine::Model::Load(dir.Path("again.gguf"));
    ExpectSameWeights(again, rounded);
    const auto ids = test::DataPath("families/ids.txt");
    EXPECT_EQ(test::Nmse(Logits(again, ids), Logits(rounded, ids)), 0);
  }
}

void WriteText(const std::string& path, const std::string& text) {
  test::WriteBytes(path, std::as_bytes(std::span(text)));
}

// Writes the small Qwen3 as a folder like Qwen3-Reranker's.
std::string WriteReranker(const test::TempDir& dir, const std::string& readme, size_t yes,
                          bool tied) {
  const std::string folder = dir.Path("folder");
  WriteFolders({test::DataPath("tiny/qwen3.gguf"), folder}, 1);
  WriteText(folder + "/README.md", readme);
  WriteText(folder + "/tokenizer.json",
            Json{{"model", {{"vocab", {{"yes", yes}, {"no", 5}}}}}}.dump());
  Json config = Json::parse(test::ReadText(folder + "/config.json"));
  config["tie_word_embeddings"] = tied;
  WriteText(folder + "/config.json", config.dump());
  return folder;
}

TEST(ConvertFamilies, ARerankerHasTheRowsOfItsAnswers) {
  if (!HasPython()) GTEST_SKIP() << "no python3";
  const engine::Model writer = engine::Model::Load(test::DataPath("tiny/qwen3.gguf"));
  for (const bool tied : {false, true}) {
    const test::TempDir dir;
    const std::string folder = WriteReranker(dir, "text\n# Qwen3-Reranker-0.6B\n", 7, tied);
    Convert(folder, dir.Path("out"), {});
    const engine::Model model = engine::Model::Load(dir.Path("out"));
    EXPECT_EQ(model.config.pooling, engine::Pooling::kRank);
    const gguf::Metadata& keys = model.file.metadata();
    const std::vector<std::string_view> labels = keys.GetStrings("qwen3.classifier.output_labels");
    ASSERT_EQ(labels.size(), 2u);
    EXPECT_EQ(*labels.begin(), "yes");
    EXPECT_TRUE(test::Has(keys.GetString("tokenizer.chat_template.rerank"),
                          "<Query>: {query}\n<Document>"));
    EXPECT_EQ(model.file.FindTensor("output.weight"), nullptr);
    const std::string of = tied ? "token_embd.weight" : "output.weight";
    const std::string all = DataOf(*writer.file.FindTensor(of));
    const size_t row = all.size() / 320;
    EXPECT_TRUE(DataOf(*model.file.FindTensor("cls.output.weight")) ==
                all.substr(7 * row, row) + all.substr(5 * row, row));
    const auto scores = Logits(model, test::DataPath("families/ids.txt"));
    EXPECT_NEAR(std::accumulate(scores.begin(), scores.end(), 0.0), 1, 1e-6);
    EXPECT_EQ(scores.size(), 2u);
  }
}

TEST(ConvertFamilies, OtherFoldersAreNoRerankers) {
  if (!HasPython()) GTEST_SKIP() << "no python3";
  const test::TempDir dir;
  // Qwen3-Embedding's README lists its relatives, too.
  Convert(WriteReranker(dir, "# Qwen3-Embedding\n| Qwen3-Reranker-0.6B |", 7, false),
          dir.Path("out"), {});
  EXPECT_EQ(engine::Model::Load(dir.Path("out")).config.pooling, engine::Pooling::kNone);
  const std::string folder = WriteReranker(dir, "# qwen3-reranker", 320, false);
  EXPECT_EQ(test::ErrorOf([&] { Convert(folder, dir.Path("out"), {}); }),
            folder +
                "/model.safetensors: tensor \"lm_head.weight\": expected more than 320 rows, found "
                "[320, 64]");
  WriteText(folder + "/tokenizer.json", "{}");
  EXPECT_EQ(test::ErrorOf([&] { Convert(folder, dir.Path("out"), {}); }).substr(folder.size()),
            "/tokenizer.json: model.vocab.yes: expected a whole number above 0, found nothing");
}

// Layers after pooling have their own folders.
TEST(ConvertFamilies, OddDenseLayersAreRefused) {
  if (!HasPython()) GTEST_SKIP() << "no python3";
  const test::TempDir dir;
  const std::string folder = dir.Path("folder");
  WriteFolders({test::DataPath("vectors/gemma-embedding.gguf"), folder}, 1);
  const auto error = [&](const std::string& file, const std::string& text) {
    const std::string path = folder + "/" + file, before = test::ReadText(path);
    WriteText(path, text);
    const std::string what = test::ErrorOf([&] { Convert(folder, dir.Path("out"), {}); });
    WriteText(path, before);
    return what.starts_with(folder) ? what.substr(folder.size()) : what;
  };
  EXPECT_EQ(
      error("2_Dense/config.json", R"({"activation_function":"torch.nn.Tanh"})"),
      "/2_Dense/config.json: activation_function: expected Identity: its vectors would be wrong");
  EXPECT_EQ(
      error("2_Dense/model.safetensors",
            test::Safetensors({{"linear.bias", {{20}, std::vector<float>(20)}}})),
      ", as GGUF: tensor \"dense_2.bias\" has no place in what this program computes: its text "
      "would be wrong");
  // This architecture has no such layers.
  Json config = Json::parse(test::ReadText(folder + "/config.json"));
  config["architectures"] = {"Gemma3ForCausalLM"};
  config["use_bidirectional_attention"] = false;
  EXPECT_EQ(
      error("config.json", config.dump()),
      "/2_Dense/model.safetensors: tensor \"2_Dense.linear.weight\": has no place in a model of "
      "architecture gemma3: its text would be wrong");
}

// Converts the folder as RoBERTa's, which has a byte-level tokenizer that ends texts with </s>.
void ExpectRobertaByBytes(const test::TempDir& dir, const engine::Model& before) {
  Json config = Json::parse(test::ReadText(dir.Path("folder/config.json")));
  const std::string name = config["architectures"][0];
  config["architectures"] = {name.substr(name.find("Roberta"))};
  config["model_type"] = "roberta";
  std::filesystem::copy(dir.Path("folder"), dir.Path("bytes"),
                        std::filesystem::copy_options::recursive);
  WriteText(dir.Path("bytes/config.json"), config.dump());
  const Json vocab = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"a", 3}, {"b", 4}, {"ab", 5}};
  const Json all = {
      {"added_tokens",
       {{{"id", 0}, {"content", "<s>"}, {"special", true}},
        {{"id", 2}, {"content", "</s>"}, {"special", true}}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor",
       {{"type", "RobertaProcessing"}, {"sep", {"</s>", 2}}, {"cls", {"<s>", 0}}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a b"}}}}};
  WriteText(dir.Path("bytes/tokenizer.json"), all.dump());
  WriteText(dir.Path("bytes/tokenizer_config.json"),
            R"({"bos_token":"<s>","eos_token":"</s>","sep_token":"</s>","cls_token":"<s>"})");
  Convert(dir.Path("bytes"), dir.Path("out.gguf"), {});
  const engine::Model after = engine::Model::Load(dir.Path("out.gguf"));
  ExpectSameWeights(after, before);
  EXPECT_EQ(after.file.metadata().GetString("tokenizer.ggml.pre"), "roberta-bpe");
  const std::vector<tokenizer::TokenId> ids = {0, 5, 3, 2};
  EXPECT_EQ(after.tokenizer->Encode("aba", {}), ids);
  EXPECT_TRUE(after.tokenizer->vocab().add_sep);
}

// XLM-RoBERTa's folders are BERT with other names, and with rows before the first position.
TEST(ConvertFamilies, RobertaIsABert) {
  if (!HasPython()) GTEST_SKIP() << "no python3";
  for (const std::string name : {"bert-cls", "bert-rank"}) {
    SCOPED_TRACE(name);
    const std::string path = test::DataPath("vectors/" + name + ".gguf");
    const test::TempDir dir;
    WriteFolders({path, dir.Path("folder")}, 1, /*padding=*/2);
    Convert(dir.Path("folder"), dir.Path("out"), {});
    const engine::Model before = engine::Model::Load(path);
    const engine::Model after = engine::Model::Load(dir.Path("out"));
    ExpectSameWeights(after, before);
    EXPECT_EQ(after.config.context_length, before.config.context_length);
    EXPECT_EQ(after.config.pooling, before.config.pooling);
    const auto ids = test::DataPath("families/ids.txt");
    EXPECT_EQ(test::Nmse(Logits(after, ids), Logits(before, ids)), 0);
    ExpectRobertaByBytes(dir, before);
    ExpectNoHarmByShapes(dir.Path("folder"), dir.Path("damaged.gguf"));
    ExpectNoHarmByConfig(dir.Path("folder"), dir.Path("damaged.gguf"));
    Json config = Json::parse(test::ReadText(dir.Path("folder/config.json")));
    config["pad_token_id"] = before.config.context_length + 1;
    WriteText(dir.Path("folder/config.json"), config.dump());
    EXPECT_TRUE(test::Has(test::ErrorOf([&] { Convert(dir.Path("folder"), dir.Path("out"), {}); }),
                          "config.json: max_position_embeddings: too few positions"));
  }
}

// Every family that runs can be converted, and each architecture's name finds its row.
TEST(ConvertFamilies, HaveAllThatRuns) {
  for (const Family& family : Families()) {
    std::vector<HfClass> classes = {family.hf};
    classes.insert(classes.end(), family.others.begin(), family.others.end());
    for (const HfClass& hf : classes) {
      EXPECT_FALSE(hf.names[0].empty()) << family.name;
      for (const std::string_view name : hf.names) {
        if (name.empty()) break;
        const int n_experts = hf.experts == HasExperts::kSome ? 8 : 0;
        const Json config = {{"architectures", {name}}, {"n_routed_experts", n_experts}};
        const Source found = FindSource(ParseObject("config.json", config.dump()));
        EXPECT_EQ(found.family.name, family.name) << name;
      }
    }
  }
}

}  // namespace
}  // namespace convert
