// Formats dates.

#include <chrono>
#include <string>
#include <string_view>

#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

std::string Padded(int64_t value, size_t width, char fill) {
  std::string digits = std::to_string(value);
  if (fill == '\0' || digits.size() >= width) return digits;
  return std::string(width - digits.size(), fill) + digits;
}

// The value of one conversion; an unknown conversion itself.
std::string Convert(std::chrono::local_seconds time, char conversion, bool padded) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(time - days);
  const int year = int{date.year()};
  const int64_t hour = clock.hours().count();
  const unsigned weekday = std::chrono::weekday(days).c_encoding();  // 0: Sunday
  const std::string_view day = kDays[weekday], month = kMonths[unsigned{date.month()} - 1];
  const std::chrono::local_days new_year(date.year() / std::chrono::January / 1);
  const auto number = [&](int64_t value, size_t width, char fill = '0') {
    return Padded(value, width, padded ? fill : '\0');
  };
  // clang-format off
  switch (conversion) {
    case 'a': return std::string(day.substr(0, 3));
    case 'A': return std::string(day);
    case 'b': case 'h': return std::string(month.substr(0, 3));
    case 'B': return std::string(month);
    case 'c': return FormatTime(time, "%a %b %e %H:%M:%S %Y");
    case 'd': return number(unsigned{date.day()}, 2);
    case 'D': case 'x': return FormatTime(time, "%m/%d/%y");
    case 'e': return number(unsigned{date.day()}, 2, ' ');
    case 'f': return "000000";  // of a second: times here are whole seconds
    case 'F': return FormatTime(time, "%Y-%m-%d");
    case 'H': return number(hour, 2);
    case 'I': return number((hour + 11) % 12 + 1, 2);
    case 'j': return number((days - new_year).count() + 1, 3);
    case 'm': return number(unsigned{date.month()}, 2);
    case 'M': return number(clock.minutes().count(), 2);
    case 'n': return "\n";
    case 'p': return hour < 12 ? "AM" : "PM";
    case 'R': return FormatTime(time, "%H:%M");
    case 'S': return number(clock.seconds().count(), 2);
    case 't': return "\t";
    case 'T': case 'X': return FormatTime(time, "%H:%M:%S");
    case 'u': return std::to_string(weekday == 0 ? 7 : weekday);
    case 'w': return std::to_string(weekday);
    case 'y': return number(year % 100, 2);
    case 'Y': return std::to_string(year);
    case '%': return "%";
    default: return std::string(padded ? "%" : "%-") + conversion;
  }
  // clang-format on
}

}  // namespace

std::string FormatTime(std::chrono::local_seconds time, std::string_view format) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const bool padded = format[i + 1] != '-' || i + 2 == format.size();
    i += padded ? 1 : 2;
    out += Convert(time, format[i], padded);
  }
  return out;
}

}  // namespace tokenizer::jinja
