#include "cli/output/format.h"

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace cli {

std::string Format(const char* format, ...) {
  std::va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  std::string text(static_cast<size_t>(std::vsnprintf(nullptr, 0, format, args)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(args);
  return text;
}

std::string HumanBytes(double bytes) {
  constexpr std::array kUnits = {"bytes", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2;
  return Format("%.*f %s", digits, bytes, kUnits[unit]);
}

}  // namespace cli
