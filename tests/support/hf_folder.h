// Folders as Hugging Face's libraries write them, made in the tests: safetensors, a sentencepiece
// tokenizer, and a whole small model.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_dir.h"
#include "tests/support/vocab_spec.h"

namespace test {

// A file with this header and `data_bytes` of data.
inline std::string Safetensors(std::string_view header, size_t data_bytes) {
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + std::string(header) + std::string(data_bytes, '\x01');
}

struct HfTensor {
  std::vector<uint64_t> shape;
  std::vector<float> values;              // for F32
  std::string dtype = "F32", bytes = "";  // for other types
};
using HfTensors = std::map<std::string, HfTensor>;

inline std::string Safetensors(const HfTensors& tensors) {
  std::string header, data;
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (const uint64_t dim : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(dim);
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor.values.data()), 4 * tensor.values.size());
    data.append(tensor.bytes);
    header += (header.empty() ? "{\"" : ",\"") + name + R"(":{"dtype":")" + tensor.dtype +
              R"(","shape":[)" + shape + "],\"data_offsets\":[" + std::to_string(begin) + "," +
              std::to_string(data.size()) + "]}";
  }
  std::string file = Safetensors(header + "}", 0);
  return file + data;
}

// The part of protocol buffers' wire format that a tokenizer.model uses.
inline std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string ProtoBytes(uint64_t field, std::string_view value) {
  return Varint(field << 3 | 2) + Varint(value.size()) + std::string(value);
}
inline std::string ProtoNumber(uint64_t field, uint64_t value) {
  return Varint(field << 3) + Varint(value);
}

// A sentencepiece model of these tokens. model_type: 1 unigram, 2 BPE.
inline std::string SentencePieceModel(const VocabSpec& spec, uint64_t model_type = 2,
                                      bool add_dummy_prefix = true) {
  std::string out;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(spec.scores[i]);
    std::string score = Varint(2 << 3 | 5);
    score.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
    out += ProtoBytes(1, ProtoBytes(1, spec.tokens[i]) + score +
                             ProtoNumber(3, static_cast<uint64_t>(spec.types[i])));
  }
  out += ProtoBytes(2, ProtoNumber(3, model_type));
  return out + ProtoBytes(3, ProtoNumber(3, add_dummy_prefix ? 1 : 0));
}

// A llama of width 32 with one layer and two heads, whose weights are all different.
struct HfLlama {
  std::string config = R"("architectures":["LlamaForCausalLM"],"hidden_size":32,)"
                       R"("intermediate_size":48,"num_hidden_layers":1,"num_attention_heads":2,)"
                       R"("vocab_size":264,"max_position_embeddings":64,"rms_norm_eps":1e-5,)"
                       R"("hidden_act":"silu","tie_word_embeddings":true)";
  HfTensors tensors;
  std::map<std::string, std::string> files;  // all files except config.json and the weights

  HfLlama() {
    Add("model.embed_tokens.weight", {264, 32});
    Add("model.norm.weight", {32});
    const std::string layer = "model.layers.0.";
    Add(layer + "input_layernorm.weight", {32});
    Add(layer + "post_attention_layernorm.weight", {32});
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      Add(layer + "self_attn." + name + ".weight", {32, 32});
    }
    Add(layer + "mlp.gate_proj.weight", {48, 32});
    Add(layer + "mlp.up_proj.weight", {48, 32});
    Add(layer + "mlp.down_proj.weight", {32, 48});
    VocabSpec vocab = SpmSpec();
    vocab.Add("\u2581", -1);
    vocab.Add("a", -2);
    vocab.Add(
        "\u2581"
        "a",
        -3);
    files["tokenizer.model"] = SentencePieceModel(vocab);
    files["tokenizer_config.json"] =
        R"({"bos_token":"<s>","eos_token":{"content":"</s>"},"add_bos_token":true,)"
        R"("chat_template":"{{ messages[0].content }}"})";
  }

  void Add(const std::string& name, const std::vector<uint64_t>& shape) {
    HfTensor tensor{shape, {}};
    size_t n = 1;
    for (const uint64_t dim : shape) n *= dim;
    for (size_t i = 0; i < n; ++i) {
      const auto at = static_cast<float>(i + 97 * tensors.size());
      tensor.values.push_back(shape.size() == 1 ? 1 + 0.1f * std::sin(at)
                                                : 0.3f * std::sin(at * at));
    }
    tensors[name] = tensor;
  }

  // Writes the folder and returns its path.
  std::string Write(const TempDir& dir, const std::string& name = "model") const {
    std::filesystem::create_directory(dir.Path(name));
    dir.Write(name + "/config.json", "{" + config + "}");
    dir.Write(name + "/model.safetensors", Safetensors(tensors));
    for (const auto& [file, text] : files) dir.Write(name + "/" + file, text);
    return dir.Path(name);
  }
};

}  // namespace test
