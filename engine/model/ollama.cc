#include "engine/model/ollama.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

namespace engine {
namespace {

using gguf::ValueType;

// keys, without the architecture, and parts of tensors' names: "THEIRS=USUAL ...". A key with
// nothing after = has no effect. pre: the split pattern of files that name none.
struct Spelling {
  const char *architecture, *usual, *keys, *tensors, *pre = "";
};
constexpr const char* kQwenKeys =
    "rope.mrope_section= mrope_sections= rope.mrope_interleaved= ssm.v_head_reordered= "
    "norm_top_k_prob= image_token_id= vision_start_token_id= vision_end_token_id=";
constexpr Spelling kSpellings[] = {
    {"qwen35", "qwen35", kQwenKeys, ".ssm_dt=.ssm_dt.bias"},
    {"qwen35moe", "qwen35moe", kQwenKeys, ".ssm_dt=.ssm_dt.bias"},
    {"lfm2", "lfm2", "", ""},
    {"gptoss", "gpt-oss", "",
     ".attn_out.=.attn_output. .attn_sinks=.attn_sinks.weight .ffn_norm.=.post_attention_norm.",
     "gpt-4o"},
    {"gemma3", "gemma3",
     "rope.global.freq_base=rope.freq_base rope.local.freq_base=rope.freq_base_swa", ""},
    {"gemma3n", "gemma3n",
     "head_dim=attention.key_length head_dim=attention.value_length "
     "rope.freq_base_local=rope.freq_base_swa altup.correct_scale= altup.lr_multiplier=",
     ""},
    {"mistral3", "mistral3",
     "rope.scaling.beta_fast=rope.scaling.yarn_beta_fast "
     "rope.scaling.beta_slow=rope.scaling.yarn_beta_slow rope.scaling.mscale= "
     "rope.scaling.mscale_all_dim=rope.scaling.yarn_log_multiplier "
     "rope.scaling_beta=attention.temperature_scale image_token_index= spatial_merge_size=",
     "", "tekken"},
    {"nemotron_h_moe", "nemotron_h_moe", "",
     ".ffn_latent_in.=.ffn_latent_down. .ffn_latent_out.=.ffn_latent_up."},
};

// Calls do_it(theirs, usual) for each pair.
template <class Do>
void ForEachPair(const char* pairs, Do do_it) {
  std::istringstream words(pairs);
  for (std::string pair; words >> pair;) {
    const size_t equals = pair.find('=');
    do_it(pair.substr(0, equals), pair.substr(equals + 1));
  }
}

// The 4B model and larger ones lack what is the same for all of them.
void CompleteGemma3(gguf::Metadata& meta) {
  if (meta.Has("gemma3.attention.layer_norm_rms_epsilon")) return;
  meta.SetFloat("gemma3.attention.layer_norm_rms_epsilon", 1e-6f);
  if (!meta.Has("gemma3.rope.freq_base")) meta.SetFloat("gemma3.rope.freq_base", 1e6f);
  if (meta.GetUintOr("gemma3.context_length", 0) < 131072) return;
  if (!meta.Has("gemma3.rope.scaling.factor")) meta.SetFloat("gemma3.rope.scaling.factor", 8);
}

// One number for all layers that attend, where Ollama has a list with 0 for the others.
void FlattenKvHeads(const std::string& key, gguf::Metadata& meta) {
  const gguf::Value* const value = meta.Find(key);
  if (value == nullptr || value->type != ValueType::kArray) return;
  int64_t most = 0;
  for (const int64_t n : meta.GetInts(key)) most = std::max(most, n);
  meta.SetInt(key, most);
}

void CompleteLfm2(gguf::File& file) {
  if (file.FindTensor("token_embd_norm.weight") != nullptr) return;
  file.RenameTensors("output_norm.", "token_embd_norm.");
  const gguf::TensorView* const gate = file.FindTensor("blk.0.ffn_gate.weight");
  if (gate != nullptr) {
    file.metadata().SetInt("lfm2.feed_forward_length", static_cast<int64_t>(gate->dims[1]));
  }
}

// Nemotron's experts work on vectors of this length.
void CompleteLatents(gguf::File& file) {
  constexpr std::string_view kKey = "nemotron_h_moe.moe_latent_size";
  for (const gguf::TensorView& tensor : file.tensors()) {
    if (!tensor.name.ends_with(".ffn_latent_down.weight") || file.metadata().Has(kKey)) continue;
    file.metadata().SetInt(kKey, static_cast<int64_t>(tensor.dims[1]));
  }
}

}  // namespace

void RespellOllama(gguf::File& file) {
  gguf::Metadata& meta = file.metadata();
  const std::string own(meta.GetStringOr("general.architecture", ""));
  for (const std::string_view name : {"glm4moelite", "glmocr", "deepseekocr", "mllama"}) {
    if (own != name) continue;
    meta.Fail("general.architecture", own + " is Ollama's own make of a file: get the model as " +
                                          "one that llama.cpp's converter wrote");
  }
  const auto* const row = std::find_if(std::begin(kSpellings), std::end(kSpellings),
                                       [&](const Spelling& s) { return own == s.architecture; });
  if (row == std::end(kSpellings)) return;
  const std::string usual = row->usual;
  if (own != usual) {
    if (file.FindTensor("blk.0.ffn_gate_up_exps.weight") != nullptr) {
      meta.Fail("general.architecture",
                own + ": an early file of Ollama's, with gates and ups in turn: pull it again");
    }
    meta.RenamePrefix(own + ".", usual + ".");
    meta.SetString("general.architecture", usual);
    if (!meta.Has(usual + ".rope.scaling.type"))
      meta.SetString(usual + ".rope.scaling.type", "yarn");
  }
  bool theirs = own != usual;
  ForEachPair(row->keys, [&](const std::string& from, const std::string& to) {
    const gguf::Value* const value = meta.Find(usual + "." + from);
    theirs |= value != nullptr;
    if (value != nullptr && !to.empty()) meta.Set(usual + "." + to, *value);
  });
  ForEachPair(row->keys, [&](const std::string& from, const std::string&) {
    meta.Remove(usual + "." + from);
  });
  ForEachPair(row->tensors, [&](const std::string& from, const std::string& to) {
    file.RenameTensors(from, to);
  });
  const std::string_view pre = meta.GetStringOr("tokenizer.ggml.pre", "default");
  if (theirs && *row->pre != 0 && pre == "default") {
    meta.SetString("tokenizer.ggml.pre", row->pre);
  }
  if (own == "gemma3") CompleteGemma3(meta);
  if (own == "lfm2") CompleteLfm2(file);
  if (own == "nemotron_h_moe") CompleteLatents(file);
  if (own.starts_with("qwen35")) FlattenKvHeads(own + ".attention.head_count_kv", meta);
}

}  // namespace engine
