// Reads prism.hadamard.*, and transforms an input or a row as these keys say.
#include "engine/model/hadamard_transforms.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "engine/model/keys.h"
#include "gguf/error.h"
#include "kernels/ops/hadamard.h"

namespace engine {
namespace {

constexpr std::string_view kPrefix = "prism.hadamard.";

}  // namespace

void HadamardTransform::Apply(const float* in, float* out) const {
  const size_t width = signs.size(), head = width / (n_groups * n_in_group);
  for (size_t g = 0; g < n_groups; ++g) {
    for (size_t i = 0; i < n_in_group; ++i) {
      std::copy_n(in + (i * n_groups + g) * head, head, out + (g * n_in_group + i) * head);
    }
  }
  for (size_t i = 0; i < width; ++i) out[i] *= signs[i];
  for (size_t i = 0; i < width; i += block) kernels::Hadamard(out + i, block);
}

void HadamardTransform::Undo(float* row) const {
  for (size_t i = 0; i < signs.size(); i += block) kernels::Hadamard(row + i, block);
  for (size_t i = 0; i < signs.size(); ++i) row[i] *= signs[i];
}

bool HadamardTransforms::AreIn(const gguf::File& file) {
  return std::ranges::any_of(file.metadata().entries(), [](const gguf::Metadata::Entry& entry) {
    return entry.key.starts_with(kPrefix);
  });
}

HadamardTransforms::HadamardTransforms(const gguf::File& file) : path_(file.path()) {
  const gguf::Metadata& meta = file.metadata();
  const auto key = [](std::string_view name) { return std::string(kPrefix) + std::string(name); };
  constexpr std::string_view kKnown[] = {"version",      "transform",    "axis",
                                         "sign_mode",    "block_size",   "sign_widths",
                                         "sign_values",  "weight_names", "inverse_weight_names",
                                         "gdn_v_grouped"};
  for (const gguf::Metadata::Entry& entry : meta.entries()) {
    if (!entry.key.starts_with(kPrefix)) continue;
    const std::string_view name = entry.key.substr(kPrefix.size());
    if (std::ranges::count(kKnown, name) == 0) meta.Fail(entry.key, "this key is not known");
  }
  if (meta.GetUint(key("version")) != 1) meta.Fail(key("version"), "expected 1");
  const auto expect = [&](std::string_view name, std::string_view value) {
    const std::string_view found = meta.GetString(key(name));
    if (found != value) {
      meta.Fail(key(name), "expected ", value, ", found ", gguf::Quoted(found, 60));
    }
  };
  expect("transform", "normalized-sylvester-walsh-hadamard");
  expect("axis", "input-last-dimension");
  block_ = meta.GetUint(key("block_size"));
  if (!std::has_single_bit(block_) || block_ > kMaxLength)
    meta.Fail(key("block_size"), "expected a power of two, found ", block_);
  for (const std::string_view name : meta.GetStrings(key("weight_names"))) inputs_.emplace(name);
  if (meta.Has(key("inverse_weight_names"))) {
    for (const std::string_view name : meta.GetStrings(key("inverse_weight_names")))
      rows_.emplace(name);
  }
  groups_values_ = meta.GetBoolOr(key("gdn_v_grouped"), false);
  if (groups_values_) {
    const std::string arch(meta.GetString("general.architecture"));
    const uint64_t heads = meta.GetUint(arch + ".ssm.time_step_rank");
    n_groups_ = meta.GetUint(arch + ".ssm.group_count");
    if (n_groups_ == 0 || heads % n_groups_ != 0 || heads == 0 || heads > kMaxLength)
      meta.Fail(arch + ".ssm.time_step_rank", "expected a multiple of ssm.group_count");
    n_in_group_ = heads / n_groups_;
  }
  if (meta.GetStringOr(key("sign_mode"), "identity") == "identity") return;
  expect("sign_mode", "explicit");
  const std::vector<int64_t> widths = meta.GetInts(key("sign_widths")),
                             values = meta.GetInts(key("sign_values"));
  size_t at = 0;
  for (const int64_t width : widths) {
    if (width <= 0 || static_cast<uint64_t>(width) > values.size() - at)
      meta.Fail(key("sign_widths"), "expected widths whose sum is ", values.size());
    std::vector<float> signs;
    for (const size_t end = at + static_cast<size_t>(width); at < end; ++at) {
      if (values[at] != 1 && values[at] != -1)
        meta.Fail(key("sign_values"), "expected 1 and -1, found ", values[at]);
      signs.push_back(static_cast<float>(values[at]));
    }
    if (!signs_.emplace(width, std::move(signs)).second)
      meta.Fail(key("sign_widths"), "expected each width once, found ", width, " again");
  }
  if (at != values.size())
    meta.Fail(key("sign_widths"), "expected widths whose sum is ", values.size());
}

const HadamardTransform* HadamardTransforms::Find(std::string_view tensor, size_t width,
                                                  bool grouped) {
  used_.emplace(tensor);
  const auto [at, is_new] = made_.try_emplace({width, grouped});
  HadamardTransform& transform = at->second;
  if (!is_new) return &transform;
  const auto fail = [&](const char* what) {
    gguf::Fail(path_, "tensor ", gguf::Quoted(tensor), ": has rows of ", width, what);
  };
  if (width % block_ != 0) fail(" weights, which prism.hadamard.block_size does not divide");
  if (!signs_.empty() && !signs_.contains(width)) fail(" weights, for which there are no signs");
  transform.block = block_;
  transform.signs = signs_.empty() ? std::vector<float>(width, 1.0f) : signs_[width];
  if (!grouped) return &transform;
  if (width % (n_groups_ * n_in_group_) != 0) fail(" weights, not a whole number of heads");
  transform.n_groups = n_groups_;
  transform.n_in_group = n_in_group_;
  return &transform;
}

const HadamardTransform* HadamardTransforms::OfInput(std::string_view tensor, size_t width) {
  if (!inputs_.contains(tensor)) return nullptr;
  return Find(tensor, width, groups_values_ && tensor.ends_with(".ssm_out.weight"));
}

const HadamardTransform* HadamardTransforms::OfRows(std::string_view tensor, size_t width) {
  return rows_.contains(tensor) ? Find(tensor, width, false) : nullptr;
}

void HadamardTransforms::RequireAllUsed() const {
  for (const auto* names : {&inputs_, &rows_}) {
    for (const std::string& name : *names) {
      if (!used_.contains(name))
        gguf::Fail(path_, "tensor ", gguf::Quoted(name),
                   ": prism.hadamard's keys name it, and its inputs are not rotated here");
    }
  }
}

}  // namespace engine
