// SVG pictures for a column as narrow as a phone's; colours follow the reader's dark or light mode.
#pragma once

#include <string>

namespace cli {

inline constexpr int kSvgWidth = 480, kSvgMargin = 16;

// CSS classes: text is plain or "small", "title", "value" (right-aligned), "right"; areas are "tg"
// (one token at a time), "pp" (many at once), "both", "limit"; lines are "axis", "roof" and "cost".
std::string Svg(const std::string& title, int height, const std::string& body);

// Escapes a text that stands between tags.
std::string SvgEscaped(const std::string& text);

std::string SvgText(double x, double y, const char* classes, const std::string& text);

}  // namespace cli
