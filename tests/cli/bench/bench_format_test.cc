// Other programs can read every format of pronk bench, and all formats have the same data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <regex>
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
  // The checker finds faults.
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
  // A name that CSV must quote.
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
      const std::string expected = field.is_string()    ? field.get<std::string>()
                                   : field.is_null()    ? ""
                                   : field.is_boolean() ? field ? "1" : "0"
                                                        : field.dump();
      EXPECT_EQ(cell, expected);
    }
  }
}

// Each format says who measured what, when and on which machine.
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
       {"size", "t/s, median", "quartiles", "limit, t/s", "GB/s", "TOPS", "ubatch", "memory"}) {
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
  std::snprintf(speed, sizeof(speed), "%.1f t/s", fields["median_ts"].get<double>());
  EXPECT_TRUE(Has(svg, speed));
  EXPECT_TRUE(Has(svg, "prefers-color-scheme: dark"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

// SQLite is not among the dependencies: the statements have one value for each column.
TEST(BenchFormats, Sql) {
  const Finished run = Done(Bench({"-o", "sql", "--progress"}));
  EXPECT_TRUE(run.err.starts_with("1 of 1: pp4, 2 threads ...")) << run.err;
  EXPECT_TRUE(Has(run.out, " n_prompt INTEGER, "));
  const std::vector<std::string> lines = Lines(run.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with(
      "CREATE TABLE IF NOT EXISTS llama_bench (build_commit TEXT, build_number INTEGER, "));
  EXPECT_TRUE(lines[1].starts_with("INSERT INTO llama_bench VALUES ('"));
  const std::string values = std::regex_replace(lines[1], std::regex("'([^']|'')*'"), "");
  EXPECT_EQ(std::count(lines[0].begin(), lines[0].end(), ','),
            std::count(values.begin(), values.end(), ','));
}

TEST(BenchFormats, NamesOfMixesAreLlamaBenchs) {
  const TempDir dir;
  const std::string small = dir.Path("small.gguf");
  ASSERT_EQ(Pronk({"quantize", "default", small, "Q4_K_M"}).status, 0);
  const Finished run =
      Pronk({"bench", "-m", small, "-p", "1", "-n", "0", "-r", "1", "-oe", "json"});
  EXPECT_EQ(SchemaFaults(Json::parse(run.err), BenchSchema()), std::vector<std::string>());
  EXPECT_TRUE(Has(run.out, "llama 5.8M Q4_K - Medium"));
}

// The keys that llama-bench b11669 wrote, and the keys that its compare-llama-bench.py requires.
TEST(BenchFormats, HaveLlamaBenchsKeys) {
  const Json fields = Json::parse(Bench({"-o", "jsonl"}).out);
  std::istringstream keys(
      "build_commit build_number cpu_info gpu_info backends model_filename model_type model_size "
      "model_n_params n_batch n_ubatch n_threads cpu_mask cpu_strict poll type_k type_v "
      "n_gpu_layers n_cpu_moe split_mode main_gpu no_kv_offload flash_attn devices tensor_split "
      "tensor_buft_overrides use_mmap load_mode lazy_mode embeddings no_op_offload no_host repack "
      "fit_target fit_min_ctx n_prompt n_gen n_depth test_time avg_ns stddev_ns avg_ts stddev_ts "
      "samples_ns samples_ts");
  for (std::string key; keys >> key;) {
    ASSERT_TRUE(fields.contains(key)) << key;
    EXPECT_FALSE(fields[key].is_null()) << key;  // NULL equals nothing in SQL
  }
  const double ns = fields["samples_ns"][0].get<double>();
  EXPECT_NEAR(fields["samples_ts"][0].get<double>(), 4e9 / ns, 4e9 / ns * (1 / ns));
  EXPECT_NEAR(fields["avg_ns"].get<double>(), (ns + fields["samples_ns"][1].get<double>()) / 2, 1);
  // A prompt ends with its first token.
  EXPECT_NEAR(fields["first_token_ms"].get<double>(), fields["avg_ns"].get<double>() / 1e6, 1e-5);
  EXPECT_GT(fields["peak_bytes"].get<double>(), 1e6);
}

// Threads and depth are curves with two axes; these tests have no other drawing.
TEST(BenchPlot, CurvesAndBars) {
  const cli::BenchModel model = {.opened = engine::Model::Load(kModel)};
  std::vector<cli::BenchResult> results;
  for (const size_t n_threads : {1, 2}) {
    for (const size_t n_depth : {0, 4096}) {
      cli::BenchResult& result = results.emplace_back(Measured());
      result.test.model = &model;
      result.test.n_threads = n_threads;
      result.test.n_depth = n_depth;
      const auto speed = static_cast<double>(10 * n_threads - n_depth / 4096);
      result.samples = {{10 / speed, {11e9 * static_cast<double>(n_threads)}}};
    }
  }
  const std::string curves = cli::BenchSvg({}, results);
  EXPECT_EQ(Count(curves, "<polyline class=\"cost\""), 4u) << curves;
  EXPECT_EQ(Count(curves, "<polyline class=\"roof\""), 4u);
  EXPECT_EQ(Count(curves, "class=\"tg\"/>"), 0u);  // bars
  for (const char* text : {">tg10: t/s by threads<", ">tg10: t/s by tokens already in the cache<",
                           ">@ d4096<", ">-t 2<", ">tokens in the cache<", ">4096<"}) {
    EXPECT_EQ(Count(curves, text), 1u) << text;
  }
  for (const char* tick : {">5<", ">10<", ">25<"}) EXPECT_EQ(Count(curves, tick), 2u) << tick;
  std::vector<cli::BenchResult> together = {results[0], results[2], results[0], results[2]};
  together[2].test.n_texts = together[3].test.n_texts = 8;
  const std::string texts = cli::BenchSvg({}, together);
  EXPECT_EQ(Count(texts, ">tg10: t/s of all texts, by texts generated together<"), 1u) << texts;
  EXPECT_EQ(Count(texts, ">-t 2 @ d0<"), 1u);
  // Bars of one kind have one scale, and there may be any number of them.
  results.resize(2);
  results[1].test.n_gen = 20;
  for (int i = 0; i < 40; ++i) results.emplace_back(results.back()).test.n_gen += 1;
  const std::string bars = cli::BenchSvg({}, results);
  EXPECT_EQ(Count(bars, "height=\"12\" rx=\"2\" class=\"tg\""), 42u);
  EXPECT_GT(std::stoi(bars.substr(bars.find("height=") + 8)), 2000);
}

// Labels in a column of small text are at least a line apart.
TEST(BenchPlot, LabelsDoNotCollide) {
  const cli::BenchModel model = {.opened = engine::Model::Load(kModel)};
  std::vector<cli::BenchResult> results;
  for (size_t n_depth = 0; n_depth < 6; ++n_depth) {
    for (const size_t n_threads : {1, 2, 3}) {
      cli::BenchResult& result = results.emplace_back(Measured());
      result.test.model = &model;
      result.test.n_threads = n_threads;
      result.test.n_depth = n_depth;
    }
  }
  const std::string svg = cli::BenchSvg({}, results);
  const std::regex label("<text x=\"380\" y=\"([0-9.]+)\" class=\"small\">@");
  std::vector<double> heights;
  for (std::sregex_iterator i(svg.begin(), svg.end(), label), end; i != end; ++i)
    heights.push_back(std::stod((*i)[1]));
  std::sort(heights.begin(), heights.end());
  ASSERT_EQ(heights.size(), 6u) << svg;
  for (size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 12);
}

}  // namespace
}  // namespace test
