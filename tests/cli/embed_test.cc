// pronk embed and pronk rerank: their output, and refused arguments.
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

std::vector<Json> JsonLines(const std::string& text) {
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
  const std::vector<Json> lines = JsonLines(words.out);
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
}

// A text that is too long loses only its own line.
TEST(Embed, ATextThatIsTooLong) {
  const TempDir dir;
  const std::string tall(80, '3');
  const std::string file = dir.Write("texts", "a\n" + tall + "\n\n\"b\"\n");
  const auto run = [&](const Args& more) {
    return Pronk(With({"embed", kModel, "--pooling", "mean", "-c", "8"}, more));
  };
  const Finished found = run({"-f", file});
  EXPECT_EQ(found.status, 1);
  EXPECT_TRUE(Has(found.err, "pronk: " + file + ", line 2: the text needs at least ")) << found.err;
  EXPECT_EQ(Count(found.err, "\n"), 1u) << found.err;
  const std::vector<Json> lines = JsonLines(found.out),
                          alone = JsonLines(Done(run({"a", "", "b"})).out);
  ASSERT_EQ(lines.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i]["embedding"], alone[i]["embedding"]);
    EXPECT_EQ(lines[i]["index"], i == 0 ? 0 : i + 1);
  }
  EXPECT_TRUE(Has(run({"a", tall}).err, "text 2: the text needs"));
  // Raw output keeps the text's place.
  const std::string raw = run({"--raw", "-f", file}).out;
  const size_t width = lines[0]["embedding"].size();
  ASSERT_EQ(raw.size(), 4 * width * sizeof(float));
  std::vector<float> floats(4 * width);
  raw.copy(reinterpret_cast<char*>(floats.data()), raw.size());
  for (size_t i = 0; i < width; ++i) {
    EXPECT_EQ(floats[i], lines[0]["embedding"][i].get<float>());
    EXPECT_TRUE(std::isnan(floats[width + i]));
    EXPECT_EQ(floats[2 * width + i], lines[1]["embedding"][i].get<float>());
  }
  // Or the text is cut, with a note.
  const Finished cut = Done(run({"--truncate", "-f", file}));
  EXPECT_EQ(cut.err, "pronk: note: cut 1 of 4 texts to 8 tokens\n");
  const std::vector<Json> all = JsonLines(cut.out);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1]["tokens"], 8);
  EXPECT_EQ(all[1]["embedding"], JsonLines(run({std::string(6, '3')}).out)[0]["embedding"]);
}

// BERT's token that ends a text stays at the end.
TEST(Embed, TruncationKeepsTheEnd) {
  const std::string model = DataPath("vectors/bert-cls.gguf");
  const auto vectors = [&](const Args& more) {
    return JsonLines(Done(Pronk(With({"embed", model}, more))).out);
  };
  const std::vector<Json> cut = vectors({"-c", "5", "--truncate", "ab cd ef ab cd ef"});
  const std::vector<Json> whole = vectors({"ab cd ef ab cd ef"});
  EXPECT_EQ(cut[0]["tokens"], 5);
  EXPECT_GT(whole[0]["tokens"], 5);
  EXPECT_NE(cut[0]["embedding"], whole[0]["embedding"]);
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
    ExpectError(Pronk({command, model, "--ids", "", out}), 2, "no ids given");
    ExpectError(Pronk({command, model, "-f", out, "-f", out}), 2, "-f: expected once, found 2");
    for (const Args& more : {Args{"--truncate"}, {"--prompt-name", "query"}}) {
      if (command == "rerank") break;  // rerank has neither flag
      ExpectError(Pronk(With({command, model, "--ids", "1", out}, more)), 2, "not with --ids");
    }
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
  ExpectError(Pronk({"rerank", kEmbed, "-p", "ef", "a"}), 1, "is not a reranker");
  ExpectError(Pronk({"rerank", kRerank, "a"}), 2, "expected the query");
  ExpectError(Pronk({"run", kRerank, "-p", "a"}), 1, "cannot generate any: pronk rerank");
  ExpectError(Pronk({"embed", kEmbed, "-f", "x", "a"}), 2, "give one of them");
}

TEST(Rerank, SortsTexts) {
  const TempDir dir;
  const std::string file = dir.Write("texts", "ab\ncd, e.\n\"a\\nb\"\n");
  const Finished run = Done(Pronk({"rerank", "-m", kRerank, "-p", "ef", "-f", file}));
  const std::vector<Json> lines =
      JsonLines(Pronk({"rerank", kRerank, "-p", "ef", "--json", "-f", file}).out);
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

// Texts that do not fit are reported, and the other texts are sorted.
TEST(Rerank, ATextThatIsTooLong) {
  const std::string tall(80, 'a');
  const Finished run = Pronk({"rerank", "-m", kRerank, "-c", "16", "-p", "ef", "ab", tall, "cd"});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(run.err.starts_with("pronk: text 2: the text needs")) << run.err;
  EXPECT_EQ(Count(run.out, "\n"), 2u) << run.out;
}

}  // namespace
}  // namespace test
