// The roofline of a traced token: operations per byte read (x), per second (y), both logarithmic.
// Memory bandwidth limits speed on the left (a slope), multiplication speed on the right (a level).
#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/output/svg.h"
#include "cli/output/text.h"
#include "cli/trace/trace_report.h"

namespace cli {
namespace {

constexpr double kLeft = 56, kRight = kSvgWidth - kSvgMargin, kTop = 96, kBottom = 400;

// Operations that both read and compute; other operations have no ratio.
struct Dot {
  double intensity, speed;  // operations per byte, operations per second
  double seconds;
  bool at_once;  // a pass of all tokens, not of one
  std::string layer;
};

// One operation in all layers: "attention", "attn_q attn_k attn_v".
struct Group {
  std::string name;
  std::vector<Dot> dots;

  // Attention and products differ in colour (svg.h) and name.
  bool IsAttention() const { return name == "attention"; }
  const char* classes() const { return IsAttention() ? "pp" : "tg"; }
  // The dot with the median time; null if there is no dot.
  const Dot* Median(bool at_once) const {
    std::vector<const Dot*> by_time;
    for (const Dot& dot : dots) {
      if (dot.at_once == at_once) by_time.push_back(&dot);
    }
    std::ranges::sort(by_time, {}, &Dot::seconds);
    return by_time.empty() ? nullptr : by_time[by_time.size() / 2];
  }
};

void AddDots(const engine::Trace& trace, bool at_once, std::vector<Group>& groups) {
  for (size_t i = 0; i < trace.operations.size(); ++i) {
    const engine::TraceOperation& operation = trace.operations[i];
    if (operation.bytes == 0 || operation.flops == 0 || operation.seconds <= 0) continue;
    const std::string tensors = OperationTensors(operation);
    const std::string name = tensors.empty() ? std::string(operation.kind) : tensors;
    const auto same = [&](const Group& group) { return group.name == name; };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(group, {name, {}});
    group->dots.push_back({operation.flops / static_cast<double>(operation.bytes),
                           operation.flops / operation.seconds, operation.seconds, at_once,
                           OperationPart(trace, i)});
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

// One token is a circle, all tokens at once a square.
std::string Mark(double x, double y, const Dot& dot, const Group& group) {
  const std::string place =
      dot.at_once ? Format("<rect x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\"", x - 3.5, y - 3.5)
                  : Format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"", x, y);
  return Format("%s class=\"%s\" fill-opacity=\"0.6\"><title>%s, %s, %.1f us</title></%s>\n",
                place.c_str(), group.classes(), SvgEscaped(group.name).c_str(), dot.layer.c_str(),
                dot.seconds * 1e6, dot.at_once ? "rect" : "circle");
}

// A number beside the median dot of every group, moved down if it would cover another.
std::string DrawNumbers(const std::vector<Group>& groups, const Axis& x, const Axis& y) {
  struct Place {
    double x, y;
    size_t number;
  };
  std::vector<Place> places;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const bool at_once : {false, true}) {
      const Dot* const dot = groups[i].Median(at_once);
      if (dot != nullptr) places.push_back({x.At(dot->intensity), y.At(dot->speed), i + 1});
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.y < b.y; });
  std::string body;
  for (size_t i = 0; i < places.size(); ++i) {
    Place& place = places[i];
    for (size_t k = 0; k < i; ++k) {
      const bool is_near = std::abs(places[k].x - place.x) < 18;
      if (is_near) place.y = std::max(place.y, places[k].y + 12);
    }
    body += SvgText(place.x + 7, place.y + 4, "small", std::to_string(place.number));
  }
  return body;
}

// "2  attn_output, product   4.1 us   30.2 us"; adds to `bottom`.
std::string DrawLegend(const std::vector<Group>& groups, size_t n_tokens, double& bottom) {
  constexpr double kOne = kRight - 96, kName = kSvgMargin + 34;
  const auto right = [&](double x, const std::string& text) {
    return SvgText(x, bottom, "small right", text);
  };
  std::string body =
      SvgText(kName, bottom, "small", "median of the layers") + right(kOne, "\u25cf one token");
  if (n_tokens > 1) body += right(kRight, Format("\u25a0 %zu at once", n_tokens));
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    bottom += 18;
    const std::string word = group.IsAttention() ? "" : ", product";
    body += Format("<circle cx=\"%d\" cy=\"%.0f\" r=\"4\" class=\"%s\"/>\n", kSvgMargin + 4,
                   bottom - 4, group.classes()) +
            right(kName - 6, std::to_string(i + 1)) +
            SvgText(kName, bottom, "small", Cut(group.name, 32) + word);
    for (const bool at_once : {false, true}) {
      const Dot* const dot = group.Median(at_once);
      if (dot == nullptr) continue;
      body += right(at_once ? kRight : kOne, Format("%.1f us", dot->seconds * 1e6));
    }
  }
  return body;
}

}  // namespace

std::string TraceSvg(const TraceReport& report) {
  std::vector<Group> groups;
  AddDots(report.token, /*at_once=*/false, groups);
  AddDots(report.prompt, /*at_once=*/true, groups);
  const double ridge = report.dot_ceiling / report.read_ceiling;
  double least = ridge, most = ridge, slowest = report.dot_ceiling, fastest = slowest;
  for (const Group& group : groups) {
    for (const Dot& dot : group.dots) {
      least = std::min(least, dot.intensity);
      most = std::max(most, dot.intensity);
      slowest = std::min(slowest, dot.speed);
      fastest = std::max(fastest, dot.speed);
    }
  }
  const Axis x(least, 2 * most, kLeft, kRight), y(slowest, fastest, kBottom, kTop);
  // The roof: a slope from the left up to the level; they meet at the ridge.
  const double left = std::max(std::pow(10, x.low), std::pow(10, y.low) / report.read_ceiling);
  const double level = y.At(report.dot_ceiling);
  std::string body =
      SvgText(kSvgMargin, 30, "title", "Roofline: " + ShortPath(report.model.file.path())) +
      SvgText(
          kSvgMargin, 52, "small",
          Counted(report.n_threads, "thread") +
              Format(": at most %.1f GB/s from %s, %.0fe9 operations/s", report.read_ceiling / 1e9,
                     report.reads_from.c_str(), report.dot_ceiling / 1e9)) +
      DrawAxes(x, y) +
      Format("<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/>\n", x.At(left),
             y.At(left * report.read_ceiling), x.At(ridge), level, x.to, level);
  for (const Group& group : groups) {
    for (const Dot& dot : group.dots)
      body += Mark(x.At(dot.intensity), y.At(dot.speed), dot, group);
  }
  double bottom = kBottom + 66;
  body += DrawNumbers(groups, x, y) + DrawLegend(groups, report.tokens.size(), bottom);
  return Svg("Roofline of " + ShortPath(report.model.file.path()), static_cast<int>(bottom) + 18,
             body);
}

}  // namespace cli
