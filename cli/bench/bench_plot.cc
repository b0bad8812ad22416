// The results of pronk bench as an SVG picture: each test's name and speed, and below them a bar
// beside the machine's limit.
#include <algorithm>
#include <cmath>
#include <span>

#include "cli/bench/bench.h"
#include "cli/output/svg.h"
#include "cli/output/text.h"

namespace cli {
namespace {

constexpr int kWidth = kSvgWidth, kMargin = kSvgMargin, kBar = kWidth - 2 * kMargin;
constexpr int kLine = 19;    // from one line of text to the next
constexpr int kHeight = 12;  // of a bar

class Picture {
 public:
  void Left(int down, const char* classes, const std::string& text) {
    Down(down);
    body_ += SvgText(kMargin, y_, classes, text);
  }
  void Right(const char* classes, const std::string& text) {
    body_ += SvgText(kWidth - kMargin, y_, classes, text);
  }
  void Down(int by) { y_ += by; }
  void Bar(const char* what, double width) {
    body_ +=
        Format("<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\" class=\"%s\"/>\n",
               kMargin, y_, width, kHeight, what);
  }

  // Below the current height: lines, dots and text at given positions.
  void Line(const char* what, const std::vector<std::pair<double, double>>& points) {
    body_ += Format("<polyline class=\"%s\" points=\"", what);
    for (const auto& [x, y] : points) body_ += Format("%.1f,%.1f ", x, y_ + y);
    body_ += "\"/>\n";
  }
  void Dot(double x, double y) {
    body_ += Format("<circle class=\"tg\" r=\"3.5\" cx=\"%.1f\" cy=\"%.1f\"/>\n", x, y_ + y);
  }
  void Label(double x, double y, const std::string& text) {
    body_ += SvgText(x, y_ + y, "small", text);
  }

  std::string Drawn(const std::string& title) const { return Svg(title, y_ + kMargin, body_); }

 private:
  std::string body_;
  int y_ = 0;
};

void DrawTest(Picture& picture, const BenchTest& test) {
  picture.Left(
      26, "",
      test.Name() + Format(", %zu thread%s", test.n_threads, test.n_threads == 1 ? "" : "s"));
  picture.Right("value", Format("%.1f ± %.1f t/s", test.Median(), test.Deviation()));
  picture.Down(7);
  picture.Bar("limit", kBar);
  picture.Bar(test.n_prompt == 0 ? "tg"
              : test.n_gen == 0  ? "pp"
                                 : "both",
              kBar * std::clamp(test.Share(), 0.0, 1.0));
  picture.Left(kHeight + 15, "small",
               Format("%.0f%% of the limit, %.1f t/s", 100 * test.Share(), test.Limit()));
  if (test.n_prompt == 0) {
    picture.Right("small right", Format("reads %.1f GB/s", test.ReadsPerSecond() / 1e9));
  } else if (test.n_gen == 0) {
    picture.Right("small right", Format("computes %.3f TOPS", test.OperationsPerSecond() / 1e12));
  }
  for (const std::string& note : test.Notes()) picture.Left(kLine - 2, "small", note);
}

// The cost of a pass by its tokens, relative to a pass of one token: a line through the tests of
// one model that differ in nothing else.
void DrawPassCosts(Picture& picture, const std::vector<BenchTest>& tests) {
  constexpr int kLeft = 34, kPlot = 150, kWide = kBar - kLeft;
  double most = 2;
  for (const BenchTest& test : tests) most = std::max(most, std::ceil(test.PassCost()));
  const auto x = [&](double n_tokens) {
    return kMargin + kLeft + (n_tokens - 1) / (engine::kMaxPassTokens - 1) * kWide;
  };
  const auto y = [&](double cost) { return kPlot * (1 - (cost - 1) / (most - 1)); };
  picture.Left(30, "", "Time of a pass by its tokens, relative to one token");
  picture.Down(14);
  for (double cost = 1; cost <= most; cost += most > 6 ? 2 : 1) {
    picture.Line("axis", {{x(1), y(cost)}, {x(engine::kMaxPassTokens), y(cost)}});
    picture.Label(kMargin, y(cost) + 4, Format("%.0f", cost));
  }
  std::vector<std::pair<double, double>> points;
  for (const BenchTest& test : tests) {
    points.emplace_back(x(static_cast<double>(test.n_pass)), y(test.PassCost()));
    picture.Label(points.back().first - 4, kPlot + 18, std::to_string(test.n_pass));
  }
  picture.Line("cost", points);
  for (const auto& [at_x, at_y] : points) picture.Dot(at_x, at_y);
  picture.Down(kPlot + 22);
}

}  // namespace

std::string BenchSvg(const BenchSetting& setting, const std::vector<BenchTest>& tests) {
  Picture picture;
  picture.Left(30, "title", "pronk: tokens per second");
  picture.Left(kLine + 3, "small", setting.Cpu());
  picture.Left(kLine - 2, "small",
               setting.date + ", version " + setting.version + ", commit " + setting.commit);
  picture.Left(kLine - 2, "small",
               "Medians ± standard deviations. The whole bar is the machine's limit,");
  picture.Left(kLine - 2, "small",
               "measured beside each test: reading weights (tg), multiplying (pp).");
  const BenchModel* model = nullptr;
  for (const BenchTest& test : tests) {
    if (test.model != model) {
      model = test.model;
      picture.Left(34, "title", model->type);
      picture.Left(kLine, "small", ShortPath(model->opened.file.path()));
    }
    DrawTest(picture, test);
  }
  for (size_t i = 0; i < tests.size(); ++i) {
    if (tests[i].n_prompt > 0 || tests[i].n_pass != 1) continue;
    std::vector<BenchTest> same;
    for (const BenchTest& test : std::span(tests).subspan(i)) {
      if (test.single_ts > 0 && tests[i].DiffersIn(&BenchTest::n_pass, test)) same.push_back(test);
    }
    if (same.size() > 1) DrawPassCosts(picture, same);
  }
  return picture.Drawn("pronk bench on " + setting.cpu_name + ", " + setting.date);
}

}  // namespace cli
