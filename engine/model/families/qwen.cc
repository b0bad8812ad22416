// Qwen: Qwen2 (Yang et al. 2024) has biases of q, k and v, Qwen3 (Yang et al. 2025) norms of query
// and key heads. Both have variants with experts, and variants that read images (Qwen2-VL,
// Qwen3-VL; Bai et al. 2025), whose text part runs here. In Qwen3-Next (2025) and Qwen3.5 (2026)
// three of four layers are gated delta nets (Yang et al. 2024), and attention's output is gated.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/families/families.h"
#include "engine/model/families/folders.h"

namespace engine {
namespace {

using enum Order;

// ---- What a file means.

// Without a key for an expert's width, a token's experts together are as wide as a dense network.
void QwenExperts(const Keys& keys, Config& config) {
  if (keys.Has("expert_feed_forward_length")) return;
  for (LayerPlan& layer : config.layers)
    layer.expert_length /= std::max<size_t>(config.n_experts_used, 1);
}

void Qwen2Moe(const Keys& keys, Config& config) {
  for (LayerPlan& layer : config.layers) {
    if (layer.shared_ffn_length == 0)
      layer.shared_ffn_length = keys.Count("feed_forward_length", kMaxLength);
  }
  QwenExperts(keys, config);
}

// Ollama's files of models that read images may lack the sections: all pairs rotate.
void Qwen2Vl(const Keys& keys, Config& config) {
  if (keys.Has("rope.dimension_sections")) config.ropes[0].sections = ReadSections(keys);
  config.ropes[0].sections_in_turn = false;
}

// In text, time, height and width have one position; pairs outside the sections do not rotate.
void SetSections(const Keys& keys, Config& config) {
  config.ropes[0].sections = ReadSections(keys);
  if (config.ropes[0].sections == std::array<size_t, 4>{}) {
    keys.Fail("rope.dimension_sections", "expected a number above 0, found none");
  }
}

void Qwen3Vl(const Keys& keys, Config& config) {
  if (keys.Has("rope.dimension_sections")) SetSections(keys, config);
  keys.Ignore("n_deepstack_layers");  // image rows for the first layers
  if (config.n_experts_used > 0) QwenExperts(keys, config);
}

void QwenNext(const Keys& keys, Config& config) {
  const size_t inner_size = keys.Count("ssm.inner_size", kMaxLength);
  const RecurrentPlan delta = ReadRecurrent(keys, inner_size);
  if (delta.value_length != delta.key_length) {
    keys.Fail("ssm.inner_size", "expected time_step_rank times state_size, found ", inner_size);
  }
  // Blocks that predict further tokens are attention.
  const size_t n_layers = config.n_layers(),
               n_next = keys.UintOr("nextn_predict_layers", 0, n_layers - 1);
  const std::vector<bool> listed = ReadRecurrentLayers(keys, 4, n_layers);
  for (size_t i = 0; i < n_layers - n_next; ++i) {
    const bool recurrent = listed[i] || config.layers[i].n_heads == 0;
    if (recurrent) SetMixer(Mixer::kDeltaNet, delta, config.layers[i]);
  }
}

void Qwen35(const Keys& keys, Config& config) {
  SetSections(keys, config);
  QwenNext(keys, config);
}

constexpr Traits kQwen3 = {.qk_norm = QkNorm::kHeadBeforeRope,
                           .rank = {.from = Pooling::kLast, .uses_softmax = true}};
constexpr Traits kQwen3Next = {.norms = kFfnNormIsPostAttention,
                               .qk_norm = QkNorm::kHeadBeforeRope,
                               .shared_gate = true,
                               .attention_gate = AttentionGate::kInQueries};
constexpr Traits kQwen35 = {.norms = kFfnNormIsPostAttention,
                            .qk_norm = QkNorm::kHeadBeforeRope,
                            .shared_gate = true,
                            .attention_gate = AttentionGate::kInQueries,
                            .tiled_key_heads = true};

// ---- What a folder means.

constexpr KeyValue kQwenDefaults[] = {{"use_sliding_window", 0}, {"max_window_layers", 28}};
constexpr KeyValue kMellumDefaults[] = {{"norm_topk_prob", 1}, {"sliding_window", 1024}};
constexpr KeyValue kQwenMoeDefaults[] = {
    {"use_sliding_window", 0}, {"max_window_layers", 28}, {"norm_topk_prob", 0}};

// The shared expert; the routed experts, in one stack or one by one.
constexpr TensorRule kQwenExperts[] = {
    {".mlp.shared_expert.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_expert.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_expert.down_proj", ".ffn_down_shexp"},
    {".mlp.shared_expert_gate", ".ffn_gate_inp_shexp", kVector},
    {".mlp.experts.gate_up_proj", ".ffn_gate_exps.weight", kFirstHalf},
    {".mlp.experts.gate_up_proj", ".ffn_up_exps.weight", kSecondHalf},
    {".mlp.experts.down_proj", ".ffn_down_exps.weight"},
};

constexpr TensorRule kQwen3NextTensors[] = {
    {".linear_attn.in_proj_qkvz", ".attn_qkv", kGroupedQkv},
    {".linear_attn.in_proj_qkvz", ".attn_gate", kGroupedZ},
    {".linear_attn.in_proj_ba", ".ssm_ba"},
    {".linear_attn.conv1d", ".ssm_conv1d", kTaps},
    {".linear_attn.dt_bias", ".ssm_dt.bias"},
    {".linear_attn.A_log", ".ssm_a", kSame, Change::kMinusExp},
    {".linear_attn.norm", ".ssm_norm"},
    {".linear_attn.out_proj", ".ssm_out"},
};

constexpr TensorRule kQwen35Tensors[] = {
    {".linear_attn.in_proj_qkv", ".attn_qkv", kValueHeadsAfter},
    {".linear_attn.in_proj_z", ".attn_gate", kValueHeads},
    {".linear_attn.in_proj_b", ".ssm_beta", kValueHeadNumbers},
    {".linear_attn.in_proj_a", ".ssm_alpha", kValueHeadNumbers},
    {".linear_attn.conv1d", ".ssm_conv1d", kValueHeadsAfter},
    {".linear_attn.dt_bias", ".ssm_dt.bias", kValueHeadNumbers},
    {".linear_attn.A_log", ".ssm_a", kValueHeadNumbers, Change::kMinusExp},
    {".linear_attn.norm", ".ssm_norm"},
    {".linear_attn.out_proj", ".ssm_out", kValueHeadColumns},
};

constexpr TensorRule kQwen3VlMoe[] = {
    {".mlp.experts.gate_up_proj", ".ffn_gate_exps.weight", kFirstHalfTransposed},
    {".mlp.experts.gate_up_proj", ".ffn_up_exps.weight", kSecondHalfTransposed},
    {".mlp.experts.down_proj", ".ffn_down_exps.weight", kTransposed},
};

constexpr TensorRule kTiedReranker[] = {{"model.embed_tokens", "token_embd"},
                                        {"model.embed_tokens", "cls.output", kPicked}};
constexpr TensorRule kReranker[] = {{"lm_head", "cls.output", kPicked}};

constexpr KeyRule kDeltaNetKeys[] = {
    {"linear_conv_kernel_dim", "ssm.conv_kernel"},
    {"linear_key_head_dim", "ssm.state_size"},
    {"linear_num_key_heads", "ssm.group_count"},
    {"linear_num_value_heads", "ssm.time_step_rank"},
    {"full_attention_interval", "full_attention_interval"},
};

// Qwen3-Reranker's prompt, in the form that readers expect.
constexpr std::string_view kRerankTemplate =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
    "answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n";

// Only a folder's texts show a reranker. Of the output matrix it needs only its two answers' rows.
void Qwen3(OutModel& model) {
  const std::string path = std::filesystem::path(model.folder.path() + "/.").lexically_normal();
  const std::string readme = "\n" + model.folder.Text("README.md").value_or("");
  const size_t heading = std::min(readme.find("\n# "), readme.size());  // the first heading
  const std::string texts = "# " + std::filesystem::path(path).parent_path().filename().string() +
                            readme.substr(heading, readme.find('\n', heading + 1) - heading);
  const auto same = [](char a, char b) { return std::tolower(static_cast<uint8_t>(a)) == b; };
  const std::string_view title = "# qwen3-reranker";
  if (std::search(texts.begin(), texts.end(), title.begin(), title.end(), same) == texts.end())
    return;
  const Fields vocab = model.folder.Object("tokenizer.json").Object("model").Object("vocab");
  model.shapes.picked = {vocab.Count("yes"), vocab.Count("no")};
  const bool tied = model.config.BoolOr("tie_word_embeddings", false);
  model.first_rules = tied ? std::span<const TensorRule>(kTiedReranker) : kReranker;
  model.Rank({"yes", "no"});
  model.keys.Add("tokenizer.chat_template.rerank", kRerankTemplate);
}

// Without such a list all pairs rotate, as with a list that covers all pairs.
void AddSections(OutModel& model) {
  if (!model.rope().Has("mrope_section")) {
    const double part = model.rope().ShareOr("partial_rotary_factor", model.rotary_part);
    const auto n = static_cast<int32_t>(part * static_cast<double>(model.head_dim()) / 2);
    model.PerLayer("rope.dimension_sections",
                   std::vector<int32_t>{(n + 2) / 3, (n + 1) / 3, n / 3, 0});
    return;
  }
  const size_t n = model.rope().Numbers("mrope_section").size() == 4 ? 4 : 3;
  std::vector<int32_t> sections = WholeNumbers(model.rope(), "mrope_section", n);
  sections.resize(4);
  model.PerLayer("rope.dimension_sections", sections);
}

// Images add rows to the inputs of this many layers.
void Qwen3Vl(OutModel& model) {
  AddSections(model);
  const Fields vision = model.folder.config().Object("vision_config");
  model.Uint("n_deepstack_layers", vision.Numbers("deepstack_visual_indexes").size());
}

void QwenNext(OutModel& model) {
  const Fields& config = model.config;
  Shapes& shapes = model.shapes;
  shapes.n_key_heads = config.Count("linear_num_key_heads");
  shapes.n_value_heads = config.Count("linear_num_value_heads");
  shapes.state = config.Count("linear_key_head_dim");
  if (config.Count("linear_value_head_dim") != shapes.state) {
    config.Fail("linear_value_head_dim", "expected as linear_key_head_dim");
  }
  if (shapes.n_value_heads % shapes.n_key_heads != 0) {
    config.Fail("linear_num_value_heads", "expected a multiple of linear_num_key_heads");
  }
  model.Uint("ssm.inner_size", shapes.n_value_heads * shapes.state);
  const uint64_t interval = config.CountOr("full_attention_interval", 4);
  model.Uint("full_attention_interval", interval);
  ExpectPeriod(model, interval);
  if (model.architecture == "qwen35moe") model.Without("feed_forward_length");
  if (model.architecture == "qwen3next") return;
  AddSections(model);
}

// The published models have a window but do not use it (use_sliding_window is false).
constexpr Windows kQwenWindows = {Windows::When::kIfListed};

constexpr Family kQwenRows[] = {
    {.name = "qwen2",
     .windows = kQwenWindows,
     .hf = {.names = {"Qwen2ForCausalLM"}, .defaults = kQwenDefaults}},
    {.name = "qwen2moe",
     .traits = {.shared_gate = true, .output = OutputMatrix::kOutputTensor},
     .windows = kQwenWindows,
     .router = kByKeys,
     .complete_config = Qwen2Moe,
     .hf = {.names = {"Qwen2MoeForCausalLM"},
            .tensors = {kQwenExperts},
            .defaults = kQwenMoeDefaults}},
    {.name = "qwen3",
     .traits = kQwen3,
     .windows = kQwenWindows,
     .hf = {.names = {"Qwen3ForCausalLM"}, .defaults = kQwenDefaults, .add_keys = Qwen3}},
    {.name = "qwen3moe",
     .traits = kQwen3,
     .windows = kQwenWindows,
     .router = kSoftmax,
     .complete_config = QwenExperts,
     .hf = {.names = {"Qwen3MoeForCausalLM"}, .defaults = kQwenMoeDefaults}},
    // Mellum 2 (JetBrains 2026): windows where config.json says so, with their own rope.
    {.name = "mellum",
     .traits = kQwen3,
     .windows = {Windows::When::kIfGiven, 1, Windows::Rope::kUnscaled},
     .router = kSoftmax,
     .dense_layers = DenseLayers::kLeading,
     .hf = {.names = {"MellumForCausalLM"}, .says_rope = true, .defaults = kMellumDefaults}},
    {.name = "qwen2vl",
     .windows = kQwenWindows,
     .complete_config = Qwen2Vl,
     .hf = {.names = {"Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration"},
            .defaults = kQwenDefaults,
            .add_keys = AddSections}},
    {.name = "qwen3vl",
     .traits = kQwen3,
     .complete_config = Qwen3Vl,
     .hf = {.names = {"Qwen3VLForConditionalGeneration"}, .add_keys = Qwen3Vl}},
    {.name = "qwen3vlmoe",
     .traits = kQwen3,
     .router = kSoftmax,
     .complete_config = Qwen3Vl,
     .hf = {.names = {"Qwen3VLMoeForConditionalGeneration"},
            .tensors = {kQwen3VlMoe},
            .add_keys = Qwen3Vl}},
    {.name = "qwen35",
     .traits = kQwen35,
     .nextn = true,
     .without_heads = Mixer::kDeltaNet,
     .complete_config = Qwen35,
     .hf = {.names = {"Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"},
            .norms_plus_one = true,
            .rotary_part = 0.25,
            .tensors = {kQwen35Tensors},
            .keys = {kDeltaNetKeys},
            .add_keys = QwenNext}},
    {.name = "qwen35moe",
     .traits = kQwen35,
     .nextn = true,
     .without_heads = Mixer::kDeltaNet,
     .router = kSoftmax,
     .complete_config = Qwen35,
     .hf = {.names = {"Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration"},
            .norms_plus_one = true,
            .rotary_part = 0.25,
            .tensors = {kQwen35Tensors, kQwenExperts},
            .keys = {kDeltaNetKeys},
            .add_keys = QwenNext}},
    {.name = "qwen3next",
     .traits = kQwen3Next,
     .nextn = true,
     .router = kSoftmax,
     .complete_config = QwenNext,
     .hf = {.names = {"Qwen3NextForCausalLM"},
            .norms_plus_one = true,
            .rotary_part = 0.25,
            .tensors = {kQwen3NextTensors, kQwenExperts},
            .keys = {kDeltaNetKeys},
            .add_keys = QwenNext}},
};

}  // namespace

std::span<const Family> QwenLineage() { return kQwenRows; }

}  // namespace engine
