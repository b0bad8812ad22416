#include "cli/terminal/text_output.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "cli/terminal/charset.h"
#include "cli/terminal/terminal.h"
#include "gguf/utf8.h"

namespace cli {
namespace {

constexpr size_t kTab = 8;  // columns from stop to stop

void ShowThinking(const std::string& text) {
  if (text.empty()) return;
  const char* const form = HasColour(STDERR_FILENO) ? "\033[2m%s\033[0m" : "%s";
  std::fprintf(stderr, form, ForTerminal(text).c_str());
}

}  // namespace

void WordWrapper::Place(size_t columns, std::string& out) {
  if (word_.empty()) return;
  size_t end = column_;
  for (const char c : spaces_) end += c == '\t' ? kTab - end % kTab : 1;
  // A word that is longer than a line has to be broken anyway.
  if (column_ > 0 && end + word_width_ > columns && word_width_ <= columns) {
    out += '\n';
    end = 0;
  } else {
    out += spaces_;
  }
  out += word_;
  column_ = end + word_width_;
  if (column_ > columns) column_ %= columns;  // the terminal has broken it
  spaces_.clear();
  word_.clear();
  word_width_ = 0;
}

std::string WordWrapper::Push(std::string_view text, size_t columns) {
  std::string out;
  if (columns == 0) {
    out = std::exchange(spaces_, "") + std::exchange(word_, "");
    return out.append(text);
  }
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (code == ' ' || code == '\t' || code == '\n') {
      Place(columns, out);
      if (code != '\n') {
        spaces_ += bytes;
        continue;
      }
      out += std::exchange(spaces_, "") + '\n';
      column_ = 0;
      continue;
    }
    const size_t width = CharColumns(code);
    if (width == 2) Place(columns, out);  // between characters of Chinese a line may end
    word_ += bytes;
    word_width_ += width;
    if (width == 2 || word_width_ > columns) Place(columns, out);
  }
  return out;
}

std::string WordWrapper::Finish(size_t columns) {
  std::string out;
  if (columns != 0) Place(columns, out);
  return out + std::exchange(spaces_, "") + std::exchange(word_, "");
}

void TextOutput::EndThinking() {
  if (!std::exchange(is_thinking_, false)) return;
  ShowThinking(thinking_.Finish(Columns(STDERR_FILENO)));
  std::fputs(HasColour(STDERR_FILENO) ? "\n\n" : "\n(done thinking)\n\n", stderr);
}

void TextOutput::WriteThinking(std::string_view text) {
  if (!IsTerminal(STDERR_FILENO)) return;
  if (!std::exchange(is_thinking_, true) && !HasColour(STDERR_FILENO)) {
    std::fputs("(thinking)\n", stderr);
  }
  ShowThinking(thinking_.Push(text, Columns(STDERR_FILENO)));
}

bool TextOutput::Write(std::string_view text) {
  EndThinking();
  if (!text.empty()) last_ = text.back();
  return WriteOut(text_.Push(text, Columns(STDOUT_FILENO)));
}

bool TextOutput::Finish(bool follows) {
  EndThinking();
  std::string end = text_.Finish(Columns(STDOUT_FILENO));
  if (IsTerminal(STDOUT_FILENO)) {
    end += "\n\n";
  } else {
    end += std::string(last_ == '\n' ? "" : "\n") + (follows ? "\n" : "");
  }
  return WriteOut(end);
}

}  // namespace cli
