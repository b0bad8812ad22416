// Maps a folder's tensors to the file's, by the tables of source.h.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "convert/source.h"

namespace convert {
namespace {

constexpr uint64_t kMaxExperts = 1u << 16;

// Models with vision or audio put a prefix before the text model's names.
constexpr std::pair<std::string_view, std::string_view> kTextPrefixes[] = {
    {"model.language_model.", "model."},
    {"model.layers.layers.", "model.layers."},
    {"transformer.h.", "model.layers."},
    {"transformer.blocks.", "model.layers."},
    {"gpt_neox.layers.", "model.layers."},
    {"model.decoder.layers.", "model.layers."},
    {"biogpt.layers.", "model.layers."},
    {"biogpt.", "model."},
    {"transformer.", "model."},
    {"gpt_neox.", "model."},
    {"model.decoder.", "model."},
    {"h.", "model.layers."},
    {"wte.", "model.wte."},
    {"wpe.", "model.wpe."},
    {"ln_f.", "model.ln_f."},
    {"word_embeddings.", "model.word_embeddings."},
    {"word_embeddings_layernorm.", "model.word_embeddings_layernorm."},
    {"model.text_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."},
    // Names in models that make vectors of texts.
    {"layers.", "model.layers."},
    {"embed_tokens.", "model.embed_tokens."},
    {"norm.", "model.norm."},
    {"backbone.layers.", "model.layers."},
    {"backbone.embeddings.", "model.embed_tokens."},
    {"backbone.norm_f.", "model.norm."},
    {"bert.encoder.layer.", "model.layers."},
    {"roberta.encoder.layer.", "model.layers."},
    {"encoder.layer.", "model.layers."},
    {"encoder.layers.", "model.layers."},
    {"bert.", ""},
    {"roberta.", ""},
    {"model.embeddings.", "embeddings."},
    {"model.final_norm.", "final_norm."},
};
// Parts of a layer with several names.
constexpr std::pair<std::string_view, std::string_view> kParts[] = {
    {".mamba.", ".mixer."}, {".block_sparse_moe.", ".mlp."}};
// Vision and audio parts.
// clang-format off
constexpr std::string_view kLeftOut[] = {
    "vision_tower.", "model.vision_tower.", "vision_model.", "model.vision_model.",
    "multi_modal_projector.", "model.multi_modal_projector.", "model.connector.",
    "image_newline", "model.image_newline", "model.visual.", "visual.", "vision_encoder.",
    "model.mtp_", "audio_tower.", "model.audio_tower.", "model.embed_audio.", "model.embed_vision.",
};
// clang-format on
// Blocks that predict further tokens, if they have names of their own.
constexpr std::string_view kNextn = "mtp.", kNextnLayers = "mtp.layers.";
constexpr std::string_view kLayer = "model.layers.{i}.";  // TensorRule's "."
// The words before an expert's number.
constexpr std::string_view kStacks[] = {"experts.", "norms.", "altup_projections.",
                                        "altup_unembed_projections."};

// A name as in the tables, with its numbers separated.
struct Name {
  std::string text;    // ".mlp.experts.{e}.up_proj"
  std::string suffix;  // ".weight", ".bias" or none
  std::optional<uint64_t> layer, expert;
};

// Replaces the number after `word` by `mark`.
std::optional<uint64_t> TakeNumber(std::string& name, std::string_view word,
                                   std::string_view mark) {
  const size_t at = name.find(word);
  if (at == std::string::npos || (at > 0 && name[at - 1] != '.')) return std::nullopt;
  const size_t begin = at + word.size();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + begin, name.data() + name.size(), number);
  const auto length = static_cast<size_t>(end - (name.data() + begin));
  // Numbers without leading zeros (not 01), so that no two names are the same.
  if (error != std::errc() || number > UINT32_MAX || std::to_string(number).size() != length) {
    return std::nullopt;
  }
  name.replace(begin, length, mark);
  return number;
}

// n_layers: without the additional blocks that predict further tokens.
Name Parse(std::string_view hf, uint64_t n_layers) {
  Name name;
  if (hf.starts_with("model.mtp.")) hf.remove_prefix(6);  // "model."
  name.text = hf;
  if (hf.starts_with(kNextnLayers)) name.text.replace(0, kNextn.size(), "model.");
  for (const auto& [prefix, instead] : kTextPrefixes) {
    if (hf.starts_with(prefix)) {
      name.text = std::string(instead) + std::string(hf.substr(prefix.size()));
      break;
    }
  }
  name.layer = TakeNumber(name.text, "layers.", "{i}");
  if (name.layer && name.text.starts_with(kLayer)) name.text.erase(0, kLayer.size() - 1);
  for (const auto& [spelt, usual] : kParts) {
    if (name.text.starts_with(spelt)) name.text.replace(0, spelt.size(), usual);
  }
  if (hf.starts_with(kNextn)) name.layer = n_layers + name.layer.value_or(0);
  for (const std::string_view stack : kStacks) {
    if (!name.expert) name.expert = TakeNumber(name.text, stack, "{e}");
  }
  for (const std::string_view suffix : {".weight", ".bias"}) {
    if (!name.text.ends_with(suffix)) continue;
    name.suffix = suffix;
    name.text.resize(name.text.size() - suffix.size());
  }
  return name;
}

class Mapper {
 public:
  Mapper(const Source& source, OutModel& model)
      : hf_(source.hf), model_(model), n_layers_(model.n_layers()) {
    // A layer's norms have the same names in folders, whatever they act on.
    const engine::NormRoles& roles = source.family.traits.norms;
    NameNorm(".post_attention_layernorm", roles.attn_post.empty() ? roles.ffn : roles.attn_post);
    NameNorm(".pre_feedforward_layernorm", roles.ffn);
    NameNorm(".post_feedforward_layernorm", roles.ffn_post);
    tied_ = model.config.BoolOr("tie_word_embeddings",
                                model.folder.config().BoolOr("tie_word_embeddings", hf_.tied));
  }

  std::vector<std::string> Run() {
    for (const auto& [hf, tensor] : model_.folder.tensors()) {
      if (IsLeftOut(hf) || !Place(hf, *tensor)) left_out_.push_back(hf);
    }
    for (auto& [name, target] : targets_) Build(name, target);
    return std::move(left_out_);
  }

 private:
  struct Target {
    std::map<uint64_t, const SafeTensor*> from;  // [expert]; 0 without experts
    bool is_stack = false;
    Order order = Order::kSame;
    Change change = Change::kNone;
    RowFactors factors;
  };

  void NameNorm(const char* hf, std::string_view role) {
    if (!role.empty()) norms_.emplace(hf, "." + std::string(role));
  }

  bool IsLeftOut(const std::string& hf) const {
    if (hf.starts_with(kNextn)) return model_.n_nextn == 0;
    return std::ranges::any_of(kLeftOut,
                               [&](std::string_view prefix) { return hf.starts_with(prefix); });
  }

  bool HasInLayer(const Name& name, std::string_view tensor) const {
    return model_.folder.tensors().contains(
        "model.layers." + std::to_string(name.layer.value_or(0)) + std::string(tensor) + ".weight");
  }

  // False if the tensor is left out.
  bool Place(const std::string& hf, const SafeTensor& tensor) {
    const Name name = Parse(hf, n_layers_);
    if (name.layer && *name.layer >= n_layers_ + model_.n_nextn) return false;
    if ((name.text == "lm_head" || name.text == "output_projection") && name.suffix == ".weight" &&
        tied_)
      return false;
    if (name.text.ends_with("_scales") && IsMxfp4(tensor)) return true;  // goes with its blocks
    bool is_known = false, is_kept = false;
    const auto apply = [&](std::span<const TensorRule> rules) {
      if (is_known) return;  // earlier lists take precedence
      for (const TensorRule& rule : rules) {
        if (rule.hf != name.text || hf.starts_with('.')) continue;
        if (!rule.with.empty() && !HasInLayer(name, rule.with)) continue;
        is_known = true;
        is_kept |= Add(rule, name, tensor);
      }
    };
    apply(model_.first_rules);
    for (const std::span<const TensorRule> rules : hf_.tensors) apply(rules);
    if (const auto found = norms_.find(name.text); found != norms_.end())
      apply(std::array{TensorRule{found->first, found->second}});
    apply(CommonTensors());
    if (!is_known) {
      tensor.Fail("has no place in a model of architecture ", model_.architecture,
                  ": its text would be wrong");
    }
    return is_kept;
  }

  bool Add(const TensorRule& rule, const Name& name, const SafeTensor& tensor) {
    if (rule.gguf.empty()) return false;
    if (rule.gguf == kInKeys) return true;
    std::string gguf(rule.gguf);
    gguf.ends_with('.') ? gguf.pop_back() : void(gguf += name.suffix);
    if (gguf.starts_with('.')) gguf = "blk." + std::to_string(name.layer.value_or(0)) + gguf;
    Target& target = targets_[gguf];
    target.order = OrderOf(rule, name, tensor);
    target.change = ChangeOf(rule, name, tensor);
    target.is_stack = name.expert.has_value();
    if (const auto found = model_.factors.find(rule.gguf); found != model_.factors.end())
      target.factors = found->second;
    if (!target.from.emplace(name.expert.value_or(0), &tensor).second) {
      tensor.Fail("is another ", gguf, ": expected one");
    }
    return true;
  }

  Order OrderOf(const TensorRule& rule, const Name& name, const SafeTensor& tensor) const {
    if (hf_.pairs_halves && rule.order == Order::kSame) {
      if (name.text.ends_with("self_attn.q_proj")) return Order::kRopeQ;
      if (name.text.ends_with("self_attn.k_proj")) return Order::kRopeK;
    }
    // Biases of transposed matrices are not transposed.
    if (rule.order == Order::kTransposed && tensor.shape.size() == 1) return Order::kSame;
    return rule.order;
  }

  Change ChangeOf(const TensorRule& rule, const Name& name, const SafeTensor& tensor) const {
    const bool is_norm =
        (name.text.ends_with("norm") && !name.text.ends_with("linear_attn.norm")) ||
        name.text.starts_with("mtp.pre_fc_norm");
    if (hf_.norms_plus_one && is_norm && name.suffix == ".weight") return Change::kPlusOne;
    const bool is_matrix = name.layer && name.suffix == ".weight" && tensor.shape.size() == 2;
    if (!model_.is_ternary || !is_matrix) return rule.change;
    if (name.expert) tensor.Fail("is an expert: expected none in a model that rounds its weights");
    return Change::kTernary;
  }

  static bool IsMxfp4(const SafeTensor& tensor) {
    return !tensor.is_weights() && tensor.dtype == "U8";
  }

  void Build(const std::string& name, const Target& target) {
    std::vector<const SafeTensor*> from;
    for (const auto& [expert, tensor] : target.from) {
      if (expert != from.size() || expert >= kMaxExperts) {
        tensor->Fail("expected experts 0, 1 and so on: number ", from.size(), " is missing");
      }
      from.push_back(tensor);
    }
    OutTensor out;
    if (from[0]->name.ends_with("_blocks") && IsMxfp4(*from[0])) {
      const std::string& blocks = from[0]->name;
      const std::string scales = blocks.substr(0, blocks.size() - 6) + "scales";
      out = ArrangeMxfp4(name, *from[0], model_.Need(scales), target.order);
    } else {
      out = Arrange(name, from, target.order, model_.shapes);
      if (target.is_stack && from.size() == 1) out.dims.push_back(1);
    }
    out.change = target.change;
    out.factors = target.factors;
    const bool is_table = name == "token_embd.weight" || name == "per_layer_token_embd.weight";
    if (is_table && model_.n_tokens > 0 && out.dims.size() == 2) {
      out.dims[1] = std::min(out.dims[1], model_.n_tokens);
    }
    model_.tensors.push_back(std::move(out));
  }

  const HfClass& hf_;
  OutModel& model_;
  uint64_t n_layers_;
  bool tied_;
  std::map<std::string, std::string, std::less<>> norms_;
  std::map<std::string, Target> targets_;
  std::vector<std::string> left_out_;
};

}  // namespace

std::vector<std::string> MapTensors(const Source& source, OutModel& model) {
  return Mapper(source, model).Run();
}

}  // namespace convert
