// A family as a row (in families/, by lineage). One half says what a file of this architecture
// means beyond its tensors and the keys that all families have. The other half says which of
// Hugging Face's classes become such files, and how. Facts that both halves need are stated once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "engine/hf/out_model.h"
#include "engine/model/config.h"
#include "engine/model/keys.h"
#include "kernels/experts/experts.h"
#include "kernels/ops/ops.h"

namespace engine {

// The layers that have a dense network in a family with experts.
enum class DenseLayers {
  kNone,
  kLeading,        // a key gives their number
  kWithoutRouter,  // no key gives it: they are the layers without ffn_gate_inp
};

// Layers whose tokens see only the last few positions. A file may list them, or name a period.
struct Windows {
  enum class When : uint8_t {
    kNever,    // the family has no windows, or its own code reads them
    kIfGiven,  // the family has them if the file has the length
    kAlways,   // the file must have the length
    kIfListed  // it has them if the file lists the layers; the length alone has no effect
  };
  // How queries and keys of these layers rotate.
  enum class Rope : uint8_t {
    kSame,
    kOwnBase,    // RoPE has the base that a key gives, otherwise the other layers' base
    kUnscaled,   // kOwnBase, and RoPE is not stretched
    kOnlyThere,  // the other layers do not rotate
  };
  When when = When::kNever;
  size_t period = 0;  // the last layer of every `period` sees all positions; 0: no layer does
  Rope rope = Rope::kSame;
  double base = 0;    // kUnscaled's base if no key gives one; 0: the other layers' base
  size_t length = 0;  // kIfGiven's window if no key gives one
};

// hf has names in config.json, separated by spaces. The first name that is present counts; without
// any, no key is written.
enum class KeyKind : uint8_t { kUint, kFloat, kBool };
struct KeyRule {
  std::string_view hf, gguf;
  KeyKind kind = KeyKind::kUint;
};

// Says which models a name in config.json applies to: with experts, without, or both.
enum class HasExperts : uint8_t { kEither, kNone, kSome };

// Hugging Face's classes that become files of a family in the same way.
struct HfClass {
  std::array<std::string_view, 10> names = {};  // config.json's architectures; the rest is empty
  HasExperts experts = HasExperts::kEither;
  bool pairs_halves = false;  // RoPE pairs a head's halves; the file pairs neighbours
  bool norms_plus_one = false;
  bool raw_bpe = false;       // its tokenizer.json merges characters, not bytes
  bool all_kv_heads = false;  // each head has its own keys and values, whatever config.json says
  bool has_windows = true;    // false: no windows, even if its family has them
  bool chooses_by_sigmoid = false;  // experts are chosen by sigmoid if config.json does not say
  bool says_rope = false;           // config.json must say how RoPE is scaled
  bool tied = false;          // the output matrix is the embedding if config.json does not say
  double rope_theta = 10000;  // RoPE's base if config.json does not say
  double rotary_part = 1;     // the part of a head that rotates if config.json does not say
  // The beginning of the activation's name in config.json, if the name is not the usual one of
  // Traits::activation. "": any name.
  std::optional<std::string_view> activation = {};
  // Published names of tensors. These lists come before the tables that all families share
  // (convert/source.cc); the first list that has a name counts.
  std::array<std::span<const TensorRule>, 3> tensors = {};
  std::array<std::span<const KeyRule>, 2> keys = {};
  std::span<const KeyValue> only = {};      // values that config.json's keys must have
  std::span<const KeyValue> defaults = {};  // values that config.json omits
  // Names in config.json, besides the usual ones, for numbers that all families need.
  std::span<const std::pair<std::string_view, std::string_view>> renamed = {};
  // Adds keys, which are then not looked up in the lists. Refuses a folder whose values the
  // family's file cannot express. May be null.
  void (*add_keys)(OutModel& model) = nullptr;
};

struct Family {
  std::string_view name;                             // general.architecture
  std::array<std::string_view, 2> other_names = {};  // names in files of other programs
  kernels::RopePairs rope_pairs = kernels::RopePairs::kHalves;
  Traits traits = {};
  bool scales_embeddings = false;  // embeddings are multiplied by the root of their length
  bool rounds_yarn_ramp = true;    // RopeConfig::rounds_ramp if a file does not say
  Windows windows = {};
  bool nextn = false;  // blocks after the layers may predict further tokens
  // The mixer of layers without key-value heads.
  Mixer without_heads = Mixer::kAttention;
  // How experts are chosen, in families whose layers may have them.
  std::optional<kernels::Router> router = {};
  bool router_keys = true;  // keys change `router`; false: only group keys do
  Presence router_bias = Presence::kNone;
  DenseLayers dense_layers = DenseLayers::kNone;
  // The shared expert is as wide as this number of experts, or as the number in a key.
  std::optional<size_t> n_shared_experts = {};
  // Completes a config that was read from the common keys. Throws gguf::Error. May be null.
  void (*complete_config)(const Keys& keys, Config& config) = nullptr;

  HfClass hf = {};
  std::span<const HfClass> others = {};
};

// The rows of all lineages, in the order in which messages list them.
std::span<const Family> Families();

// The activation without a gate that has this name in config.json and in a key of ours.
std::optional<kernels::Activation> UngatedActivation(std::string_view name);

}  // namespace engine
