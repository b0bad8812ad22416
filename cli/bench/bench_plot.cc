// The results of pronk bench as an SVG picture: speeds over threads, depth, texts or tokens of a
// pass as curves; each other test's name and speed, and below them a bar beside the machine's
// limit. Every number can be read off an axis with ticks.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "cli/bench/bench.h"
#include "cli/output/svg.h"
#include "cli/output/text.h"

namespace cli {
namespace {

constexpr int kWidth = kSvgWidth, kMargin = kSvgMargin, kBar = kWidth - 2 * kMargin;
constexpr int kSmall = 17;     // between two lines of small text
constexpr double kLabel = 14;  // between labels that stand in a column

// Round numbers from 0 to at least `most`, at most six.
std::vector<double> TicksFor(double most) {
  const double raw = std::max(most, 1e-9) / 5, power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double digit : {5, 2, 1}) step = digit * power >= raw ? digit * power : step;
  std::vector<double> ticks = {0};
  while (ticks.back() < most) ticks.push_back(step * static_cast<double>(ticks.size()));
  return ticks;
}

std::string TickText(double tick) { return Format("%.10g", tick); }

class Picture {
 public:
  void Down(double by) { y_ += by; }
  // Adds a text at the current height, or `up` above it.
  void Text(double x, const char* classes, const std::string& text, double up = 0) {
    body_ += SvgText(x, y_ - up, classes, text);
  }
  void Left(double down, const char* classes, const std::string& text) {
    Down(down);
    Text(kMargin, classes, text);
  }
  void Bar(const char* what, double width) {
    body_ +=
        Format("<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"12\" rx=\"2\" class=\"%s\"/>\n",
               kMargin, y_, width, what);
  }
  // Points are given with their heights above the current one.
  void Line(const char* what, const std::vector<std::pair<double, double>>& points) {
    body_ += Format("<polyline class=\"%s\" points=\"", what);
    for (const auto& [x, up] : points) body_ += Format("%.1f,%.1f ", x, y_ - up);
    body_ += "\"/>\n";
  }
  void Dot(double x, double up) {
    body_ += Format("<circle class=\"tg\" r=\"3.5\" cx=\"%.1f\" cy=\"%.1f\"/>\n", x, y_ - up);
  }
  std::string Drawn(const std::string& title) const {
    return Svg(title, static_cast<int>(y_) + kMargin, body_);
  }

 private:
  std::string body_;
  double y_ = 0;
};

using Results = std::vector<const BenchResult*>;

void DrawBar(Picture& picture, const BenchResult& result, double full) {
  const BenchTest& test = result.test;
  picture.Left(26, "", test.Name() + ", " + Counted(test.n_threads, "thread"));
  picture.Text(kWidth - kMargin, "value", Format("%.1f t/s", result.Speed()));
  picture.Down(7);
  picture.Bar("limit", kBar * result.Limit() / full);
  picture.Bar(test.Kind(), kBar * result.Speed() / full);
  picture.Left(27, "small",
               Format("%.1f-%.1f; %.0f%% of the limit of %.1f", result.Speed(0.25),
                      result.Speed(0.75), 100 * result.Share(), result.Limit()));
  if (test.n_prompt == 0) {
    picture.Text(kWidth - kMargin, "small right",
                 Format("reads %.1f GB/s", result.ReadsPerSecond() / 1e9));
  } else if (test.n_gen == 0) {
    picture.Text(kWidth - kMargin, "small right",
                 Format("computes %.3f TOPS", result.OperationsPerSecond() / 1e12));
  }
  for (const std::string& note : result.Notes()) picture.Left(kSmall, "small", note);
}

// The bars of one kind of test, which have one scale in the whole picture, and its axis.
void DrawBars(Picture& picture, const Results& results, double most) {
  const std::vector<double> ticks = TicksFor(most);
  for (const BenchResult* result : results) DrawBar(picture, *result, ticks.back());
  picture.Down(10);
  picture.Line("axis", {{kMargin, 0}, {kWidth - kMargin, 0}});
  for (const double tick : ticks) {
    const double x = kMargin + kBar * tick / ticks.back();
    picture.Line("axis", {{x, 0}, {x, -5}});
    const char* const place = tick == 0              ? "small"
                              : tick == ticks.back() ? "small right"
                                                     : "small middle";
    picture.Text(x, place, TickText(tick) + (tick == 0 ? " t/s" : ""), -18);
  }
  picture.Down(22);
}

// The x axis of a curve.
struct BenchAxis {
  size_t BenchTest::*number;
  const char *title, *unit;
};
constexpr std::array<BenchAxis, 4> kAxes = {
    {{&BenchTest::n_threads, "t/s by threads", "threads"},
     {&BenchTest::n_depth, "t/s by tokens already in the cache", "tokens in the cache"},
     {&BenchTest::n_texts, "t/s of all texts, by texts generated together", "texts"},
     {&BenchTest::n_pass, "t/s if all drafts are right", "tokens of a pass"}}};

// The name that distinguishes a curve of this axis: "-t 2 @ d0".
std::string CurveName(const BenchAxis& axis, const BenchTest& test) {
  std::vector<std::string> parts;
  const auto add = [&](size_t BenchTest::*number, const char* format) {
    if (axis.number != number) parts.push_back(Format(format, test.*number));
  };
  add(&BenchTest::n_threads, "-t %zu");
  add(&BenchTest::n_depth, "@ d%zu");
  if (test.n_texts > 1) add(&BenchTest::n_texts, "x%zu");
  return Joined(parts, " ");
}

// One work's curves; a curve's tests differ only in the number at x.
void DrawCurves(Picture& picture, const BenchAxis& axis, const std::vector<Results>& curves) {
  constexpr double kFirst = 60, kLast = 370, kHeight = 130;
  double most = 0;
  std::vector<size_t> numbers;  // the numbers at x
  for (const Results& curve : curves) {
    for (const BenchResult* result : curve) {
      most = std::max({most, result->Speed(), result->Limit()});
      numbers.push_back(result->test.*axis.number);
    }
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const std::vector<double> ticks = TicksFor(most);
  const double gap = (kLast - kFirst) / static_cast<double>(numbers.size() - 1);
  const auto x_of = [&](size_t number) {
    const auto at = std::ranges::lower_bound(numbers, number) - numbers.begin();
    return kFirst + gap * static_cast<double>(at);
  };
  const auto up_of = [&](double value) { return kHeight * value / ticks.back(); };

  BenchTest work = curves[0][0]->test;
  work.n_depth = 0;
  work.n_pass = work.n_texts = 1;
  picture.Left(28, "", work.Name() + ": " + axis.title);
  picture.Down(kHeight + 14);
  for (const double tick : ticks) {
    picture.Line("axis", {{kFirst - 6, up_of(tick)}, {kLast, up_of(tick)}});
    picture.Text(kFirst - 10, "small right", TickText(tick), up_of(tick) - 4);
  }
  double free_from = 0;  // labels of x that have room
  for (const size_t number : numbers) {
    const std::string text = std::to_string(number);
    const double half = 4 * static_cast<double>(text.size()), x = x_of(number);
    picture.Line("axis", {{x, 0}, {x, -5}});
    if (x - half < free_from) continue;
    picture.Text(x, "small middle", text, -18);
    free_from = x + half + 4;
  }
  std::vector<std::pair<double, std::string>> labels;  // height of a curve's end, its name
  for (const Results& curve : curves) {
    std::vector<std::pair<double, double>> points, limits;
    for (const BenchResult* result : curve) {
      const double x = x_of(result->test.*axis.number);
      points.emplace_back(x, up_of(result->Speed()));
      limits.emplace_back(x, up_of(result->Limit()));
      picture.Dot(x, points.back().second);
    }
    picture.Line("roof", limits);
    picture.Line("cost", points);
    labels.emplace_back(points.back().second, CurveName(axis, curve[0]->test));
  }
  std::ranges::sort(labels);
  double lowest = -HUGE_VAL;
  for (const auto& [up, name] : labels) {
    lowest = std::max(up - 4, lowest + kLabel);
    picture.Text(kLast + 10, "small", name, lowest);
  }
  picture.Left(36, "small", "");
  picture.Text((kFirst + kLast) / 2, "small middle", axis.unit);
}

// Draws a model's tests that make curves. Returns the other tests.
Results DrawScaling(Picture& picture, const Results& results) {
  Results alone = results;
  for (const BenchAxis& axis : kAxes) {
    std::vector<std::vector<Results>> works;
    for (const BenchResult* result : results) {
      const BenchTest& test = result->test;
      const auto work = std::ranges::find_if(works, [&](const auto& curves) {
        const BenchTest& other = curves[0][0]->test;
        return other.n_prompt == test.n_prompt && other.n_gen == test.n_gen;
      });
      auto& curves = work == works.end() ? works.emplace_back() : *work;
      const auto curve = std::ranges::find_if(curves, [&](const Results& others) {
        return others[0]->test.DiffersIn(axis.number, test);
      });
      (curve == curves.end() ? curves.emplace_back() : *curve).push_back(result);
    }
    for (std::vector<Results>& curves : works) {
      std::erase_if(curves, [&](const Results& curve) {
        return curve.size() < 2 || curve[0]->test.*axis.number == curve[1]->test.*axis.number;
      });
      if (curves.empty()) continue;
      DrawCurves(picture, axis, curves);
      for (const Results& curve : curves) {
        for (const BenchResult* result : curve) std::erase(alone, result);
      }
    }
  }
  return alone;
}

}  // namespace

std::string BenchSvg(const BenchSetting& setting, const std::vector<BenchResult>& results) {
  Picture picture;
  picture.Left(30, "title", "pronk: tokens per second");
  picture.Left(22, "small", setting.Cpu());
  picture.Left(kSmall, "small",
               setting.date + ", version " + setting.version + ", commit " + setting.commit);
  picture.Left(kSmall, "small", "Medians, and the quartiles below each bar. Grey is the machine's");
  picture.Left(kSmall, "small", "limit: reading weights (tg), multiplying (pp).");
  for (size_t i = 0; i < results.size();) {
    const BenchModel* const model = results[i].test.model;
    Results of_model;
    for (; i < results.size() && results[i].test.model == model; ++i)
      of_model.push_back(&results[i]);
    picture.Left(34, "title", model->type);
    picture.Left(19, "small", ShortPath(model->opened.file.path()));
    const Results alone = DrawScaling(picture, of_model);
    for (const std::string_view kind : {"tg", "pp", "both"}) {
      Results bars;
      double most = 0;
      for (const BenchResult* result : alone) {
        if (result->test.Kind() == kind) bars.push_back(result);
      }
      for (const BenchResult& result : results) {
        if (result.test.Kind() == kind) most = std::max({most, result.Speed(), result.Limit()});
      }
      if (!bars.empty()) DrawBars(picture, bars, most);
    }
  }
  return picture.Drawn("pronk bench on " + setting.cpu_name + ", " + setting.date);
}

}  // namespace cli
