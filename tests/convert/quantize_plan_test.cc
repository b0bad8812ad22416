// Mixes: compares the types with llama-quantize --dry-run of llama.cpp 0.7.0, tensor by tensor.
#include "convert/quantize_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "gguf/dtype.h"
#include "gguf/file.h"
#include "tests/support/data.h"

namespace convert {
namespace {

using gguf::DType;

std::string TypeName(DType type) { return std::string(gguf::Info(type).name); }

// A model with 33 layers, four query heads for each key-value head, and a separate output matrix.
MixFacts LargeModel() {
  MixFacts facts = {.n_layers = 33, .n_heads_per_kv = 4, .has_output = true};
  for (size_t i = 0; i < facts.n_layers; ++i) {
    facts.value_layers.push_back(i);
    facts.ffn_layers.push_back(i);
  }
  return facts;
}

// Returns how many layers have which type for this matrix, for example "Q6_K*17 Q4_K*16". The types
// are in the order of their first layers.
std::string InLayers(const Mix& mix, const MixFacts& facts, const std::string& role) {
  std::vector<std::pair<DType, size_t>> counts;
  for (size_t i = 0; i < facts.n_layers; ++i) {
    const std::string name = "blk." + std::to_string(i) + "." + role + ".weight";
    const DType type = MixType(mix, facts, name, 4096);
    auto at = counts.begin();
    while (at != counts.end() && at->first != type) ++at;
    if (at == counts.end()) at = counts.insert(at, {type, 0});
    ++at->second;
  }
  std::string text;
  for (const auto& [type, n] : counts) {
    text += (text.empty() ? "" : " ") + TypeName(type);
    if (counts.size() > 1) text += "*" + std::to_string(n);
  }
  return text;
}

// Returns the mix's types of output, token_embd, attn_q (and attn_k), attn_v, attn_output,
// ffn_down, ffn_up (and ffn_gate).
std::string Types(std::string_view name, const MixFacts& facts) {
  const Mix& mix = *FindMix(name);
  std::string text = TypeName(MixType(mix, facts, "output.weight", 4096)) + " | " +
                     TypeName(MixType(mix, facts, "token_embd.weight", 4096));
  for (const char* role : {"attn_q", "attn_v", "attn_output", "ffn_down", "ffn_up"}) {
    text += " | " + InLayers(mix, facts, role);
  }
  EXPECT_EQ(InLayers(mix, facts, "attn_k"), InLayers(mix, facts, "attn_q")) << name;
  EXPECT_EQ(InLayers(mix, facts, "ffn_gate"), InLayers(mix, facts, "ffn_up")) << name;
  return text;
}

TEST(QuantizePlan, MixesAreThoseOfLlamaCpp) {
  const std::map<std::string, std::string> expected = {
      {"Q4_0", "Q6_K | Q4_0 | Q4_0 | Q4_0 | Q4_0 | Q4_0 | Q4_0"},
      {"Q4_1", "Q6_K | Q4_1 | Q4_1 | Q4_1 | Q4_1 | Q4_1 | Q4_1"},
      {"Q5_0", "Q6_K | Q5_0 | Q5_0 | Q5_0 | Q5_0 | Q5_0 | Q5_0"},
      {"Q5_1", "Q6_K | Q5_1 | Q5_1 | Q5_1 | Q5_1 | Q5_1 | Q5_1"},
      {"Q2_K", "Q6_K | Q2_K | Q2_K | Q4_K | Q3_K | Q3_K | Q2_K"},
      {"Q3_K_S", "Q6_K | Q3_K | Q3_K | Q3_K | Q3_K | Q3_K | Q3_K"},
      {"Q3_K_M", "Q6_K | Q3_K | Q3_K | Q5_K*2 Q4_K*31 | Q4_K | Q5_K*2 Q4_K*31 | Q3_K"},
      {"Q3_K_L", "Q6_K | Q3_K | Q3_K | Q5_K | Q5_K | Q5_K | Q3_K"},
      {"Q4_K_S", "Q6_K | Q4_K | Q4_K | Q5_K*4 Q4_K*29 | Q4_K | Q5_K*4 Q4_K*29 | Q4_K"},
      {"Q4_K_M", "Q6_K | Q4_K | Q4_K | Q6_K*17 Q4_K*16 | Q4_K | Q6_K*17 Q4_K*16 | Q4_K"},
      {"Q5_K_S", "Q6_K | Q5_K | Q5_K | Q5_K | Q5_K | Q5_K | Q5_K"},
      {"Q5_K_M", "Q6_K | Q5_K | Q5_K | Q6_K*17 Q5_K*16 | Q5_K | Q6_K*17 Q5_K*16 | Q5_K"},
      {"IQ3_XXS", "Q5_K | IQ3_S | IQ2_S | Q4_K | IQ3_S | Q4_K*4 Q3_K*29 | IQ3_XXS"},
      {"IQ3_XS", "Q6_K | IQ3_S | IQ3_XXS | Q4_K | IQ3_S | IQ3_S | IQ3_S*9 IQ3_XXS*24"},
      {"IQ3_S", "Q6_K | IQ3_S | IQ3_S | Q4_K | IQ3_S | IQ3_S | IQ3_S"},
      {"IQ3_M", "Q6_K | IQ3_S | IQ3_S | Q4_K | Q4_K | Q4_K*4 IQ3_S*29 | IQ3_S"},
      {"IQ4_NL", "Q6_K | IQ4_NL | IQ4_NL | Q5_K | IQ4_NL | Q5_K*4 IQ4_NL*29 | IQ4_NL"},
      {"IQ4_XS", "Q6_K | IQ4_XS | IQ4_XS | Q5_K | IQ4_XS | Q5_K*4 IQ4_XS*29 | IQ4_XS"},
      {"TQ1_0", "Q6_K | Q4_K | TQ1_0 | TQ1_0 | TQ1_0 | TQ1_0 | TQ1_0"},
      {"TQ2_0", "Q6_K | Q4_K | TQ2_0 | TQ2_0 | TQ2_0 | TQ2_0 | TQ2_0"},
  };
  for (const auto& [name, types] : expected) {
    EXPECT_EQ(Types(name, LargeModel()), types) << name;
  }
}

TEST(QuantizePlan, MixesThatWantImportance) {
  MixFacts facts = LargeModel();
  facts.has_importance = true;
  const std::map<std::string, std::string> expected = {
      {"Q2_K_S", "Q6_K | Q2_K | Q2_K | Q4_K | Q2_K | Q4_K*4 Q2_K*29 | Q2_K"},
      {"IQ1_S", "Q5_K | Q2_K | IQ1_S | Q4_K | IQ2_XXS | Q2_K*4 IQ1_S*29 | IQ1_S"},
      {"IQ1_M", "Q5_K | Q2_K | IQ1_M | Q4_K | IQ2_XXS | Q2_K*4 IQ1_M*29 | IQ1_M"},
      {"IQ2_XXS", "Q5_K | Q2_K | IQ2_XXS | Q4_K | IQ2_XXS | Q2_K*4 IQ2_XXS*29 | IQ2_XXS"},
      {"IQ2_XS", "Q5_K | Q2_K | IQ2_XS | Q4_K | IQ2_XS | Q2_K*4 IQ2_XS*29 | IQ2_XS"},
      {"IQ2_S", "Q5_K | IQ3_S | IQ2_XS | Q4_K | IQ3_S | IQ3_S*4 IQ2_XS*29 | IQ2_XS"},
      {"IQ2_M", "Q5_K | IQ3_S | IQ2_S | Q4_K | IQ3_S | IQ3_S*4 IQ2_S*29 | IQ2_S"},
      {"IQ3_XXS", "Q5_K | IQ3_S | IQ2_S | Q4_K | IQ3_S | IQ3_XXS | IQ3_XXS"},
  };
  for (const auto& [name, types] : expected) EXPECT_EQ(Types(name, facts), types) << name;
}

// The mix gives some layers more bits, also in the default model with six layers.
TEST(QuantizePlan, LayersThatNeedMoreBits) {
  const Mix& mix = *FindMix("q4_k_m");
  std::vector<size_t> layers;
  for (size_t i = 0; i < 33; ++i) {
    const std::string name = "blk." + std::to_string(i) + ".ffn_down.weight";
    if (MixType(mix, LargeModel(), name, 4096) == DType::kQ6_K) layers.push_back(i);
  }
  EXPECT_EQ(layers,
            (std::vector<size_t>{0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31, 32}));
  const gguf::File file = gguf::File::Open(test::kDefault);
  const MixFacts facts = FactsOf(file.metadata(), file.tensors());
  EXPECT_EQ(facts.n_layers, 6u);
  EXPECT_EQ(facts.n_heads_per_kv, 2u);
  EXPECT_FALSE(facts.has_output);
  EXPECT_EQ(MixType(mix, facts, "token_embd.weight", 256), DType::kQ6_K);  // is the output, too
  for (size_t i = 0; i < 6; ++i) {
    const std::string layer = "blk." + std::to_string(i);
    const DType type = i == 2 || i == 5 ? DType::kQ6_K : DType::kQ4_K;
    EXPECT_EQ(MixType(mix, facts, layer + ".attn_v.weight", 256), type) << i;
    EXPECT_EQ(MixType(mix, facts, layer + ".ffn_down.weight", 768), type) << i;
    EXPECT_EQ(MixType(mix, facts, layer + ".ffn_up.weight", 256), DType::kQ4_K) << i;
  }
}

TEST(QuantizePlan, ExpertsShareTheirAttention) {
  MixFacts facts = LargeModel();
  facts.n_experts = 8;
  const Mix& mix = *FindMix("Q4_K_M");
  const auto type = [&](const std::string& role) {
    return MixType(mix, facts, "blk.5." + role + ".weight", 4096);
  };
  EXPECT_EQ(type("attn_v"), DType::kQ8_0);
  EXPECT_EQ(type("attn_k"), DType::kQ8_0);
  EXPECT_EQ(type("attn_output"), DType::kQ5_K);
  EXPECT_EQ(type("ffn_up_exps"), DType::kQ4_K);
  EXPECT_EQ(MixType(*FindMix("MXFP4_MOE"), facts, "blk.5.ffn_up_exps.weight", 4096), DType::kMXFP4);
  EXPECT_EQ(MixType(*FindMix("MXFP4_MOE"), facts, "blk.5.attn_q.weight", 4096), DType::kQ8_0);
}

TEST(QuantizePlan, PlainTypesAreForAll) {
  for (const Mix& mix : AllMixes()) {
    EXPECT_EQ(FindMix(mix.name), &mix);
    if (!mix.is_plain) continue;
    for (const char* name : {"output.weight", "token_embd.weight", "blk.0.attn_v.weight"}) {
      EXPECT_EQ(MixType(mix, LargeModel(), name, 4096), mix.type) << mix.name << " " << name;
    }
  }
  EXPECT_EQ(FindMix("Q4_K_X"), nullptr);
}

TEST(QuantizePlan, RowsThatAreNotWholeBlocks) {
  const std::map<DType, DType> in_place = {
      {DType::kQ4_K, DType::kQ5_0},     {DType::kQ5_K, DType::kQ5_1},
      {DType::kQ6_K, DType::kQ8_0},     {DType::kQ3_K, DType::kQ4_0},
      {DType::kQ2_K, DType::kQ4_0},     {DType::kTQ2_0, DType::kQ4_0},
      {DType::kIQ4_XS, DType::kIQ4_NL}, {DType::kIQ2_XXS, DType::kIQ4_NL},
      {DType::kNVFP4, DType::kMXFP4},   {DType::kQ4_0, DType::kQ4_0}};
  for (const auto& [type, other] : in_place) {
    EXPECT_EQ(FittingType(type, 512), type);
    EXPECT_EQ(FittingType(type, 288), other) << TypeName(type);
    EXPECT_EQ(FittingType(type, 40), DType::kF16) << TypeName(type);
  }
  // The output keeps more bits.
  EXPECT_EQ(MixType(*FindMix("IQ2_XXS"), LargeModel(), "output.weight", 288), DType::kQ8_0);
}

TEST(QuantizePlan, WhatIsNeverRounded) {
  for (const char* name : {"token_embd.weight", "blk.3.ffn_up_exps.weight", "t"}) {
    EXPECT_TRUE(IsQuantized(name, 2)) << name;
    EXPECT_FALSE(IsQuantized(name, 1)) << name;
  }
  for (const char* name :
       {"blk.0.ffn_gate_inp.weight", "blk.0.ffn_up_exps.bias", "blk.0.ssm_conv1d.weight",
        "blk.0.shortconv.conv.weight", "blk.0.attn_q_norm.weight", "blk.0.ffn_up_exps.scale",
        "per_layer_model_proj.weight", "blk.0.laurel_l.weight", "altup_proj.weight",
        "blk.0.ssm_conv1d_q.weight", "position_embd.weight", "token_types.weight"}) {
    EXPECT_FALSE(IsQuantized(name, 2)) << name;
  }
}

}  // namespace
}  // namespace convert
