// Joins the texts of -p and -f into one.
#include "cli/options/text_options.h"

#include <algorithm>
#include <utility>

#include "cli/command.h"
#include "cli/terminal/terminal.h"

namespace cli {
namespace {

// Files and pipes end with a line feed that is not part of the text.
std::string WithoutLastNewline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

// Adds a part after an empty line. The first one is not copied: it may be hundreds of megabytes.
void Append(std::string part, std::string& text) {
  if (text.empty()) {
    text = std::move(part);
  } else if (!part.empty()) {
    text += "\n\n" + part;
  }
}

}  // namespace

void TextOptions::AddFlags(Command& command, const std::string& about_prompt,
                           const std::string& about_files) {
  command.Add("-p,--prompt,TEXT TEXT", prompt, about_prompt).Once();
  command.Add("-f,--file FILE", files, about_files);
}

bool TextOptions::reads_stdin() const { return !is_given() || std::ranges::count(files, "-") > 0; }

std::string TextOptions::Read(bool exact) const {
  const auto read = [&](const std::string& file) {
    std::string text = ReadText(file);
    return exact ? text : WithoutLastNewline(std::move(text));
  };
  std::string all;
  if (!is_given()) {
    if (!IsTerminal(0)) all = read("-");
    if (all.empty() && !exact) {
      throw UsageError("no prompt: give one with -p TEXT or -f FILE, or pipe it in");
    }
  }
  for (const std::string& file : files) Append(read(file), all);
  Append(prompt.value_or(""), all);
  return all;
}

}  // namespace cli
