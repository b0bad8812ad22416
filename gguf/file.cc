// Opening a model: one file, or the parts of a split one, into one index of tensors.
//
// The parts of a split model are GGUF files named NAME-00001-of-0000N.gguf and so on. Each has its
// index in split.no (from 0) and their number in split.count; the first has the model's metadata.
#include "gguf/file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <utility>

#include "gguf/error.h"

namespace gguf {
namespace {

constexpr std::string_view kSplitNo = "split.no";
constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitTensors = "split.tensors.count";
constexpr uint64_t kMaxParts = 99999;  // five digits in the name

// The number of parts of the model; 1 for a whole one. Merged models may say 0.
uint64_t CountParts(const Metadata& metadata) {
  return std::max<uint64_t>(metadata.GetUintOr(kSplitCount, 1, kMaxParts), 1);
}

// "-00002-of-00003.gguf", for part 1 (from 0) of 3.
std::string PartSuffix(uint64_t no, uint64_t count) {
  char text[32];
  std::snprintf(text, sizeof(text), "-%05u-of-%05u.gguf", static_cast<unsigned>(no + 1),
                static_cast<unsigned>(count));
  return text;
}

// The path of part `to`, from the path of part `from`; empty if the name has another form.
std::string PartPath(const std::string& path, uint64_t from, uint64_t to, uint64_t count) {
  const std::string suffix = PartSuffix(from, count);
  if (!path.ends_with(suffix)) return {};
  return path.substr(0, path.size() - suffix.size()) + PartSuffix(to, count);
}

std::string PartName(uint64_t no, uint64_t count) {
  return "part " + std::to_string(no + 1) + " of " + std::to_string(count);
}

// The opened file must be the first part.
void CheckFirstPart(const std::string& path, const Metadata& metadata) {
  const uint64_t count = CountParts(metadata);
  const uint64_t no = metadata.GetUintOr(kSplitNo, 0, count - 1);
  if (no == 0) return;
  const std::string first = PartPath(path, no, 0, count);
  metadata.Fail(kSplitNo, "expected the first part of a split model, found ", PartName(no, count),
                ": open ", first.empty() ? "the first part" : PrintablePath(first));
}

// Checks that a later part matches its name and belongs to the same model.
void CheckLaterPart(const Metadata& metadata, uint64_t no, uint64_t count) {
  const uint64_t found_count = CountParts(metadata);
  const uint64_t found_no = metadata.GetUint(kSplitNo, found_count - 1);
  if (found_no == no && found_count == count) return;
  metadata.Fail(kSplitNo, "expected ", PartName(no, count), " as the name says, found ",
                PartName(found_no, found_count), ": the file was renamed or mixed up");
}

}  // namespace

bool BeginsAsGguf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::array<char, kMagic.size()> magic = {};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) == kMagic;
}

File File::Open(const std::string& path) {
  MappedFile mapping = MappedFile::Open(path);
  File file(path, ReadFilePart(path, mapping), mapping.bytes().size());
  file.mappings_.push_back(std::move(mapping));
  file.OpenOtherParts();
  file.IndexTensors();
  return file;
}

File File::Parse(const std::string& name, std::span<const std::byte> bytes) {
  File file(name, ReadFilePart(name, bytes), bytes.size());
  if (const uint64_t count = CountParts(file.metadata_); count > 1) {
    file.metadata_.Fail(kSplitCount, "expected a whole model, found ", PartName(0, count));
  }
  file.IndexTensors();
  return file;
}

File::File(const std::string& path, FilePart first, uint64_t bytes)
    : path_(path),
      version_(first.version),
      alignment_(first.alignment),
      file_bytes_(bytes),
      metadata_(std::move(first.metadata)) {
  CheckFirstPart(path_, metadata_);
  AddTensors(first.tensors);
}

void File::OpenOtherParts() {
  const uint64_t count = CountParts(metadata_);
  if (count == 1) return;
  for (uint64_t no = 1; no < count; ++no) {
    const std::string path = PartPath(path_, 0, no, count);
    if (path.empty()) {
      metadata_.Fail(kSplitCount, "expected a file named NAME", PartSuffix(0, count), " for ",
                     PartName(0, count), ", found another name: rename it back");
    }
    try {
      mappings_.push_back(MappedFile::Open(path));
    } catch (const Error& error) {
      metadata_.Fail(kSplitCount, "expected ", PartName(no, count), " beside it, found ",
                     error.what());
    }
    const FilePart part = ReadFilePart(path, mappings_.back(), kMaxItems - tensors_.size());
    CheckLaterPart(part.metadata, no, count);
    AddTensors(part.tensors);
    file_bytes_ += mappings_.back().bytes().size();
  }
  n_parts_ = static_cast<uint32_t>(count);
  const uint64_t expected = metadata_.GetUint(kSplitTensors);
  if (tensors_.size() != expected) {
    metadata_.Fail(kSplitTensors, "expected ", expected, " tensors, found ", tensors_.size(),
                   " in the ", count, " parts");
  }
}

void File::AddTensors(const std::vector<TensorView>& tensors) {
  // Cannot wrap: tensors do not overlap, so a part's tensors are at most its bytes.
  for (const TensorView& tensor : tensors) {
    tensor_bytes_ += tensor.bytes;
    elements_ += tensor.elements();
  }
  tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
}

void File::IndexTensors() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  const auto name = [this](size_t i) { return tensors_[i].name; };
  std::ranges::sort(by_name_, {}, name);
  const auto twin = std::ranges::adjacent_find(by_name_, {}, name);
  if (twin == by_name_.end()) return;
  gguf::Fail(path_, "tensor ", Quoted(name(*twin)), ": expected each name once, found it again");
}

bool File::RenameTensors(std::string_view part, std::string_view by) {
  const size_t before = renamed_.size();
  for (TensorView& tensor : tensors_) {
    const size_t at = tensor.name.rfind(part);
    if (at == std::string_view::npos) continue;
    if (!part.ends_with('.') && !tensor.name.ends_with(part)) continue;
    renamed_.emplace_back(tensor.name).replace(at, part.size(), by);
    tensor.name = renamed_.back();
  }
  IndexTensors();
  return renamed_.size() > before;
}

std::vector<FileId> File::ids() const {
  std::vector<FileId> ids;
  for (const MappedFile& mapping : mappings_) ids.push_back(mapping.id());
  return ids;
}

const TensorView* File::FindTensor(std::string_view name) const {
  const auto it =
      std::ranges::lower_bound(by_name_, name, {}, [this](size_t i) { return tensors_[i].name; });
  if (it == by_name_.end() || tensors_[*it].name != name) return nullptr;
  return &tensors_[*it];
}

}  // namespace gguf
