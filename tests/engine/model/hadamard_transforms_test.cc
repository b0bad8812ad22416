// Hadamard transforms of matrices, as in PrismML's files: a model whose matrices and table are
// transformed, and whose keys say so, has the original model's logits.
#include "engine/model/hadamard_transforms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/model.h"
#include "gguf/writer.h"
#include "kernels/ops/hadamard.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/logits.h"
#include "tests/support/temp_dir.h"

namespace engine {
namespace {

constexpr size_t kBlock = 8;

// Any signs.
int8_t Sign(size_t i) { return (i * i + i / 3) % 5 < 2 ? 1 : -1; }

// A row with the same product with a rotated input, in double, by the definition.
void RotateRow(float* row, size_t width, size_t groups, size_t in_group) {
  std::vector<float> signed_row(width);
  const size_t head = width / (groups * in_group);
  for (size_t i = 0; i < width; ++i) {
    const size_t h = i / head;  // the head's place among all: its group's first
    const size_t from = (h % in_group * groups + h / in_group) * head + i % head;
    signed_row[i] = row[from] * static_cast<float>(Sign(i));
  }
  for (size_t i = 0; i < width; ++i) {
    row[i] = static_cast<float>(
        kernels::HadamardReference(signed_row.data() + i / kBlock * kBlock, kBlock, i % kBlock));
  }
}

// The small model with rotated matrices, written to `path`; other_key: one more.
void WriteRotated(const std::string& name, const std::string& path,
                  const std::string& other_key = "") {
  const gguf::File file = gguf::File::Open(test::DataPath(name + ".gguf"));
  const std::string ssm = std::string(file.metadata().GetString("general.architecture")) + ".ssm.";
  size_t groups = 1, in_group = 1;
  if (file.metadata().Has(ssm + "group_count")) {
    groups = file.metadata().GetUint(ssm + "group_count");
    in_group = file.metadata().GetUint(ssm + "time_step_rank") / groups;
    ASSERT_GT(groups, 1u);
    ASSERT_GT(in_group, 1u);
  }
  gguf::Writer writer;
  for (const auto& entry : file.metadata().entries()) writer.Add(entry);
  std::vector<std::string> names;
  std::vector<int32_t> widths;
  std::vector<std::vector<float>> kept;
  kept.reserve(file.tensors().size());
  for (const gguf::TensorView& tensor : file.tensors()) {
    std::vector<float>& values = kept.emplace_back(tensor.elements());
    ASSERT_EQ(tensor.dtype, gguf::DType::kF32);
    std::memcpy(values.data(), tensor.data, tensor.bytes);
    const bool is_matrix = tensor.n_dims == 2 && tensor.cols() % kBlock == 0 &&
                           !tensor.name.ends_with("conv1d.weight") &&
                           !tensor.name.ends_with("attn_k.weight");  // one matrix is not
    if (is_matrix) {
      const bool grouped = tensor.name.ends_with("ssm_out.weight");
      for (size_t r = 0; r < tensor.rows(); ++r) {
        RotateRow(&values[r * tensor.cols()], tensor.cols(), grouped ? groups : 1,
                  grouped ? in_group : 1);
      }
      names.emplace_back(tensor.name);
      if (std::ranges::count(widths, static_cast<int32_t>(tensor.cols())) == 0)
        widths.push_back(static_cast<int32_t>(tensor.cols()));
    }
    writer.AddTensor(tensor.name, tensor.dtype,
                     {tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims},
                     std::as_bytes(std::span(values)));
  }
  std::vector<int8_t> signs;
  for (const int32_t width : widths) {
    for (size_t i = 0; i < static_cast<size_t>(width); ++i) signs.push_back(Sign(i));
  }
  const std::string prefix = "prism.hadamard.";
  writer.Add(prefix + "version", uint32_t{1});
  writer.Add(prefix + "transform", "normalized-sylvester-walsh-hadamard");
  writer.Add(prefix + "axis", "input-last-dimension");
  writer.Add(prefix + "sign_mode", "explicit");
  writer.Add(prefix + "block_size", uint32_t{kBlock});
  writer.AddArray(prefix + "sign_widths", std::span<const int32_t>(widths));
  writer.AddArray(prefix + "sign_values", std::span<const int8_t>(signs));
  std::vector<std::string_view> all(names.begin(), names.end());
  writer.AddStrings(prefix + "weight_names", all);
  const std::string_view table = "token_embd.weight";
  writer.AddStrings(prefix + "inverse_weight_names", {&table, 1});
  if (groups > 1) writer.Add(prefix + "gdn_v_grouped", true);
  if (!other_key.empty()) writer.Add(prefix + other_key, uint32_t{1});
  writer.WriteFile(path, {});
}

TEST(HadamardTransforms, GiveTheLogitsOfThePlainModel) {
  const std::vector<tokenizer::TokenId> ids = {3, 9, 27, 81, 5, 44, 101, 7};
  const SessionOptions options = {.context = 64, .n_threads = 1, .kv_type = kernels::KvType::kF32};
  for (const char* const name : {"tiny/qwen2", "hybrids/qwen35"}) {
    SCOPED_TRACE(name);
    const test::TempDir dir;
    WriteRotated(name, dir.Path("rotated.gguf"));
    const Model plain = Model::Load(test::DataPath(std::string(name) + ".gguf")),
                rotated = Model::Load(dir.Path("rotated.gguf"));
    EXPECT_TRUE(rotated.config.uses_hadamard);
    EXPECT_LT(
        test::Nmse(test::AllLogits(rotated, ids, options), test::AllLogits(plain, ids, options)),
        1e-9);
  }
}

TEST(HadamardTransforms, UnknownKeysAreRefused) {
  const test::TempDir dir;
  WriteRotated("tiny/qwen2", dir.Path("m.gguf"), "sign_seed");
  EXPECT_TRUE(test::Has(test::ErrorOf([&] { Model::Load(dir.Path("m.gguf")); }),
                        "key \"prism.hadamard.sign_seed\": this key is not known"));
}

}  // namespace
}  // namespace engine
