// Importance matrices: the sums of a forward pass, both file formats, and invalid files.
#include "convert/importance.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/pass/input_squares.h"
#include "engine/pass/trace.h"
#include "engine/session/session.h"
#include "gguf/writer.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace convert {
namespace {

using engine::ColumnSquares;
using engine::InputSquares;
using engine::SquaresByTensor;
using test::ErrorOf;

gguf::TensorView Tensor(std::string_view name, std::array<uint64_t, 4> dims) {
  return {.name = name, .n_dims = 4, .dims = dims};
}

class ImportanceFiles : public testing::Test {
 protected:
  // Returns the message of reading these bytes.
  std::string Refused(const std::string& bytes) {
    return ErrorOf([&] { Importance::Read(dir_.Write("hostile", bytes)); });
  }
  const test::TempDir dir_;
};

template <class T>
std::string Bytes(T number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

// Makes an entry of the older format.
std::string DatEntry(const std::string& name, int32_t calls, const std::vector<float>& values) {
  std::string bytes = Bytes(static_cast<int32_t>(name.size())) + name + Bytes(calls) +
                      Bytes(static_cast<int32_t>(values.size()));
  for (const float value : values) bytes += Bytes(value);
  return bytes;
}

TEST_F(ImportanceFiles, AreReadAsTheyWereWritten) {
  SquaresByTensor squares;
  squares["blk.0.attn_q.weight"] = {3, {2.0, 4.0, 0.0}, {2}};
  squares["blk.0.ffn_up_exps.weight"] = {2, {8.0, 4.0, 0.0, 0.0}, {4, 0}};  // one expert is unused
  gguf::OutputFile out(dir_.Path("out"));
  WriteImportance(squares, {"story.txt", 5, 512}, out);
  const Importance importance = Importance::Read(dir_.Path("out"));
  EXPECT_EQ(importance.n_tensors(), 2u);
  const float* const q = importance.Columns(Tensor("blk.0.attn_q.weight", {3, 7, 1, 1}), 0);
  EXPECT_EQ(std::vector<float>(q, q + 3), (std::vector<float>{1, 2, 0}));
  const gguf::TensorView experts = Tensor("blk.0.ffn_up_exps.weight", {2, 7, 2, 1});
  const float* const first = importance.Columns(experts, 0);
  const float* const second = importance.Columns(experts, 1);
  EXPECT_EQ(std::vector<float>(first, first + 2), (std::vector<float>{2, 1}));
  EXPECT_EQ(std::vector<float>(second, second + 2), (std::vector<float>{0, 0}));
  EXPECT_EQ(importance.Columns(Tensor("blk.0.attn_k.weight", {3, 7, 1, 1}), 0), nullptr);
  EXPECT_TRUE(test::Has(ErrorOf([&] {
                          importance.Columns(Tensor("blk.0.attn_q.weight", {4, 7, 1, 1}), 0);
                        }),
                        "expected 1 x 4 columns, as the model has, found 3"));
  const gguf::File file = gguf::File::Open(dir_.Path("out"));
  EXPECT_EQ(file.metadata().GetString("general.type"), "imatrix");
  EXPECT_EQ(file.metadata().GetUint("imatrix.chunk_count"), 5u);
  EXPECT_EQ(file.metadata().GetUint("imatrix.chunk_size"), 512u);
  EXPECT_EQ(file.FindTensor("blk.0.ffn_up_exps.weight.in_sum2")->rows(), 2u);
  EXPECT_EQ(file.FindTensor("blk.0.ffn_up_exps.weight.counts")->elements(), 2u);
}

TEST_F(ImportanceFiles, OfTheOlderFormAreRead) {
  const std::string bytes = Bytes(int32_t{2}) + DatEntry("a", 2, {2, 6}) +
                            DatEntry("b", 0, {5, 7, 9}) + Bytes(int32_t{40}) + "what follows";
  const Importance importance = Importance::Read(dir_.Write("dat", bytes));
  const float* const a = importance.Columns(Tensor("a", {2, 7, 1, 1}), 0);
  EXPECT_EQ(std::vector<float>(a, a + 2), (std::vector<float>{1, 3}));
  const float* const b = importance.Columns(Tensor("b", {3, 7, 1, 1}), 0);
  EXPECT_EQ(std::vector<float>(b, b + 3), (std::vector<float>{5, 7, 9}));
}

TEST_F(ImportanceFiles, ThatAreNoneAreRefused) {
  EXPECT_TRUE(test::Has(Refused("what?"), "expected an importance matrix"));
  EXPECT_TRUE(test::Has(Refused(""), "hostile"));
  EXPECT_TRUE(test::Has(Refused("xy"), "hostile"));
  const std::string good = Bytes(int32_t{1}) + DatEntry("name", 1, {1, 2, 3});
  for (size_t n = 4; n < good.size(); ++n) {
    EXPECT_NE(Refused(good.substr(0, n)), "") << n;
  }
  const auto entry = [](const std::string& bytes) { return Bytes(int32_t{1}) + bytes; };
  constexpr int32_t kHuge = std::numeric_limits<int32_t>::max();
  EXPECT_NE(Refused(Bytes(kHuge) + DatEntry("a", 1, {1})), "");
  EXPECT_NE(Refused(Bytes(int32_t{-1}) + DatEntry("a", 1, {1})), "");
  EXPECT_NE(Refused(entry(Bytes(kHuge) + "a")), "");
  EXPECT_NE(Refused(entry(Bytes(int32_t{-1}) + "a")), "");
  for (const int32_t n : {kHuge, -1, 0}) {
    EXPECT_TRUE(
        test::Has(Refused(entry(Bytes(int32_t{1}) + "a" + Bytes(int32_t{1}) + Bytes(n) + "1234")),
                  "columns"));
  }
  for (const float wrong : {-1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_TRUE(test::Has(Refused(entry(DatEntry("a\n", 1, {1, wrong}))),
                          "\"a\\n\": expected mean squares"));
  }
}

TEST_F(ImportanceFiles, OfTheNewFormThatAreWrongAreRefused) {
  const auto refused = [&](const std::vector<uint64_t>& dims, const std::vector<float>& sums,
                           const std::vector<float>& counts) {
    gguf::Writer writer;
    writer.AddTensor("a.in_sum2", gguf::DType::kF32, dims, std::as_bytes(std::span(sums)));
    if (!counts.empty()) {
      writer.AddTensor("a.counts", gguf::DType::kF32, {counts.size()},
                       std::as_bytes(std::span(counts)));
    }
    writer.WriteFile(dir_.Path("hostile"));
    return ErrorOf([&] { Importance::Read(dir_.Path("hostile")); });
  };
  EXPECT_EQ(refused({2, 1}, {1, 2}, {1}), "");
  EXPECT_TRUE(test::Has(refused({2, 1}, {1, 2}, {}), "expected F32 sums with a count"));
  EXPECT_TRUE(test::Has(refused({2, 1}, {1, 2}, {1, 1}), "expected F32 sums"));
  EXPECT_TRUE(test::Has(refused({2, 1}, {1, 2}, {-1}), "expected counts"));
  EXPECT_TRUE(test::Has(refused({2, 1}, {1, 2}, {std::nanf("")}), "expected counts"));
  EXPECT_TRUE(test::Has(refused({2, 1}, {1, -2}, {1}), "expected mean squares"));
  EXPECT_NE(refused({2, 1}, {1, std::nanf("")}, {1}), "");
  EXPECT_NE(refused({2, 1}, {3e38f, 1}, {1e-30f}), "");
  // A model is not an importance matrix.
  EXPECT_TRUE(test::Has(ErrorOf([] { Importance::Read(test::DataPath("tiny/llama.gguf")); }),
                        "found none"));
}

TEST(InputSquares, AddsUpByColumn) {
  InputSquares inputs;
  const gguf::TensorView q = Tensor("blk.0.attn_q.weight", {2, 7, 1, 1});
  const gguf::TensorView output = Tensor("output.weight", {2, 7, 1, 1});
  const std::vector<float> rows = {1, 2, 9, 3, 4, 9};  // [2][2], 3 apart
  inputs.Add(&q, {rows.data(), 3, 2, 2});
  inputs.Add(&q, {rows.data(), 3, 1, 2});
  inputs.Add(&output, {rows.data(), 3, 1, 2});
  inputs.Add(nullptr, {rows.data(), 3, 1, 2});
  ASSERT_EQ(inputs.squares().size(), 1u);
  const ColumnSquares& squares = inputs.squares().begin()->second;
  EXPECT_EQ(squares.sums, (std::vector<double>{1 + 9 + 1, 4 + 16 + 4}));
  EXPECT_EQ(squares.counts, (std::vector<uint64_t>{3}));
}

// Each token's input is counted once for each of its experts, and once for the router.
TEST(InputSquares, TellsExpertsApart) {
  const engine::Model model = engine::Model::Load(test::DataPath("families/qwen3moe.gguf"));
  const size_t n_tokens = 24, n_used = model.config.n_experts_used;
  std::vector<tokenizer::TokenId> ids;
  for (size_t i = 0; i < n_tokens; ++i) {
    ids.push_back(static_cast<tokenizer::TokenId>(i * 7 % model.config.vocab_size));
  }
  InputSquares inputs;
  engine::Trace trace = {.inputs = &inputs};
  engine::Session session(model, {.context = 64, .n_threads = 2});
  session.TraceTo(&trace);
  session.Prefill(ids);
  const auto squares = [&](const std::string& role) -> const ColumnSquares& {
    return inputs.squares().at("blk.1." + role + ".weight");
  };
  const ColumnSquares &router = squares("ffn_gate_inp"), &up = squares("ffn_up_exps");
  EXPECT_EQ(router.counts, std::vector<uint64_t>{n_tokens});
  EXPECT_EQ(up.sums, squares("ffn_gate_exps").sums);
  EXPECT_EQ(up.counts, squares("ffn_down_exps").counts);
  ASSERT_EQ(up.counts.size(), model.config.layers[1].n_experts);
  EXPECT_EQ(std::accumulate(up.counts.begin(), up.counts.end(), uint64_t{0}), n_tokens * n_used);
  for (size_t i = 0; i < up.cols; ++i) {
    double sum = 0;
    for (size_t e = 0; e < up.counts.size(); ++e) sum += up.sums[e * up.cols + i];
    EXPECT_NEAR(sum, static_cast<double>(n_used) * router.sums[i], 1e-12 * sum);
  }
  const ColumnSquares& down = squares("ffn_down_exps");
  for (size_t e = 0; e < down.counts.size(); ++e) {
    EXPECT_EQ(down.sums[e * down.cols] > 0, down.counts[e] > 0) << e;
  }
}

}  // namespace
}  // namespace convert
