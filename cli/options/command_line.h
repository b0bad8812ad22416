// The command line: subcommands and their flags, declared once. Reading arguments, --help, the
// manual page and the shells' completions all come from these declarations.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/sampling/sampling.h"

namespace cli {

inline constexpr char kOwn[] = "Options", kAnywhere[] = "";

// The variable that a flag sets; it must outlive the command line. A bool is a switch. A vector
// collects every value given; otherwise the last one counts.
using Target = std::variant<bool*, std::string*, std::optional<std::string>*,
                            std::vector<std::string>*, int*, int64_t*, size_t*, float*,
                            pronk::Value<float>*, pronk::Value<int>*, pronk::Value<int64_t>*>;

// The values that a number may have, both ends included.
struct Range {
  double low = -HUGE_VAL, high = HUGE_VAL;
};

// One flag, declared as command.Add("-t,--threads N", n_threads, {1, 9}, "Threads").
struct Flag {
  Flag& OneOf(std::vector<std::string> values);
  Flag& OrTwo() { return Set(two_values, true); }  // choices, with a comma between them
  Flag& MayBeAlone() { return Set(may_be_alone, true); }
  Flag& ShowDefault();  // the variable's current value, in --help
  Flag& Required() { return Set(required, true); }
  Flag& Once() { return Set(once, true); }  // repeating it is wrong usage
  // Its value names a file to be written, perhaps read before.
  Flag& Writes() { return Set(writes, true); }

  bool reads() const { return (type.starts_with("FILE") || type == "MODEL") && !writes; }
  bool is_switch() const { return std::holds_alternative<bool*>(target); }
  bool is_repeatable() const { return std::holds_alternative<std::vector<std::string>*>(target); }
  std::string Title() const;  // its name in messages: as typed, if it was typed
  void Read() const;          // sets the variable to the given value; throws UsageError
  [[noreturn]] void Refuse(const std::string& expected, const std::string& found) const;

  std::vector<std::string> names;  // "-n", "--n-predict"; empty: only a place
  std::string place;               // "MODEL": a word without a flag; "": none
  std::string what;
  Target target;
  // The value's type in --help; "": a switch. FILE and MODEL are inputs ("-" is stdin) unless the
  // flag writes; shells complete them.
  std::string type;
  std::vector<std::string> choices;
  bool two_values = false;   // one or two of the choices
  std::string default_text;  // "" where none is shown
  std::string group;         // its part of --help; kAnywhere: not shown with a subcommand
  Range range;
  // The flag may stand without a value, which means its first choice. If it has no choices, only a
  // word that begins with a digit, or a word after "=", is its value.
  bool may_be_alone = false;
  bool required = false, writes = false, once = false;
  std::vector<std::string> given = {};  // the arguments' values, in order; "" for a switch
  std::string typed;                    // the name it was given by; "" for a word without a flag
  std::string followed;  // given alone, the word after it, which may be meant as its value

 private:
  // Returns the expected form, or "" if `text` has it.
  std::string ReadOne(const std::string& text) const;
  template <class T>
  Flag& Set(T& member, const T& value) {
    member = value;
    return *this;
  }
};

struct Command {
  // names: "-n,--n-predict"; "OUT" for a word without a flag; "-m,--model,MODEL": if the flag is
  // given, the first word fills the next place. The value's name in --help follows after a space.
  Flag& Add(const std::string& names, Target target, Range range, const std::string& about);
  template <class T>
  Flag& Add(const std::string& names, T& variable, const std::string& about) {
    return Add(names, Target(&variable), {}, about);
  }
  template <class T>
  Flag& Add(const std::string& names, T& variable, Range range, const std::string& about) {
    return Add(names, Target(&variable), range, about);
  }
  // The action, with options that the flags set; they live as long as the command.
  template <class Options>
  Options& Does(int (*does)(const Options&)) {
    const auto options = std::make_shared<Options>();
    action = [does, options] { return does(*options); };
    return *options;
  }
  Flag* Find(std::string_view name);  // finds a flag by one of its names, or returns nullptr
  // Throws UsageError if `word`, which is unknown, follows a flag as if it were its value.
  void RefuseValue(const std::string& word) const;

  std::string name, what;
  // The group of the flags that are added next. Flags shared by several subcommands have a group of
  // another name: if the help of a subcommand would be too long, it shows only their names.
  std::string group = kOwn;
  std::deque<Flag> flags = {};         // a deque keeps their addresses valid
  std::function<int()> action = {};    // called once the flags are read; returns the exit status
  std::vector<std::string> idle = {};  // given flags of other programs that change nothing here
  std::string typed = name;            // for messages; "run -cnv" for chat by llama-cli's flag
};

class CommandLine {
 public:
  // footer: the last paragraph of --help.
  CommandLine(const std::string& what, const std::string& version, const std::string& footer);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command& Add(const std::string& name, const std::string& what);
  // Runs the subcommand named in the arguments (without the program's name), or prints the help or
  // version. One dash and several letters are one name (-sys, -ctk); only a number may directly
  // follow a letter (-n128). Throws UsageError for the first word that is unknown.
  int Run(const std::vector<std::string>& args);

  const Command& program() const { return program_; }  // nameless, for the program's own flags
  const std::deque<Command>& commands() const { return commands_; }

 private:
  void AddOwnFlags(Command& command);
  Command& Find(const std::string& name);
  // Returns the chosen command, whose flags hold the given values.
  Command& Cut(const std::vector<std::string>& args);
  std::string ProgramHelp() const;

  Command program_;
  std::deque<Command> commands_;  // in the order of Add()
  std::string version_, footer_;
  bool help_ = false, version_asked_ = false;
  bool all_ = false;  // pronk help run all: the whole help
};

}  // namespace cli
