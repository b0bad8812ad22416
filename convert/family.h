// The families that can be converted, as data: which of a folder's tensors becomes which of the
// file's, and in what order its numbers then lie; which key of config.json becomes which of the
// file's; and a function for what neither says.
#ifndef PRONK_CONVERT_FAMILY_H_
#define PRONK_CONVERT_FAMILY_H_

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/hf_folder.h"
#include "convert/json.h"
#include "convert/out_tensor.h"
#include "gguf/writer.h"

namespace convert {

// {i} is a layer's number, {e} an expert's. Names may go without ".weight" and ".bias", and then
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

// What is known of the file while it is put together.
struct Draft {
  Draft(const HfFolder& the_folder, Fields the_config, std::string_view the_architecture)
      : folder(the_folder), config(std::move(the_config)), architecture(the_architecture) {}

  const HfFolder& folder;
  Fields config;             // of the text model
  std::string architecture;  // GGUF's name
  gguf::Writer keys;
  Shapes shapes;
  std::vector<OutTensor> tensors;
  uint64_t n_tokens = 0;           // rows of the embedding that are kept; 0: all
  bool is_ternary = false;         // layers' matrices are rounded to three values, Change::kTernary
  uint64_t n_nextn = 0;            // blocks behind the layers that predict further tokens
  std::vector<std::string> notes;  // what the user should know

  // Keys of the architecture. Of a key that comes twice the first one counts: a family's own come
  // before those that all have. Without(): such a key is not to be written at all.
  void Without(std::string_view key);
  bool Gives(std::string_view key) const { return given_.contains(std::string(key)); }
  void Uint(std::string_view key, uint64_t value);
  void Float(std::string_view key, double value);
  void Bool(std::string_view key, bool value);
  void Text(std::string_view key, std::string_view value);
  void PerLayer(std::string_view key, const std::vector<int32_t>& values);
  void PerLayer(std::string_view key, const std::vector<bool>& values);
  void PerLayer(std::string_view key, const std::vector<float>& values);
  // A vector of numbers that are worked out.
  void Computed(const std::string& name, std::vector<float> values);
  // The shape of a tensor of the folder, as config.json names do not always say it.
  const SafeTensor& Need(const std::string& hf_name) const;

  uint64_t n_layers() const { return config.Count("num_hidden_layers"); }
  uint64_t head_dim() const;
  // rope_parameters in newer folders, rope_scaling in older ones.
  Fields rope() const;
  double rope_theta(double fallback) const;

 private:
  template <class T>
  void Add(std::string_view key, const T& value);
  std::set<std::string> given_;
};

// Where one name in config.json stands for models with and without experts.
enum class Experts : uint8_t { kEither, kNone, kSome };

struct Family {
  std::string_view name;                 // GGUF's architecture
  std::span<const std::string_view> hf;  // config.json's architectures
  Experts experts = Experts::kEither;
  // Heads' numbers are turned in pairs of neighbours by GGUF's definition of this architecture, and
  // in pairs of halves by Hugging Face's code.
  bool pairs_neighbours = false;
  bool norms_plus_one = false;
  std::string_view activation = "silu";  // how its name begins in config.json
  std::span<const TensorRule> tensors = {}, more_tensors = {};
  // Of a block that predicts further tokens, in families whose block this program runs.
  std::span<const TensorRule> nextn = {};
  std::span<const KeyRule> keys = {};
  void (*refine)(Draft& draft) = nullptr;
  Fields (*defaults)(const Fields& config) = nullptr;  // for folders that leave usual values out
};

std::span<const Family> Families();
std::span<const Family> HybridFamilies();
// Tensors that most families share; a family's own come first.
std::span<const TensorRule> CommonTensors();

// The family of the folder. Throws gguf::Error where it is none that can be converted.
const Family& FindFamily(const Fields& config);

// The part of config.json that speaks of text: models that see and hear have it apart.
Fields TextConfig(const Fields& config);

// Keys that all families have, then the family's.
void AddKeys(const Family& family, Draft& draft);

}  // namespace convert

#endif  // PRONK_CONVERT_FAMILY_H_
