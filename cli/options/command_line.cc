#include "cli/options/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>

#include "cli/command.h"
#include "cli/options/arguments.h"
#include "gguf/error.h"

namespace cli {
namespace {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <class T>
struct Element {
  using Type = T;
};
template <class T>
struct Element<std::vector<T>> {
  using Type = T;
};

// What is wrong with a number; "" where nothing is. Stricter than the library that reads arguments,
// which takes nan, makes infinity of 1e999 and the largest number of one that is larger still.
template <class T>
std::string NumberFault(const std::string& text) {
  // Of a signed type: that a number is less than 0 is for its range to say.
  std::conditional_t<std::is_unsigned_v<T>, int64_t, T> value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + text.starts_with('+'), end, value);
  if (error == std::errc::result_out_of_range) return "expected a smaller number, found " + text;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc() && rest == end && std::isfinite(value)) return "";
    return "expected a number, found " + text;
  } else {
    if (error == std::errc() && rest == end) return "";
    return "expected a whole number, found " + text;
  }
}

// As people write numbers: 1000000000 and not 1e+09.
std::string Digits(double number) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.15g", number);
  return text.data();
}

// Looked at before all else: a number that is none, or too large for its type, is out of the range,
// too, and the range says more.
void Limit(CLI::Option& option, double low, double high, const std::string& end) {
  option.transform(CLI::Validator(
      [=](std::string& text) {
        const double value = std::strtod(text.c_str(), nullptr);
        if (value >= low && value <= high) return std::string();
        return "expected a number from " + Digits(low) + end + ", found " + text;
      },
      ""));
}

// A list of values that is longer than a line is not repeated in --help: the flag's text names the
// common ones.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    constexpr size_t kLongest = 60;
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string type = " " + option->get_type_name();
    const size_t at = text.find(type);
    if (type.size() > kLongest && at != std::string::npos) text.erase(at, type.size());
    return text;
  }
};

void AddVersionFlag(CLI::App& app, const std::string& version) {
  app.set_version_flag("--version", version, "Print the version");
}

FlagInfo Describe(const CLI::Option& option) {
  FlagInfo flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  flag.positional = flag.names.empty();
  if (flag.positional) flag.names.push_back(option.get_name());
  flag.type = option.get_items_expected_max() == 0 ? "" : option.get_type_name();
  flag.may_be_alone = !flag.type.empty() && option.get_items_expected_min() == 0;
  flag.what = option.get_description();
  flag.default_text = option.get_default_str();
  flag.group = option.get_group();
  flag.repeatable = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  return flag;
}

CommandInfo Describe(const CLI::App& app) {
  CommandInfo command{app.get_name(), app.get_description(), {}};
  for (const CLI::Option* option : app.get_options()) {
    command.flags.push_back(Describe(*option));
    if (!option->get_positional() || command.flags.back().positional) continue;
    FlagInfo positional = command.flags.back();  // which may also be given without a flag
    positional.names = {option->get_name(/*positional=*/true, /*all_options=*/false)};
    positional.positional = true;
    command.flags.push_back(std::move(positional));
  }
  return command;
}

}  // namespace

Flag& Flag::Type(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Flag& Flag::Between(double low, double high) {
  Limit(*option_, low, high, " to " + Digits(high));
  return *this;
}

Flag& Flag::AtLeast(double low) {
  Limit(*option_, low, HUGE_VAL, " on");
  return *this;
}

Flag& Flag::Once() {
  option_->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  return *this;
}

Flag& Flag::OneOf(const std::vector<std::string>& values) {
  std::string type;
  for (const std::string& value : values) type += (type.empty() ? "" : "|") + value;
  option_->check(CLI::Validator(
      [values, type](std::string& text) {
        const bool is_one = std::ranges::find(values, text) != values.end();
        return is_one ? std::string() : "expected " + type + ", found " + text;
      },
      ""));
  return Type(type);
}

Flag& Flag::MayBeAlone() {
  option_->expected(0, 1);
  return *this;
}

Flag& Flag::ShowDefault() {
  option_->capture_default_str();
  return *this;
}

Flag& Flag::Group(const std::string& title) {
  option_->group(title);
  return *this;
}

Flag& Flag::Required() {
  option_->required();
  return *this;
}

template <class T>
Flag Command::Add(const std::string& names, T& variable, const std::string& what) {
  if constexpr (std::is_same_v<T, bool>) {
    return Flag(app_->add_flag(names, variable, what));
  } else {
    CLI::Option* option = app_->add_option(names, variable, what);
    // An alias may hold a flag that is then given again: the last one counts.
    if constexpr (!IsVector<T>::value) option->take_last();
    if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      option->expected(1)->take_all();
    } else if constexpr (IsVector<T>::value) {
      option->delimiter(',');
    }
    using Number = typename Element<T>::Type;
    if constexpr (std::is_arithmetic_v<Number>) option->check(NumberFault<Number>);
    return Flag(option);
  }
}

template Flag Command::Add(const std::string&, bool&, const std::string&);
template Flag Command::Add(const std::string&, std::string&, const std::string&);
template Flag Command::Add(const std::string&, std::optional<std::string>&, const std::string&);
template Flag Command::Add(const std::string&, std::vector<std::string>&, const std::string&);
template Flag Command::Add(const std::string&, int&, const std::string&);
template Flag Command::Add(const std::string&, int64_t&, const std::string&);
template Flag Command::Add(const std::string&, size_t&, const std::string&);
template Flag Command::Add(const std::string&, float&, const std::string&);
template Flag Command::Add(const std::string&, std::vector<int>&, const std::string&);
template Flag Command::Add(const std::string&, std::vector<size_t>&, const std::string&);

void Command::Does(Action action) {
  app_->callback([chosen = chosen_, action = std::move(action)] { *chosen = action; });
}

CommandLine::CommandLine(const std::string& name, const std::string& what,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(what, name)), version_(name + " " + version) {
  AddVersionFlag(*app_, version_);
  app_->require_subcommand(0, 1);
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->get_formatter()->column_width(34);
}

void CommandLine::SetFooter(const std::string& text) { app_->footer(text); }

CommandLine::~CommandLine() = default;

Command CommandLine::Add(const std::string& name, const std::string& what) {
  CLI::App* const command = app_->add_subcommand(name, what);
  AddVersionFlag(*command, version_);
  return Command(command, &chosen_);
}

int CommandLine::Run(int argc, char** argv) {
  std::vector<std::string> args = Arranged({argv + 1, argv + argc}, DescribeCommands());
  const std::string subcommand = args.empty() || args[0][0] == '-' ? "" : " " + args[0];
  std::reverse(args.begin(), args.end());  // the order that CLI11 takes
  try {
    app_->parse(args);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);  // help or version
    const std::string what = gguf::Printable(error.what());
    std::fprintf(stderr, "%s: %s\nTry '%s%s --help'.\n", app_->get_name().c_str(), what.c_str(),
                 app_->get_name().c_str(), subcommand.c_str());
    return kExitUsage;
  }
  if (!chosen_) {
    std::fputs(app_->help().c_str(), stderr);
    return kExitUsage;
  }
  return chosen_();
}

CommandInfo CommandLine::Describe() const { return cli::Describe(*app_); }

std::vector<CommandInfo> CommandLine::DescribeCommands() const {
  std::vector<CommandInfo> commands;
  const CLI::App& app = *app_;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(cli::Describe(*command));
  }
  return commands;
}

}  // namespace cli
