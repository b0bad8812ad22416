// A family that can be converted, as a table row: how the folder's tensors map to the file's and
// how their numbers are reordered, how config.json's keys map to the file's, and a function for the
// rest. The rows are in families/, one file per lineage, as in engine/model/families/.
#ifndef PRONK_CONVERT_FAMILY_H_
#define PRONK_CONVERT_FAMILY_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/out_model.h"

namespace convert {

enum class KeyKind : uint8_t { kUint, kFloat, kBool };
// Names in config.json, separated by spaces, of which the first that is present counts; if none is,
// nothing is written.
struct KeyRule {
  std::string_view hf, gguf;
  KeyKind kind = KeyKind::kUint;
};

// The only value that GGUF's definition of a family expresses, if config.json has the key; 1: true.
struct UsualValue {
  std::string_view hf;
  double value;
};

// For names in config.json shared by models with and without experts.
enum class Experts : uint8_t { kEither, kNone, kSome };

struct Family {
  std::string_view name;                     // GGUF's architecture
  std::array<std::string_view, 10> hf = {};  // config.json's architectures; the rest is empty
  Experts experts = Experts::kEither;
  // GGUF's definition rotates pairs of neighbours in a head, Hugging Face's code pairs of halves.
  bool pairs_neighbours = false;
  bool norms_plus_one = false;
  bool raw_bpe = false;                  // its tokenizer.json merges characters, not bytes
  std::string_view activation = "silu";  // prefix of its name in config.json
  // The first list that has a tensor's name counts; CommonTensors() come last.
  std::array<std::span<const TensorRule>, 4> tensors = {};
  std::array<std::span<const KeyRule>, 3> keys = {};
  std::span<const UsualValue> usual = {};
  // Adds keys, before and in place of the lists'; refuses what the family's file cannot express.
  void (*refine)(OutModel& model) = nullptr;
  bool says_rope = false;  // config.json must say how RoPE is scaled
  // What counts where config.json does not say: rope's base, and the part of a head that rotates.
  double rope_theta = 10000, rotary_part = 1;
  bool tied = false;               // likewise: the output matrix is the embedding
  std::string_view defaults = "";  // values that folders omit, as JSON
  // Names in config.json for numbers that AddKeys() needs, and the usual names.
  std::span<const std::pair<std::string_view, std::string_view>> renamed = {};
};

// Of all lineages, in the order of messages.
const std::vector<Family>& Families();
// Tensors that most families share.
std::span<const TensorRule> CommonTensors();

// The family of the folder. Throws gguf::Error if it cannot be converted.
const Family& FindFamily(const Fields& config);

// config.json's text part, which is a separate object in models with vision or audio.
Fields TextConfig(const Fields& config);
// TextConfig, completed by the family's usual names and defaults.
Fields UsualConfig(const Family& family, const Fields& config);

// Adds the family's keys, then those of all families.
void AddKeys(const Family& family, OutModel& model);
// The keys that Sentence Transformers' files give. Throws gguf::Error.
void AddPooling(OutModel& model);

// Adds the file's tensors. Returns the names of the folder's tensors that are left out: vision and
// audio, blocks after the layers that this program would not run, and tensors that readers compute.
// Throws gguf::Error if a tensor is unknown, an expert is missing, or a shape does not fit.
std::vector<std::string> MapTensors(const Family& family, OutModel& model);

}  // namespace convert

#endif  // PRONK_CONVERT_FAMILY_H_
