// pronk imatrix: its results, and their use by quantize.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "kernels/matmul/reference.h"
#include "tests/cli/pronk.h"
#include "tests/support/data.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

using gguf::DType;

std::vector<float> Floats(const gguf::TensorView& tensor) {
  std::vector<float> floats(tensor.elements());
  kernels::DequantizeRow(tensor.dtype, tensor.data, floats.size(), floats.data());
  return floats;
}

std::vector<float> Numbers(const gguf::File& file, const std::string& name) {
  const gguf::TensorView* const tensor = file.FindTensor(name);
  EXPECT_NE(tensor, nullptr) << name;
  return tensor == nullptr ? std::vector<float>() : Floats(*tensor);
}

// The squared error of two matrices, each column's times its importance.
double WeightedError(const gguf::TensorView& a, const gguf::TensorView& b,
                     const std::vector<float>& importance) {
  const std::vector<float> x = Floats(a), y = Floats(b);
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += importance[i % importance.size()] * std::pow(double{x[i]} - y[i], 2);
  }
  return error;
}

TEST(Imatrix, HasTheInputsOfEveryMatrixOfTheLayers) {
  const TempDir dir;
  const std::string text = dir.Write("text", ReadText(DataPath("default.greedy.txt")));
  const std::string out = dir.Path("out");
  const Finished run = Done(Pronk({"imatrix", "-m", kDefault, "-f", text, "-c", "64", out}));
  ExpectWritten(run, out);
  EXPECT_TRUE(Has(run.err, ": 42 matrices, "));
  const gguf::File file = gguf::File::Open(out);
  EXPECT_EQ(file.tensors().size(), 2u * 6 * 7);  // not the embedding, which is the output
  const auto n_tokens = static_cast<float>(64 * file.metadata().GetUint("imatrix.chunk_count"));
  EXPECT_GE(n_tokens, 128);
  EXPECT_EQ(file.metadata().GetUint("imatrix.chunk_size"), 64u);
  const auto sums = [&](const std::string& name) {
    EXPECT_EQ(Numbers(file, name + ".weight.counts"), std::vector<float>{n_tokens}) << name;
    return Numbers(file, name + ".weight.in_sum2");
  };
  EXPECT_EQ(sums("blk.0.attn_q"), sums("blk.0.attn_k"));  // both have one input
  EXPECT_EQ(sums("blk.0.attn_q"), sums("blk.0.attn_v"));
  EXPECT_EQ(sums("blk.4.ffn_gate"), sums("blk.4.ffn_up"));
  EXPECT_NE(sums("blk.4.ffn_gate"), sums("blk.3.ffn_gate"));
  EXPECT_EQ(sums("blk.4.ffn_down").size(), 768u);
  // The first is a norm's output: rows of a mean square of 1, times the norm's weights.
  const gguf::File model = gguf::File::Open(kDefault);
  const std::vector<float> norm = Numbers(model, "blk.0.attn_norm.weight");
  const std::vector<float> q = sums("blk.0.attn_q");
  double mean = 0;
  for (size_t i = 0; i < norm.size(); ++i) {
    mean +=
        double{q[i]} / (double{norm[i]} * norm[i]) / n_tokens / static_cast<double>(norm.size());
  }
  EXPECT_NEAR(mean, 1, 1e-3);  // the norm's epsilon makes rows of about 1e-2 smaller

  // Windows may come in several batches.
  ASSERT_EQ(
      Pronk({"imatrix", "-m", kDefault, "-f", text, "-c", "64", "-b", "24", dir.Path("b")}).status,
      0);
  const std::vector<float> in_batches =
      Numbers(gguf::File::Open(dir.Path("b")), "blk.0.attn_q.weight.in_sum2");
  for (size_t i = 0; i < q.size(); ++i) EXPECT_NEAR(in_batches[i], q[i], 1e-5 * q[i]);
}

TEST(Imatrix, MakesWhatCountsMoreExact) {
  const TempDir dir;
  const std::string text = dir.Write("text", ReadText(DataPath("default.greedy.txt")));
  const std::string importance = dir.Path("importance");
  ASSERT_EQ(Pronk({"imatrix", "-m", kDefault, "-f", text, "-c", "64", importance}).status, 0);
  const std::string plain = dir.Path("plain"), weighted = dir.Path("weighted");
  ASSERT_EQ(Pronk({"quantize", kDefault, plain, "Q3_K_M"}).status, 0);
  ASSERT_EQ(Pronk({"quantize", kDefault, weighted, "Q3_K_M", "--imatrix", importance}).status, 0);
  const gguf::File before = gguf::File::Open(kDefault), found = gguf::File::Open(importance);
  const gguf::File a = gguf::File::Open(plain), b = gguf::File::Open(weighted);
  EXPECT_EQ(b.metadata().GetString("quantize.imatrix.file"), "importance");
  EXPECT_EQ(b.metadata().GetUint("quantize.imatrix.entries_count"), 42u);
  for (const char* name : {"blk.0.attn_q.weight", "blk.2.ffn_down.weight", "blk.4.ffn_up.weight"}) {
    const std::vector<float> columns = Numbers(found, std::string(name) + ".in_sum2");
    const gguf::TensorView& exact = *before.FindTensor(name);
    EXPECT_LT(WeightedError(exact, *b.FindTensor(name), columns),
              WeightedError(exact, *a.FindTensor(name), columns))
        << name;
  }
  // With few bits, a note says that it is missing.
  const Finished note = Pronk({"quantize", kDefault, dir.Path("out"), "IQ2_XXS", "--dry-run"});
  EXPECT_TRUE(Has(note.err, "an importance matrix helps much: pronk imatrix"));
  const Finished none = Pronk(
      {"quantize", kDefault, dir.Path("out"), "IQ2_XXS", "--imatrix", importance, "--dry-run"});
  EXPECT_FALSE(Has(none.err, "helps much"));
  // If no matrix changes, the model's own matrix is used.
  const Finished same = Done(
      Pronk({"quantize", kDefault, dir.Path("out"), "Q8_0", "--imatrix", importance, "--dry-run"}));
  ExpectError(
      Pronk({"quantize", kModel, dir.Path("out"), "Q4_0", "--pure", "--imatrix", importance}), 1,
      "expected 1 x 64 columns, as the model has, found 256");
}

TEST(Imatrix, RefusesWhatItCannotUse) {
  const TempDir dir;
  const std::string text = dir.Write("text", ReadText(DataPath("default.greedy.txt")));
  ExpectError(Pronk({"imatrix", "-m", kDefault, "-f", dir.Write("short", "Once"), dir.Path("out")}),
              1, "has 2 tokens: expected at least a window of 512; -c sets its size, 4 or more");
  ExpectError(Pronk({"imatrix", "-m", kDefault, "-f", dir.Path("none"), dir.Path("out")}), 1,
              "none");
  const std::string copy = dir.Write("copy", ReadText(kDefault));
  ExpectError(Pronk({"imatrix", "-m", copy, "-f", text, "-c", "64", copy}), 1,
              "is a file that is read");
  ExpectError(Pronk({"imatrix", "-m", kDefault, "-f", text, "-c", "64", text}), 1,
              "is a file that is read");
  // A bad name is reported before the model is read.
  const Finished early =
      Pronk({"imatrix", "-m", kDefault, "-f", text, "-c", "64", "-v", dir.Path("none/out")});
  ExpectError(early, 1, "none/out: there is no folder");
  const std::string importance = dir.Path("importance");
  ASSERT_EQ(Pronk({"imatrix", "-m", kDefault, "-f", text, "-c", "64", importance}).status, 0);
  const std::string f16 = dir.Path("f16");
  ASSERT_EQ(Pronk({"quantize", kDefault, f16, "F16"}).status, 0);
  ExpectError(Pronk({"quantize", f16, importance, "Q4_0", "--imatrix", importance}), 1,
              importance + ": is a file that is read");
  ExpectError(Pronk({"quantize", f16, dir.Path("out"), "Q4_0", "--imatrix", f16}), 1,
              "expected an importance matrix");
  ExpectError(Pronk({"quantize", f16, dir.Path("out"), "Q4_0", "--imatrix",
                     dir.Write("hostile", std::string("\1\0\0\0\377\377\377\377name", 12))}),
              1, "hostile: byte ");
}

}  // namespace
}  // namespace test
