// pronk embed and pronk rerank: their output, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

const std::string kEmbed = DataPath("vectors/qwen3-embed.gguf");
const std::string kRerank = DataPath("vectors/bert-rank.gguf");

std::vector<Json> Lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST(Embed, WritesALineForEachText) {
  const TempDir dir;
  const auto run = [](const Args& more, const std::string& input = "") {
    return Pronk(With({"embed", kModel, "--pooling", "mean"}, more), input);
  };
  const Finished words = Done(run({"a", "b c"}));
  EXPECT_EQ(words.err, "");
  const std::vector<Json> lines = Lines(words.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0]["embedding"], lines[1]["embedding"]);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(lines[i]["index"], i);
    EXPECT_GT(lines[i]["tokens"], 1);
    double squares = 0;
    for (const double x : lines[i]["embedding"]) squares += x * x;
    EXPECT_NEAR(squares, 1, 1e-6);
  }
  EXPECT_EQ(run({"-f", dir.Write("texts", "a\r\n\"b c\"\n")}).out, words.out);
  EXPECT_EQ(run({}, "a\nb c\n").out, words.out);
  EXPECT_EQ(run({"\"a\""}).out, run({}, "\"\\\"a\\\"\"\n").out);  // a word keeps its quotes
  EXPECT_NE(run({"\"a\""}).out, run({"a"}).out);
  const std::string raw = run({"--raw", "a", "b c"}).out;
  const auto first = lines[0]["embedding"].get<std::vector<float>>();
  ASSERT_EQ(raw.size(), 2 * first.size() * sizeof(float));
  EXPECT_EQ(
      raw.compare(0, raw.size() / 2, reinterpret_cast<const char*>(first.data()), raw.size() / 2),
      0);
  ExpectError(run({"-c", "8", "a", std::string(80, '3')}), 1, "text 2: the text needs");
}

TEST(Embed, WritesTheResultOfIds) {
  const TempDir dir;
  for (const std::string command : {"embed", "rerank"}) {
    const std::string& model = command == "embed" ? kEmbed : kRerank;
    const std::string out = dir.Path(command);
    ASSERT_EQ(Pronk({command, "-m", model, "--ids", "1 2", out}).status, 0);
    const auto expected = ReadFloats(
        DataPath(command == "embed" ? "vectors/qwen3-embed.f32" : "vectors/bert-rank.f32"));
    const auto found = ReadFloats(out);
    ASSERT_EQ(found.size(), expected.size() / 3);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
    EXPECT_EQ(Pronk({command, model, "--ids", "[1, 2]", out}).status, 0);
    ExpectError(Pronk({command, model, "--ids", "1"}), 2, "expected the file to write");
    ExpectError(Pronk({command, model, "--ids", "1", "-f", "x", out}), 2, "give one of them");
    ExpectError(Pronk({command, model, "--ids", "99", out}), 1, "not in the vocabulary");
    ExpectError(Pronk({command, model, "--ids", "1", model}), 1, "is a file that is read");
    std::string broken = ReadText(model);
    std::fill(broken.end() - 64, broken.end(), '\xFF');  // weights: NaN
    ExpectError(Pronk({command, dir.Write("nan", broken), "--ids", "1 2", out}), 1,
                "not numbers: its weights are broken");
  }
}

TEST(Embed, RefusesModelsThatMakeNoVectors) {
  ExpectError(Pronk({"embed", kModel, "a"}), 1, "names no pooling");
  EXPECT_EQ(Pronk({"embed", kModel, "--pooling", "last", "a"}).status, 0);
  ExpectError(Pronk({"embed", kRerank, "a"}), 1, "is a reranker");
  ExpectError(Pronk({"rerank", kEmbed, "-p", "ef", "a"}), 1, "is no reranker");
  ExpectError(Pronk({"rerank", kRerank, "a"}), 2, "expected the query");
  ExpectError(Pronk({"run", kRerank, "-p", "a"}), 1, "writes none");
  ExpectError(Pronk({"embed", kEmbed, "-f", "x", "a"}), 2, "give one of them");
}

TEST(Rerank, SortsTexts) {
  const TempDir dir;
  const std::string file = dir.Write("texts", "ab\ncd, e.\n\"a\\nb\"\n");
  const Finished run = Done(Pronk({"rerank", "-m", kRerank, "-p", "ef", "-f", file}));
  const std::vector<Json> lines =
      Lines(Pronk({"rerank", kRerank, "-p", "ef", "--json", "-f", file}).out);
  ASSERT_EQ(lines.size(), 3u);
  std::istringstream in(run.out);
  double last = HUGE_VAL;
  for (const Json& line : lines) {
    const double score = line["score"];
    EXPECT_LT(score, last);
    last = score;
    double shown = 0;
    std::string text;
    in >> shown;
    in.get();
    std::getline(in, text);
    EXPECT_NEAR(shown, score, 1e-6);
    const std::string texts[] = {"ab", "cd, e.", "a\nb"}, written[] = {"ab", "cd, e.", "\"a\\nb\""};
    EXPECT_EQ(line["text"], texts[line["index"].get<size_t>()]);
    EXPECT_EQ(text, written[line["index"].get<size_t>()]);
  }
}

}  // namespace
}  // namespace test
