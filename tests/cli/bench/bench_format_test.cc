// Every format of pronk bench can be read by others, and tells the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/machine.h"
#include "tests/cli/bench/bench_run.h"

namespace test {
namespace {

namespace fs = std::filesystem;

// Lines of cells, by RFC 4180.
std::vector<std::vector<std::string>> ReadCsv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string cell;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool doubled = quoted && text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"';
    if (doubled) {
      cell += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == ',' || text[i] == '\n')) {
      rows.back().push_back(std::exchange(cell, ""));
      if (text[i] == '\n') rows.emplace_back();
    } else {
      cell += text[i];
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_TRUE(rows.back().empty());  // a line feed ends the last row
  rows.pop_back();
  return rows;
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(BenchFormats, JsonFollowsItsSchema) {
  const Json schema = BenchSchema();
  const Json array = Json::parse(Bench({"-n", "4", "-pg", "2,2", "-o", "json"}).out);
  ASSERT_EQ(array.size(), 3u);
  EXPECT_EQ(SchemaFaults(array, schema), std::vector<std::string>());
  const std::vector<std::string> lines = Lines(Bench({"-n", "4", "-o", "jsonl"}).out);
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines) {
    EXPECT_EQ(SchemaFaults(Json::parse(line), schema["items"]), std::vector<std::string>());
  }
  // The checker finds what is wrong.
  Json wrong = array;
  wrong[0].erase("median_ts");
  wrong[1]["more"] = 1;
  wrong[2]["build_commit"] = "x";
  wrong[2]["n_gen"] = -1;
  wrong[2]["samples_ts"] = {"1"};
  EXPECT_EQ(SchemaFaults(wrong, schema).size(), 5u);
}

TEST(BenchFormats, CsvHasTheSameFields) {
  const TempDir dir;
  // A name that CSV has to quote.
  const std::string model = dir.Path("a \"model\", mine.gguf");
  fs::copy_file(kModel, model);
  const Finished run = Done(
      Pronk({"bench", "-m", model, "-p", "4", "-n", "4", "-r", "2", "-o", "csv", "-oe", "jsonl"}));
  const auto rows = ReadCsv(run.out);
  const std::vector<std::string> lines = Lines(run.err);
  ASSERT_EQ(rows.size(), 3u);
  ASSERT_EQ(lines.size(), 2u);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Json fields = Json::parse(lines[i]);
    ASSERT_EQ(rows[0].size(), fields.size());
    ASSERT_EQ(rows[i + 1].size(), fields.size());
    for (size_t column = 0; column < rows[0].size(); ++column) {
      ASSERT_TRUE(fields.contains(rows[0][column]));
      const Json& field = fields[rows[0][column]];
      const std::string& cell = rows[i + 1][column];
      SCOPED_TRACE(rows[0][column]);
      if (field.is_array()) continue;
      const std::string expected = field.is_string() ? field.get<std::string>()
                                   : field.is_null() ? ""
                                                     : field.dump();
      EXPECT_EQ(cell, expected);
    }
  }
}

// Who, when, what and on which machine: in each format.
TEST(BenchFormats, NameTheirOrigin) {
  const TempDir dir;
  const std::string plot = dir.Path("plot.svg");
  const Json fields = Json::parse(Bench({"-o", "jsonl", "--plot", plot}).out);
  const std::string day = cli::DateNow().substr(0, 8);  // the month: a day may end meanwhile
  for (const std::string& text : {Bench({}).out, Bench({"-o", "csv"}).out, ReadText(plot)}) {
    for (const std::string& part :
         {fields["cpu_info"].get<std::string>(), fields["cpu_target"].get<std::string>(),
          fields["build_commit"].get<std::string>(), fields["version"].get<std::string>(), day,
          std::string("llama.gguf")}) {
      EXPECT_TRUE(Has(text, part));
    }
  }
}

TEST(BenchFormats, TablesHaveOneUnitAColumn) {
  const std::string out = Bench({"-n", "4", "-t", "1,2", "-ub", "2,4"}).out;
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : Lines(out)) {
    if (!line.starts_with("|")) continue;
    rows.emplace_back();
    std::istringstream cells(line.substr(1));
    for (std::string cell; std::getline(cells, cell, '|');) rows.back().push_back(cell);
  }
  ASSERT_EQ(rows.size(), 2u + 8) << out;
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  for (const char* title :
       {"size, MB", "t/s, median ± sd", "limit, t/s", "GB/s", "TOPS", "ubatch"}) {
    EXPECT_TRUE(Has(out, title));
  }
}

// The picture shows the same figure as the table, beside the bar.
TEST(BenchFormats, PlotsSayWhatTablesSay) {
  const TempDir dir;
  const std::string plot = dir.Path("plot.svg");
  const Json fields = Json::parse(Bench({"-o", "jsonl", "--plot", plot}).out);
  const std::string svg = ReadText(plot);
  char speed[64];
  std::snprintf(speed, sizeof(speed), "%.1f ± %.1f t/s", fields["median_ts"].get<double>(),
                fields["stddev_ts"].get<double>());
  EXPECT_TRUE(Has(svg, speed));
  EXPECT_TRUE(Has(svg, "prefers-color-scheme: dark"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

// SQLite is not among the dependencies: the statements have one value for each column.
TEST(BenchFormats, Sql) {
  const Finished run = Done(Bench({"-o", "sql", "--progress"}));
  EXPECT_TRUE(run.err.starts_with("1 of 1: pp4, ")) << run.err;
  EXPECT_TRUE(Has(run.out, " n_prompt INTEGER, "));
  const std::vector<std::string> lines = Lines(run.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(
      lines[0].find("CREATE TABLE IF NOT EXISTS pronk_bench (version TEXT, build_commit TEXT"), 0u);
  EXPECT_EQ(lines[1].find("INSERT INTO pronk_bench VALUES ('"), 0u);
  EXPECT_EQ(std::count(lines[0].begin(), lines[0].end(), ','),
            std::count(lines[1].begin(), lines[1].end(), ','));
}

TEST(BenchFormats, NamesOfMixesAreLlamaBenchs) {
  const TempDir dir;
  const std::string small = dir.Path("small.gguf");
  ASSERT_EQ(Pronk({"quantize", "default", small, "Q4_K_M"}).status, 0);
  const Finished run =
      Pronk({"bench", "-m", small, "-p", "1", "-n", "0", "-r", "1", "-oe", "json"});
  EXPECT_EQ(SchemaFaults(Json::parse(run.err), BenchSchema()), std::vector<std::string>());
  EXPECT_TRUE(Has(run.out, "llama 5.8M Q4_K - Medium"));
  EXPECT_TRUE(Has(run.out, "| first token after "));
  EXPECT_EQ(run.out.find(" ± "), run.out.find(" ± sd"));  // one repetition has no deviation
}

// Threads and depth are curves, with the numbers below them; nothing else is drawn of these tests.
TEST(BenchPlot, CurvesAndBars) {
  const cli::BenchModel model = {.opened = engine::Model::Load(kModel)};
  std::vector<cli::BenchTest> tests;
  for (const size_t n_threads : {1, 2}) {
    for (const size_t n_depth : {0, 4096}) {
      cli::BenchTest& test = tests.emplace_back(Measured());
      test.model = &model;
      test.n_threads = n_threads;
      test.n_depth = n_depth;
      test.samples_ts = {static_cast<double>(10 * n_threads - n_depth / 4096)};
      test.limits = {{11e9 * static_cast<double>(n_threads), 0, 1e9}};
    }
  }
  const std::string curves = cli::BenchSvg({}, tests);
  EXPECT_EQ(Count(curves, "<polyline class=\"cost\""), 4u) << curves;
  EXPECT_EQ(Count(curves, "<polyline class=\"roof\""), 4u);
  EXPECT_EQ(Count(curves, "class=\"tg\"/>"), 0u);  // bars
  for (const char* text : {">tg10: t/s by threads<", ">tg10: t/s by tokens already in the cache<",
                           ">@ d4096<", ">-t 2<", ">19<"}) {
    EXPECT_EQ(Count(curves, text), 1u + (text == std::string(">19<"))) << text;
  }
  std::vector<cli::BenchTest> together = {tests[0], tests[2], tests[0], tests[2]};
  for (cli::BenchTest& test : together) test.of_texts = true;
  together[2].n_pass = together[3].n_pass = 8;
  const std::string texts = cli::BenchSvg({}, together);
  EXPECT_EQ(Count(texts, ">tg10: t/s of all texts, by texts generated together<"), 1u) << texts;
  EXPECT_EQ(Count(texts, "<polyline class=\"roof\""), 3u);  // and one by threads
  EXPECT_EQ(Count(texts, ">-t 2 @ d0<"), 1u);
  // Bars of one kind have one scale, a single repetition has no deviation, and the picture ends.
  tests.resize(2);
  tests[1].n_gen = 20;
  tests[1].samples_ts = {5.5};
  for (int i = 0; i < 20; ++i) tests.emplace_back(tests.back()).n_gen += 1;
  const std::string bars = cli::BenchSvg({}, tests);
  EXPECT_TRUE(Has(bars, "width=\"224.0\" height=\"12\" rx=\"2\" class=\"tg\""));
  EXPECT_FALSE(Has(bars, " ± 0.0"));
  EXPECT_TRUE(Has(bars, "more had no room"));
  EXPECT_LE(std::stoi(bars.substr(bars.find("height=") + 8)), 1000);
}

}  // namespace
}  // namespace test
