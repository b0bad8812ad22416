// pronk completion: shell scripts that complete subcommands, flags and models, as --help has them.
#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"

namespace cli {
namespace {

// How each shell completes a flag's value; a switch has none.
struct Completions {
  std::string bash, zsh, fish;
};

Completions CompletionsOf(const Flag& flag) {
  if (flag.type.empty()) return {};
  if (flag.type.starts_with("FILE")) return {"_pronk_files; ", "_files", " -r -F"};
  if (flag.type == "MODEL") {
    return {"_pronk_models; ", "_pronk_models", " -r -F -a '(pronk list --names 2>/dev/null)'"};
  }
  if (flag.type.find('|') == std::string::npos) return {"", " ", " -x"};
  std::string words = flag.type;
  for (char& c : words) c = c == '|' ? ' ' : c;
  return {"_pronk_words '" + words + "'; ", "(" + words + ")", " -x -a '" + words + "'"};
}

// Puts a backslash before each of the special characters.
std::string Escaped(std::string_view text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string Bash(const std::deque<Command>& commands) {
  std::ostringstream out;
  out << R"sh(# bash completion for pronk, written by 'pronk completion bash'.

_pronk_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_pronk_files() { mapfile -t COMPREPLY < <(compgen -f -- "$cur"); }
# Not by compgen -W: it would run what is in $(...) in a name, and names come with downloads.
_pronk_models() {
  local name
  mapfile -t COMPREPLY < <(compgen -d -- "$cur"; compgen -f -X '!*.gguf' -- "$cur")
  while IFS= read -r name; do
    [[ $name == "$cur"* ]] && COMPREPLY+=("$name")
  done < <(pronk list --names 2>/dev/null)
}

_pronk() {
  local cur=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD flags= prev
  # Bash splits at colons, which names of models have: the word is put together again, and what
  # readline takes for earlier words is cut off from the answers.
  while ((at > 1)) && [[ $cur == :* || ${COMP_WORDS[at-1]} == : ]]; do
    cur=${COMP_WORDS[--at]}$cur
  done
  prev=${COMP_WORDS[at-1]}
  COMPREPLY=()
  _pronk_answers
  [[ $cur == *:* && at -lt COMP_CWORD ]] && COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*:}"}"}")
}

_pronk_answers() {
  if [ "$at" -eq 1 ]; then
    _pronk_words ')sh";
  for (const Command& command : commands) out << command.name << " ";
  out << R"sh(--help --version'
    return
  fi
  case ${COMP_WORDS[1]} in
)sh";
  for (const Command& command : commands) {
    out << "  " << command.name << ")\n    case $prev in\n";
    std::vector<std::string> flags;
    for (const Flag& flag : command.flags) {
      flags.insert(flags.end(), flag.names.begin(), flag.names.end());
      if (flag.names.empty() || flag.type.empty()) continue;
      out << "    " << Joined(flag.names, "|") << ") " << CompletionsOf(flag).bash << "return ;;\n";
    }
    out << "    esac\n    flags='" << Joined(flags, " ") << "'\n    ;;\n";
  }
  out << R"sh(  esac
  case $cur in
  -*) _pronk_words "$flags" ;;
  *) _pronk_models ;;
  esac
}
complete -o filenames -F _pronk pronk
)sh";
  return out.str();
}

// '--kv[Type of the cache]:f16|f32:(f16 f32)' for zsh's _arguments, for each of the flag's names.
void WriteZshFlag(const Flag& flag, std::ostream& out) {
  const std::string value =
      flag.type.empty() ? "" : ":" + Escaped(flag.type, ":\\") + ":" + CompletionsOf(flag).zsh;
  for (const std::string& name : flag.names) {
    out << " \\\n    " << ShellQuoted(name + "[" + Escaped(flag.what, ":[]\\") + "]" + value);
  }
  if (!flag.place.empty()) out << " \\\n    " << ShellQuoted(value);
}

std::string Zsh(const std::deque<Command>& commands) {
  std::ostringstream out;
  out << R"sh(#compdef pronk
# zsh completion for pronk, written by 'pronk completion zsh'.

_pronk_models() {
  local -a names
  names=(${(f)"$(pronk list --names 2>/dev/null)"})
  compadd -a names
  _files -g '*.gguf'
}

_pronk() {
  local -a commands
  commands=(
)sh";
  for (const Command& command : commands) {
    out << "    " << ShellQuoted(command.name + ":" + Escaped(command.what, ":\\")) << "\n";
  }
  out << R"sh(  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
)sh";
  for (const Command& command : commands) {
    out << "  " << command.name << ") _arguments";
    for (const Flag& flag : command.flags) WriteZshFlag(flag, out);
    out << " ;;\n";
  }
  out << "  esac\n}\n\n_pronk \"$@\"\n";
  return out.str();
}

std::string Fish(const std::deque<Command>& commands) {
  // In fish's single quotes a backslash escapes quotes and backslashes.
  const auto quoted = [](const std::string& text) { return "'" + Escaped(text, "'\\") + "'"; };
  std::ostringstream out;
  out << "# fish completion for pronk, written by 'pronk completion fish'.\n\n";
  for (const Command& command : commands) {
    out << "complete -c pronk -n __fish_use_subcommand -f -a " << command.name << " -d "
        << quoted(command.what) << "\n";
  }
  for (const Command& command : commands) {
    for (const Flag& flag : command.flags) {
      if (flag.names.empty()) continue;
      out << "complete -c pronk -n '__fish_seen_subcommand_from " << command.name << "'";
      for (const std::string& name : flag.names) {
        out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      }
      out << CompletionsOf(flag).fish << " -d " << quoted(flag.what) << "\n";
    }
  }
  return out.str();
}

}  // namespace

void AddCompletion(CommandLine& line) {
  Command& command = line.Add("completion", "Print what makes a shell complete pronk's flags");
  const auto shell = std::make_shared<std::string>();
  command.Add("SHELL", *shell, "Which shell").OneOf({"bash", "zsh", "fish"}).Required();
  command.action = [shell, &line] {
    const std::deque<Command>& commands = line.commands();
    WriteOut(*shell == "bash" ? Bash(commands) : *shell == "zsh" ? Zsh(commands) : Fish(commands));
    return kExitDone;
  };
}

}  // namespace cli
