// Parses lists of numbers, and of token ids.
#include "cli/options/number_list.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "cli/command.h"
#include "gguf/error.h"

namespace cli {
namespace {

constexpr size_t kMaxNumbers = 1000;

// One flag's numbers, read from left to right.
class Reader {
 public:
  Reader(const std::string& flag, size_t low, size_t high) : flag_(flag), low_(low), high_(high) {}

  void Read(std::string_view text) {
    text_ = rest_ = text;
    do {
      Range();
    } while (Skip(','));
    if (!rest_.empty()) Fail();
  }

  std::vector<size_t> numbers;

 private:
  void Range() {
    const size_t first = Number();
    if (!Skip('-')) return Add(first);
    const size_t last = Number();
    if (last < first) Fail();
    const bool multiplies = Skip('*');
    const size_t step = multiplies || Skip('+') ? Digits() : 1;
    if (step > high_ || (multiplies ? step < 2 || first == 0 : step < 1)) Fail();
    for (size_t n = first; n <= last; n = multiplies ? n * step : n + step) Add(n);
  }

  // From low to high, so that sums and products of two do not overflow.
  size_t Number() {
    const size_t number = Digits();
    if (number >= low_ && number <= high_) return number;
    throw UsageError(flag_, ": expected a number from ", low_, " to ", high_, ", found ",
                     gguf::Printable(text_));
  }

  // SIZE_MAX for a number that is too large.
  size_t Digits() {
    const bool negative = rest_.starts_with('-');
    size_t number = 0;
    const auto [end, error] =
        std::from_chars(rest_.data() + (negative ? 1 : 0), rest_.data() + rest_.size(), number);
    if (error == std::errc::invalid_argument) Fail();
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return negative || error != std::errc() ? SIZE_MAX : number;
  }

  bool Skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void Add(size_t number) {
    if (numbers.size() == kMaxNumbers) {
      throw UsageError(flag_, ": expected at most ", kMaxNumbers, " numbers, found more");
    }
    numbers.push_back(number);
  }

  [[noreturn]] void Fail() const {
    throw UsageError(flag_, ": expected numbers such as 512, 1,2,4, 1-8, 1-8+2 or 1-8*2, found ",
                     gguf::Printable(text_));
  }

  const std::string& flag_;
  size_t low_, high_;
  std::string_view text_, rest_;
};

}  // namespace

std::vector<size_t> ParseNumbers(const std::string& flag, const std::vector<std::string>& texts,
                                 size_t low, size_t high) {
  Reader reader(flag, low, high);
  for (const std::string& text : texts) reader.Read(text);
  return std::move(reader.numbers);
}

std::vector<tokenizer::TokenId> ParseIds(const std::string& text) {
  std::vector<tokenizer::TokenId> ids;
  constexpr std::string_view kSeparators = " ,\t\n[]";
  for (size_t at = text.find_first_not_of(kSeparators); at != std::string::npos;) {
    tokenizer::TokenId id = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + at, end, id);
    if (error != std::errc() ||
        (rest != end && kSeparators.find(*rest) == std::string_view::npos)) {
      throw UsageError("--ids: expected numbers separated by spaces, found '", text.substr(at, 20),
                       "'");
    }
    ids.push_back(id);
    at = text.find_first_not_of(kSeparators, static_cast<size_t>(rest - text.data()));
  }
  if (ids.empty()) throw UsageError("--ids: no ids given");
  return ids;
}

}  // namespace cli
