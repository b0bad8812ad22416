#include "tokenizer/space_mark.h"

namespace tokenizer {
namespace {

std::string ReplaceAll(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  out.reserve(text.size());
  for (size_t at; (at = text.find(what)) != std::string_view::npos;) {
    out += text.substr(0, at);
    out += with;
    text.remove_prefix(at + what.size());
  }
  return out += text;
}

}  // namespace

std::string MarkSpaces(std::string_view text) { return ReplaceAll(text, " ", kSpaceMark); }
std::string UnmarkSpaces(std::string_view spelling) {
  return ReplaceAll(spelling, kSpaceMark, " ");
}

}  // namespace tokenizer
