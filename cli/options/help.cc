// Writes the help of a subcommand, and shortens shared flags to their names where it is too long.
#include "cli/options/help.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "cli/output/text.h"

namespace cli {
namespace {

constexpr auto kExamples = std::to_array<Example>({
    {"run", "pronk run -p \"Once upon a time\" -n 40"},
    {"run", "pronk run -m model.gguf --chat -p \"Which words are verbs?\" -f note.txt"},
    {"run", "pronk run -m model.gguf -p \"A person: \" -j schema.json -n 60"},
    {"chat", "pronk chat"},
    {"chat", "pronk chat -m model.gguf --system \"Answer briefly.\""},
    {"inspect", "pronk inspect model.gguf --tensors"},
    {"inspect", "pronk inspect model.gguf --check"},
    {"diff", "pronk diff model.gguf other.gguf"},
    {"diff", "pronk diff --json model.gguf other.gguf"},
    {"tokenize", "pronk tokenize -m model.gguf -p \"Once upon a time\""},
    {"tokenize", "pronk tokenize -m model.gguf --ids <text.txt"},
    {"template", "pronk template -m model.gguf --messages messages.json"},
    {"template", "pronk template --template template.jinja --messages messages.json"},
    {"bench", "pronk bench -m model.gguf -p 64 -n 16 -r 2 -t 1,2"},
    {"bench", "pronk bench -m model.gguf -p 64 -n 16 -r 2 -o json >before.json"},
    {"compare", "pronk compare model.gguf other.gguf -f text.txt -r 2"},
    {"compare", "pronk compare model.gguf other.gguf -f text.txt -r 1 --json"},
    {"trace", "pronk trace -m model.gguf"},
    {"trace", "pronk trace -m model.gguf -p \"Once upon a time\" --plot trace.svg"},
    {"logits", "pronk logits model.gguf --ids \"1 30 12\" out.f32"},
    {"logits", "pronk logits model.gguf --ids \"1 30 12\" --kv f32 out.f32"},
    {"embed", "pronk embed -m embedder.gguf -f text.txt"},
    {"embed", "pronk embed -m embedder.gguf \"a text\" \"another text\""},
    {"rerank", "pronk rerank -m reranker.gguf --query \"a question\" -f text.txt"},
    {"rerank", "pronk rerank -m reranker.gguf --query \"a question\" \"a text\" \"another\""},
    {"perplexity", "pronk perplexity -m model.gguf -f text.txt"},
    {"perplexity", "pronk perplexity -m model.gguf -f text.txt --save-logits base.logits"},
    {"convert", "pronk convert folder new.gguf"},
    {"convert", "pronk convert folder new.gguf Q8_0"},
    {"quantize", "pronk quantize model.gguf new.gguf Q4_K_M --dry-run"},
    {"quantize", "pronk quantize model.gguf new.gguf Q8_0"},
    {"imatrix", "pronk imatrix -m model.gguf -f text.txt new.imatrix"},
    {"imatrix", "pronk imatrix -m model.gguf -f text.txt -c 64 new.imatrix"},
    {"list", "pronk list"},
    {"list", "pronk list --names"},
    {"completion", "pronk completion bash >~/.local/share/bash-completion/completions/pronk"},
    {"completion", "pronk completion fish >~/.config/fish/completions/pronk.fish"},
    {"man", "pronk man | man -l -"},
    {"man", "pronk man >~/.local/share/man/man1/pronk.1"},
});

// A part of --help: a title, and lines in full or only the names of flags.
struct Section {
  std::string title, full;
  std::vector<std::string> names;
  bool is_short = false;

  std::string Text() const;
  size_t n_lines() const { return Lines(Text()); }
  static size_t Lines(const std::string& text) {
    return static_cast<size_t>(std::ranges::count(text, '\n'));
  }
};

// Words in lines: the first line begins after `indent` written columns.
std::string Wrapped(const std::string& text, size_t indent) {
  std::istringstream words(text);
  std::string out;
  size_t column = indent;
  for (std::string word; words >> word;) {
    if (column > indent && column + 1 + word.size() > kMaxHelpColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) out += ' ';
    column += word.size() + (column > indent ? 1 : 0);
    out += word;
  }
  return out;
}

std::string Section::Text() const {
  const std::string text = is_short ? "  " + Wrapped(Joined(names, " "), 2) + "\n" : full;
  return "\n" + title + ":\n" + text;
}

std::string HelpLine(const Flag& flag, std::string name) {
  // A list of values longer than a line is not repeated: the flag's text names the common ones.
  constexpr size_t kMaxType = 58;
  const bool may_stand_elsewhere = !flag.place.empty() && name != flag.place;
  if (flag.type != name && flag.type.size() <= kMaxType && !flag.type.empty())
    name += " " + flag.type;
  if (!flag.default_text.empty()) name += "=" + flag.default_text;
  if (flag.required && !may_stand_elsewhere) name += " REQUIRED";
  return cli::HelpLine(name, flag.what);
}

Section& Of(const std::string& title, std::vector<Section>& sections) {
  const auto found = std::ranges::find(sections, title, &Section::title);
  return found != sections.end() ? *found : sections.emplace_back(Section{title, "", {}});
}

// The places come first, then the subcommand's own flags, the shared ones, and examples.
std::vector<Section> SectionsOf(const Command& command) {
  std::vector<Section> sections;
  for (const Flag& flag : command.flags) {
    if (flag.place.empty()) continue;
    Of("Positionals", sections).full += flag.names.empty()
                                            ? HelpLine(flag, flag.place)
                                            : cli::HelpLine(flag.place, "As " + flag.names[0]);
  }
  for (const bool is_own : {true, false}) {
    for (const Flag& flag : command.flags) {
      if (flag.names.empty() || flag.group == kAnywhere || (flag.group == kOwn) != is_own) continue;
      Section& section = Of(flag.group, sections);
      section.full += HelpLine(flag, Joined(flag.names, ","));
      const auto is_long = [](const std::string& name) { return name.starts_with("--"); };
      const auto best = std::ranges::find_if(flag.names, is_long);
      section.names.push_back(best != flag.names.end() ? *best : flag.names[0]);
    }
  }
  for (const Example& example : kExamples) {
    if (example.command == command.name)
      Of("Examples", sections).full += "  " + std::string(example.line) + "\n";
  }
  return sections;
}

}  // namespace

std::span<const Example> Examples() { return kExamples; }

std::string UsageOf(const Command& command) {
  std::string usage = "pronk" + (command.name.empty() ? "" : " " + command.name) + " [OPTIONS]";
  for (const Flag& flag : command.flags) {
    if (flag.place.empty()) continue;
    const std::string place = flag.place + (flag.is_repeatable() ? "..." : "");
    usage += flag.required ? " " + place : " [" + place + "]";
  }
  return usage;
}

std::string HelpLine(const std::string& name, const std::string& what) {
  constexpr size_t kIndent = 32;
  const size_t width = name.size() + 2;
  const std::string text = Wrapped(what, kIndent) + "\n";
  if (width < kIndent) return "  " + name + std::string(kIndent - width, ' ') + text;
  return "  " + Wrapped(name, 2) + "\n" + std::string(kIndent, ' ') + text;
}

std::string HelpOf(const Command& command, size_t max_lines) {
  std::vector<Section> sections = SectionsOf(command);
  const std::string head = command.what + ".\nUsage: " + UsageOf(command) + "\n";
  const std::string foot = "\n'pronk help " + command.name + " all' describes each of these.\n";
  const auto n_lines = [&] {
    size_t n = Section::Lines(head) + Section::Lines(foot);
    for (const Section& section : sections) n += section.n_lines();
    return n;
  };
  const auto shortest = [](const Section& section) {
    return section.is_short || section.names.empty() || section.title == kOwn
               ? 0
               : Section::Lines(section.full);
  };
  bool is_cut = false;
  while (n_lines() > max_lines) {
    const auto largest = std::ranges::max_element(sections, {}, shortest);
    if (largest == sections.end() || shortest(*largest) == 0) break;
    largest->is_short = is_cut = true;
  }
  std::string text = head;
  for (const Section& section : sections) text += section.Text();
  return text + (is_cut ? foot : "");
}

}  // namespace cli
