// pronk man: the manual page in man(1)'s language, generated from the same declarations as --help.
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/help.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"

namespace cli {
namespace {

// Escapes text for roff: hyphens can be copied, and nothing becomes a command.
std::string Roff(std::string_view text) {
  const bool is_command = text.starts_with('.') || text.starts_with('\'');
  return (is_command ? "\\&" : "") + Replaced(text, {{'\\', "\\e"}, {'-', "\\-"}});
}

// A list of values may break after each value.
std::string Breakable(const std::string& type) { return Replaced(type, {{'|', "|\\:"}}); }

std::string FlagText(const Flag& flag) {
  const auto text = [&](const std::vector<std::string>& names, const std::string& type) {
    std::vector<std::string> bold;
    for (const std::string& name : names) bold.push_back("\\fB" + Roff(name) + "\\fR");
    return ".TP\n" + Joined(bold, ", ") +
           (type.empty() ? "" : " \\fI" + Breakable(Roff(type)) + "\\fR") + "\n" + Roff(flag.what) +
           (flag.default_text.empty() ? "" : " (default: " + Roff(flag.default_text) + ")") + "\n";
  };
  return flag.names.empty() ? text({}, flag.place) : text(flag.names, flag.type);
}

// Identical flags of several subcommands are described once.
class SharedFlags {
 public:
  explicit SharedFlags(const std::deque<Command>& commands) {
    for (const Command& command : commands) {
      for (const Flag& flag : command.flags) ++n_[Key(flag)];
    }
    for (const Command& command : commands) {
      for (const Flag& flag : command.flags) {
        if (!Has(flag) || flag.group == kAnywhere || !written_.insert(Key(flag)).second) continue;
        groups_[flag.group] += FlagText(flag);
      }
    }
  }

  bool Has(const Flag& flag) const { return n_.at(Key(flag)) > 1; }

  std::string Text() const {
    std::string text = ".SH \"SHARED OPTIONS\"\nOptions that several subcommands have.\n";
    for (const auto& [title, flags] : groups_) {
      text += ".SS \"" + Roff(title == kOwn ? "Several subcommands" : title) + "\"\n" + flags;
    }
    return text;
  }

 private:
  static std::string Key(const Flag& flag) {
    return Joined(flag.names, ",") + "\n" + flag.place + "\n" + flag.type + "\n" + flag.what +
           "\n" + flag.default_text;
  }

  std::map<std::string, int> n_;
  std::set<std::string> written_;
  std::map<std::string, std::string> groups_;
};

std::string CommandText(const Command& command, const SharedFlags& shared) {
  std::string text = ".SS \"pronk " + Roff(command.name) + "\"\n" + Roff(command.what) +
                     ".\n.PP\n" + Roff(UsageOf(command)) + "\n";
  std::vector<std::string> names;
  for (const Flag& flag : command.flags) {
    if (flag.group == kAnywhere) continue;
    if (!shared.Has(flag)) {
      text += FlagText(flag);
    } else {
      names.push_back("\\fB" + Roff(flag.names.empty() ? flag.place : flag.names[0]) + "\\fR");
    }
  }
  if (!names.empty())
    text += ".PP\nAlso, as described under SHARED OPTIONS: " + Joined(names, ", ") + ".\n";
  std::string examples;
  for (const Example& example : Examples()) {
    if (example.command == command.name) examples += Roff(example.line) + "\n";
  }
  return examples.empty() ? text : text + ".PP\nExamples:\n.PP\n.nf\n" + examples + ".fi\n";
}

constexpr std::string_view kRest = R"(.SH ENVIRONMENT
.TP
\fBPRONK_MODEL\fR
The model to use if \-m names none.
.TP
\fBPRONK_MODELS\fR
A folder of models, whose names \-m takes.
.TP
\fBHF_HUB_CACHE\fR, \fBHF_HOME\fR, \fBOLLAMA_MODELS\fR, \fBLLAMA_CACHE\fR
The folders of the Hugging Face cache, Ollama's store and llama.cpp's cache, if they are not in their usual places.
.TP
\fBXDG_STATE_HOME\fR
Chats are saved in its folder pronk (default: ~/.local/state/pronk).
.TP
\fBNO_COLOR\fR
If set, output has no colours.
.SH "EXIT STATUS"
0 on success, 1 if the input or the machine is at fault (one line says how), 2 for wrong usage, 3 if pronk bench
found something slower or pronk diff found a difference, 4 if a text was cut before the end of its grammar, 5 if
pronk bench could not tell whether something is slower, 130 after Ctrl\-C (by the signal).
)";

std::string Manual(const Command& program, const std::deque<Command>& commands) {
  std::string text =
      ".TH PRONK 1 \"\" \"pronk " PRONK_VERSION
      "\"\n"
      ".SH NAME\npronk \\- run language models on the CPU\n"
      ".SH SYNOPSIS\n\\fBpronk\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\n" +
      Roff(program.what) +
      " Only text goes to standard output; progress, timings and errors go to standard error.\n"
      ".SH OPTIONS\n";
  for (const Flag& flag : program.flags) text += FlagText(flag);
  text += ".SH COMMANDS\n";
  const SharedFlags shared(commands);
  for (const Command& command : commands) text += CommandText(command, shared);
  return text + shared.Text() + std::string(kRest);
}

}  // namespace

void AddManual(CommandLine& line) {
  Command& command = line.Add("man", "Print the manual page (pronk man | man -l -)");
  command.action = [&line] {
    WriteOut(Manual(line.program(), line.commands()));
    return kExitDone;
  };
}

}  // namespace cli
