// The command line: subcommands and their flags, declared once. Reading arguments, --help, the man
// page and the shells' completions all come from these declarations.
//
// The library that reads arguments is a large header: behind this one, a single file compiles it.
#ifndef PRONK_CLI_OPTIONS_COMMAND_LINE_H_
#define PRONK_CLI_OPTIONS_COMMAND_LINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cli {

// What a subcommand does once all its flags are read; returns the exit status.
using Action = std::function<int()>;

// One flag, while it is being declared: command.Flag(...).Type("N").Between(1, 9).
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}
  // What --help calls the value. FILE and MODEL are also what the shells complete.
  Flag& Type(const std::string& name);
  Flag& Between(double low, double high);
  Flag& AtLeast(double low);
  Flag& Once();  // to give it twice is wrong usage; of others the last one counts
  Flag& OneOf(const std::vector<std::string>& values);
  Flag& MayBeAlone();   // behind OneOf: without a value it is the first
  Flag& ShowDefault();  // the variable's present value, in --help
  Flag& Group(const std::string& title);
  Flag& Required();

 private:
  CLI::Option* option_;
};

class Command {
 public:
  Command(CLI::App* app, Action* chosen) : app_(app), chosen_(chosen) {}
  // names: "-n,--n-predict", or "MODEL" for what stands without a flag, or both ("-m,MODEL"): then
  // what stands without a flag is for the next one. The variable must live as
  // long as the command line. Of a flag that is given twice the last one counts. A bool is a
  // switch; a vector of strings takes one for each time the flag is given, a vector of numbers
  // takes them with commas between. For these types: bool, std::string, std::optional<std::string>,
  // int, int64_t, size_t, float and such vectors.
  template <class T>
  Flag Add(const std::string& names, T& variable, const std::string& what);
  void Does(Action action);

 private:
  CLI::App* app_;
  Action* chosen_;
};

// What was declared, to write manuals and completions from.
struct FlagInfo {
  std::vector<std::string> names;  // "-n", "--n-predict"; of a positional argument: "MODEL"
  std::string type;                // of its value; "" for a switch; "a|b" where it is one of these
  bool may_be_alone = false;       // without its value, which then is the first of "a|b"
  std::string what;
  std::string default_text;  // "" where none is shown
  std::string group;
  bool positional = false;
  bool repeatable = false;  // takes one value for each time it is given, and keeps them all
};
struct CommandInfo {
  std::string name, what;
  std::vector<FlagInfo> flags;
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& what, const std::string& version);
  ~CommandLine();

  Command Add(const std::string& name, const std::string& what);
  void SetFooter(const std::string& text);  // below what --help says of the program
  // Runs the subcommand that the arguments name; or prints the help or version that they ask for,
  // or what is wrong with them.
  int Run(int argc, char** argv);

  CommandInfo Describe() const;                       // the program itself, with its own flags
  std::vector<CommandInfo> DescribeCommands() const;  // in the order they were added

 private:
  std::unique_ptr<CLI::App> app_;
  std::string version_;  // "pronk 1.0.0"
  Action chosen_;
};

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_COMMAND_LINE_H_
