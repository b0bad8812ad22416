// pronk man: the manual page in man(1)'s language, generated from the same declarations as --help.
#include <deque>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
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

void WriteFlag(const Flag& flag, std::ostringstream& out) {
  const auto write = [&](const std::vector<std::string>& names, const std::string& type) {
    out << ".TP\n";
    for (size_t i = 0; i < names.size(); ++i) {
      out << (i == 0 ? "" : ", ") << "\\fB" << Roff(names[i]) << "\\fR";
    }
    if (!type.empty()) out << " \\fI" << Roff(type) << "\\fR";
    out << "\n" << Roff(flag.what);
    if (!flag.default_text.empty()) out << " (default: " << Roff(flag.default_text) << ")";
    out << "\n";
  };
  if (!flag.names.empty()) write(flag.names, flag.type);
  if (!flag.place.empty()) write({flag.place}, "");
}

void WriteCommand(const Command& command, std::ostringstream& out) {
  out << ".SS \"pronk " << Roff(command.name) << "\"\n" << Roff(command.what) << ".\n";
  for (const Flag& flag : command.flags) WriteFlag(flag, out);
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
.SH EXAMPLES
.nf
pronk run \-p "Once upon a time"
pronk chat \-m llama3.2:1b \-\-system "Be brief."
pronk bench \-m model.gguf \-t 1\-8*2 \-o json >before.json
pronk bench \-m model.gguf \-t 1\-8*2 \-\-baseline before.json
pronk completion bash >~/.local/share/bash\-completion/completions/pronk
.fi
)";

std::string Manual(const Command& program, const std::deque<Command>& commands) {
  std::ostringstream out;
  out << ".TH PRONK 1 \"\" \"pronk " PRONK_VERSION "\"\n"
      << ".SH NAME\npronk \\- run LLaMA\\-family models on the CPU\n"
      << ".SH SYNOPSIS\n\\fBpronk\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      << ".SH DESCRIPTION\n"
      << Roff(program.what)
      << " Text goes to the standard output and nothing else does; progress, timings and errors go"
         " to the standard error.\n"
      << ".SH OPTIONS\n";
  for (const Flag& flag : program.flags) WriteFlag(flag, out);
  out << ".SH COMMANDS\n";
  for (const Command& command : commands) WriteCommand(command, out);
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
