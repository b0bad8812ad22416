// pronk man: the manual page in man(1)'s language, generated from the same declarations as --help.
#include <deque>
#include <map>
#include <set>
#include <sstream>
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
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    out += c == '\\' ? std::string("\\e") : c == '-' ? std::string("\\-") : std::string(1, c);
  }
  return out;
}

// A list of values may break after each.
std::string Breakable(const std::string& type) {
  std::string out;
  for (const char c : type) out += c == '|' ? std::string("|\\:") : std::string(1, c);
  return out;
}

void WriteFlag(const Flag& flag, std::ostringstream& out) {
  const auto write = [&](const std::vector<std::string>& names, const std::string& type) {
    out << ".TP\n";
    for (size_t i = 0; i < names.size(); ++i) {
      out << (i == 0 ? "" : ", ") << "\\fB" << Roff(names[i]) << "\\fR";
    }
    if (!type.empty()) out << " \\fI" << Breakable(Roff(type)) << "\\fR";
    out << "\n" << Roff(flag.what);
    if (!flag.default_text.empty()) out << " (default: " << Roff(flag.default_text) << ")";
    out << "\n";
  };
  std::vector<std::string> names = flag.names;
  if (names.empty()) return write({flag.place}, "");
  if (!flag.place.empty()) names.push_back(flag.place);
  write(names, flag.type == flag.place ? "" : flag.type);
}

// Flags that several subcommands have, word for word, are described once.
class SharedFlags {
 public:
  explicit SharedFlags(const std::deque<Command>& commands) {
    for (const Command& command : commands) {
      for (const Flag& flag : command.flags) ++n_[Key(flag)];
    }
    for (const Command& command : commands) {
      for (const Flag& flag : command.flags) {
        if (!Has(flag) || flag.group == kAnywhere || !written_.insert(Key(flag)).second) continue;
        WriteFlag(flag, groups_[flag.group]);
      }
    }
  }

  bool Has(const Flag& flag) const { return n_.at(Key(flag)) > 1; }

  void Write(std::ostringstream& out) const {
    out << ".SH \"SHARED OPTIONS\"\nOptions that several subcommands have.\n";
    for (const auto& [title, flags] : groups_) {
      out << ".SS \"" << Roff(title == kOwn ? "Several subcommands" : title) << "\"\n"
          << flags.str();
    }
  }

 private:
  static std::string Key(const Flag& flag) {
    return Joined(flag.names, ",") + "\n" + flag.place + "\n" + flag.type + "\n" + flag.what +
           "\n" + flag.default_text;
  }

  std::map<std::string, int> n_;
  std::set<std::string> written_;
  std::map<std::string, std::ostringstream> groups_;
};

void WriteCommand(const Command& command, const SharedFlags& shared, std::ostringstream& out) {
  out << ".SS \"pronk " << Roff(command.name) << "\"\n" << Roff(command.what) << ".\n";
  std::vector<std::string> names;
  for (const Flag& flag : command.flags) {
    if (flag.group == kAnywhere) continue;
    if (!shared.Has(flag)) {
      WriteFlag(flag, out);
    } else {
      names.push_back("\\fB" + Roff(flag.names.empty() ? flag.place : flag.names[0]) + "\\fR");
    }
  }
  if (!names.empty())
    out << ".PP\nAlso, as described under SHARED OPTIONS: " << Joined(names, ", ") << ".\n";
  out << ".PP\n.nf\n";
  for (const Example& example : Examples()) {
    if (example.command == command.name) out << Roff(example.line) << "\n";
  }
  out << ".fi\n";
}

constexpr std::string_view kRest = R"(.SH ENVIRONMENT
.TP
\fBPRONK_MODEL\fR
The model to use where \-m names none.
.TP
\fBHF_HUB_CACHE\fR, \fBHF_HOME\fR, \fBOLLAMA_MODELS\fR, \fBLLAMA_CACHE\fR
Where the Hugging Face cache, Ollama's store and llama.cpp's cache are, if they are not at their usual places.
.TP
\fBXDG_STATE_HOME\fR
Chats are saved in its folder pronk; by default in ~/.local/state/pronk.
.TP
\fBNO_COLOR\fR
If set, nothing is in colour.
.SH "EXIT STATUS"
0 where all went well, 1 where the input or the machine is at fault (one line says how), 2 on wrong usage, 3 where
pronk bench found something slower or pronk diff a difference, 4 where a text was cut before the end of its
grammar, 5 where pronk bench could not tell whether something is slower, 130 after Ctrl\-C (by the signal).
)";

std::string Manual(const Command& program, const std::deque<Command>& commands) {
  std::ostringstream out;
  out << ".TH PRONK 1 \"\" \"pronk " PRONK_VERSION "\"\n"
      << ".SH NAME\npronk \\- run language models on the CPU\n"
      << ".SH SYNOPSIS\n\\fBpronk\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      << ".SH DESCRIPTION\n"
      << Roff(program.what)
      << " Text goes to the standard output and nothing else does; progress, timings and errors go"
         " to the standard error.\n"
      << ".SH OPTIONS\n";
  for (const Flag& flag : program.flags) WriteFlag(flag, out);
  out << ".SH COMMANDS\n";
  const SharedFlags shared(commands);
  for (const Command& command : commands) WriteCommand(command, shared, out);
  shared.Write(out);
  out << kRest;
  return out.str();
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
