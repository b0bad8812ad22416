// A file's own sampling settings (general.sampling.*): defaults that flags and /set win over.
#include <gtest/gtest.h>

#include <string>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/cli/pronk.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

class FileSamplingTest : public testing::Test {
 protected:
  void SetUp() override {
    const gguf::File file = gguf::File::Open(kModel);
    gguf::Writer writer;
    for (const auto& entry : file.metadata().entries()) writer.Add(entry);
    writer.Add("general.sampling.temp", 0.0f);
    writer.Add("general.sampling.top_k", int32_t{7});
    writer.Add("general.sampling.adaptive_target", 0.5f);
    for (const gguf::TensorView& t : file.tensors()) writer.AddTensor(t);
    writer.WriteFile(path_);
  }

  Finished Run(const Args& more, const std::string& model = "") {
    return Pronk(With(
        {"run", "-m", model.empty() ? path_ : model, "-p", "Hello", "-n", "20", "--ignore-eos"},
        more));
  }

  TempDir dir_;
  std::string path_ = dir_.Path("warm.gguf");
};

TEST_F(FileSamplingTest, IsTheDefaultAndFlagsWin) {
  const Finished plain = Run({"-s", "1"});
  EXPECT_EQ(plain.out, Run({"-s", "2"}).out) << "temperature 0 has one text";
  EXPECT_EQ(plain.out, Run({"--temp", "0"}, kModel).out);
  EXPECT_NE(plain.out, Run({"--temp", "0.8", "-s", "1"}).out);
  EXPECT_EQ(Run({"--temp", "0.8", "--top-k", "40", "-s", "1"}).out, Run({"-s", "1"}, kModel).out);
  EXPECT_EQ(plain.err, "note: general.sampling.adaptive_target: there is no such sampler here\n");
}

TEST_F(FileSamplingTest, VerboseAndSetSayWhereAValueIsFrom) {
  const Finished run = Run({"-v", "--min-p", "0.5", "--samplers", "top_k;temperature"});
  for (const char* says : {"temperature 0 (file), top_k 7 (file), top_p 0.95, min_p 0.5 (flag), ",
                           ", typical_p 1, ", "order of the steps (flag); the rest by default"}) {
    EXPECT_TRUE(Has(run.err, says));
  }
  const Finished chat = Pronk({"chat", "-m", path_, "--min-p", "0.5"}, "/set top_p 0.5\n");
  EXPECT_TRUE(
      Has(chat.err, "(temperature 0 (file), top_k 7 (file), top_p 0.5 (/set), min_p 0.5 (flag), "));
}

TEST_F(FileSamplingTest, WrongValuesAreRefusedOnlyWhereTheyAreUsed) {
  const Args hot = {"--override-kv", "general.sampling.temp=float:-1"};
  const Finished run = Run(hot);
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(
      Has(run.err, "\"general.sampling.temp\": expected a number from 0 to 1000000, found -1"));
  const std::string text = dir_.Write("text", "Hello hello hello hello hello hello.");
  const Args args = {"perplexity", "-m", path_, "-f", text, "-c", "8"};
  const Finished plain = Done(Pronk(args));
  EXPECT_EQ(Pronk(With(args, hot)).out, plain.out);
}

TEST_F(FileSamplingTest, QuantizeKeepsIt) {
  const std::string out = dir_.Path("out.gguf");
  ASSERT_EQ(Pronk({"quantize", path_, out, "Q8_0"}).status, 0);
  const gguf::File file = gguf::File::Open(out);
  EXPECT_EQ(file.metadata().GetFloat("general.sampling.temp"), 0);
  EXPECT_EQ(file.metadata().GetInt("general.sampling.top_k"), 7);
}

}  // namespace
}  // namespace test
