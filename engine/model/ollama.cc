// Rewrites Ollama's spelling of keys and tensors as llama.cpp's.
#include "engine/model/ollama.h"

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

namespace engine {
namespace {

// Files whose tensors differ only in their names. Lists are "THEIRS=USUAL ...".
struct Spelling {
  const char* architectures;  // a word without = is also the usual name
  const char* keys = "";      // without the architecture; "KEY=": the key has no effect
  const char* tensors = "";   // substrings of names
  const char* rows = "";      // "KEY=TENSOR": a key that is the rows of a tensor, by its name's end
  const char* texts = "";     // "KEY=TEXT": the values of keys that the file lacks
};
constexpr Spelling kSpellings[] = {
    {"qwen35 qwen35moe qwen3vl qwen3vlmoe qwen25vl=qwen2vl",
     "rope.mrope_section=rope.dimension_sections mrope_sections= rope.mrope_interleaved= "
     "ssm.v_head_reordered= norm_top_k_prob= image_token_id= vision_start_token_id= "
     "vision_end_token_id=",
     ".ssm_dt=.ssm_dt.bias"},
    {"lfm2 lfm2moe", "", "output_norm.=token_embd_norm.", "feed_forward_length=.ffn_gate.weight"},
    {"gptoss=gpt-oss", "",
     ".attn_out.=.attn_output. .attn_sinks=.attn_sinks.weight .ffn_norm.=.post_attention_norm.", "",
     "gpt-oss.rope.scaling.type=yarn tokenizer.ggml.pre=gpt-4o"},
    {"gemma3", "rope.global.freq_base=rope.freq_base rope.local.freq_base=rope.freq_base_swa"},
    {"gemma3n",
     "head_dim=attention.key_length head_dim=attention.value_length "
     "rope.freq_base_local=rope.freq_base_swa altup.correct_scale= altup.lr_multiplier="},
    {"mistral3",
     "rope.scaling.beta_fast=rope.scaling.yarn_beta_fast "
     "rope.scaling.beta_slow=rope.scaling.yarn_beta_slow rope.scaling.mscale= "
     "rope.scaling.mscale_all_dim=rope.scaling.yarn_log_multiplier "
     "rope.scaling_beta=attention.temperature_scale image_token_index= spatial_merge_size=",
     "", "", "tokenizer.ggml.pre=tekken"},
    {"nemotron_h_moe", "", ".ffn_latent_in.=.ffn_latent_down. .ffn_latent_out.=.ffn_latent_up.",
     "moe_latent_size=.ffn_latent_down.weight"},
};

// Files whose tensors also differ in meaning. mark: a key or a tensor that only such files have;
// "": all files of these architectures are such files.
struct Other {
  const char *architectures, *mark, *what;
};
constexpr const char* kConverted =
    " is a file of Ollama's own converter: get one that llama.cpp's converter wrote";
constexpr Other kOthers[] = {
    {"glm4moelite glmocr deepseekocr mllama olmo3", "", kConverted},
    {"laguna", "laguna.attention.gating_type", kConverted},
    {"llama4", "", ": Llama 4 does not run here, whoever made the file; llama.cpp runs its own"},
    {"gptoss", "blk.0.ffn_gate_up_exps.weight",
     ": an early file of Ollama's, with gates and ups in turn: pull it again"},
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

// The usual name of an architecture in a list; "" if the list lacks it.
std::string UsualName(const char* architectures, std::string_view own) {
  std::string found;
  ForEachPair(architectures, [&](const std::string& theirs, const std::string& usual) {
    if (theirs == own) found = usual;
  });
  return found;
}

void Respell(const Spelling& row, const std::string& own, const std::string& usual,
             gguf::File& file) {
  gguf::Metadata& meta = file.metadata();
  const std::string prefix = usual + ".";
  bool theirs = own != usual;
  if (theirs) {
    meta.RenamePrefix(own + ".", prefix);
    meta.SetString("general.architecture", usual);
  }
  ForEachPair(row.keys, [&](const std::string& from, const std::string& to) {
    const gguf::Value* const value = meta.Find(prefix + from);
    theirs |= value != nullptr;
    if (value != nullptr && !to.empty()) meta.Set(prefix + to, *value);
  });
  ForEachPair(row.keys,
              [&](const std::string& from, const std::string&) { meta.Remove(prefix + from); });
  ForEachPair(row.tensors, [&](const std::string& from, const std::string& to) {
    theirs |= file.RenameTensors(from, to);
  });
  if (!theirs) return;
  ForEachPair(row.rows, [&](const std::string& key, const std::string& end) {
    for (const gguf::TensorView& tensor : file.tensors()) {
      if (!tensor.name.ends_with(end)) continue;
      return meta.SetInt(prefix + key, static_cast<int64_t>(tensor.rows()));
    }
  });
  ForEachPair(row.texts, [&](const std::string& key, const std::string& text) {
    if (meta.GetStringOr(key, "default") == "default") meta.SetString(key, text);
  });
}

// The 4B model and larger models lack the keys on which they agree.
void CompleteGemma3(gguf::Metadata& meta) {
  if (meta.Has("gemma3.attention.layer_norm_rms_epsilon")) return;
  const auto complete = [&](const char* key, double number) {
    if (!meta.Has(key)) meta.SetFloat(key, number);
  };
  complete("gemma3.attention.layer_norm_rms_epsilon", 1e-6);
  complete("gemma3.rope.freq_base", 1e6);
  if (meta.GetUintOr("gemma3.context_length", 0) < 131072) return;
  complete("gemma3.rope.scaling.factor", 8);
}

}  // namespace

void RespellOllama(gguf::File& file) {
  gguf::Metadata& meta = file.metadata();
  const std::string own(meta.GetStringOr("general.architecture", ""));
  for (const auto& [architectures, mark, what] : kOthers) {
    if (UsualName(architectures, own).empty()) continue;
    if (*mark == 0 || meta.Has(mark) || file.FindTensor(mark) != nullptr)
      meta.Fail("general.architecture", own, what);
  }
  for (const Spelling& row : kSpellings) {
    const std::string usual = UsualName(row.architectures, own);
    if (!usual.empty()) Respell(row, own, usual, file);
  }
  if (own == "gemma3") CompleteGemma3(meta);
}

}  // namespace engine
