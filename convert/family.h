// A family that can be converted, as a row: which tensor of a folder becomes which of the file, in
// which order of numbers; which key of config.json becomes which of the file; and a function for
// the rest. The rows are in families/, a file for each lineage of models, as in
// engine/model/families/.
#ifndef PRONK_CONVERT_FAMILY_H_
#define PRONK_CONVERT_FAMILY_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "convert/out_model.h"

namespace convert {

// A name that begins with "." is of a layer: "model.layers.{i}." before the folder's, "blk.{i}."
// before the file's. {i} is a layer's number, {e} an expert's. Names without ".weight" and ".bias"
// stand for both. A folder's tensor may become several of the file's, or none (gguf "").
struct TensorRule {
  std::string_view hf, gguf;
  Order order = Order::kSame;
  Change change = Change::kNone;
};

enum class KeyKind : uint8_t { kUint, kFloat, kBool };
// The first of config.json's keys that is there; without one nothing is written.
struct KeyRule {
  std::string_view hf, gguf;
  KeyKind kind = KeyKind::kUint;
};

// For names in config.json that models with and without experts share.
enum class Experts : uint8_t { kEither, kNone, kSome };

struct Family {
  std::string_view name;               // GGUF's architecture
  std::array<std::string_view, 4> hf;  // config.json's architectures; the rest is empty
  Experts experts = Experts::kEither;
  // GGUF's definition rotates pairs of neighbours in a head, Hugging Face's code pairs of halves.
  bool pairs_neighbours = false;
  bool norms_plus_one = false;
  std::string_view activation = "silu";  // how its name begins in config.json
  // In order: the first list that has a tensor's name counts. CommonTensors() come last.
  std::array<std::span<const TensorRule>, 3> tensors = {};
  std::array<std::span<const KeyRule>, 2> keys = {};
  // Adds keys before the lists do, whose values then do not count, and refuses what GGUF's
  // definition of the family cannot express.
  void (*refine)(OutModel& model) = nullptr;
  std::string_view defaults = "";  // usual values that folders leave out, as JSON
};

// Of all lineages, in the order in which messages list them.
const std::vector<Family>& Families();
// Tensors that most families share.
std::span<const TensorRule> CommonTensors();

// The family of the folder. Throws gguf::Error where it cannot be converted.
const Family& FindFamily(const Fields& config);

// The part of config.json about text: models that see and hear have it apart.
Fields TextConfig(const Fields& config);

// Adds the family's keys, then those of all families.
void AddKeys(const Family& family, OutModel& model);

}  // namespace convert

#endif  // PRONK_CONVERT_FAMILY_H_
