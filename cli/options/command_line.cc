#include "cli/options/command_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <type_traits>

#include "cli/command.h"
#include "cli/options/arguments.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "gguf/error.h"

namespace cli {
namespace {

template <class T>
std::string SetNumber(const std::string& text, T& variable) {
  // For an unsigned type the flag's range, not the type, rejects a negative number.
  std::conditional_t<std::is_unsigned_v<T>, int64_t, T> value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + text.starts_with('+'), end, value);
  if (error == std::errc::result_out_of_range) return "expected a smaller number, found " + text;
  bool is_number = error == std::errc() && rest == end;
  if constexpr (std::is_floating_point_v<T>) is_number = is_number && std::isfinite(value);
  variable = static_cast<T>(value);
  if (is_number) return "";
  return std::string("expected a ") + (std::is_floating_point_v<T> ? "" : "whole ") +
         "number, found " + text;
}

std::string SetSwitch(const std::string& text, bool& variable) {
  constexpr auto kYes =
      std::to_array<std::string_view>({"", "1", "t", "y", "on", "yes", "true", "enable"});
  constexpr auto kNo =
      std::to_array<std::string_view>({"0", "f", "n", "off", "no", "false", "disable"});
  variable = std::ranges::find(kYes, text) != kYes.end();
  const bool is_known = variable || std::ranges::find(kNo, text) != kNo.end();
  return is_known ? "" : "expected yes or no, found " + text;
}

// "  NAME   what it is"; a name that is too long gets a line of its own.
std::string HelpLine(const std::string& name, const std::string& what) {
  constexpr int kWidth = 34;
  const bool fits = name.size() + 2 < kWidth;
  return fits ? Format("  %-*s%s\n", kWidth - 2, name.c_str(), what.c_str())
              : Format("  %s\n%*s%s\n", name.c_str(), kWidth, "", what.c_str());
}

std::string HelpLine(const Flag& flag, std::string name) {
  // A list of values longer than a line is not repeated: the flag's text names the common ones.
  constexpr size_t kMaxType = 58;
  if (!flag.type.empty() && flag.type.size() <= kMaxType) name += " " + flag.type;
  if (!flag.default_text.empty()) name += "=" + flag.default_text;
  if (flag.required) name += " REQUIRED";
  return HelpLine(name, flag.what);
}

}  // namespace

Flag& Flag::OneOf(std::vector<std::string> values) {
  choices = std::move(values);
  return Type(Joined(choices, "|"));
}

Flag& Flag::ShowDefault() {
  std::ostringstream text;
  std::visit(
      [&](const auto* variable) {
        if constexpr (requires { text << *variable; }) text << *variable;
      },
      target);
  default_text = text.str();
  return *this;
}

std::string Flag::Title() const {
  for (const std::string& name : names) {
    if (name.starts_with("--")) return name;
  }
  return names.empty() ? place : names[0];
}

std::string Flag::Read(const std::string& text, bool is_first) const {
  if (!choices.empty() && std::ranges::find(choices, text) == choices.end()) {
    return "expected " + type + ", found " + text;
  }
  // Checked first: a number too large for its type is also out of range, and the range is the
  // better message.
  const double number = low > -HUGE_VAL ? std::strtod(text.c_str(), nullptr) : 0;
  if (low > -HUGE_VAL && !(number >= low && number <= high)) {
    const std::string end = high < HUGE_VAL ? Format(" to %.15g", high) : " on";
    return Format("expected a number from %.15g", low) + end + ", found " + text;
  }
  return std::visit(
      [&](auto* variable) -> std::string {
        using T = std::remove_pointer_t<decltype(variable)>;
        if constexpr (std::is_same_v<T, bool>) {
          return SetSwitch(text, *variable);
        } else if constexpr (std::is_arithmetic_v<T>) {
          return SetNumber(text, *variable);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          if (is_first) variable->clear();  // removes the default
          variable->push_back(text);
        } else {
          *variable = text;
        }
        return "";
      },
      target);
}

Flag& Command::Add(const std::string& names, Target target, const std::string& about) {
  Flag& flag = flags.emplace_back();
  flag.target = target;
  flag.what = about;
  const size_t space = std::min(names.find(' '), names.size());
  flag.type = names.substr(std::min(space + 1, names.size()));
  std::istringstream in(names.substr(0, space));
  for (std::string word; std::getline(in, word, ',');) {
    word.starts_with('-') ? flag.names.push_back(word) : void(flag.place = word);
  }
  return flag;
}

const Flag* Command::Find(std::string_view flag_name) const {
  for (const Flag& flag : flags) {
    if (std::ranges::find(flag.names, flag_name) != flag.names.end()) return &flag;
  }
  return nullptr;
}

CommandLine::CommandLine(const std::string& name, const std::string& what,
                         const std::string& version, const std::string& footer)
    : program_{name, what}, version_(version), footer_(footer) {
  AddOwnFlags(program_);
}

void CommandLine::AddOwnFlags(Command& command) {
  command.Add("-h,--help", help_, "Print this help message and exit");
  command.Add("--version", version_asked_, "Print the version");
}

Command& CommandLine::Add(const std::string& name, const std::string& what) {
  Command& command = commands_.emplace_back(Command{name, what});
  AddOwnFlags(command);
  return command;
}

int CommandLine::Run(const std::vector<std::string>& args) {
  const GivenArguments given = CutArguments(args, *this);
  const Command& command = *given.command;
  const auto refuse = [&](const std::string& what) {
    const std::string of = &command == &program_ ? "" : " " + command.name;
    std::fprintf(stderr, "%s: %s\nTry '%s%s --help'.\n", program_.name.c_str(),
                 gguf::Printable(what).c_str(), program_.name.c_str(), of.c_str());
    return kExitUsage;
  };
  for (const Flag& flag : command.flags) {
    bool is_first = true;
    for (const auto& [to, value] : given.values) {
      if (to != &flag) continue;
      const std::string fault = flag.Read(value, std::exchange(is_first, false));
      if (!fault.empty()) return refuse(flag.Title() + ": " + fault);
    }
    if (!version_asked_) continue;
    WriteOut(program_.name + " " + version_ + "\n");
    return kExitDone;
  }
  if (help_) {
    WriteOut(Help(command));
    return kExitDone;
  }
  for (const Flag& flag : command.flags) {
    if (flag.required && !given.Has(flag)) return refuse(flag.Title() + " is required");
  }
  if (command.action) return command.action();
  std::fputs(Help(program_).c_str(), stderr);
  return kExitUsage;
}

std::string CommandLine::Help(const Command& command) const {
  const bool is_program = &command == &program_;
  std::string usage = program_.name + (is_program ? "" : " " + command.name) + " [OPTIONS]";
  std::string places;
  std::vector<std::pair<std::string, std::string>> groups;  // titles and their lines
  for (const Flag& flag : command.flags) {
    if (!flag.place.empty()) {
      usage += flag.required ? " " + flag.place : " [" + flag.place + "]";
      places += HelpLine(flag, flag.place);
    }
    if (flag.names.empty()) continue;
    auto group = std::ranges::find(groups, flag.group, &std::pair<std::string, std::string>::first);
    if (group == groups.end()) group = groups.insert(group, {flag.group, ""});
    group->second += HelpLine(flag, Joined(flag.names, ","));
  }
  if (is_program) usage += " [SUBCOMMAND]";
  std::string text = command.what + "\nUsage: " + usage + "\n";
  if (!places.empty()) text += "\nPositionals:\n" + places;
  for (const auto& [title, lines] : groups) {
    text += (title == groups[0].first ? "\n" : "\n\n") + title + ":\n" + lines;
  }
  if (!is_program) return text + "\n";
  text += "\nSubcommands:\n";
  for (const Command& one : commands_) text += HelpLine(one.name, one.what);
  return text + "\n" + footer_ + "\n";
}

}  // namespace cli
