// Llama (Touvron et al. 2023): pre-norm, rope on pairs of neighbours, SwiGLU, grouped-query
// attention. Mistral 7B (Jiang et al. 2023), Mixtral (Jiang et al. 2024, with experts) and many
// others are published as "llama". SmolLM3 (Hugging Face 2025) and Ministral 3 (Mistral AI 2025)
// change the positions, Arcee (AFM, 2025) the activation; Nanbeige (2026) repeats its layers.
// XVERSE (2023), InternLM2 (Cai et al. 2024) and Baichuan 7B (Yang et al. 2023) differ in names
// alone.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"

namespace engine {
namespace {

using enum kernels::RopePairs;
using enum Order;

// ---- What a file means.

constexpr size_t kMaxRunLayers = 1u << 12;

void SmolLm3(const Keys&, Config& config) { LeaveOutFourthRope(config); }

void Nanbeige(const Keys& keys, Config& config) {
  const std::vector<LayerPlan> run = config.layers;
  config.n_runs = keys.CountOr("num_loops", 1, std::max<size_t>(kMaxRunLayers / run.size(), 1));
  for (size_t i = 1; i < config.n_runs; ++i) {
    config.layers.insert(config.layers.end(), run.begin(), run.end());
  }
  config.norm_between_runs = !keys.BoolOr("skip_loop_final_norm", false);
}

// Only the model of 40 layers has ALiBi, with the exponent 8 as in BLOOM.
constexpr size_t kBaichuan13Layers = 40;
void Baichuan(const Keys&, Config& config) {
  if (config.n_layers() == kBaichuan13Layers) SetSlopes(8, config);
}

// ---- What a folder means.

constexpr KeyValue kMistralDefaults[] = {{"num_key_value_heads", 8}};
constexpr KeyValue kCwmDefaults[] = {{"num_key_value_heads", 8}, {"head_dim", 128}};
constexpr KeyValue kHeliumDefaults[] = {
    {"num_key_value_heads", 20}, {"head_dim", 128}, {"rms_norm_eps", 1e-8}};
constexpr KeyValue kSmolLm3Only[] = {{"no_rope_layer_interval", 4}, {"use_sliding_window", 0}};
constexpr TensorRule kInternLm2[] = {
    {"model.tok_embeddings", "token_embd"}, {"output", "output"},
    {".attention_norm", ".attn_norm"},      {".ffn_norm", ".ffn_norm"},
    {".attention.wqkv", ".attn_q", kPartQ}, {".attention.wqkv", ".attn_k", kPartK},
    {".attention.wqkv", ".attn_v", kPartV}, {".attention.wo", ".attn_output"},
    {".feed_forward.w1", ".ffn_gate"},      {".feed_forward.w2", ".ffn_down"},
    {".feed_forward.w3", ".ffn_up"},
};
constexpr TensorRule kBaichuan[] = {
    {".self_attn.W_pack", ".attn_q", kPartQ},
    {".self_attn.W_pack", ".attn_k", kPartK},
    {".self_attn.W_pack", ".attn_v", kPartV},
};
constexpr std::pair<std::string_view, std::string_view> kBaichuanNames[] = {
    {"model_max_length", "max_position_embeddings"}};
constexpr KeyRule kNanbeigeKeys[] = {
    {"num_loops", "num_loops"},
    {"skip_loop_final_norm", "skip_loop_final_norm", KeyKind::kBool},
};

void SmolLm3(OutModel& model) {
  const std::vector<double> rotates = model.config.Numbers("no_rope_layers");  // 0: no rope
  for (size_t i = 0; i < rotates.size(); ++i) {
    if ((rotates[i] == 0) == (i % 4 == 3)) continue;
    model.config.Fail("no_rope_layers", "expected 0 for every fourth layer alone");
  }
}

void InternLm2(OutModel& model) { model.shapes.n_groups = model.shapes.n_kv_heads; }

// Baichuan 2 divides the rows of the output matrix by their lengths.
void Baichuan(OutModel& model) {
  constexpr uint64_t kBaichuan2Vocabulary = 125696;
  if (!model.config.Has("z_loss_weight") &&
      model.config.Count("vocab_size") != kBaichuan2Vocabulary)
    return;
  const SafeTensor& output = model.Need("lm_head.weight");
  if (output.shape.size() != 2 || !output.is_weights()) output.Fail("expected a matrix of numbers");
  std::vector<float> row(output.shape[1]);
  RowFactors factors;
  for (uint64_t i = 0; i < output.shape[0]; ++i) {
    ReadNumbers({&output, i * row.size()}, row.size(), Change::kNone, row.data());
    double squares = 0;
    for (const float x : row) squares += double{x} * double{x};
    factors.emplace_back(i + 1, static_cast<float>(1 / std::max(std::sqrt(squares), 1e-12)));
  }
  model.factors["output"] = std::move(factors);
}

void Cwm(OutModel& model) {
  if (!model.config.IsList("layer_types"))
    model.config.Fail("layer_types", "expected a name for each layer");
}

void Mistral3(OutModel& model) {
  const Fields rope = model.rope();
  if (rope.Has("mscale_all_dim")) {
    const double all = rope.Number("mscale_all_dim");
    model.log_multiplier = all;
    if (all != 0) model.Float("rope.scaling.yarn_log_multiplier", all);
  }
  if (rope.Has("llama_4_scaling_beta")) {
    model.Float("attention.temperature_scale", rope.Number("llama_4_scaling_beta"));
  }
}

// Llama's own class has no windows. Mistral 7B v0.1 was trained with a window of 4096 in all
// layers, CWM with windows in most. Helium pairs neighbours, as the file does.
constexpr HfClass kLlamaClasses[] = {
    {.names = {"MistralForCausalLM", "MinistralForCausalLM"},
     .pairs_halves = true,
     .defaults = kMistralDefaults},
    {.names = {"MixtralForCausalLM"},
     .pairs_halves = true,
     .rope_theta = 1e6,
     .defaults = kMistralDefaults},
    {.names = {"CwmForCausalLM"},
     .pairs_halves = true,
     .says_rope = true,
     .rope_theta = 1e6,
     .defaults = kCwmDefaults,
     .add_keys = Cwm},
    {.names = {"HeliumForCausalLM"}, .rope_theta = 1e5, .defaults = kHeliumDefaults},
};

constexpr Family kLlamaRows[] = {
    {.name = "llama",
     .rope_pairs = kAdjacent,
     .windows = {Windows::When::kIfGiven},
     .router = kSoftmax,
     .hf = {.names = {"LlamaForCausalLM", "LLaMAForCausalLM", "IQuestCoderForCausalLM"},
            .pairs_halves = true,
            .has_windows = false},
     .others = kLlamaClasses},
    {.name = "smollm3",
     .rope_pairs = kAdjacent,
     .complete_config = SmolLm3,
     .hf = {.names = {"SmolLM3ForCausalLM"},
            .pairs_halves = true,
            .rope_theta = 2e6,
            .only = kSmolLm3Only,
            .add_keys = SmolLm3}},
    {.name = "mistral3",
     .rope_pairs = kAdjacent,
     .windows = {Windows::When::kIfListed},
     .hf = {.names = {"Ministral3ForCausalLM"},
            .pairs_halves = true,
            .says_rope = true,
            .add_keys = Mistral3}},
    {.name = "arcee",
     .rope_pairs = kAdjacent,
     .traits = {.activation = kernels::Activation::kReluSquared},
     .hf = {.names = {"ArceeForCausalLM"}, .pairs_halves = true}},
    {.name = "nanbeige",
     .rope_pairs = kAdjacent,
     .complete_config = Nanbeige,
     .hf = {.names = {"NanbeigeForCausalLM"}, .pairs_halves = true, .keys = {kNanbeigeKeys}}},
    {.name = "xverse",
     .rope_pairs = kAdjacent,
     .hf = {.names = {"XverseForCausalLM"}, .pairs_halves = true}},
    {.name = "internlm2",
     .rope_pairs = kAdjacent,
     .hf = {.names = {"InternLM2ForCausalLM"}, .tensors = {kInternLm2}, .add_keys = InternLm2}},
    {.name = "baichuan",
     .rope_pairs = kAdjacent,
     .complete_config = Baichuan,
     .hf = {.names = {"BaichuanForCausalLM", "BaiChuanForCausalLM"},
            .tensors = {kBaichuan},
            .renamed = kBaichuanNames,
            .add_keys = Baichuan}},
};

}  // namespace

std::span<const Family> LlamaLineage() { return kLlamaRows; }

}  // namespace engine
