// The results of pronk bench as a picture (SVG): for each test its name and speed, and below them a
// bar beside the machine's limit. Made for a column as narrow as a phone's, whose colours follow
// the reader's choice of dark or light.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/cli/bench.h"
#include "engine/cli/format.h"
#include "gguf/error.h"

namespace cli {
namespace {

constexpr int kWidth = 480, kMargin = 16, kBar = kWidth - 2 * kMargin;
constexpr int kLine = 19;    // from one line of text to the next
constexpr int kHeight = 12;  // of a bar

constexpr const char* kStyle = R"(<style>
  svg { color-scheme: light dark; max-width: 100%; height: auto;
        font: 14px system-ui, sans-serif; }
  .paper { fill: #ffffff; }
  text { fill: #1f2328; }
  .small { fill: #59636e; font-size: 12.5px; }
  .title { font-size: 16px; font-weight: 600; }
  .value { text-anchor: end; font-weight: 600; }
  .right { text-anchor: end; }
  .limit { fill: #dfe3e8; }
  .tg { fill: #2f6fb3; }
  .pp { fill: #b3590a; }
  .both { fill: #6b4fb3; }
  .grid { stroke: #dfe3e8; fill: none; }
  .cost { stroke: #2f6fb3; stroke-width: 2; fill: none; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; }
    text { fill: #e6edf3; }
    .small { fill: #9aa4af; }
    .limit { fill: #2b323b; }
    .tg { fill: #58a6ff; }
    .pp { fill: #f0883e; }
    .both { fill: #a78bfa; }
    .grid { stroke: #2b323b; }
    .cost { stroke: #58a6ff; }
  }
</style>
)";

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  }
  return out;
}

// The end of a long path says more than its beginning.
std::string Short(const std::string& path) {
  const std::string text = gguf::PrintablePath(path);
  const size_t slash = text.find_last_of('/');
  return gguf::Printable(slash == std::string::npos ? text : text.substr(slash + 1), 60);
}

class Picture {
 public:
  void Text(int x, const char* classes, const std::string& text) {
    body_ += Format("<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y_, classes,
                    Escaped(text).c_str());
  }
  void Left(const char* classes, const std::string& text) { Text(kMargin, classes, text); }
  void Right(const char* classes, const std::string& text) {
    Text(kWidth - kMargin, classes, text);
  }
  void Down(int by) { y_ += by; }
  void Bar(const char* what, double width) {
    body_ +=
        Format("<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\" class=\"%s\"/>\n",
               kMargin, y_, width, kHeight, what);
  }

  // Below the present height: lines, dots and words at places of their own.
  void Line(const char* what, const std::vector<std::pair<double, double>>& points) {
    body_ += Format("<polyline class=\"%s\" points=\"", what);
    for (const auto& [x, y] : points) body_ += Format("%.1f,%.1f ", x, y_ + y);
    body_ += "\"/>\n";
  }
  void Dot(double x, double y) {
    body_ += Format("<circle class=\"tg\" r=\"3.5\" cx=\"%.1f\" cy=\"%.1f\"/>\n", x, y_ + y);
  }
  void Label(double x, double y, const std::string& text) {
    body_ +=
        Format("<text x=\"%.1f\" y=\"%.1f\" class=\"small\">%s</text>\n", x, y_ + y, text.c_str());
  }

  std::string Svg(const std::string& title) const {
    const int height = y_ + kMargin;
    return Format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
               "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>%s</title>\n",
               kWidth, height, kWidth, height, Escaped(title).c_str()) +
           kStyle + "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n" + body_ + "</svg>\n";
  }

 private:
  std::string body_;
  int y_ = 0;
};

void DrawTest(Picture& picture, const BenchTest& test) {
  picture.Down(26);
  picture.Left(
      "", test.Name() + Format(", %d thread%s", test.n_threads, test.n_threads == 1 ? "" : "s"));
  picture.Right("value", Format("%.1f ± %.1f t/s", test.Median(), test.Deviation()));
  picture.Down(7);
  picture.Bar("limit", kBar);
  picture.Bar(test.n_prompt == 0 ? "tg"
              : test.n_gen == 0  ? "pp"
                                 : "both",
              kBar * std::clamp(test.Share(), 0.0, 1.0));
  picture.Down(kHeight + 15);
  picture.Left("small", Format("%.0f%% of the limit, %.1f t/s", 100 * test.Share(), test.Limit()));
  if (test.n_prompt == 0) {
    picture.Right("small right", Format("reads %.1f GB/s", test.ReadsPerSecond() / 1e9));
  } else if (test.n_gen == 0) {
    picture.Right("small right", Format("computes %.3f TOPS", test.OperationsPerSecond() / 1e12));
  }
  for (const std::string& note : test.Notes()) {
    picture.Down(kLine - 2);
    picture.Left("small", note);
  }
}

// What a pass costs by its tokens, relative to one of a single token: a line through the tests of
// one model that differ in nothing else.
void DrawPassCosts(Picture& picture, const std::vector<BenchTest>& tests) {
  constexpr int kLeft = 34, kPlot = 150, kWide = kBar - kLeft;
  double most = 2;
  for (const BenchTest& test : tests) most = std::max(most, std::ceil(test.PassCost()));
  const auto x = [&](double n_tokens) {
    return kMargin + kLeft + (n_tokens - 1) / (engine::kMaxPassTokens - 1) * kWide;
  };
  const auto y = [&](double cost) { return kPlot * (1 - (cost - 1) / (most - 1)); };
  picture.Down(30);
  picture.Left("", "Time of a pass by its tokens, relative to one token");
  picture.Down(14);
  for (double cost = 1; cost <= most; cost += most > 6 ? 2 : 1) {
    picture.Line("grid", {{x(1), y(cost)}, {x(engine::kMaxPassTokens), y(cost)}});
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

// Those that differ from the first in the tokens of a pass alone.
std::vector<BenchTest> ByPasses(const std::vector<BenchTest>& tests, size_t first) {
  std::vector<BenchTest> same;
  const BenchTest& test = tests[first];
  for (size_t i = first; i < tests.size(); ++i) {
    const BenchTest& other = tests[i];
    if (other.model == test.model && other.n_prompt == 0 && other.n_gen == test.n_gen &&
        other.n_depth == test.n_depth && other.n_threads == test.n_threads && other.kv == test.kv &&
        other.single_ts > 0) {
      same.push_back(other);
    }
  }
  return same;
}

}  // namespace

std::string BenchSvg(const BenchSetting& setting, const std::vector<BenchTest>& tests) {
  Picture picture;
  picture.Down(30);
  picture.Left("title", "pronk: tokens per second");
  picture.Down(kLine + 3);
  picture.Left("small", setting.cpu_name + " (" + setting.cpu_target + ")");
  picture.Down(kLine - 2);
  picture.Left("small",
               setting.date + ", version " + setting.version + ", commit " + setting.commit);
  picture.Down(kLine - 2);
  picture.Left("small", "Medians ± standard deviations. The whole bar is the machine's limit,");
  picture.Down(kLine - 2);
  picture.Left("small", "measured beside each test: reading weights (tg), multiplying (pp).");
  const BenchModel* model = nullptr;
  for (const BenchTest& test : tests) {
    if (test.model != model) {
      model = test.model;
      picture.Down(34);
      picture.Left("title", model->type);
      picture.Down(kLine);
      picture.Left("small", Short(model->file));
    }
    DrawTest(picture, test);
  }
  for (size_t i = 0; i < tests.size(); ++i) {
    if (tests[i].n_prompt > 0 || tests[i].n_pass != 1) continue;
    const std::vector<BenchTest> same = ByPasses(tests, i);
    if (same.size() > 1) DrawPassCosts(picture, same);
  }
  return picture.Svg("pronk bench on " + setting.cpu_name + ", " + setting.date);
}

}  // namespace cli
