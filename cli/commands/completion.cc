// pronk completion: shell scripts that complete subcommands, flags and models, as --help has them.
#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"

namespace cli {
namespace {

// How a flag's value, or a place, is completed: "models", "files", "none" (a number or a
// text), or the words themselves, separated by spaces. "" for a switch.
std::string KindOf(const Flag& flag) {
  if (flag.type.empty()) return flag.names.empty() ? "none" : "";
  if (flag.type.starts_with("FILE")) return "files";
  if (flag.type == "MODEL") return "models";
  if (flag.type.find('|') == std::string::npos) return "none";
  std::string words = flag.type;
  std::ranges::replace(words, '|', ' ');
  return words;
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

std::string NamesOf(const std::deque<Command>& commands) {
  std::string names;
  for (const Command& command : commands) names += command.name + " ";
  return names + "help";
}

// Describes each subcommand to bash: its flags, what follows each, and its places, as
// "NAMES=KIND" (a place is filled if one of the flags NAMES is given).
std::string BashTables(const std::deque<Command>& commands) {
  std::string kinds, places, flags;
  for (const Command& command : commands) {
    std::vector<std::string> names, entries;
    for (const Flag& flag : command.flags) {
      const std::string kind = KindOf(flag);
      std::vector<std::string> patterns;
      for (const std::string& name : flag.names) {
        names.push_back(name);
        patterns.push_back(command.name + ":" + name);
      }
      if (!kind.empty() && !patterns.empty())
        kinds += "  " + Joined(patterns, " | ") + ") kind='" + kind + "' ;;\n";
      const std::string repeated = flag.is_repeatable() ? "*" : "";
      if (!flag.place.empty())
        entries.push_back("'" + Joined(flag.names, ",") + repeated + "=" + kind + "'");
    }
    flags += "  " + command.name + ") flags='" + Joined(names, " ") + "' ;;\n";
    places += "  " + command.name + ") places=(" + Joined(entries, " ") + ") ;;\n";
  }
  return "_pronk_kind() {\n  kind=\n  case $1:$2 in\n" + kinds + "  esac\n}\n\n" +
         "_pronk_tables() {\n  flags= places=()\n  case $1 in\n" + flags + "  esac\n" +
         "  case $1 in\n" + places + "  esac\n}\n";
}

constexpr std::string_view kBash = R"sh(
# Names of files and models come with downloads, so a shell must never expand them: not by compgen
# -W, which runs what is in $(...), and not by readline, which does so for complete -o filenames.
# Here they are compared as they are, and quoted by printf %q.
_pronk_offer() {
  local word=$1
  [[ ${word,,} == "${cur,,}"* ]] || return
  # Behind a quote that is still open, only what needs no quoting can be put.
  [[ -n $quote && $word == *[^A-Za-z0-9_./:@%+=,-]* ]] && return
  COMPREPLY+=("$word")
}

# Files that match a pattern behind what is typed; folders, to be gone on with.
_pronk_files() {
  local pattern=$1 name
  [[ $cur == '~/'* ]] && cur=$HOME/${cur#'~/'}
  while IFS= read -r -d '' name; do
    [[ -d $name ]] && name=$name/ slash=1
    [[ $name == -* ]] && name=./$name  # not a flag
    _pronk_offer "$name"
  done < <(
    shopt -s nullglob nocaseglob extglob
    for name in "$cur"*; do
      [[ -d $name || ${name##*/} == $pattern ]] && printf '%s\0' "$name"
    done
  )
}

_pronk_models() {
  local name
  while IFS= read -r name; do _pronk_offer "$name"; done < <(pronk list --names 2>/dev/null)
  _pronk_files '*.gguf'
}

_pronk_complete() {
  local kind=$1 word
  local -a words
  case $kind in
  models) _pronk_models ;;
  files) _pronk_files '*' ;;
  none) ;;
  *)
    read -ra words <<<"$kind"
    for word in "${words[@]}"; do _pronk_offer "$word"; done
    ;;
  esac
}

# The place that comes next, by the words before the one that is typed.
_pronk_place() {
  local i word place names filled=' ' n=0 kind
  for ((i = 2; i < at; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == : || $word == = ]]; then
      ((i++))  # bash splits there, and it is one word
    elif [[ $word == -?* ]]; then
      filled+="$word "
      _pronk_kind "${COMP_WORDS[1]}" "$word"
      [[ -n $kind ]] && ((i++))
      [[ ${COMP_WORDS[i]} == = ]] && ((i++))
    else
      ((n++))
    fi
  done
  for place in "${places[@]}"; do
    IFS=, read -ra names <<<"${place%%=*}"
    local is_filled=
    for word in "${names[@]}"; do [[ $filled == *" ${word%\*} "* ]] && is_filled=1; done
    [[ -n $is_filled ]] && continue
    if ((n == 0)) || [[ ${place%%=*} == *\* ]]; then
      _pronk_complete "${place#*=}"
      return
    fi
    ((n--))
  done
}

_pronk_answers() {
  local kind flags
  local -a places
  if ((at == 1)); then
    _pronk_complete "$commands --help --version"
  elif [[ ${COMP_WORDS[1]} == help ]]; then
    ((at == 2)) && _pronk_complete "$commands"
    ((at == 3)) && _pronk_complete all
  else
    _pronk_tables "${COMP_WORDS[1]}"
    _pronk_kind "${COMP_WORDS[1]}" "$prev"
    if [[ -n $kind && $cur != -* ]]; then
      _pronk_complete "$kind"
    elif [[ $cur == -* ]]; then
      _pronk_complete "$flags"
    else
      _pronk_place
    fi
  fi
}

_pronk() {
  local cur=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD prev quote= head= slash= i
  # Bash splits at colons, which names of models have, and at equals signs: the word is put together
  # again, and what readline takes for earlier words is cut off from the answers.
  while ((at > 1)) && [[ $cur == :* || ${COMP_WORDS[at-1]} == : ]]; do
    cur=${COMP_WORDS[--at]}$cur
  done
  ((at < COMP_CWORD)) && head=${cur%"${cur##*:}"}
  [[ $cur == = ]] && cur=
  prev=${COMP_WORDS[at-1]}
  [[ $prev == = ]] && prev=${COMP_WORDS[at-2]}
  [[ $cur == [\"\']* ]] && quote=${cur:0:1} cur=${cur:1}
  # Without -r, read takes away the backslashes of quoting.
  [[ $cur == *\\* ]] && IFS= read -d '' cur < <(printf '%s\0' "$cur")
  COMPREPLY=()
  _pronk_answers
  [[ -n $slash && ${#COMPREPLY[@]} -eq 1 ]] && compopt -o nospace 2>/dev/null
  for i in "${!COMPREPLY[@]}"; do
    # In quotes: as a pattern it would be replaced by the name of a file COMPREPLYi.
    printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]#"$head"}"
  done
}
complete -F _pronk pronk
)sh";

std::string Bash(const std::deque<Command>& commands) {
  std::string script(kBash);
  const std::string variable = "$commands";
  for (size_t at = 0; (at = script.find(variable, at)) != std::string::npos;)
    script.replace(at, variable.size(), NamesOf(commands));
  return "# bash completion for pronk, written by 'pronk completion bash'.\n\n" +
         BashTables(commands) + script;
}

// The completion of a kind of value in zsh, and in fish.
std::string ZshOf(const std::string& kind) {
  if (kind == "models") return "_pronk_models";
  if (kind == "files") return "_pronk_files";
  return kind.empty() || kind == "none" ? " " : "(" + kind + ")";
}

constexpr std::string_view kFishModels = " -a '(pronk list --names 2>/dev/null)'";

std::string FishOf(const std::string& kind) {
  if (kind.empty()) return "";
  if (kind == "models") return " -r -F" + std::string(kFishModels);
  if (kind == "files") return " -r -F";
  return kind == "none" ? " -x" : " -x -a '" + kind + "'";
}

// '--kv[Type of the cache]:f16|f32:(f16 f32)' for zsh's _arguments, for each of the flag's names.
std::string ZshFlag(const Flag& flag) {
  const std::string value =
      flag.type.empty() ? "" : ":" + Escaped(flag.type, ":\\") + ":" + ZshOf(KindOf(flag));
  std::string text;
  for (const std::string& name : flag.names) {
    text += " \\\n    " + ShellQuoted(name + "[" + Escaped(flag.what, ":[]\\") + "]" + value);
  }
  if (flag.place.empty()) return text;
  return text + " \\\n    " +
         ShellQuoted((flag.is_repeatable() ? "*" : "") + (value.empty() ? ": : " : value));
}

std::string Zsh(const std::deque<Command>& commands) {
  std::string out = R"sh(#compdef pronk
# zsh completion for pronk, written by 'pronk completion zsh'.

# Words are compared without case. Files whose names would be taken for flags are left out.
_pronk_models() {
  local -a names
  names=(${(f)"$(pronk list --names 2>/dev/null)"})
  compadd -M 'm:{a-zA-Z}={A-Za-z}' -a names
  _files -F '-*' -g '*.gguf'
}

_pronk_files() { _files -F '-*' }

_pronk() {
  local -a commands
  commands=(
)sh";
  for (const Command& command : commands) {
    out += "    " + ShellQuoted(command.name + ":" + Escaped(command.what, ":\\")) + "\n";
  }
  out += R"sh(  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
  help) (( CURRENT == 2 )) && _describe command commands ;;
)sh";
  for (const Command& command : commands) {
    out += "  " + command.name + ") _arguments -M 'm:{a-zA-Z}={A-Za-z}'";
    for (const Flag& flag : command.flags) out += ZshFlag(flag);
    out += " ;;\n";
  }
  return out + "  esac\n}\n\n_pronk \"$@\"\n";
}

std::string Fish(const std::deque<Command>& commands) {
  // In fish's single quotes a backslash escapes quotes and backslashes.
  const auto quoted = [](const std::string& text) { return "'" + Escaped(text, "'\\") + "'"; };
  std::string out = R"sh(# fish completion for pronk, written by 'pronk completion fish'.

# Leaves out files whose names would be taken for flags. In a folder without any, fish completes
# files itself, since it also handles names with line feeds.
function __pronk_has_dashes
    count -* >/dev/null
end
function __pronk_files
    __fish_complete_path (commandline -ct) | string match -v -- '-*'
end

)sh";
  for (const Command& command : commands) {
    out += "complete -c pronk -n __fish_use_subcommand -f -a " + command.name + " -d " +
           quoted(command.what) + "\n";
  }
  out +=
      "complete -c pronk -n __fish_use_subcommand -f -a help -d 'Describe a subcommand'\n"
      "complete -c pronk -n '__fish_seen_subcommand_from help' -f -a '" +
      NamesOf(commands) + "'\n";
  for (const Command& command : commands) {
    const std::string begin = "complete -c pronk -n '__fish_seen_subcommand_from " + command.name +
                              "; and not __fish_seen_subcommand_from help'";
    for (const Flag& flag : command.flags) {
      const std::string kind = KindOf(flag);
      if (kind == "models" || kind == "files") {
        if (!flag.place.empty()) {
          const std::string when = begin.substr(0, begin.size() - 1);
          out += when + "; and not __pronk_has_dashes' -F\n" + when +
                 "; and __pronk_has_dashes' -f -a '(__pronk_files)'\n";
          if (kind == "models") out += begin + std::string(kFishModels) + "\n";
        }
      } else if (!flag.place.empty() && kind != "none") {
        out += begin + " -f -a '" + std::string(kind) + "'\n";
      }
      if (flag.names.empty()) continue;
      out += begin;
      for (const std::string& name : flag.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      out += FishOf(kind) + " -d " + quoted(flag.what) + "\n";
    }
  }
  return out;
}

}  // namespace

void AddCompletion(CommandLine& line) {
  Command& command =
      line.Add("completion", "Print a script that makes a shell complete pronk's flags");
  const auto shell = std::make_shared<std::string>();
  command.Add("SHELL", *shell, "Which shell").OneOf({"bash", "zsh", "fish"}).Required();
  command.action = [shell, &line] {
    const std::deque<Command>& commands = line.commands();
    WriteOut(*shell == "bash" ? Bash(commands) : *shell == "zsh" ? Zsh(commands) : Fish(commands));
    return kExitDone;
  };
}

}  // namespace cli
