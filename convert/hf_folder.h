// A folder as Hugging Face's libraries write it: config.json, the weights in one or more
// safetensors files, and what belongs to the tokenizer.
#ifndef PRONK_CONVERT_HF_FOLDER_H_
#define PRONK_CONVERT_HF_FOLDER_H_

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/json.h"
#include "convert/safetensors.h"

namespace convert {

class HfFolder {
 public:
  // Opens and checks config.json and all weights: model.safetensors, or the files that
  // model.safetensors.index.json names, in which each tensor must be where it says. Throws
  // gguf::Error.
  static HfFolder Open(const std::string& path);

  const std::string& path() const { return path_; }
  const Fields& config() const { return config_; }
  // Of all files, by name; each name once.
  const std::map<std::string, const SafeTensor*, std::less<>>& tensors() const { return tensors_; }

  // Replaces a tensor of the same name; removes one from the list.
  void Replace(const SafeTensor& tensor);
  void Remove(const std::string& name) { tensors_.erase(name); }

  // The path of a file of the folder; nothing where it is missing.
  std::optional<std::string> Find(const std::string& name) const;
  // A text of at most kMaxText bytes. Throws gguf::Error.
  std::optional<std::string> Text(const std::string& name) const;
  // A JSON object; one that has nothing where the file is missing. Throws gguf::Error.
  Fields Object(const std::string& name) const;

  // Of all files read until now.
  std::vector<gguf::FileId> ids() const;

 private:
  explicit HfFolder(std::string path) : path_(std::move(path)) {}
  std::vector<std::string> Shards(const Fields& index) const;
  void CheckIndex(const Fields& index) const;

  std::string path_;
  Fields config_;
  std::vector<Safetensors> files_;
  std::deque<SafeTensor> replaced_;
  mutable std::vector<gguf::FileId> texts_;  // read by Text()
  std::map<std::string, const SafeTensor*, std::less<>> tensors_;
};

}  // namespace convert

#endif  // PRONK_CONVERT_HF_FOLDER_H_
