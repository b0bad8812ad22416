// The new file while it is assembled: its keys, its tensors and their sources.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/hf/fields.h"
#include "engine/hf/hf_folder.h"
#include "engine/hf/out_tensor.h"
#include "gguf/writer.h"

namespace engine {

// A name that begins with "." belongs to a layer: "model.layers.{i}." precedes it in the folder,
// "blk.{i}." in the file; {i} is the layer's number, {e} an expert's. A name covers ".weight" and
// ".bias", but a file's name that ends with "." covers neither. A tensor may become several of the
// file's tensors, or none (gguf "").
struct TensorRule {
  std::string_view hf, gguf;
  Order order = Order::kSame;
  Change change = Change::kNone;
  std::string_view with = {};  // applies only in layers that also have this tensor
};

inline constexpr std::string_view kInKeys = "keys";  // a tensor whose number becomes a key

struct OutModel {
  OutModel(const HfFolder& the_folder, Fields the_config, std::string_view the_architecture)
      : folder(the_folder), config(std::move(the_config)), architecture(the_architecture) {}

  const HfFolder& folder;
  Fields config;             // the text model's part of config.json
  std::string architecture;  // GGUF's name
  gguf::Writer keys;
  Shapes shapes;
  std::vector<OutTensor> tensors;
  uint64_t n_tokens = 0;         // rows of the embedding to keep; 0: all
  bool is_ternary = false;       // layers' matrices are rounded to three values, Change::kTernary
  uint64_t n_nextn = 0;          // blocks after the layers that predict further tokens
  double rotary_part = 1;        // the part of a head that rotates, if config.json does not say
  double default_theta = 10000;  // rope's base, where config.json does not say
  bool rounds_yarn_ramp = true;  // RopeConfig::rounds_ramp, if a file does not say
  double log_multiplier = 0;     // RopeConfig::log_multiplier in the file's reader
  uint64_t n_rope_freqs = 0;     // the file's divisors, if more than rotating pairs
  std::span<const TensorRule> first_rules;  // precede the family's rules
  // Factors of rows, by the tensor's name in a rule.
  std::map<std::string_view, RowFactors> factors;
  std::vector<std::string> notes;  // messages for the user

  // Keys of the architecture. The first value of a key counts: a family's own keys are set before
  // the keys of all families. Without(): the key is not written.
  void Without(std::string_view key) { given_.emplace(key); }
  bool Gives(std::string_view key) const { return given_.contains(std::string(key)); }
  void Uint(std::string_view key, uint64_t value) { Add(key, static_cast<uint32_t>(value)); }
  void Float(std::string_view key, double value) { Add(key, static_cast<float>(value)); }
  void Bool(std::string_view key, bool value) { Add(key, value); }
  void Text(std::string_view key, std::string_view value) { Add(key, value); }
  template <class T>
  void PerLayer(std::string_view key, const std::vector<T>& values) {
    if (given_.emplace(key).second) keys.AddArray(Full(key), std::span<const T>(values));
  }
  void PerLayer(std::string_view key, const std::vector<bool>& values);
  // A model that scores texts, with a name for each score.
  void Rank(const std::vector<std::string>& labels);
  // A vector of numbers computed here, or a matrix with rows of this width.
  void Computed(const std::string& name, std::vector<float> values, uint64_t width = 0);

  // A tensor of the folder; a matrix's number of rows, if unknown otherwise. Both throw
  // gguf::Error.
  const SafeTensor& Need(const std::string& hf_name) const;
  uint64_t RowsOf(const std::string& hf_name) const;

  uint64_t n_layers() const { return config.Count("num_hidden_layers"); }
  uint64_t head_dim() const;
  // rope_parameters or the older rope_scaling. If layers with and without windows differ, returns
  // the parameters of layers without windows.
  Fields rope() const;
  double rope_theta() const;

 private:
  std::string Full(std::string_view key) const { return architecture + "." + std::string(key); }
  template <class T>
  void Add(std::string_view key, const T& value) {
    if (given_.emplace(key).second) keys.Add(Full(key), value);
  }
  std::set<std::string> given_;
};

}  // namespace engine
