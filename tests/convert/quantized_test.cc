// Folders with quantized weights: a known format becomes the numbers that it represents, and an
// unknown format is refused by its name. (families_test.cc tests gpt-oss's MXFP4.)
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "convert/convert.h"
#include "engine/model/model.h"
#include "gguf/file.h"
#include "kernels/matmul/reference.h"
#include "tests/support/error_of.h"
#include "tests/support/hf_folder.h"
#include "tests/support/temp_dir.h"

namespace convert {
namespace {

using gguf::DType;
using test::HfLlama;
using test::HfTensor;
using test::TempDir;

std::vector<float> Dequantized(const gguf::TensorView& tensor) {
  std::vector<float> floats(tensor.elements());
  kernels::DequantizeRow(tensor.dtype, tensor.data, floats.size(), floats.data());
  return floats;
}

// Adds the key after the other keys of config.json.
void AddQuantization(const std::string& text, HfLlama& llama) {
  llama.config += ",\"quantization_config\":{" + text + "}";
}

// Returns Convert()'s message about the folder, without its path.
std::string FaultOf(const HfLlama& llama, const Options& options = {}) {
  const TempDir dir;
  const std::string folder = llama.Write(dir);
  std::string error = test::ErrorOf([&] { Convert(folder, dir.Path("out"), options); });
  for (size_t at; (at = error.find(folder)) != std::string::npos;) {
    error.replace(at, folder.size(), "DIR");
  }
  EXPECT_FALSE(std::filesystem::exists(dir.Path("out")));
  return error;
}

Options As(DType type) { return {.type = type}; }

// Both folders must become equal weights, without further rounding.
void ExpectSame(const HfLlama& quantized, const HfLlama& plain) {
  const TempDir dir;
  Convert(quantized.Write(dir, "a"), dir.Path("a.gguf"), As(DType::kF32));
  Convert(plain.Write(dir, "b"), dir.Path("b.gguf"), As(DType::kF32));
  const gguf::File a = gguf::File::Open(dir.Path("a.gguf")),
                   b = gguf::File::Open(dir.Path("b.gguf"));
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const gguf::TensorView& tensor : b.tensors()) {
    EXPECT_EQ(Dequantized(*a.FindTensor(tensor.name)), Dequantized(tensor)) << tensor.name;
  }
}

bool IsMatrixOfLayer(const std::string& name) { return name.ends_with("_proj.weight"); }

// Decodes a byte by the definition of E4M3.
double F8Value(uint8_t byte) {
  const int exponent = byte / 8 % 16, fraction = byte % 8;
  const double size = exponent == 0 ? fraction / 8.0 * std::exp2(-6)
                                    : (1 + fraction / 8.0) * std::exp2(exponent - 7);
  return byte < 128 ? size : -size;
}

// Stores the layers' matrices as F8_E4M3, in blocks. `plain` gets the numbers that they represent.
HfLlama WithF8(uint64_t block_rows, uint64_t block_cols, HfLlama& plain) {
  HfLlama llama = plain;
  AddQuantization(R"("quant_method":"fp8","fmt":"e4m3","weight_block_size":[)" +
                      std::to_string(block_rows) + "," + std::to_string(block_cols) + "]",
                  llama);
  for (auto& [name, tensor] : plain.tensors) {
    if (!IsMatrixOfLayer(name)) continue;
    const uint64_t rows = tensor.shape[0], cols = tensor.shape[1];
    const uint64_t down = (rows + block_rows - 1) / block_rows,
                   across = (cols + block_cols - 1) / block_cols;
    HfTensor scale{{down, across}, {}};
    for (uint64_t i = 0; i < down * across; ++i) {
      scale.values.push_back(0.01f + 0.003f * static_cast<float>(i));
    }
    HfTensor packed{tensor.shape, {}, "F8_E4M3", std::string(rows * cols, '\0')};
    for (uint64_t i = 0; i < rows * cols; ++i) {
      const auto code = static_cast<uint8_t>(i * 37 % 256);
      const uint8_t byte = code % 128 == 127 ? 0 : code;  // 127 and 255 are NaN
      packed.bytes[i] = static_cast<char>(byte);
      const uint64_t block = i / cols / block_rows * across + i % cols / block_cols;
      tensor.values[i] = static_cast<float>(F8Value(byte) * scale.values[block]);
    }
    llama.tensors[name] = packed;
    llama.tensors[name + "_scale_inv"] = scale;
  }
  return llama;
}

TEST(ConvertQuantized, Fp8IsMultipliedByItsBlocks) {
  EXPECT_EQ(F8Value(0x38), 1);
  EXPECT_EQ(F8Value(0x7e), 448);
  EXPECT_EQ(F8Value(0x81), -std::exp2(-9));
  for (const uint64_t rows : {8, 12, 128}) {
    for (const uint64_t cols : {16, 20, 128}) {
      HfLlama plain;
      const HfLlama llama = WithF8(rows, cols, plain);
      ExpectSame(llama, plain);
    }
  }
}

TEST(ConvertQuantized, Fp8BecomesBf16OrWhatIsAskedFor) {
  HfLlama plain;
  const HfLlama llama = WithF8(128, 128, plain);
  const TempDir dir;
  const std::string folder = llama.Write(dir), out = dir.Path("out");
  EXPECT_EQ(Convert(folder, out, {}).type, DType::kBF16);
  EXPECT_EQ(gguf::File::Open(out).FindTensor("blk.0.attn_q.weight")->dtype, DType::kBF16);
  engine::Model::Load(out);
  Convert(folder, out, As(DType::kQ8_0));
  EXPECT_EQ(gguf::File::Open(out).FindTensor("blk.0.attn_q.weight")->dtype, DType::kQ8_0);
}

TEST(ConvertQuantized, Fp8MayHaveOneScaleAndThoseOfActivations) {
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  HfLlama plain;
  HfLlama llama = WithF8(128, 128, plain);
  llama.tensors[name + "_scale_inv"].shape = {};
  llama.tensors[name + "_scale"] = llama.tensors[name + "_scale_inv"];  // another name for it
  llama.tensors.erase(name + "_scale_inv");
  llama.Add("model.layers.0.self_attn.q_proj.activation_scale", {1});
  llama.Add("model.layers.0.self_attn.k_proj.input_scale", {});
  ExpectSame(llama, plain);
}

TEST(ConvertQuantized, Fp8IsChecked) {
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  const std::string start = "DIR/model.safetensors: tensor \"" + name;
  HfLlama plain;
  const HfLlama good = WithF8(8, 16, plain);
  HfLlama llama = good;
  llama.tensors[name + "_scale_inv"].shape = {2, 4};
  EXPECT_EQ(FaultOf(llama),
            start + "_scale_inv\": expected [4, 2], one for each block, found [2, 4]");
  llama = good;
  llama.tensors.erase(name + "_scale_inv");
  EXPECT_EQ(FaultOf(llama),
            start + "\": expected weights of type F64, F32, F16 or BF16, found F8_E4M3");
  llama = good;
  llama.tensors.erase(name);
  EXPECT_EQ(FaultOf(llama), start + "_scale_inv\": is a scale without weights");
  llama = good;
  llama.tensors[name].dtype = "F8_E5M2";
  EXPECT_EQ(FaultOf(llama), start + "\": expected matrices of F8_E4M3, found F8_E5M2 [32, 32]");
  llama = good;
  llama.tensors[name + "_scale_inv"] = {{4, 2}, {}, "U8", "12345678"};
  EXPECT_EQ(FaultOf(llama), start + "_scale_inv\": expected floats, found U8");
  llama = good;
  llama.tensors[name].bytes[5] = 0x7f;
  EXPECT_EQ(FaultOf(llama), start +
                                "\": expected weights that BF16 can hold, found some that are not "
                                "numbers or are too large");
  for (const char* block : {"[0,16]", "[8]", "[8.5,16]", "[8,16,16]", "[8,1e300]", "[-8,16]"}) {
    llama = good;
    const size_t at = llama.config.find("[8,16]");
    llama.config.replace(at, 6, block);
    EXPECT_EQ(FaultOf(llama),
              "DIR/config.json: quantization_config.weight_block_size: expected two whole numbers "
              "from 1 to 65536")
        << block;
  }
}

// Stores the numbers of four rows in each byte. `scale` is the stored number, `factor` its meaning.
HfLlama WithTernary(float scale, float factor, HfLlama& plain) {
  HfLlama llama = plain;
  for (auto& [name, tensor] : plain.tensors) {
    if (!IsMatrixOfLayer(name)) continue;
    const uint64_t rows = tensor.shape[0], cols = tensor.shape[1], quarter = rows / 4;
    HfTensor packed{{quarter, cols}, {}, "U8", std::string(quarter * cols, '\0')};
    for (uint64_t i = 0; i < rows * cols; ++i) {
      const uint64_t code = i * i % 7 % 3, row = i / cols;
      tensor.values[i] = factor * (static_cast<float>(code) - 1);
      char& byte = packed.bytes[row % quarter * cols + i % cols];
      byte = static_cast<char>(static_cast<uint8_t>(byte) | code << 2 * (row / quarter));
    }
    llama.tensors[name] = packed;
    llama.tensors[name + "_scale"] = {{1}, {scale}};
  }
  return llama;
}

TEST(ConvertQuantized, TernaryWeightsAreUnpacked) {
  HfLlama plain;
  HfLlama llama = WithTernary(0.375f, 0.375f, plain);
  AddQuantization(R"("quant_method":"bitnet","linear_class":"autobitlinear")", llama);
  ExpectSame(llama, plain);
  plain = {};
  llama = WithTernary(4, 0.25f, plain);  // Hugging Face's older class divides
  AddQuantization(R"("quant_method":"bitnet")", llama);
  ExpectSame(llama, plain);
}

// A BitNet with one layer, as wide as a block of TQ2_0.
struct HfBitNet : HfLlama {
  HfBitNet() {
    config = R"("architectures":["BitNetForCausalLM"],"hidden_size":256,"intermediate_size":256,)"
             R"("num_hidden_layers":1,"num_attention_heads":2,"num_key_value_heads":1,)"
             R"("vocab_size":264,"max_position_embeddings":64,"rms_norm_eps":1e-5,)"
             R"("hidden_act":"relu2","tie_word_embeddings":true)";
    tensors.clear();
    Add("model.embed_tokens.weight", {264, 256});
    Add("model.norm.weight", {256});
    const std::string layer = "model.layers.0.";
    for (const char* norm : {"input_layernorm", "post_attention_layernorm",
                             "self_attn.attn_sub_norm", "mlp.ffn_sub_norm"}) {
      Add(layer + norm + ".weight", {256});
    }
    for (const char* name : {"self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
                             "mlp.down_proj"}) {
      Add(layer + name + ".weight", {256, 256});
    }
    for (const char* name : {"k_proj", "v_proj"}) {
      Add(layer + "self_attn." + name + ".weight", {128, 256});
    }
  }
};

TEST(ConvertQuantized, BitNetKeepsItsTwoBits) {
  HfLlama plain = HfBitNet();
  HfLlama llama = WithTernary(1.1875f, 1.1875f, plain);
  AddQuantization(R"("quant_method":"bitnet","linear_class":"autobitlinear",)"
                  R"("quantization_mode":"offline")",
                  llama);
  const TempDir dir;
  const Report report = Convert(llama.Write(dir), dir.Path("out"), {});
  ASSERT_EQ(report.notes.size(), 2u);
  EXPECT_EQ(report.notes[1], "7 matrices of -1, 0 and 1 become TQ2_0, others F32");
  EXPECT_EQ(report.type, DType::kTQ2_0);
  const engine::Model model = engine::Model::Load(dir.Path("out"));
  EXPECT_EQ(model.file.metadata().GetUint("general.file_type"), 37u);
  EXPECT_EQ(model.config.activation, kernels::Activation::kGatedReluSquared);
  const gguf::TensorView& up = *model.file.FindTensor("blk.0.ffn_up.weight");
  EXPECT_EQ(up.dtype, DType::kTQ2_0);
  EXPECT_EQ(Dequantized(up), plain.tensors.at("model.layers.0.mlp.up_proj.weight").values);
  EXPECT_EQ(model.file.FindTensor("token_embd.weight")->dtype, DType::kF32);
}

TEST(ConvertQuantized, TernaryWeightsAreChecked) {
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  const std::string start = "DIR/model.safetensors: tensor \"" + name;
  HfLlama plain;
  HfLlama good = WithTernary(1, 1, plain);
  AddQuantization(R"("quant_method":"bitnet","linear_class":"autobitlinear")", good);
  HfLlama llama = good;
  for (const float scale : {0.0f, -1.0f, std::nanf(""), INFINITY}) {
    llama.tensors[name + "_scale"].values = {scale};
    EXPECT_EQ(FaultOf(llama), start + "_scale\": expected one number above 0") << scale;
  }
  llama.tensors[name + "_scale"] = {{2}, {1, 1}};
  EXPECT_EQ(FaultOf(llama), start + "_scale\": expected one number above 0");
  llama = good;
  llama.tensors[name].dtype = "I8";
  EXPECT_EQ(FaultOf(llama),
            start + "\": expected a matrix of U8, four weights in each, found I8 [8, 32]");
  llama = good;
  llama.tensors[name] = {{8, 0}, {}, "U8", ""};
  EXPECT_EQ(FaultOf(llama),
            start + "\": expected a matrix of U8, four weights in each, found U8 [8, 0]");
  llama = good;
  llama.tensors[name].bytes[3] = 0x0c;  // 3, which has no meaning
  EXPECT_EQ(FaultOf(llama, As(DType::kF16)).substr(0, 100),
            (start + "\": expected weights that F16 can hold").substr(0, 100));
  llama = good;
  for (const auto& [other, tensor] : good.tensors) {
    if (other.ends_with("_scale")) llama.tensors.erase(other);
  }
  EXPECT_EQ(FaultOf(llama),
            "DIR/config.json: quantization_config.quantization_mode: expected online, as no weight "
            "has a weight_scale");
}

TEST(ConvertQuantized, OthersAreRefusedByName) {
  for (const std::string method :
       {"gptq", "awq", "bitsandbytes", "compressed-tensors", "hqq", "mxfp4"}) {
    HfLlama llama;
    AddQuantization("\"quant_method\":\"" + method + "\"", llama);
    EXPECT_EQ(FaultOf(llama),
              "DIR/config.json: quantization_config.quant_method: expected weights of floats, of "
              "FP8 or BitNet's, found them quantized (" +
                  method + "): get the model as it was before");
  }
  HfLlama llama;
  AddQuantization("\"load_in_4bit\":true", llama);
  EXPECT_TRUE(test::Has(FaultOf(llama), "found them quantized (config.json does not say how)"));
}

}  // namespace
}  // namespace convert
