// pronk compare: its figures equal the figures of the single commands.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/small_model.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

class Compare : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 20; ++i) text += "It was a day like any other day " + std::to_string(i);
    text_ = dir_.Write("text", text);
    ASSERT_EQ(Pronk({"quantize", kModel, small_, "Q4_0"}).status, 0);
  }

  // Without speeds, unless they are requested.
  Json Compared(const Args& args, const std::string& prompt = "0", const std::string& gen = "0") {
    const Finished run = Done(
        Pronk(With({"compare", "--json", "-t", "1", "-p", prompt, "-n", gen, "-r", "2"}, args)));
    return run.status == 0 ? Json::parse(run.out) : Json();
  }

  // The cells after the names in the last row: equal for copies of one file.
  static std::string Row(const std::string& table) {
    const std::string rows = table.substr(0, table.find("\n\n"));
    const std::string last = rows.substr(rows.rfind('\n'));
    return last.substr(last.find("| ", 3) + 2);
  }

  const TempDir dir_;
  const std::string small_ = dir_.Path("small.gguf");
  std::string text_;
};

TEST_F(Compare, TextsAsPerplexitySays) {
  const Json found = Compared({kModel, small_, "-f", text_, "-c", "16"});
  const std::vector<std::string> paths = {kModel, small_};
  const std::string base = dir_.Path("base");
  for (size_t i = 0; i < 2; ++i) {
    const Json& model = found["models"][i];
    EXPECT_EQ(model["path"], paths[i]);
    EXPECT_EQ(model["type"], i == 0 ? "F32" : "Q4_0");
    EXPECT_EQ(model["bytes"], std::filesystem::file_size(paths[i]));
    std::vector<std::string> args = {"perplexity", "-m", paths[i], "-f",
                                     text_,        "-c", "16",     "--json"};
    if (i == 0) args.insert(args.end(), {"--save-logits", base});
    const Json alone = Json::parse(Pronk(args).out);
    // Both sum up equal logits in the same order.
    EXPECT_NEAR(model["perplexity"]["value"], alone["perplexity"]["value"],
                1e-12 * alone["perplexity"]["value"].get<double>());
    EXPECT_EQ(found["windows"], alone["windows"]);
  }
  EXPECT_NEAR(found["models"][0]["bits_per_weight"], 32, 1e-9);
  EXPECT_LT(found["models"][1]["bits_per_weight"], 6);
  // A log-probability as a float is off by 2^-24 of at most about 20.
  EXPECT_NEAR(found["models"][0]["divergence"]["kl_divergence"]["value"], 0, 2e-6);
  EXPECT_EQ(found["models"][0]["divergence"]["same_top"]["value"], 1.0);
  const Json kl = Json::parse(Pronk({"perplexity", "-m", small_, "--kl", base, "--json"}).out);
  const double rounding = 16.0 / 65535;  // the file's rounding
  const Json& divergence = found["models"][1]["divergence"];
  EXPECT_NEAR(divergence["kl_divergence"]["value"], kl["kl_divergence"]["value"], 2 * rounding);
  EXPECT_NEAR(divergence["same_top"]["value"], kl["same_top"]["value"],
              1.5 / kl["tokens"].get<double>());
}

TEST_F(Compare, OtherVocabulariesHaveNoDivergence) {
  const std::string other = dir_.Write("bytes.gguf", SmallModel().Bytes());
  const Json found = Compared({kModel, other, "-f", text_, "-c", "16", "--chunks", "2"});
  EXPECT_EQ(found["windows"], 2);
  EXPECT_TRUE(found["models"][0].contains("divergence"));
  EXPECT_FALSE(found["models"][1].contains("divergence"));
  EXPECT_FALSE(found["models"][1].contains("perplexity"));
  EXPECT_GT(found["models"][1]["bits_per_byte"], 0.0);
  EXPECT_FALSE(found["models"][1].contains("speeds"));
  // Models of different vocabularies are not compared, either.
  const std::string larger = dir_.Write("larger.gguf", ReadText(other) + std::string(99, '\0'));
  const Json three = Compared({kModel, other, larger, "-f", text_, "-c", "16", "--chunks", "2"});
  for (const Json& model : three["models"]) {
    EXPECT_FALSE(model.contains("better")) << model;
  }
}

TEST_F(Compare, SpeedsTableAndPlot) {
  const std::string plot = dir_.Path("plot.svg");
  const Json found = Compared({"-m", kModel, small_, "--plot", plot}, "8", "4");
  for (const Json& model : found["models"]) {
    ASSERT_EQ(model["speeds"].size(), 2u);
    EXPECT_EQ(model["speeds"][0]["test"], "pp8");
    EXPECT_EQ(model["speeds"][1]["test"], "tg4");
    EXPECT_EQ(model["speeds"][1]["samples"].size(), 2u);
    EXPECT_GT(model["speeds"][1]["tokens_per_second"], 0.0);
    EXPECT_FALSE(model.contains("perplexity"));
  }
  const std::string svg = ReadText(plot);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_TRUE(Has(svg, ">small</text>"));
  EXPECT_TRUE(Has(svg, ">t/s, tg4</text>"));

  const Finished run =
      Done(Pronk({"compare", kModel, small_, "-t", "1", "-p", "8", "-n", "4", "-r", "1"}));
  EXPECT_EQ(run.out.rfind("| file ", 0), 0u) << run.out;
  EXPECT_TRUE(Has(run.out, "\n| small "));
  EXPECT_TRUE(Has(run.out, "-f TEXT compares what they predict"));
}

// Log2 of the perplexity is the bits of a token; a token of this model has one byte or more.
TEST_F(Compare, BitsPerByte) {
  const Json found = Compared({kModel, small_, "-f", text_, "-c", "16"});
  const engine::Model model = engine::Model::Load(kModel);
  std::vector<tokenizer::TokenId> ids = model.tokenizer->Encode(ReadText(text_));
  double tokens = 0, bytes = 0;
  for (size_t i = 0; i + 16 <= ids.size(); i += 16) {
    for (size_t k = 9; k < 16; ++k) {  // the second half of a window
      ++tokens;
      bytes += static_cast<double>(model.tokenizer->Piece(ids[i + k]).size());
    }
  }
  for (const Json& one : found["models"]) {
    const double expected = std::log2(one["perplexity"]["value"].get<double>()) * tokens / bytes;
    EXPECT_NEAR(one["bits_per_byte"].get<double>(), expected, 1e-9 * expected);
  }
}

// A bar in a name is escaped, and columns are characters, not bytes.
TEST_F(Compare, NamesDoNotBreakTheTable) {
  std::vector<std::string> args = {"compare", "-p", "0", "-n", "0"};
  for (const char* name : {"\u00e9.gguf", "a|b.gguf", "\u4f60.gguf"}) {
    args.push_back(dir_.Path(name));
    std::filesystem::copy_file(small_, args.back());
  }
  const Finished run = Done(Pronk(args));
  EXPECT_EQ(run.out.substr(0, run.out.find("\n\n")),
            "| file | type |    size | bits |\n"
            "| ---- | ---- | ------: | ---: |\n"
            "| \u00e9    | " +
                Row(run.out) +
                "\n"
                "| a\\|b | " +
                Row(run.out) +
                "\n"
                "| \u4f60   | " +
                Row(run.out));
}

TEST_F(Compare, TextFromStdinIsReadOnce) {
  const Finished run = Done(Pronk(
      {"compare", kModel, small_, "-f", "-", "-c", "16", "-t", "1", "-p", "0", "-n", "0", "--json"},
      ReadText(text_)));
  const Json found = Json::parse(run.out);
  EXPECT_EQ(found["models"], Compared({kModel, small_, "-f", text_, "-c", "16"})["models"]);
}

TEST_F(Compare, Faults) {
  ExpectError(Pronk({"compare", small_, "-c", "16"}), 2, "-c, --chunks: only with -f");
  ExpectError(Pronk({"compare", small_, "--chunks", "2"}), 2, "-c, --chunks: only with -f");
  ExpectError(Pronk({"compare"}), 2, "MODEL is required");
  ExpectError(Pronk({"compare", kModel, dir_.Path("none")}), 1, "none");
  ExpectError(Pronk({"compare", small_, "--plot", small_}), 1, "is a file that is read");
  ExpectError(Pronk({"compare", small_, "-f", text_, "--plot", text_}), 1,
              "is a file that is read");
  ExpectError(Pronk({"compare", small_, "-f", text_, "-c", "100000"}), 1,
              "expected at least a window of 100000; -c");
}

}  // namespace
}  // namespace test
