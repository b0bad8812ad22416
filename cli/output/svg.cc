// The frame of a picture, its colours, and escaped text.
#include "cli/output/svg.h"

#include "cli/output/text.h"

namespace cli {
namespace {

constexpr const char* kStyle = R"(<style>
  svg { color-scheme: light dark; max-width: 100%; height: auto;
        font: 14px system-ui, sans-serif; }
  .paper { fill: #ffffff; }
  text { fill: #1f2328; }
  .small { fill: #59636e; font-size: 12.5px; }
  .title { font-size: 16px; font-weight: 600; }
  .value { text-anchor: end; font-weight: 600; }
  .right { text-anchor: end; }
  .middle { text-anchor: middle; }
  .limit { fill: #dfe3e8; }
  .tg { fill: #2f6fb3; }
  .pp { fill: #b3590a; }
  .both { fill: #6b4fb3; }
  .axis { stroke: #dfe3e8; fill: none; }
  .cost { stroke: #2f6fb3; stroke-width: 2; fill: none; }
  .roof { stroke: #59636e; stroke-width: 2; fill: none; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; }
    text { fill: #e6edf3; }
    .small { fill: #9aa4af; }
    .limit { fill: #2b323b; }
    .tg { fill: #58a6ff; }
    .pp { fill: #f0883e; }
    .both { fill: #a78bfa; }
    .axis { stroke: #2b323b; }
    .cost { stroke: #58a6ff; }
    .roof { stroke: #9aa4af; }
  }
</style>
)";

}  // namespace

std::string Svg(const std::string& title, int height, const std::string& body) {
  return Format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>%s</title>\n",
             kSvgWidth, height, kSvgWidth, height, SvgEscaped(title).c_str()) +
         kStyle + "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n" + body + "</svg>\n";
}

std::string SvgEscaped(const std::string& text) {
  return Replaced(text, {{'&', "&amp;"}, {'<', "&lt;"}});
}

std::string SvgText(double x, double y, const char* classes, const std::string& text) {
  return Format("<text x=\"%.4g\" y=\"%.4g\" class=\"%s\">%s</text>\n", x, y, classes,
                SvgEscaped(text).c_str());
}

}  // namespace cli
