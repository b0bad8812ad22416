// Converts folders to files: tests the result, refused folders and their messages. families_test.cc
// tests that the folders of families become the original files.
#include "convert/convert.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "convert/source.h"
#include "engine/model/model.h"
#include "gguf/file.h"
#include "kernels/half.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/hf_folder.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace convert {
namespace {

using test::Json;

using gguf::DType;
using test::HfLlama;
using test::TempDir;

std::vector<float> Floats(const gguf::TensorView& tensor) {
  std::vector<float> floats(tensor.elements());
  EXPECT_EQ(tensor.dtype, DType::kF32);
  std::memcpy(floats.data(), tensor.data, 4 * floats.size());
  return floats;
}

// Returns Convert()'s message about the folder, without its path.
std::string ErrorOf(const HfLlama& llama) {
  const TempDir dir;
  const std::string folder = llama.Write(dir), out = dir.Path("out");
  std::string error = test::ErrorOf([&] { Convert(folder, out, {}); });
  EXPECT_FALSE(std::filesystem::exists(out)) << "something was written";
  for (size_t at; (at = error.find(folder)) != std::string::npos;) {
    error.replace(at, folder.size(), "DIR");
  }
  return error;
}

// Returns Convert()'s message after `other` replaced `text` in config.json.
std::string ErrorOfConfig(const std::string& text, const std::string& other) {
  HfLlama llama;
  const size_t at = llama.config.find(text);
  EXPECT_NE(at, std::string::npos) << text;
  llama.config.replace(at, text.size(), other);
  return ErrorOf(llama);
}

// generation_config.json's settings become llama.cpp's keys, with its types.
TEST(Convert, KeepsTheRecommendedSampling) {
  const TempDir dir;
  HfLlama llama;
  llama.files["generation_config.json"] =
      R"({"temperature":0.5,"top_k":20,"top_p":null,"min_p":0,"repetition_penalty":1.25,)"
      R"("mirostat":0,"do_sample":true})";
  Convert(llama.Write(dir), dir.Path("out"), {});
  const gguf::File file = gguf::File::Open(dir.Path("out"));
  const gguf::Metadata& keys = file.metadata();
  EXPECT_EQ(keys.GetFloat("general.sampling.temp"), 0.5);
  EXPECT_EQ(keys.GetInt("general.sampling.top_k"), 20);
  EXPECT_EQ(keys.Find("general.sampling.top_k")->type, gguf::ValueType::kI32);
  EXPECT_EQ(keys.Find("general.sampling.min_p")->type, gguf::ValueType::kF32);
  EXPECT_EQ(keys.GetFloat("general.sampling.penalty_repeat"), 1.25);
  EXPECT_FALSE(keys.Has("general.sampling.top_p"));
  EXPECT_FALSE(keys.Has("general.sampling.xtc_threshold"));
  llama.files["generation_config.json"] = R"({"temperature":0.5,"top_k":20,"do_sample":false})";
  Convert(llama.Write(dir), dir.Path("greedy"), {});
  const gguf::File greedy = gguf::File::Open(dir.Path("greedy"));
  EXPECT_EQ(greedy.metadata().GetFloat("general.sampling.temp"), 0);
  EXPECT_FALSE(greedy.metadata().Has("general.sampling.top_k"));
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {R"({"temperature":-1})", "temperature: expected a number from 0 to 1000000, found -1"},
           {R"({"top_k":1.5})", "top_k: expected a whole number"},
           {R"({"top_p":"0.9"})", "top_p: "}}) {
    llama.files["generation_config.json"] = text;
    EXPECT_TRUE(test::Has(ErrorOf(llama), "generation_config.json: " + says));
  }
}

TEST(Convert, WeightsAreWhereTheyBelong) {
  const TempDir dir;
  const HfLlama llama;
  const Report report = Convert(llama.Write(dir, "tiny-llama"), dir.Path("out"), {});
  EXPECT_EQ(report.architecture, "llama");
  EXPECT_EQ(report.type, DType::kF32);
  EXPECT_EQ(report.n_tensors, 11u);
  EXPECT_TRUE(report.left_out.empty());
  const gguf::File file = gguf::File::Open(dir.Path("out"));
  EXPECT_EQ(file.metadata().GetString("general.name"), "tiny-llama");
  EXPECT_EQ(file.metadata().GetString("general.architecture"), "llama");
  EXPECT_EQ(file.metadata().GetUint("general.file_type"), 0u);
  EXPECT_EQ(file.metadata().GetUint("llama.context_length"), 64u);
  EXPECT_EQ(file.metadata().GetUint("llama.rope.dimension_count"), 16u);
  const std::string layer = "model.layers.0.";
  EXPECT_EQ(Floats(*file.FindTensor("token_embd.weight")),
            llama.tensors.at("model.embed_tokens.weight").values);
  EXPECT_EQ(Floats(*file.FindTensor("blk.0.attn_v.weight")),
            llama.tensors.at(layer + "self_attn.v_proj.weight").values);
  // There are two heads of 16 rows: rows i and i + 8 of a head become neighbours.
  const std::vector<float>& q = llama.tensors.at(layer + "self_attn.q_proj.weight").values;
  const std::vector<float> found = Floats(*file.FindTensor("blk.0.attn_q.weight"));
  for (size_t row = 0; row < 32; ++row) {
    const size_t head = row / 16, at = row % 16, old = head * 16 + at / 2 + (at % 2) * 8;
    for (size_t i = 0; i < 32; ++i) ASSERT_EQ(found[row * 32 + i], q[old * 32 + i]) << row;
  }
  engine::Model::Load(dir.Path("out"));
}

TEST(Convert, TypesAreChosen) {
  const TempDir dir;
  const HfLlama llama;
  const std::string folder = llama.Write(dir), out = dir.Path("out");
  const auto convert = [&](DType type, uint32_t file_type, int threads) {
    Convert(folder, out, {.type = type, .file_type = file_type, .n_threads = threads});
    return gguf::File::Open(out);
  };
  const std::vector<float>& old = llama.tensors.at("model.embed_tokens.weight").values;
  for (const int threads : {1, 3}) {
    const gguf::File half = convert(DType::kF16, 1, threads);
    const gguf::TensorView& embedding = *half.FindTensor("token_embd.weight");
    ASSERT_EQ(embedding.dtype, DType::kF16);
    for (size_t i = 0; i < old.size(); ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, embedding.data + 2 * i, 2);
      ASSERT_EQ(bits, kernels::F32ToF16(old[i])) << i;
    }
    EXPECT_EQ(half.FindTensor("output_norm.weight")->dtype, DType::kF32);
    EXPECT_FALSE(half.metadata().Has("general.quantization_version"));
  }
  // 48 is not a multiple of 32, so this matrix keeps its type.
  const gguf::File q8 = convert(DType::kQ8_0, 7, 1);
  EXPECT_EQ(q8.FindTensor("blk.0.attn_q.weight")->dtype, DType::kQ8_0);
  EXPECT_EQ(q8.FindTensor("blk.0.ffn_down.weight")->dtype, DType::kF32);
  EXPECT_EQ(q8.metadata().GetUint("general.file_type"), 7u);
  EXPECT_EQ(q8.metadata().GetUint("general.quantization_version"), 2u);
}

TEST(Convert, ShardsAreOneModel) {
  const TempDir dir;
  const HfLlama llama;
  const std::string whole = llama.Write(dir, "whole");
  Convert(whole, dir.Path("a"), {});
  const std::string parts = llama.Write(dir, "parts");
  std::filesystem::remove(parts + "/model.safetensors");
  test::HfTensors odd, even;
  std::string map;
  for (const auto& [name, tensor] : llama.tensors) {
    const bool is_odd = odd.size() <= even.size();
    (is_odd ? odd : even)[name] = tensor;
    map += (map.empty() ? "\"" : ",\"") + name + "\":\"" + (is_odd ? "1" : "2") + ".safetensors\"";
  }
  dir.Write("parts/1.safetensors", test::Safetensors(odd));
  dir.Write("parts/2.safetensors", test::Safetensors(even));
  const auto index = [&](const std::string& weights) {
    dir.Write("parts/model.safetensors.index.json", R"({"weight_map":{)" + weights + "}}");
  };
  index(map);
  Convert(parts, dir.Path("b"), {});
  const gguf::File a = gguf::File::Open(dir.Path("a")), b = gguf::File::Open(dir.Path("b"));
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    EXPECT_EQ(Floats(a.tensors()[i]), Floats(b.tensors()[i])) << a.tensors()[i].name;
  }

  const auto error = [&] {
    std::string text = test::ErrorOf([&] { Convert(parts, dir.Path("c"), {}); });
    for (size_t at; (at = text.find(parts)) != std::string::npos;)
      text.replace(at, parts.size(), "DIR");
    return text;
  };
  const std::string start = "DIR/model.safetensors.index.json: weight_map: ";
  for (const char* path : {"../whole/model.safetensors", "/etc/passwd", "..", ""}) {
    index(R"("model.norm.weight":")" + std::string(path) + "\"");
    EXPECT_EQ(error(), start + "expected names of files in this folder, found \"" + path + "\"");
  }
  index(map + R"(,"model.extra.weight":"1.safetensors")");
  EXPECT_EQ(error(), start +
                         "expected tensor \"model.extra.weight\" in DIR/1.safetensors, which "
                         "does not have it");
  index("");
  EXPECT_EQ(error(), start + "expected 1 to 4096 files, found 0");
  index(R"("a":3)");
  EXPECT_EQ(error(), start + "expected names of files");
  index(map);
  dir.Write("parts/2.safetensors", test::Safetensors(llama.tensors));
  EXPECT_TRUE(test::Has(error(), "expected each name once, found it in DIR/1.safetensors, too"));
  std::filesystem::remove(parts + "/2.safetensors");
  EXPECT_EQ(error().substr(0, 23), "DIR/2.safetensors: no s");
}

TEST(Convert, FoldersThatAreNone) {
  const TempDir dir;
  const auto error = [&](const std::string& path) {
    return test::ErrorOf([&] { Convert(path, dir.Path("out"), {}); });
  };
  const std::string none = dir.Path("none");
  EXPECT_EQ(error(none),
            none + ": expected a folder with config.json and safetensors files: no such folder");
  const std::string file = dir.Write("file", "");
  EXPECT_EQ(error(file), file +
                             ": expected a folder with config.json and safetensors files, found "
                             "a file");
  std::filesystem::create_directory(dir.Path("empty"));
  EXPECT_EQ(error(dir.Path("empty")),
            dir.Path("empty/config.json") +
                ": no such file; expected a folder as Hugging Face's libraries write it");
  dir.Write("empty/config.json", "{}");
  EXPECT_EQ(error(dir.Path("empty")), dir.Path("empty") +
                                          ": expected model.safetensors or "
                                          "model.safetensors.index.json");
  dir.Write("empty/pytorch_model.bin", "x");
  EXPECT_TRUE(test::Has(error(dir.Path("empty")), "save the model as safetensors first"));
}

TEST(Convert, ConfigIsChecked) {
  EXPECT_TRUE(test::Has(ErrorOfConfig("LlamaForCausalLM", "T5Model"),
                        "DIR/config.json: architectures: architecture \"T5Model\" cannot be "
                        "converted (this program converts LlamaForCausalLM, "));
  EXPECT_EQ(ErrorOfConfig("\"LlamaForCausalLM\"", ""),
            "DIR/config.json: architectures: expected one name, found 0");
  EXPECT_EQ(
      ErrorOfConfig("\"hidden_size\":32", "\"hidden_size\":-32"),
      "DIR/config.json: hidden_size: expected a whole number from 0 to 4294967295, found -32");
  EXPECT_EQ(ErrorOfConfig("\"vocab_size\":264,", ""),
            "DIR/config.json: vocab_size: expected a whole number above 0, found nothing");
  for (const std::string key : {"head_dim", "global_head_dim"}) {
    EXPECT_EQ(ErrorOfConfig("\"hidden_act\"", "\"" + key + "\":4294967295,\"hidden_act\""),
              "DIR/config.json: " + key + ": expected at most 65536");
  }
  EXPECT_EQ(ErrorOfConfig("\"num_hidden_layers\":1", "\"num_hidden_layers\":4294967295"),
            "DIR/config.json: num_hidden_layers: expected at most 4096");
  EXPECT_EQ(ErrorOfConfig("\"hidden_act\":\"silu\"", "\"hidden_act\":\"gelu\""),
            "DIR/config.json: hidden_act: expected silu in a model of architecture llama, found "
            "\"gelu\"");
  EXPECT_EQ(
      ErrorOfConfig("\"hidden_act\"", "\"rope_scaling\":{\"rope_type\":\"ntk\"},\"hidden_act\""),
      "DIR/config.json: rope_scaling.rope_type: expected default, linear, dynamic, yarn, "
      "llama3 or longrope, found \"ntk\"");
  // Only the whole model shows this fault.
  EXPECT_TRUE(test::Has(ErrorOfConfig("\"rms_norm_eps\":1e-5,", ""),
                        "key \"llama.attention.layer_norm_rms_epsilon\""));
}

// Folders of Gemma 3 name only values that differ from the library's defaults.
TEST(Convert, UsualValuesNeedNotBeNamed) {
  const Fields config = ParseObject("c", R"({"text_config":{"hidden_size":2560,)"
                                         R"("num_attention_heads":16},"hidden_size":7})");
  const Family& gemma = *std::ranges::find(Families(), "gemma3", &Family::name);
  const Fields all = ConfigWithDefaults(gemma.hf, config);
  EXPECT_EQ(all.Count("hidden_size"), 2560u);
  EXPECT_EQ(all.Count("num_attention_heads"), 16u);
  EXPECT_EQ(all.Count("num_key_value_heads"), 4u);
  EXPECT_EQ(all.Count("sliding_window"), 4096u);
  EXPECT_EQ(gemma.hf.rope_theta, 1e6);
}

// Python's json writes such non-finite numbers, for example in Nemotron-H's folders.
TEST(Convert, ConfigMayHaveInfinity) {
  const TempDir dir;
  HfLlama llama;
  llama.config += R"(,"time_step_limit":[0.0,Infinity])";
  EXPECT_NO_THROW(Convert(llama.Write(dir), dir.Path("out"), {}));
}

TEST(Convert, ModelsThatSeeAreOfTheirTextsFamily) {
  const auto name = [](const std::string& outer, const std::string& type) {
    const Json text = type.empty() ? Json::object() : Json{{"model_type", type}};
    const Fields config =
        ParseObject("c", Json{{"architectures", {outer}}, {"text_config", text}}.dump());
    std::string found;
    const std::string error = test::ErrorOf([&] { found = FindSource(config).family.name; });
    return error.empty() ? found : error;
  };
  EXPECT_EQ(name("Mistral3ForConditionalGeneration", ""), "llama");
  EXPECT_EQ(name("Mistral3ForConditionalGeneration", "ministral3"), "mistral3");
  EXPECT_EQ(name("LlavaForConditionalGeneration", "qwen2"), "qwen2");
  EXPECT_EQ(name("InternVLForConditionalGeneration", "qwen3_moe"), "qwen3moe");
  EXPECT_EQ(name("Gemma3ForConditionalGeneration", "gemma3_text"), "gemma3");
  EXPECT_EQ(name("LlavaForConditionalGeneration", "opt"),
            "c: text_config.model_type: a text model of type \"opt\" cannot be converted from "
            "LlavaForConditionalGeneration");
}

TEST(Convert, TensorsAreChecked) {
  HfLlama llama;
  llama.tensors.erase("model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(ErrorOf(llama).substr(0, 52), "DIR, as GGUF: tensor blk.0.ffn_up.weight: is missing");
  llama = {};
  llama.Add("model.layers.0.mlp.extra.weight", {3});
  EXPECT_EQ(ErrorOf(llama),
            "DIR/model.safetensors: tensor \"model.layers.0.mlp.extra.weight\": has "
            "no place in a model of architecture llama: its text would be wrong");
  llama = {};
  llama.Add("model.norm.weight", {31});
  EXPECT_TRUE(
      test::Has(ErrorOf(llama), "tensor output_norm.weight: expected shape [32], found [31]"));
  llama = {};
  llama.Add("model.layers.0.self_attn.q_proj.weight", {31, 32});
  EXPECT_EQ(ErrorOf(llama),
            "DIR/model.safetensors: tensor "
            "\"model.layers.0.self_attn.q_proj.weight\": expected rows for 2 heads "
            "of an even length, found [31, 32]");
  llama = {};
  llama.Add("model.layers.0.block_sparse_moe.experts.1.w1.weight", {8, 32});
  EXPECT_EQ(ErrorOf(llama),
            "DIR/model.safetensors: tensor "
            "\"model.layers.0.block_sparse_moe.experts.1.w1.weight\": expected "
            "experts 0, 1 and so on: number 0 is missing");
  llama = {};
  llama.files.erase("tokenizer.model");
  EXPECT_EQ(ErrorOf(llama),
            "DIR: expected tokenizer.model, tokenizer.json, tiktoken.model or "
            "sentencepiece.bpe.model, found none");
}

TEST(Convert, WhatTextDoesNotNeedIsLeftOut) {
  const TempDir dir;
  HfLlama llama;
  llama.Add("model.layers.0.self_attn.rotary_emb.inv_freq", {8});
  llama.Add("model.layers.1.mlp.up_proj.weight", {48, 32});  // after the last layer
  llama.Add("lm_head.weight", {264, 32});                    // tied to the embedding
  llama.Add("vision_tower.patch.weight", {4, 4});
  const Report report = Convert(llama.Write(dir), dir.Path("out"), {});
  EXPECT_EQ(
      report.left_out,
      (std::vector<std::string>{"lm_head.weight", "model.layers.0.self_attn.rotary_emb.inv_freq",
                                "model.layers.1.mlp.up_proj.weight", "vision_tower.patch.weight"}));
  EXPECT_EQ(report.n_tensors, 11u);
}

TEST(Convert, WeightsThatTheTypeCannotHold) {
  const TempDir dir;
  HfLlama llama;
  llama.tensors.at("model.layers.0.mlp.up_proj.weight").values[77] = 70000;
  const std::string folder = llama.Write(dir),
                    out = dir.Write("out", std::string_view("as before"));
  EXPECT_EQ(test::ErrorOf([&] { Convert(folder, out, {.type = DType::kF16}); }),
            folder +
                "/model.safetensors: tensor \"model.layers.0.mlp.up_proj.weight\": expected "
                "weights that F16 can hold, found some that are not numbers or are too large");
  EXPECT_EQ(test::ReadText(out), "as before");
}

TEST(Convert, DoesNotWriteIntoWhatItReads) {
  const TempDir dir;
  const std::string folder = HfLlama().Write(dir), weights = folder + "/model.safetensors";
  const std::string before = test::ReadText(weights);
  const std::string error = test::ErrorOf([&] { Convert(folder, weights, {}); });
  EXPECT_TRUE(test::Has(error, "is a file that is read"));
  EXPECT_EQ(test::ReadText(weights), before);
}

}  // namespace
}  // namespace convert
