// The results of pronk bench as an SVG picture: what grows with threads, depth or tokens per pass
// as curves; each other test's name and speed, and below them a bar beside the machine's limit.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cli/bench/bench.h"
#include "cli/output/svg.h"
#include "cli/output/text.h"

namespace cli {
namespace {

constexpr int kWidth = kSvgWidth, kMargin = kSvgMargin, kBar = kWidth - 2 * kMargin;
constexpr int kLine = 19;         // from one line of text to the next
constexpr int kHeight = 12;       // of a bar
constexpr int kMaxHeight = 1000;  // of the picture
constexpr int kCurves = 85;       // of curves

class Picture {
 public:
  // Whether n tests of this height in all can be added; if not, they are counted.
  bool HasRoom(int height, size_t n = 1) {
    const bool has = y_ + height <= kMaxHeight - kMargin - kLine;
    n_left_out_ += has ? 0 : n;
    return has;
  }
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
  void Label(double x, double y, const char* classes, const std::string& text) {
    body_ += SvgText(x, y_ + y, classes, text);
  }

  std::string Drawn(const std::string& title) {
    if (n_left_out_ > 0) {
      Left(kLine, "small", Format("%zu more had no room: the table has them.", n_left_out_));
    }
    return Svg(title, y_ + kMargin, body_);
  }

 private:
  std::string body_;
  int y_ = 0;
  size_t n_left_out_ = 0;  // tests
};

const char* Kind(const BenchTest& test) {
  return test.n_prompt == 0 ? "tg" : test.n_gen == 0 ? "pp" : "both";
}

// full: tokens per second of a bar over the whole width.
void DrawTest(Picture& picture, const BenchTest& test, double full) {
  const std::vector<std::string> notes = test.Notes();
  if (!picture.HasRoom(26 + 7 + kHeight + 15 + (kLine - 2) * static_cast<int>(notes.size())))
    return;
  picture.Left(26, "", test.Name() + ", " + Counted(test.n_threads, "thread"));
  const std::string deviation =
      test.samples_ts.size() < 2 ? "" : Format(" ± %.1f", test.Deviation());
  picture.Right("value", Format("%.1f", test.Median()) + deviation + " t/s");
  picture.Down(7);
  picture.Bar("limit", kBar * test.Limit() / full);
  picture.Bar(Kind(test), kBar * test.Median() / full);
  picture.Left(kHeight + 15, "small",
               Format("%.0f%% of the limit, %.1f t/s", 100 * test.Share(), test.Limit()));
  if (test.n_prompt == 0) {
    picture.Right("small right", Format("reads %.1f GB/s", test.ReadsPerSecond() / 1e9));
  } else if (test.n_gen == 0) {
    picture.Right("small right", Format("computes %.3f TOPS", test.OperationsPerSecond() / 1e12));
  }
  for (const std::string& note : notes) picture.Left(kLine - 2, "small", note);
}

// What a curve is drawn over.
struct Axis {
  size_t BenchTest::*number;
  const char* title;
  bool is_cost = false;  // draws the time of a pass, and not the speed

  bool IsFor(const BenchTest& test) const {
    if (number != &BenchTest::n_pass) return test.n_texts() == 1;
    return is_cost ? !test.of_texts && test.n_prompt == 0 && test.single_ts > 0 : test.of_texts;
  }
};
constexpr std::array<Axis, 4> kAxes = {
    {{&BenchTest::n_threads, "t/s by threads"},
     {&BenchTest::n_depth, "t/s by tokens already in the cache"},
     {&BenchTest::n_pass, "t/s of all texts, by texts generated together"},
     {&BenchTest::n_pass, "time of a pass by its tokens, relative to one token", true}}};

using Tests = std::vector<const BenchTest*>;

// One work's curves, in each of which the tests differ in nothing else, and below them the numbers.
void DrawCurves(Picture& picture, const Axis& axis, const std::vector<Tests>& curves) {
  constexpr int kTitle = 28, kGap = 12, kRow = kLine - 2;
  size_t n = 0;
  for (const Tests& curve : curves) n += curve.size();
  if (!picture.HasRoom(kTitle + kGap + kCurves + kRow * static_cast<int>(1 + curves.size()), n))
    return;
  const auto value = [&](const BenchTest& test) {
    return axis.is_cost ? test.PassCost() : test.Median();
  };
  double most = 0;
  for (const Tests& curve : curves) {
    for (const BenchTest* test : curve)
      most = std::max({most, value(*test), axis.is_cost ? 0 : test->Limit()});
  }
  BenchTest work = *curves.front().front();
  work.n_depth = 0;
  work.n_pass = 1;
  picture.Left(kTitle, "", work.Name() + ": " + axis.title);
  picture.Down(kGap);
  picture.Line("axis", {{kMargin, kCurves}, {kWidth - kMargin, kCurves}});
  int row = kCurves + kRow;
  for (const Tests& curve : curves) {
    row += kRow;
    if (curves.size() > 1) {
      const std::string threads = Format("-t %zu", curve[0]->n_threads);
      const std::string depth = Format("@ d%zu", curve[0]->n_depth);
      picture.Label(kMargin, row, "small",
                    axis.number == &BenchTest::n_threads ? depth
                    : axis.number == &BenchTest::n_depth ? threads
                                                         : threads + " " + depth);
    }
    const size_t last = curve.size() - 1, step = last / 6 + 1;
    std::vector<std::pair<double, double>> points, limits;
    for (size_t i = 0; i <= last; ++i) {
      constexpr double kFirst = 110, kLast = 430;
      const BenchTest& test = *curve[i];
      const double x = kFirst + (kLast - kFirst) * static_cast<double>(i) / double(last);
      points.emplace_back(x, kCurves * (1 - value(test) / most));
      limits.emplace_back(x, kCurves * (1 - test.Limit() / most));
      picture.Dot(x, points.back().second);
      if (i % step != 0) continue;
      if (row == kCurves + 2 * kRow)
        picture.Label(x, kCurves + kRow, "small middle", std::to_string(test.*axis.number));
      picture.Label(x, row, "small middle", Figures(value(test), 4));
    }
    if (!axis.is_cost) picture.Line("roof", limits);
    picture.Line("cost", points);
  }
  picture.Down(row);
}

// Draws a model's tests that make curves. Returns the others.
Tests DrawScaling(Picture& picture, const Tests& tests) {
  Tests alone = tests;
  for (const Axis& axis : kAxes) {
    std::vector<std::vector<Tests>> works;
    for (const BenchTest* test : tests) {
      if (!axis.IsFor(*test)) continue;
      const auto work = std::ranges::find_if(works, [&](const auto& curves) {
        const BenchTest& other = *curves.front().front();
        return other.n_prompt == test->n_prompt && other.n_gen == test->n_gen;
      });
      auto& curves = work == works.end() ? works.emplace_back() : *work;
      const auto curve = std::ranges::find_if(curves, [&](const Tests& others) {
        return others.front()->DiffersIn(axis.number, *test);
      });
      (curve == curves.end() ? curves.emplace_back() : *curve).push_back(test);
    }
    for (std::vector<Tests>& curves : works) {
      std::erase_if(curves, [](const Tests& curve) { return curve.size() < 2; });
      if (curves.empty()) continue;
      DrawCurves(picture, axis, curves);
      for (const Tests& curve : curves) {
        for (const BenchTest* test : curve) {
          if (!axis.is_cost) std::erase(alone, test);
        }
      }
    }
  }
  return alone;
}

}  // namespace

std::string BenchSvg(const BenchSetting& setting, const std::vector<BenchTest>& tests) {
  Picture picture;
  picture.Left(30, "title", "pronk: tokens per second");
  picture.Left(kLine + 3, "small", setting.Cpu());
  picture.Left(kLine - 2, "small",
               setting.date + ", version " + setting.version + ", commit " + setting.commit);
  picture.Left(kLine - 2, "small",
               "Medians ± standard deviations. Grey is the machine's limit, measured");
  picture.Left(kLine - 2, "small",
               "beside each test: reading weights (tg), multiplying (pp). Bars of one");
  picture.Left(kLine - 2, "small", "colour have one scale.");
  const auto full = [&](const char* kind) {
    double most = 0;
    for (const BenchTest& test : tests) {
      if (std::string_view(Kind(test)) == kind)
        most = std::max({most, test.Median(), test.Limit()});
    }
    return most;
  };
  for (size_t i = 0; i < tests.size();) {
    const BenchModel* const model = tests[i].model;
    Tests of_model;
    for (; i < tests.size() && tests[i].model == model; ++i) of_model.push_back(&tests[i]);
    if (!picture.HasRoom(34 + kLine, of_model.size())) continue;
    picture.Left(34, "title", model->type);
    picture.Left(kLine, "small", ShortPath(model->opened.file.path()));
    for (const BenchTest* test : DrawScaling(picture, of_model))
      DrawTest(picture, *test, full(Kind(*test)));
  }
  return picture.Drawn("pronk bench on " + setting.cpu_name + ", " + setting.date);
}

}  // namespace cli
