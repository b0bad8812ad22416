// The results of pronk bench as a table, as CSV, as JSON and as a picture.
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/cli/bench.h"
#include "engine/cli/json_file.h"

namespace cli {
namespace {

std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string Format(const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  char text[512];
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return text;
}

// Work per second as people read it: "33.1 GB/s", "1.20 TOPS".
std::string WorkText(const BenchTest& test, double work) {
  return test.n_gen > 0 ? Format("%.1f GB/s", work / 1e9) : Format("%.2f TOPS", work / 1e12);
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string BenchTest::Name() const {
  std::string name = n_prompt > 0 ? "pp" + std::to_string(n_prompt) : "tg" + std::to_string(n_gen);
  if (n_depth > 0) name += " @ d" + std::to_string(n_depth);
  return name;
}

double BenchTest::Average() const {
  return std::accumulate(samples_ts.begin(), samples_ts.end(), 0.0) /
         static_cast<double>(samples_ts.size());
}

double BenchTest::Median() const {
  std::vector<double> sorted = samples_ts;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double BenchTest::Deviation() const {
  if (samples_ts.size() < 2) return 0;
  const double average = Average();
  double sum = 0;
  for (const double sample : samples_ts) sum += (sample - average) * (sample - average);
  return std::sqrt(sum / static_cast<double>(samples_ts.size() - 1));
}

std::string BenchMarkdown(const BenchReport& report) {
  std::string text =
      "| model                  |      size | params | backend        | threads |          test |"
      "               t/s |        work |     limit | share |\n"
      "| ---------------------- | --------: | -----: | -------------- | ------: | ------------: |"
      " ----------------: | ----------: | --------: | ----: |\n";
  for (const BenchTest& test : report.tests) {
    text += Format(
        "| %-22s | %6.2f MB | %5.0fM | CPU %-10s | %7d | %13s | %9.2f ± %5.2f | %11s | %9s | "
        "%4.0f%% |\n",
        report.model_type.c_str(), static_cast<double>(report.model_size) / 1e6,
        static_cast<double>(report.model_n_params) / 1e6, report.cpu_target.c_str(), test.n_threads,
        test.Name().c_str(), test.Average(), test.Deviation(),
        WorkText(test, test.WorkPerSecond()).c_str(), WorkText(test, test.ceiling).c_str(),
        100 * test.Share());
  }
  return text +
         Format("\nmodel opened in %.1f ms, first token behind a prompt of 8 after %.1f ms\n",
                report.load_ms, report.first_token_ms);
}

std::string BenchCsv(const BenchReport& report) {
  std::string text =
      "model_type,model_size,model_n_params,cpu_target,n_threads,n_prompt,n_gen,n_depth,avg_ts,"
      "stddev_ts,median_ts,samples_ts,work_per_second,ceiling,share,load_ms,first_token_ms\n";
  for (const BenchTest& test : report.tests) {
    text += Format("\"%s\",%llu,%llu,%s,%d,%zu,%zu,%zu,%f,%f,%f,\"", report.model_type.c_str(),
                   static_cast<unsigned long long>(report.model_size),
                   static_cast<unsigned long long>(report.model_n_params),
                   report.cpu_target.c_str(), test.n_threads, test.n_prompt, test.n_gen,
                   test.n_depth, test.Average(), test.Deviation(), test.Median());
    for (size_t i = 0; i < test.samples_ts.size(); ++i) {
      text += Format(i == 0 ? "%f" : " %f", test.samples_ts[i]);
    }
    text += Format("\",%.4g,%.4g,%f,%f,%f\n", test.WorkPerSecond(), test.ceiling, test.Share(),
                   report.load_ms, report.first_token_ms);
  }
  return text;
}

std::string BenchJson(const BenchReport& report) {
  Json array = Json::array();
  for (const BenchTest& test : report.tests) {
    array.push_back({{"model_filename", report.model_file},
                     {"model_type", report.model_type},
                     {"model_size", report.model_size},
                     {"model_n_params", report.model_n_params},
                     {"backends", "CPU"},
                     {"cpu_target", report.cpu_target},
                     {"n_threads", test.n_threads},
                     {"n_prompt", test.n_prompt},
                     {"n_gen", test.n_gen},
                     {"n_depth", test.n_depth},
                     {"avg_ts", test.Average()},
                     {"stddev_ts", test.Deviation()},
                     {"median_ts", test.Median()},
                     {"samples_ts", test.samples_ts},
                     {"load_ms", report.load_ms},
                     {"first_token_ms", report.first_token_ms},
                     {test.n_gen > 0 ? "bytes_per_second" : "ops_per_second", test.WorkPerSecond()},
                     {test.n_gen > 0 ? "read_ceiling" : "dot_ceiling", test.ceiling},
                     {"share_of_ceiling", test.Share()}});
  }
  return JsonText(array, 2);
}

// A bar for each test; its full width is the machine's limit.
std::string BenchSvg(const BenchReport& report) {
  constexpr int kLabel = 230, kBar = 460, kRow = 30, kTop = 60;
  const int height = kTop + kRow * static_cast<int>(report.tests.size()) + 30;
  std::string svg = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kLabel + kBar + 40, height);
  svg += Format("<text x=\"16\" y=\"24\" font-size=\"16\">%s on CPU (%s)</text>\n",
                Escaped(report.model_type).c_str(), report.cpu_target.c_str());
  svg +=
      "<text x=\"16\" y=\"44\" fill=\"#666\">the outline is this machine's limit: reading for tg, "
      "arithmetic for pp</text>\n";
  int y = kTop;
  for (const BenchTest& test : report.tests) {
    const double width = kBar * std::clamp(test.Share(), 0.0, 1.0);
    svg += Format("<text x=\"16\" y=\"%d\">%s, %d thread%s</text>\n", y + 17,
                  Escaped(test.Name()).c_str(), test.n_threads, test.n_threads == 1 ? "" : "s");
    svg += Format("<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"22\" fill=\"%s\"/>\n", kLabel, y,
                  width, test.n_gen > 0 ? "#4c78a8" : "#f58518");
    svg += Format(
        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"22\" fill=\"none\" stroke=\"#999\"/>\n",
        kLabel, y, kBar);
    svg += Format("<text x=\"%d\" y=\"%d\">%.1f t/s, %s of %s, %.0f%%</text>\n", kLabel + 8, y + 16,
                  test.Median(), WorkText(test, test.WorkPerSecond()).c_str(),
                  WorkText(test, test.ceiling).c_str(), 100 * test.Share());
    y += kRow;
  }
  return svg + "</svg>\n";
}

}  // namespace cli
