// Qwen2, Qwen3, their relatives that read images, and Qwen3-Next and Qwen3.5 with delta nets.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>

#include "convert/families/families.h"

namespace convert {
namespace {

using enum Order;

// The shared expert; the others in one stack, unless they are stored one by one.
constexpr TensorRule kQwenExperts[] = {
    {".mlp.shared_expert.gate_proj", ".ffn_gate_shexp"},
    {".mlp.shared_expert.up_proj", ".ffn_up_shexp"},
    {".mlp.shared_expert.down_proj", ".ffn_down_shexp"},
    {".mlp.shared_expert_gate", ".ffn_gate_inp_shexp", kVector},
    {".mlp.experts.gate_up_proj", ".ffn_gate_exps.weight", kFirstHalf},
    {".mlp.experts.gate_up_proj", ".ffn_up_exps.weight", kSecondHalf},
    {".mlp.experts.down_proj", ".ffn_down_exps.weight"},
};

constexpr TensorRule kQwen3Next[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
    {".linear_attn.in_proj_qkvz", ".attn_qkv", kGroupedQkv},
    {".linear_attn.in_proj_qkvz", ".attn_gate", kGroupedZ},
    {".linear_attn.in_proj_ba", ".ssm_ba"},
    {".linear_attn.conv1d", ".ssm_conv1d", kTaps},
    {".linear_attn.dt_bias", ".ssm_dt.bias"},
    {".linear_attn.A_log", ".ssm_a", kSame, Change::kMinusExp},
    {".linear_attn.norm", ".ssm_norm"},
    {".linear_attn.out_proj", ".ssm_out"},
};

constexpr TensorRule kQwen35[] = {
    {".post_attention_layernorm", ".post_attention_norm"},
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

constexpr KeyRule kNormedKeys[] = {
    {"norm_topk_prob", "expert_weights_norm", KeyKind::kBool},
};
constexpr std::string_view kNotNormed = R"({"norm_topk_prob": false})";

constexpr KeyRule kDeltaNetKeys[] = {
    {"linear_conv_kernel_dim", "ssm.conv_kernel"},
    {"linear_key_head_dim", "ssm.state_size"},
    {"linear_num_key_heads", "ssm.group_count"},
    {"linear_num_value_heads", "ssm.time_step_rank"},
    {"full_attention_interval", "full_attention_interval"},
};

// In layers from max_window_layers on.
void Qwen(OutModel& model) {
  const Fields& config = model.config;
  if (!config.BoolOr("use_sliding_window", false) || !config.Has("sliding_window")) return;
  if (LayersOfType(model, "sliding_attention").empty())
    config.Fail("layer_types", "expected a name for each layer, since there are windows");
  AddWindowsAsList(model);
}

// How Qwen3-Reranker is asked, in the form that readers know.
constexpr std::string_view kRerankTemplate =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
    "answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n";

// Only a folder's texts tell a reranker. Of the output matrix it needs the rows of its two answers.
void Qwen3(OutModel& model) {
  Qwen(model);
  const std::string path = std::filesystem::path(model.folder.path() + "/.").lexically_normal();
  const std::string readme = "\n" + model.folder.Text("README.md").value_or("");
  const size_t heading = std::min(readme.find("\n# "), readme.size());  // the first
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

// Without such a list all pairs rotate, as they do with one that covers them.
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

void Qwen2Vl(OutModel& model) {
  Qwen(model);
  AddSections(model);
}

// Images add rows to the input of as many layers.
void Qwen3Vl(OutModel& model) {
  AddSections(model);
  const Fields vision = model.folder.config().Object("vision_config");
  model.Uint("n_deepstack_layers", vision.Numbers("deepstack_visual_indexes").size());
}

void DeltaNet(OutModel& model) {
  AddNextn(model);
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

constexpr Family kQwenRows[] = {
    {.name = "qwen2", .hf = {"Qwen2ForCausalLM"}, .refine = Qwen},
    {.name = "qwen2moe",
     .hf = {"Qwen2MoeForCausalLM"},
     .tensors = {kQwenExperts},
     .keys = {kExpertSizes, kNormedKeys},
     .refine = Qwen,
     .defaults = kNotNormed},
    {.name = "qwen3", .hf = {"Qwen3ForCausalLM"}, .refine = Qwen3},
    {.name = "qwen3moe",
     .hf = {"Qwen3MoeForCausalLM"},
     .keys = {kExpertSizes, kNormedKeys},
     .refine = Qwen,
     .defaults = kNotNormed},
    {.name = "qwen2vl",
     .hf = {"Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration"},
     .refine = Qwen2Vl},
    {.name = "qwen3vl", .hf = {"Qwen3VLForConditionalGeneration"}, .refine = Qwen3Vl},
    {.name = "qwen3vlmoe",
     .hf = {"Qwen3VLMoeForConditionalGeneration"},
     .tensors = {kQwen3VlMoe},
     .keys = {kExpertSizes, kNormedKeys},
     .refine = Qwen3Vl},
    {.name = "qwen35",
     .hf = {"Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"},
     .norms_plus_one = true,
     .tensors = {kQwen35, kNextn},
     .keys = {kDeltaNetKeys},
     .refine = DeltaNet,
     .rotary_part = 0.25},
    {.name = "qwen35moe",
     .hf = {"Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration"},
     .norms_plus_one = true,
     .tensors = {kQwen35, kQwenExperts, kNextn},
     .keys = {kDeltaNetKeys, kExpertSizes},
     .refine = DeltaNet,
     .rotary_part = 0.25},
    {.name = "qwen3next",
     .hf = {"Qwen3NextForCausalLM"},
     .norms_plus_one = true,
     .tensors = {kQwen3Next, kQwenExperts, kNextn},
     .keys = {kDeltaNetKeys, kExpertSizes, kNormedKeys},
     .refine = DeltaNet,
     .rotary_part = 0.25},
};

}  // namespace

std::span<const Family> QwenLineage() { return kQwenRows; }

}  // namespace convert
