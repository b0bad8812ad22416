// Finds a folder's files, shards included, and maps their tensors.
#include "engine/hf/hf_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "gguf/error.h"
#include "gguf/mapped_file.h"

namespace engine {
namespace {

constexpr size_t kMaxText = size_t{128} << 20;  // the largest tokenizer.json known has 33 MB
// The most bytes of all texts except the largest; they stay in memory. Published folders have about
// 15 MB.
constexpr size_t kMaxBeside = size_t{32} << 20;
constexpr size_t kMaxShards = 4096;
constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kWeightMap = "weight_map";

namespace fs = std::filesystem;

std::string Join(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

bool IsIn(const fs::path& folder, const fs::path& path) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

// An untrusted folder could contain links to private files. In the hub's cache all files are links,
// to models--OWNER--NAME/blobs from models--OWNER--NAME/snapshots/REVISION.
void CheckLinks(const std::string& folder, const std::string& path) {
  std::error_code error;
  const fs::path home = fs::canonical(folder), target = fs::weakly_canonical(path, error);
  if (error) gguf::Fail(path, error.message());
  if (IsIn(home, target) || IsIn(home.parent_path().parent_path() / "blobs", target)) return;
  gguf::Fail(path, "is a link out of the folder, to ", gguf::PrintablePath(target.string()),
             ": if that is meant, put a copy in its place");
}

}  // namespace

HfFolder HfFolder::Open(const std::string& path) {
  HfFolder folder(path);
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    gguf::Fail(path, "expected a folder with config.json and safetensors files",
               (fs::exists(path, ignored) ? ", found a file" : ": no such folder"));
  }
  folder.config_ = folder.Object("config.json");
  if (!folder.config_.is_there()) {
    gguf::Fail(Join(path, "config.json"),
               "no such file; expected a folder as Hugging Face's libraries write it");
  }
  const Fields index = folder.Object(kIndex);
  for (const std::string& shard : folder.Shards(index)) {
    CheckLinks(path, Join(path, shard));
    folder.files_.push_back(Safetensors::Open(Join(path, shard)));
  }
  for (const Safetensors& file : folder.files_) {
    for (const SafeTensor& tensor : file.tensors()) {
      const auto [at, is_new] = folder.tensors_.emplace(tensor.name, &tensor);
      if (!is_new)
        tensor.Fail("expected each name once, found it in ", gguf::PrintablePath(at->second->file),
                    ", too");
    }
  }
  folder.CheckIndex(index);
  folder.AddDense();
  return folder;
}

void HfFolder::AddDense() {
  for (const std::string name : {"1_Dense", "2_Dense", "3_Dense"}) {
    if (!Find(name)) continue;
    const Fields config = Object(name + "/config.json");
    if (!config.TextOr("activation_function", "Identity").ends_with("Identity"))
      config.Fail("activation_function", "expected Identity: its vectors would be wrong");
    CheckLinks(path_, Join(path_, name + "/" + kWhole));
    files_.push_back(Safetensors::Open(Join(path_, name + "/" + kWhole)));
    for (SafeTensor tensor : files_.back().tensors()) {
      tensor.name.insert(0, name + ".");
      Replace(tensor);
    }
  }
}

// The names of the weight files.
std::vector<std::string> HfFolder::Shards(const Fields& index) const {
  if (!index.is_there()) {
    if (Find(kWhole)) return {kWhole};
    const bool pickled = Find("pytorch_model.bin") || Find("pytorch_model.bin.index.json");
    gguf::Fail(path_, "expected ", kWhole, " or ", kIndex,
               pickled
                   ? ", found weights as PyTorch pickles them: save the model as safetensors first"
                   : "");
  }
  std::set<std::string> names;
  const Fields map = index.Object(kWeightMap);
  for (const auto& [tensor, file] : map.json()) {
    if (!file.IsString()) index.Fail(kWeightMap, "expected names of files");
    const std::string name = file.String();
    // The index is untrusted: it must not point outside the folder.
    if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos) {
      index.Fail(kWeightMap, "expected names of files in this folder, found ", gguf::Quoted(name));
    }
    names.insert(name);
  }
  if (names.empty() || names.size() > kMaxShards) {
    index.Fail(kWeightMap, "expected 1 to ", kMaxShards, " files, found ", names.size());
  }
  return {names.begin(), names.end()};
}

void HfFolder::CheckIndex(const Fields& index) const {
  if (!index.is_there()) return;
  const Fields map = index.Object(kWeightMap);
  for (const auto& [name, file] : map.json()) {
    const auto found = tensors_.find(name);
    const std::string path = Join(path_, file.String());
    if (found == tensors_.end() || found->second->file != path) {
      index.Fail(kWeightMap, "expected tensor ", gguf::Quoted(name), " in ",
                 gguf::PrintablePath(path), ", which does not have it");
    }
  }
}

void HfFolder::Replace(const SafeTensor& tensor) {
  tensors_[tensor.name] = &replaced_.emplace_back(tensor);
}

std::optional<std::string> HfFolder::Find(const std::string& name) const {
  std::string path = Join(path_, name);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  CheckLinks(path_, path);
  return path;
}

std::optional<std::string> HfFolder::Text(const std::string& name) const {
  const std::optional<std::string> path = Find(name);
  if (!path) return std::nullopt;
  const gguf::MappedFile file = gguf::MappedFile::Open(
      *path, name.ends_with(".model") ? "a tokenizer's model" : "a text file", kMaxText);
  texts_.push_back(file.id());
  n_bytes_ += file.bytes().size();
  largest_bytes_ = std::max(largest_bytes_, file.bytes().size());
  if (n_bytes_ - largest_bytes_ > kMaxBeside) {
    gguf::Fail(*path, "expected at most ", kMaxBeside, " bytes in all texts of the folder but one");
  }
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

Fields HfFolder::Object(const std::string& name) const {
  std::optional<std::string> text = Text(name);
  if (!text) return {};
  return ParseObject(Join(path_, name), std::move(*text));
}

std::vector<gguf::FileId> HfFolder::ids() const {
  std::vector<gguf::FileId> ids = texts_;
  for (const Safetensors& file : files_) {
    if (file.id()) ids.push_back(*file.id());
  }
  return ids;
}

}  // namespace engine
