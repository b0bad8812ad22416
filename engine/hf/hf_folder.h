// A folder as Hugging Face's libraries write it: config.json, safetensors files, tokenizer files.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/hf/fields.h"
#include "engine/hf/safetensors.h"

namespace engine {

class HfFolder {
 public:
  // Opens and checks config.json and all weights: model.safetensors, or the files named in
  // model.safetensors.index.json, each of which must contain the tensors listed for it. Also opens
  // layers after the model in their own folders ("2_Dense.linear"). Throws gguf::Error.
  static HfFolder Open(const std::string& path);

  const std::string& path() const { return path_; }
  const Fields& config() const { return config_; }
  // Tensors of all files, sorted by name; names are unique.
  const std::map<std::string, const SafeTensor*, std::less<>>& tensors() const { return tensors_; }

  // Replaces a tensor of the same name; removes one from the list.
  void Replace(const SafeTensor& tensor);
  void Remove(const std::string& name) { tensors_.erase(name); }

  // The path of a file in the folder; empty if it is missing.
  std::optional<std::string> Find(const std::string& name) const;
  // A text file of at most kMaxText bytes; all texts but the largest have at most kMaxBeside bytes
  // together. Throws gguf::Error.
  std::optional<std::string> Text(const std::string& name) const;
  // A JSON object, empty if the file is missing. Throws gguf::Error.
  Fields Object(const std::string& name) const;

  // All files read so far.
  std::vector<gguf::FileId> ids() const;

 private:
  explicit HfFolder(std::string path) : path_(std::move(path)) {}
  std::vector<std::string> Shards(const Fields& index) const;
  void CheckIndex(const Fields& index) const;
  void AddDense();

  std::string path_;
  Fields config_;
  std::vector<Safetensors> files_;
  std::deque<SafeTensor> replaced_;
  mutable std::vector<gguf::FileId> texts_;         // read by Text()
  mutable size_t n_bytes_ = 0, largest_bytes_ = 0;  // the total size, and the largest
  std::map<std::string, const SafeTensor*, std::less<>> tensors_;
};

}  // namespace engine
