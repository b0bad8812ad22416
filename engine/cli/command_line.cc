#include "engine/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <type_traits>

#include "engine/cli/command.h"

namespace cli {
namespace {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

// llama.cpp has flags of one dash and two letters, which CLI11 would read as two flags.
std::vector<std::string> WithLongNames(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  for (std::string& arg : args) {
    if (arg == "-tb") arg = "--threads-batch";
  }
  std::reverse(args.begin(), args.end());  // the order that CLI11 takes
  return args;
}

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
  flag.what = option.get_description();
  flag.default_text = option.get_default_str();
  flag.group = option.get_group();
  return flag;
}

CommandInfo Describe(const CLI::App& app) {
  CommandInfo command{app.get_name(), app.get_description(), {}};
  for (const CLI::Option* option : app.get_options()) command.flags.push_back(Describe(*option));
  return command;
}

}  // namespace

Flag& Flag::Type(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Flag& Flag::Between(double low, double high) {
  option_->check([low, high](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() && *end == '\0' && value >= low && value <= high) return std::string();
    std::ostringstream expected;
    expected << "expected a number from " << low << " to " << high << ", found " << text;
    return expected.str();
  });
  return *this;
}

Flag& Flag::OneOf(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values).description(""));
  std::string type;
  for (const std::string& value : values) type += (type.empty() ? "" : "|") + value;
  return Type(type);
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
  app_->get_formatter()->column_width(34);
  app_->failure_message([name](const CLI::App*, const CLI::Error& error) {
    return name + ": " + error.what() + "\nTry '" + name + " --help'.\n";
  });
}

CommandLine::~CommandLine() = default;

Command CommandLine::Add(const std::string& name, const std::string& what) {
  CLI::App* const command = app_->add_subcommand(name, what);
  AddVersionFlag(*command, version_);
  return Command(command, &chosen_);
}

int CommandLine::Run(int argc, char** argv) {
  try {
    app_->parse(WithLongNames(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? kExitDone : kExitUsage;
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
