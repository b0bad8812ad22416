// The roofline of a traced token, with logarithmic axes: x is operations per byte read, y is
// operations per second. Memory bandwidth limits speed on the left (a slope), the kernels'
// multiplication speed on the right (a level).
#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/output/svg.h"
#include "cli/output/text.h"
#include "cli/trace/trace_report.h"

namespace cli {
namespace {

constexpr double kLeft = 56, kRight = kSvgWidth - kSvgMargin, kTop = 96, kBottom = 400;

// Steps that both read and compute; others have no ratio.
struct Dot {
  double intensity, speed;  // operations per byte, operations per second
  const char* classes;
  std::string what;
};

void AddDots(const engine::Trace& trace, const char* classes, std::vector<Dot>& dots) {
  for (const engine::TraceStep& step : trace.steps) {
    if (step.bytes == 0 || step.operations == 0 || step.seconds <= 0) continue;
    const std::string tensors = StepTensors(step, /*with_layer=*/true);
    dots.push_back({step.operations / static_cast<double>(step.bytes),
                    step.operations / step.seconds, classes,
                    std::string(step.kind) + (tensors.empty() ? "" : " " + tensors) +
                        Format(", %.1f us", step.seconds * 1e6)});
  }
}

// Whole powers of ten around the shown values.
struct Axis {
  int low, high;
  double from, to;  // position in the picture

  Axis(double least, double most, double first, double last)
      : low(static_cast<int>(std::floor(std::log10(least)))),
        high(std::max(low + 1, static_cast<int>(std::ceil(std::log10(most))))),
        from(first),
        to(last) {}
  double At(double value) const {
    return from + (std::log10(value) - low) / (high - low) * (to - from);
  }
};

std::string LineTo(const char* classes, double x1, double y1, double x2, double y2) {
  return Format("<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", classes, x1, y1, x2, y2);
}

std::string DrawAxes(const Axis& x, const Axis& y) {
  std::string body;
  for (int power = x.low; power <= x.high; ++power) {
    const double at = x.At(std::pow(10, power));
    body += LineTo("axis", at, kTop, at, kBottom) +
            SvgText(at, kBottom + 18, "small middle", Format("%g", std::pow(10, power)));
  }
  for (int power = y.low; power <= y.high; ++power) {
    const double at = y.At(std::pow(10, power));
    body += LineTo("axis", kLeft, at, kRight, at) +
            SvgText(kLeft - 6, at + 4, "small right", Format("%g", std::pow(10, power - 9)));
  }
  return body +
         SvgText((kLeft + kRight) / 2, kBottom + 38, "small middle",
                 "operations for each byte that is read") +
         SvgText(kSvgMargin, kTop - 10, "small", "1e9 operations per second");
}

}  // namespace

std::string TraceSvg(const TraceReport& report) {
  std::vector<Dot> dots;
  AddDots(report.token, "tg", dots);
  const size_t n_of_token = dots.size();
  AddDots(report.prompt, "pp", dots);
  const double ridge = report.dot_ceiling / report.read_ceiling;
  double least = ridge, most = ridge, slowest = report.dot_ceiling, fastest = slowest;
  for (const Dot& dot : dots) {
    least = std::min(least, dot.intensity);
    most = std::max(most, dot.intensity);
    slowest = std::min(slowest, dot.speed);
    fastest = std::max(fastest, dot.speed);
  }
  const Axis x(least, 2 * most, kLeft, kRight), y(slowest, fastest, kBottom, kTop);
  // The roof: a slope from the left up to the level; they meet at the ridge.
  const double left = std::max(std::pow(10, x.low), std::pow(10, y.low) / report.read_ceiling);
  const double level = y.At(report.dot_ceiling);
  std::string body =
      SvgText(kSvgMargin, 30, "title", "Roofline: " + ShortPath(report.model.file.path())) +
      SvgText(kSvgMargin, 52, "small",
              Format("%zu threads: reads at most %.1f GB/s, computes %.2fe12/s", report.n_threads,
                     report.read_ceiling / 1e9, report.dot_ceiling / 1e12)) +
      DrawAxes(x, y) +
      Format("<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/>\n", x.At(left),
             y.At(left * report.read_ceiling), x.At(ridge), level, x.to, level);
  for (const Dot& dot : dots) {
    body += Format(
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"%s\" fill-opacity=\"0.6\">"
        "<title>%s</title></circle>\n",
        x.At(dot.intensity), y.At(dot.speed), dot.classes, SvgEscaped(dot.what).c_str());
  }
  const auto legend = [&](double at, const char* classes, const std::string& text) {
    body += Format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"%s\"/>\n", at, kBottom + 56,
                   classes) +
            SvgText(at + 10, kBottom + 60, "small", text);
  };
  legend(kLeft, "tg", "one token");
  if (dots.size() > n_of_token) {
    legend(kLeft + 110, "pp", Format("%zu tokens at once", report.tokens.size()));
  }
  return Svg("Roofline of " + ShortPath(report.model.file.path()), static_cast<int>(kBottom) + 76,
             body);
}

}  // namespace cli
