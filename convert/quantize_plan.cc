// The mixes: which matrices get more bits than the rest.
#include "convert/quantize_plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "engine/model/model.h"

namespace convert {
namespace {

using enum gguf::DType;
using gguf::DType;

constexpr std::array kMixes = {
    Mix{"F32", 0, kF32, true},           Mix{"F16", 1, kF16, true},
    Mix{"BF16", 32, kBF16, true},        Mix{"Q8_0", 7, kQ8_0, true},
    Mix{"Q6_K", 18, kQ6_K, true},        Mix{"Q5_K", 16, kQ5_K, true},
    Mix{"Q5_K_M", 17, kQ5_K, false},     Mix{"Q5_K_S", 16, kQ5_K, false},
    Mix{"Q5_1", 9, kQ5_1, false},        Mix{"Q5_0", 8, kQ5_0, false},
    Mix{"Q4_K", 14, kQ4_K, true},        Mix{"Q4_K_M", 15, kQ4_K, false},
    Mix{"Q4_K_S", 14, kQ4_K, false},     Mix{"Q4_1", 3, kQ4_1, false},
    Mix{"Q4_0", 2, kQ4_0, false},        Mix{"IQ4_NL", 25, kIQ4_NL, false},
    Mix{"IQ4_XS", 30, kIQ4_XS, false},   Mix{"MXFP4", 38, kMXFP4, true},
    Mix{"MXFP4_MOE", 38, kMXFP4, false}, Mix{"NVFP4", 39, kNVFP4, false},
    Mix{"Q3_K", 11, kQ3_K, true},        Mix{"Q3_K_L", 13, kQ3_K, false},
    Mix{"Q3_K_M", 12, kQ3_K, false},     Mix{"Q3_K_S", 11, kQ3_K, false},
    Mix{"IQ3_M", 27, kIQ3_S, false},     Mix{"IQ3_S", 26, kIQ3_S, false},
    Mix{"IQ3_XS", 22, kIQ3_S, false},    Mix{"IQ3_XXS", 23, kIQ3_XXS, false},
    Mix{"Q2_K", 10, kQ2_K, false},       Mix{"Q2_K_S", 21, kQ2_K, false},
    Mix{"IQ2_M", 29, kIQ2_S, false},     Mix{"IQ2_S", 28, kIQ2_XS, false},
    Mix{"IQ2_XS", 20, kIQ2_XS, false},   Mix{"IQ2_XXS", 19, kIQ2_XXS, false},
    Mix{"Q2_0", 41, kQ2_0, true},        Mix{"TQ2_0", 37, kTQ2_0, false},
    Mix{"TQ1_0", 36, kTQ1_0, false},     Mix{"IQ1_M", 31, kIQ1_M, false},
    Mix{"IQ1_S", 24, kIQ1_S, false},     Mix{"Q1_0", 40, kQ1_0, true},
};

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

bool Has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

// attn_v, or the joined matrix that contains it.
bool HasValues(std::string_view name) {
  return Has(name, "attn_v.weight") || Has(name, "attn_qkv.weight") ||
         Has(name, "attn_kv_b.weight");
}

// A layer's position among n.
struct Place {
  size_t i, n;

  bool IsInFirst(size_t part) const { return i < n / part; }  // the first n / part layers
  // The first and last eighth and every third layer between: their errors affect the output most.
  bool NeedsMoreBits() const { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }
};

// One matrix in a mix: MixType()'s rules, one function per kind of matrix.
class Rules {
 public:
  Rules(const Mix& mix, const MixFacts& facts, std::string_view name, uint64_t cols)
      : mix_(mix.name), type_(mix.type), facts_(facts), name_(name), cols_(cols) {}

  DType Type() const {
    const bool is_embedding =
        name_ == "token_embd.weight" || name_ == "per_layer_token_embd.weight";
    if (name_ == "output.weight" || (is_embedding && !facts_.has_output)) return Output();
    if (mix_ == "MXFP4_MOE") return Has(name_, "_exps.") ? kMXFP4 : kQ8_0;
    // Each matrix has a factor, which readers support only in layers.
    if (mix_ == "NVFP4") return gguf::LayerOf(name_).has_value() ? kNVFP4 : kQ8_0;
    if (is_embedding) return Embedding();
    if (IsVerySmall()) return VerySmall();
    if (HasValues(name_)) return Values();
    if (Has(name_, "attn_k.weight")) return Keys();
    if (Has(name_, "attn_q.weight")) return Queries();
    if (Has(name_, "ffn_down")) return Down();
    if (Has(name_, "attn_output.weight")) return AttentionOutput();
    if (Has(name_, "ffn_gate") || Has(name_, "ffn_up")) return GateOrUp();
    return type_;
  }

 private:
  bool Is(std::initializer_list<std::string_view> mixes) const {
    return std::ranges::find(mixes, mix_) != mixes.end();
  }
  // Types of about two bits and less: if they are too coarse, a slightly larger type is used.
  bool IsVerySmall() const { return Is({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M"}); }
  // With eight experts, attention matrices are small in comparison.
  bool HasEightExperts() const { return facts_.n_experts == 8; }
  bool HasFewKeys() const { return facts_.n_heads_per_kv >= 4; }

  // The layer's position among the layers with such a matrix.
  size_t Rank(const std::vector<size_t>& layers) const {
    const auto at = std::ranges::lower_bound(layers, gguf::LayerOf(name_).value_or(0));
    return static_cast<size_t>(at - layers.begin());
  }
  Place Layer() const {
    const bool by_number = facts_.n_experts > 1;
    return {by_number ? gguf::LayerOf(name_).value_or(0) : Rank(facts_.ffn_layers),
            facts_.n_layers};
  }
  Place ValueLayer() const { return {Rank(facts_.value_layers), facts_.value_layers.size()}; }

  DType Output() const {
    if (Is({"MXFP4_MOE", "NVFP4"}) || cols_ % gguf::Info(type_).block_size != 0) return kQ8_0;
    if (IsVerySmall() || mix_ == "IQ3_XXS") return kQ5_K;
    return kQ6_K;
  }
  DType Embedding() const {
    if (Is({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS"})) return kQ2_K;
    if (Is({"IQ2_S", "IQ2_M", "IQ3_XXS"})) return kIQ3_S;
    if (Is({"TQ1_0", "TQ2_0"})) return kQ4_K;
    return type_;
  }
  DType VerySmall() const {
    const DType more = Is({"IQ2_S", "IQ2_M"}) ? kIQ3_S : kQ2_K;
    if (HasValues(name_)) return HasFewKeys() || facts_.n_experts >= 4 ? kQ4_K : more;
    if (Has(name_, "attn_k.weight") && HasEightExperts()) return kQ4_K;
    if (Has(name_, "ffn_down")) return Layer().IsInFirst(8) ? more : type_;
    if (Has(name_, "attn_output.weight")) {
      if (HasEightExperts()) return kQ5_K;
      if (Is({"IQ1_S", "IQ1_M"})) return kIQ2_XXS;
      if (Is({"IQ2_S", "IQ2_M"})) return kIQ3_S;
    }
    return type_;
  }
  DType Values() const {
    if (HasEightExperts()) return kQ8_0;
    const DType type = ValuesOfFewExperts();
    const bool is_large = facts_.n_layers == 80;  // 70B: values are a small part of it
    return is_large && (type == kQ3_K || type == kQ4_K) ? kQ5_K : type;
  }
  DType ValuesOfFewExperts() const {
    const Place place = ValueLayer();
    if (mix_ == "Q2_K") return HasFewKeys() ? kQ4_K : kQ3_K;
    if (Is({"Q2_K_S", "IQ3_XS", "IQ3_S"}) && HasFewKeys()) return kQ4_K;
    if (mix_ == "IQ3_XXS") return HasFewKeys() ? kQ4_K : facts_.has_importance ? type_ : kIQ3_S;
    if (mix_ == "IQ3_M") return kQ4_K;
    if (mix_ == "Q3_K_M") return place.i < 2 ? kQ5_K : kQ4_K;
    if (mix_ == "Q3_K_L") return kQ5_K;
    if (Is({"IQ4_NL", "IQ4_XS"}) && HasFewKeys()) return kQ5_K;
    if (Is({"Q4_K_M", "Q5_K_M"}) && place.NeedsMoreBits()) return kQ6_K;
    if (mix_ == "Q4_K_S" && place.i < 4) return kQ5_K;
    return type_;
  }
  DType Keys() const { return HasEightExperts() ? kQ8_0 : Queries(); }
  DType Queries() const {
    if (mix_ == "IQ3_XS") return kIQ3_XXS;
    if (mix_ == "IQ3_XXS") return kIQ2_S;
    return type_;
  }
  DType Down() const {
    const Place place = Layer();
    const bool is_early = place.IsInFirst(8);
    if (mix_ == "Q2_K") return kQ3_K;
    if (mix_ == "Q2_K_S" && is_early) return kQ4_K;
    if (mix_ == "IQ3_XXS" && !facts_.has_importance) return is_early ? kQ4_K : kQ3_K;
    if (mix_ == "Q3_K_M") return place.IsInFirst(16) ? kQ5_K : kQ4_K;
    if (mix_ == "Q3_K_L") return kQ5_K;
    if (mix_ == "IQ3_M" && (is_early || (HasEightExperts() && place.NeedsMoreBits()))) return kQ4_K;
    if (Is({"Q4_K_M", "Q5_K_M"}) && place.NeedsMoreBits()) return kQ6_K;
    if (Is({"IQ4_NL", "IQ4_XS"}) && is_early && !facts_.has_importance) return kQ5_K;
    if (mix_ == "Q4_K_S" && is_early) return kQ5_K;
    if (mix_ == "Q4_0" && is_early && facts_.has_importance) return kQ4_1;
    if (mix_ == "Q5_0" && is_early && facts_.has_importance) return kQ5_1;
    return type_;
  }
  DType AttentionOutput() const {
    if (HasEightExperts()) {
      return Is({"Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M", "IQ3_XXS", "IQ3_XS", "IQ3_S",
                 "IQ3_M", "IQ4_NL", "IQ4_XS"})
                 ? kQ5_K
                 : type_;
    }
    if (mix_ == "Q2_K") return kQ3_K;
    if (mix_ == "IQ3_XXS") return kIQ3_S;
    if (Is({"Q3_K_M", "IQ3_M"})) return kQ4_K;
    if (mix_ == "Q3_K_L") return kQ5_K;
    return type_;
  }
  DType GateOrUp() const {
    const Place place = Layer();
    const bool is_middle = !place.IsInFirst(8) && place.i < 7 * place.n / 8;
    return mix_ == "IQ3_XS" && is_middle ? kIQ3_XXS : type_;
  }

  std::string_view mix_;
  DType type_;
  const MixFacts& facts_;
  std::string_view name_;
  uint64_t cols_;
};

// A number, or the first of an array of numbers.
uint64_t FirstUint(const gguf::Metadata& metadata, const std::string& key) {
  const gguf::Value* const value = metadata.Find(key);
  if (value == nullptr) return 0;
  if (value->type != gguf::ValueType::kArray) return metadata.GetUint(key);
  const std::vector<int64_t> numbers = metadata.GetInts(key);
  return numbers.empty() ? 0 : static_cast<uint64_t>(std::max<int64_t>(numbers[0], 0));
}

}  // namespace

std::span<const Mix> AllMixes() { return kMixes; }

const Mix* FindMix(std::string_view name) {
  const auto mix =
      std::ranges::find_if(kMixes, [&](const Mix& m) { return SameName(m.name, name); });
  return mix == kMixes.end() ? nullptr : &*mix;
}

std::string FileTypeName(const gguf::File& file) {
  const gguf::Value* const number = file.metadata().Find("general.file_type");
  const bool is_known = number != nullptr && number->type == gguf::ValueType::kU32;
  for (const Mix& mix : AllMixes()) {
    if (!is_known || mix.is_plain) continue;
    if (file.metadata().GetUint("general.file_type") != mix.file_type) continue;
    for (const std::string_view size : {"Small", "Medium", "Large"}) {
      const std::string end = std::string("K_") + size[0];
      if (!mix.name.ends_with(end)) continue;
      return std::string(mix.name.substr(0, mix.name.size() - 2)) + " - " + std::string(size);
    }
    return std::string(mix.name);
  }
  return std::string(gguf::Info(engine::MainType(file)).name);
}

MixFacts FactsOf(const gguf::Metadata& metadata, std::span<const gguf::TensorView> tensors) {
  const std::string arch(metadata.GetStringOr("general.architecture", ""));
  MixFacts facts;
  facts.n_layers = FirstUint(metadata, arch + ".block_count");
  facts.n_experts = FirstUint(metadata, arch + ".expert_count");
  const uint64_t n_heads = FirstUint(metadata, arch + ".attention.head_count");
  const bool has_kv = metadata.Has(arch + ".attention.head_count_kv");
  const uint64_t n_kv = has_kv ? FirstUint(metadata, arch + ".attention.head_count_kv") : n_heads;
  facts.n_heads_per_kv = n_kv == 0 ? 0 : n_heads / n_kv;
  for (const gguf::TensorView& tensor : tensors) {
    if (tensor.name == "output.weight") facts.has_output = true;
    const auto layer = gguf::LayerOf(tensor.name);
    if (!layer) continue;
    if (HasValues(tensor.name)) facts.value_layers.push_back(*layer);
    if (Has(tensor.name, "ffn_down.weight")) facts.ffn_layers.push_back(*layer);
  }
  std::ranges::sort(facts.value_layers);
  std::ranges::sort(facts.ffn_layers);
  return facts;
}

bool IsQuantized(std::string_view name, size_t n_dims) {
  const size_t dot = name.rfind('.');
  if (n_dims < 2 || (dot != std::string_view::npos && name.substr(dot) != ".weight")) return false;
  constexpr std::array<std::string_view, 9> kKept = {
      "_norm.weight", "ffn_gate_inp.weight",  "altup",
      "laurel",       "per_layer_model_proj", "position_embd",
      "token_types",  "ssm_conv1d",           "shortconv.conv.weight"};
  return std::ranges::none_of(kKept, [&](std::string_view part) { return Has(name, part); });
}

DType MixType(const Mix& mix, const MixFacts& facts, std::string_view name, uint64_t cols) {
  return mix.is_plain ? mix.type : Rules(mix, facts, name, cols).Type();
}

DType FittingType(DType type, uint64_t cols) {
  constexpr std::pair<DType, DType> kOthers[] = {
      {kTQ1_0, kQ4_0}, {kTQ2_0, kQ4_0}, {kQ2_K, kQ4_0}, {kQ3_K, kQ4_0},
      {kQ4_K, kQ5_0},  {kQ5_K, kQ5_1},  {kQ6_K, kQ8_0}, {kNVFP4, kMXFP4},
  };
  const auto fits = [cols](DType t) { return cols % gguf::Info(t).block_size == 0; };
  if (fits(type)) return type;
  const auto* const row = std::ranges::find(kOthers, type, &std::pair<DType, DType>::first);
  const DType other = row != std::end(kOthers) ? row->second : kIQ4_NL;
  return gguf::Info(type).block_size > 32 && fits(other) ? other : kF16;
}

}  // namespace convert
