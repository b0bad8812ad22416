// Encoders: BERT (Devlin et al. 2019), its relatives with rope (Jina v3, Sturua et al. 2024) and a
// gated network (Nomic Embed, Nussbaum et al. 2024) or experts (2025), ModernBERT (Warner et al.
// 2024), whose windows are in two layers of three, and EuroBERT (Boizard et al. 2025), a Llama.
// They see both ways, and all norms but EuroBERT's are LayerNorm.
#include <string_view>

#include "engine/model/families/families.h"

namespace engine {
namespace {

using kernels::Activation;
using kernels::Router;

void Encoder(const Keys& keys, Config& config) {
  SeeBothWays(keys, config);
  config.n_token_types = keys.Of("tokenizer.ggml").Count("token_type_count", kMaxLength);
}

// GELU is its form with tanh where no key says what it is.
void WithoutGate(const Keys& keys, Config& config) {
  ReadActivation(keys, config);
  Encoder(keys, config);
}

void Bert(const Keys& keys, Config& config) {
  LeaveOutRope(config);
  WithoutGate(keys, config);
}

// Every n-th layer has experts, beginning with the second.
void NomicBertMoe(const Keys& keys, Config& config) {
  WithoutGate(keys, config);
  const size_t every = keys.UintOr("moe_every_n_layers", 0, kMaxLength);
  for (size_t i = 0; i < config.n_layers(); ++i) {
    if ((config.layers[i].n_experts > 0) == (every > 0 && i % every == 1)) continue;
    keys.Fail("moe_every_n_layers", "the tensors of layer ", i, " are not of this period, found ",
              every);
  }
}

void NomicBert(const Keys& keys, Config& config) {
  Encoder(keys, config);
  keys.UintOr("moe_every_n_layers", 0, 0);
}

void ModernBert(const Keys& keys, Config& config) {
  const size_t window = keys.UintOr("attention.sliding_window", 0, kMaxWindow);
  const size_t period = keys.CountOr("attention.sliding_window_pattern", 3, kMaxLength);
  for (size_t i = 0; window > 0 && i < config.n_layers(); ++i) {
    if (i % period != 0) config.layers[i].window = window / 2 + 1;
  }
  SetLocalBase(keys, Unscaled(config.ropes[0]), 10000, config);
  SeeBothWays(keys, config);
  // "gelu" is the form with tanh, as llama.cpp computes it. Our converter has a name for GELU
  // itself.
  const std::string_view name = keys.StringOr("hidden_activation", "");
  const bool is_silu = name == "silu" || name == "swish" || name == "swiglu";
  const bool is_erf = name == "gelu_erf";
  config.activation = is_erf    ? Activation::kGatedGeluErf
                      : is_silu ? Activation::kSilu
                                : Activation::kGelu;
  config.rank.erf = is_erf;
}

constexpr NormRoles kNormsOfSums = {.attn = "",
                                    .attn_sum = "attn_output_norm",
                                    .ffn = "",
                                    .ffn_sum = "layer_output_norm",
                                    .output = "",
                                    .embedding = "token_embd_norm"};
constexpr NormRoles kModernNorms = {.embedding = "token_embd_norm"};

constexpr Architecture kBertRows[] = {
    {.name = "bert",
     .traits = {.norms = kNormsOfSums,
                .layer_norm = true,
                .activation = Activation::kGeluAlone,
                .learned_positions = true},
     .refine = Bert},
    {.name = "nomic-bert",
     .traits = {.norms = kNormsOfSums, .layer_norm = true},
     .refine = NomicBert},
    {.name = "nomic-bert-moe",
     .traits = {.norms = kNormsOfSums, .layer_norm = true, .activation = Activation::kGeluAlone},
     .router = Router{.normed = false},
     .dense_layers = DenseLayers::kWithoutRouter,
     .refine = NomicBertMoe},
    {.name = "jina-bert-v3",
     .traits = {.norms = kNormsOfSums, .layer_norm = true, .activation = Activation::kGeluAlone},
     .refine = WithoutGate},
    {.name = "eurobert", .refine = SeeBothWays},
    {.name = "modern-bert",
     .traits = {.norms = kModernNorms,
                .layer_norm = true,
                .first_norm = false,
                .rank = {.from = Pooling::kMean, .gelu = true}},
     .refine = ModernBert},
};

}  // namespace

std::span<const Architecture> BertLineage() { return kBertRows; }

}  // namespace engine
