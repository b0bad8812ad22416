// Reads arguments: finds the subcommand, fills its flags, and checks the files they name.
#include "cli/options/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <sstream>
#include <type_traits>

#include "cli/command.h"
#include "cli/options/help.h"
#include "cli/options/inputs.h"
#include "cli/options/other_programs.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "gguf/error.h"

namespace cli {
namespace {

// Both return the expected form, or "" if the text has it.
template <class T>
std::string SetNumber(const std::string& text, T& variable) {
  // For an unsigned type the flag's range, not the type, rejects a negative number.
  std::conditional_t<std::is_unsigned_v<T>, int64_t, T> value{};
  const char* const end = text.data() + text.size();
  const bool is_plus = text.starts_with('+') && !text.starts_with("+-");
  const auto [rest, error] = std::from_chars(text.data() + is_plus, end, value);
  if (error == std::errc::result_out_of_range) return "a smaller number";
  bool is_number = error == std::errc() && rest == end;
  if constexpr (std::is_floating_point_v<T>) is_number = is_number && std::isfinite(value);
  variable = static_cast<T>(value);
  return is_number ? "" : std::is_floating_point_v<T> ? "a number" : "a whole number";
}

std::string SetSwitch(const std::string& text, bool& variable) {
  constexpr auto kYes =
      std::to_array<std::string_view>({"", "1", "t", "y", "on", "yes", "true", "enable"});
  constexpr auto kNo =
      std::to_array<std::string_view>({"0", "f", "n", "off", "no", "false", "disable"});
  variable = std::ranges::find(kYes, text) != kYes.end();
  return variable || std::ranges::find(kNo, text) != kNo.end() ? "" : "yes or no";
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether this is a flag, not a text, a number or the dash for stdin.
bool IsFlag(const std::string& arg) {
  return arg.size() > 1 && arg[0] == '-' && !IsDigit(arg[1]) && arg[1] != '.';
}

std::string SeeHelp(const Command& command) {
  return "'pronk " + command.name + " --help' tells more";
}

// Takes the flag args[0] with its value. Returns the number of arguments taken.
size_t TakeFlag(std::span<const std::string> args, const CommandLine& line, Command& command) {
  const std::string& arg = args[0];
  const size_t equals = arg.find('=');
  std::string typed = arg.substr(0, equals);
  const std::string name = OurFlag(typed);
  if (IsImplied(command, name)) return 1;
  std::optional<std::string> value;
  if (equals != std::string::npos) value = arg.substr(equals + 1);
  Flag* flag = command.Find(name);
  if (flag == nullptr && name.starts_with("--")) {  // llama.cpp also takes --top_k
    std::string hyphens = name;
    std::ranges::replace(hyphens, '_', '-');
    flag = command.Find(OurFlag(hyphens));
  }
  if (flag == nullptr && arg[1] != '-' && arg.size() > 2 && IsDigit(arg[2])) {  // -n128
    flag = command.Find(arg.substr(0, 2));
    if (flag != nullptr && flag->is_switch()) flag = nullptr;
    if (flag != nullptr) typed = arg.substr(0, 2);
    value = arg.substr(2);
  }
  if (flag == nullptr) {
    if (const size_t n = TakeIdleFlag(args, command)) return n;
    RefuseFlag(line, command, typed);
  }
  const auto take = [&](const std::string& text, size_t n_args) {
    flag->given.push_back(text);
    flag->typed = typed;
    return n_args;
  };
  if (value) return take(*value, 1);
  if (flag->is_switch()) return take("", 1);
  if (flag->may_be_alone) {  // --think low, or --think followed by something else
    const bool is_free = flag->choices.empty();
    const bool is_one =
        args.size() > 1 && (is_free ? !args[1].empty() && IsDigit(args[1][0])
                                    : std::ranges::count(flag->choices, args[1]) > 0);
    if (!is_one && !is_free && args.size() > 1) flag->followed = args[1];
    return is_one ? take(args[1], 2) : take(is_free ? "" : flag->choices[0], 1);
  }
  if (args.size() > 1) return take(args[1], 2);
  throw UsageError(typed, ": expected ", flag->type, " after it: ", SeeHelp(command));
}

// Words without a flag fill the places that no flag has filled, in order.
void TakeWords(const std::vector<std::string>& words, Command& command) {
  // pronk run "Once upon a time": a text, and not a file name, is for the default model.
  const Flag* const text = command.Find("--prompt");
  if (text != nullptr && text->place == "TEXT" && words.size() == 1 &&
      access(words[0].c_str(), F_OK) != 0 && words[0].find_first_of(" \n") != std::string::npos &&
      command.Find("-m")->given.empty()) {
    command.Find("-m")->given.push_back("");
  }
  size_t n_taken = 0;
  for (Flag& flag : command.flags) {
    if (flag.place.empty() || !(flag.given.empty() || flag.is_repeatable())) continue;
    const size_t most = flag.is_repeatable() ? words.size() : n_taken + 1;
    while (n_taken < std::min(most, words.size())) flag.given.push_back(words[n_taken++]);
  }
  if (n_taken == words.size()) return;
  command.RefuseValue(words[n_taken]);
  throw UsageError("pronk ", command.typed, " does not take ", gguf::Quoted(words[n_taken]), ": ",
                   SeeHelp(command));
}

// Checks that no file name is empty, and that no output is also an input, whichever flags name
// them.
void CheckFiles(const Command& command) {
  AddInput("-");
  ptrdiff_t n_stdin = 0;
  for (const Flag& flag : command.flags) {
    const bool is_file = flag.reads() || flag.writes;
    // Likely a script's variable that is not set; but a first word "" may be a text, not a model.
    const bool is_named = !flag.typed.empty() || flag.required;
    if (is_file && is_named && std::ranges::count(flag.given, "") > 0)
      throw UsageError(flag.Title(), ": expected a file", flag.type == "MODEL" ? " or a name" : "");
    if (!flag.reads()) continue;
    std::ranges::for_each(flag.given, AddInput);
    if (flag.type == "FILE") n_stdin += std::ranges::count(flag.given, "-");
    if (n_stdin > 1) throw UsageError(flag.Title(), " -: standard input can be read only once");
  }
  for (const Flag& flag : command.flags) {
    if (!flag.writes) continue;
    if (std::ranges::count(flag.given, "-") > 0) {
      throw UsageError(flag.Title(),
                       ": - stands for the standard input; /dev/stdout is the standard output");
    }
    std::ranges::for_each(flag.given, CheckOutput);
  }
}

}  // namespace

Flag& Flag::OneOf(std::vector<std::string> values) {
  choices = std::move(values);
  return Set(type, Joined(choices, "|"));
}

Flag& Flag::ShowDefault() {
  std::ostringstream text;
  std::visit(
      [&](const auto* variable) {
        if constexpr (requires { variable->origin; }) {
          text << variable->value;
        } else if constexpr (requires { text << *variable; }) {
          text << *variable;
        }
      },
      target);
  return Set(default_text, text.str());
}

std::string Flag::Title() const {
  if (!typed.empty()) return typed;
  for (const std::string& name : names) {
    if (name.starts_with("--")) return name;
  }
  return names.empty() ? place : names[0];
}

void Flag::Refuse(const std::string& expected, const std::string& found) const {
  throw UsageError(Title(), ": expected ", expected, ", found ", found);
}

void Flag::Read() const {
  if (once && given.size() > 1) {
    throw UsageError(Title(), ": expected once, found ", given.size(), " times");
  }
  for (const std::string& text : given) {
    const std::string expected = ReadOne(text);
    if (!expected.empty()) Refuse(expected, text);
  }
}

std::string Flag::ReadOne(const std::string& text) const {
  const auto is_choice = [&](const std::string& part) {
    return choices.empty() || std::ranges::count(choices, part) > 0;
  };
  const size_t comma = two_values ? text.find(',') : std::string::npos;
  const bool is_one = comma == std::string::npos;
  if (!is_choice(text.substr(0, comma)) || (!is_one && !is_choice(text.substr(comma + 1)))) {
    return two_values ? type + ", or two with a comma" : type;
  }
  // Checked first: the range is the better message even for a number too large for its type.
  const double number = range.low > -HUGE_VAL ? std::strtod(text.c_str(), nullptr) : 0;
  const std::string end = range.high < HUGE_VAL ? Format(" to %.15g", range.high) : " on";
  if (!(number >= range.low && number <= range.high))
    return Format("a number from %.15g", range.low) + end;
  return std::visit(
      [&](auto* variable) -> std::string {
        using T = std::remove_pointer_t<decltype(variable)>;
        if constexpr (std::is_same_v<T, bool>) {
          return SetSwitch(text, *variable);
        } else if constexpr (std::is_arithmetic_v<T>) {
          return SetNumber(text, *variable);
        } else if constexpr (requires { variable->origin; }) {
          auto value = variable->value;
          const std::string expected = SetNumber(text, value);
          if (expected.empty()) *variable = value;
          return expected;
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          if (&text == &given[0]) variable->clear();  // removes the default
          variable->push_back(text);
        } else {
          *variable = text;
        }
        return "";
      },
      target);
}

Flag& Command::Add(const std::string& names, Target target, Range range, const std::string& about) {
  Flag& flag = flags.emplace_back();
  flag.target = target;
  flag.what = about;
  flag.range = range;
  flag.group = group;
  const size_t space = std::min(names.find(' '), names.size());
  flag.type = names.substr(std::min(space + 1, names.size()));
  std::istringstream in(names.substr(0, space));
  for (std::string word; std::getline(in, word, ',');) {
    word.starts_with('-') ? flag.names.push_back(word) : void(flag.place = word);
  }
  return flag;
}

Flag* Command::Find(std::string_view flag_name) {
  for (Flag& flag : flags) {
    if (std::ranges::find(flag.names, flag_name) != flag.names.end()) return &flag;
  }
  return nullptr;
}

void Command::RefuseValue(const std::string& word) const {
  for (const Flag& flag : flags) {
    if (!flag.followed.empty() && flag.followed == word) flag.Refuse(flag.type, word);
  }
}

CommandLine::CommandLine(const std::string& what, const std::string& version,
                         const std::string& footer)
    : program_{"", what}, version_(version), footer_(footer) {
  AddOwnFlags(program_);
}

void CommandLine::AddOwnFlags(Command& command) {
  command.group = kAnywhere;
  command.Add("-h,--help", help_, "Print this help message and exit");
  command.Add("--version", version_asked_, "Print the version");
  command.group = kOwn;
}

Command& CommandLine::Add(const std::string& name, const std::string& what) {
  Command& command = commands_.emplace_back(Command{name, what});
  AddOwnFlags(command);
  return command;
}

Command& CommandLine::Find(const std::string& name) {
  const auto found = std::ranges::find(commands_, name, &Command::name);
  if (found == commands_.end()) RefuseCommand(*this, name);
  return *found;
}

Command& CommandLine::Cut(const std::vector<std::string>& args) {
  if (args.empty()) return program_;
  if (args[0] == "help" || program_.Find(args[0]) != nullptr) {
    version_asked_ = args[0] == "--version";
    help_ = !version_asked_;
    const bool is_named = args.size() > 1 && !IsFlag(args[1]) && args[1] != "help";
    all_ = is_named && args.size() > 2 && args[2] == "all";
    if (is_named && args.size() > 2 && !all_)
      throw UsageError("help ", args[1], ": expected nothing or all after it, found ",
                       gguf::Quoted(args[2]));
    return is_named && help_ ? Find(args[1]) : program_;
  }
  if (IsFlag(args[0])) {
    throw UsageError("a subcommand comes before ", gguf::Quoted(args[0]),
                     ": 'pronk --help' lists them, and 'pronk run' completes a text");
  }
  Command& command = Find(OurCommand(*this, args));
  if (command.name != args[0]) command.typed = args[0] + " -cnv";
  std::vector<std::string> words;
  size_t i = 1;
  while (i < args.size() && args[i] != "--") {
    if (IsFlag(args[i])) {
      i += TakeFlag(std::span(args).subspan(i), *this, command);
    } else {
      words.push_back(args[i++]);
    }
  }
  words.insert(words.end(), args.begin() + std::min(i + 1, args.size()), args.end());
  TakeWords(words, command);
  return command;
}

int CommandLine::Run(const std::vector<std::string>& args) {
  const Command& command = Cut(args);
  for (const Flag& flag : command.flags) flag.Read();
  if (help_ || version_asked_) {
    WriteOut(version_asked_          ? "pronk " + version_ + "\n"
             : &command == &program_ ? ProgramHelp()
                                     : HelpOf(command, all_ ? SIZE_MAX : kMaxHelpLines));
    return kExitDone;
  }
  for (const Flag& flag : command.flags) {
    if (!flag.required || !flag.given.empty()) continue;
    const bool has_word = std::ranges::any_of(command.flags, [](const Flag& other) {
      return !other.place.empty() && !other.required && !other.given.empty();
    });
    throw UsageError(flag.place.empty() ? flag.Title() : flag.place, " is required",
                     has_word && !flag.place.empty() ? " after the MODEL" : "", ": ",
                     UsageOf(command), "; ", SeeHelp(command));
  }
  CheckFiles(command);
  if (!command.idle.empty()) Note("note: no effect here: " + Joined(command.idle, ", "));
  if (command.action) return command.action();
  std::fputs(ProgramHelp().c_str(), stderr);
  return kExitUsage;
}

std::string CommandLine::ProgramHelp() const {
  std::string text =
      program_.what + "\nUsage: " + UsageOf(program_) + " [SUBCOMMAND]\n\nOptions:\n";
  for (const Flag& flag : program_.flags) text += HelpLine(Joined(flag.names, ","), flag.what);
  text += "\nSubcommands:\n";
  for (const Command& one : commands_) text += HelpLine(one.name, one.what);
  return text + "\n" + footer_ + "\n";
}

}  // namespace cli
