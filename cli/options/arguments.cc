#include "cli/options/arguments.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <numeric>
#include <utility>

#include "cli/command.h"
#include "gguf/error.h"

namespace cli {
namespace {

struct Names {
  std::string_view typed, ours;
};

// llama.cpp's flags of one dash and several letters, by the long names of ours that do the same.
constexpr auto kLongNames = std::to_array<Names>({
    {"-tb", "--threads-batch"},
    {"-ub", "--ubatch-size"},
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-sys", "--system"},
    {"-st", "--single-turn"},
    {"-cnv", "--conversation"},
    {"-i", "--conversation"},
    {"--interactive", "--conversation"},
    {"-no-cnv", "--no-conversation"},
    {"-pg", "--prompt-gen"},
    {"-oe", "--output-err"},
    {"-md", "--model-draft"},
    {"--draft-n-max", "--draft-max"},
});

// What others call our subcommands.
constexpr auto kOtherCommands = std::to_array<Names>({
    {"ls", "list"},
    {"show", "inspect"},
    {"info", "inspect"},
    {"generate", "run"},
    {"complete", "run"},
    {"completions", "completion"},
});

constexpr std::string_view kCpuOnly = "pronk computes on the CPU only, so there is nothing to set";
constexpr std::string_view kNoDownloads =
    "pronk downloads nothing: -m takes a file, or a name that 'pronk list' shows";
constexpr std::string_view kAlways = "that is always so here";
constexpr std::string_view kNoAdapters = "pronk reads no adapters: merge them into the model";
constexpr std::string_view kTextOnly = "pronk reads text only";
constexpr std::string_view kMapped = "pronk always maps the file; --mlock keeps it in memory";
constexpr std::string_view kNoLog = "pronk keeps no log; -v says what was chosen and why";
constexpr std::string_view kOneModel = "pronk uses one model at a time";
constexpr std::string_view kDraftsAsTheyPay =
    "how many tokens are guessed follows from what it gains; --draft N sets the number";
constexpr std::string_view kNoShift =
    "the context does not shift: run ends where it is full, chat forgets the oldest messages";

constexpr std::string_view kNoServer =
    "pronk is no server, and a model is in memory only while a command runs; pronk.h is for "
    "programs";

// Subcommands of ollama that there is no equal of, and why.
constexpr auto kForeignCommands = std::to_array<Names>({
    {"pull", kNoDownloads},
    {"push", "pronk opens no network connection"},
    {"serve", kNoServer},
    {"ps", kNoServer},
    {"stop", kNoServer},
    {"create", "'pronk convert' and 'pronk quantize' make models"},
    {"cp", "models are files: cp copies them"},
    {"rm", "models are files: 'pronk list' shows where they are, and rm removes them"},
});

// Flags of llama.cpp that there is no equal of, and why.
constexpr auto kForeign = std::to_array<Names>({
    {"-ngl", kCpuOnly},
    {"--gpu-layers", kCpuOnly},
    {"--n-gpu-layers", kCpuOnly},
    {"-dev", kCpuOnly},
    {"--device", kCpuOnly},
    {"-sm", kCpuOnly},
    {"--split-mode", kCpuOnly},
    {"-ts", kCpuOnly},
    {"--tensor-split", kCpuOnly},
    {"-mg", kCpuOnly},
    {"--main-gpu", kCpuOnly},
    {"-ncmoe", kCpuOnly},
    {"-ot", kCpuOnly},
    {"-hf", kNoDownloads},
    {"-hfr", kNoDownloads},
    {"--hf-repo", kNoDownloads},
    {"-hff", kNoDownloads},
    {"--hf-file", kNoDownloads},
    {"-mu", kNoDownloads},
    {"--model-url", kNoDownloads},
    {"-fa", kAlways},
    {"--flash-attn", kAlways},
    {"--allow-requantize", kAlways},
    {"--jinja", kAlways},
    {"--mmap", kMapped},
    {"--no-mmap", kMapped},
    {"--mlock", "this subcommand does not keep the weights in memory; run and chat do"},
    {"--no-warmup", "nothing is computed before the prompt"},
    {"-co", "colour is used where the terminal has it; NO_COLOR=1 turns it off"},
    {"--color", "colour is used where the terminal has it; NO_COLOR=1 turns it off"},
    {"--lora", kNoAdapters},
    {"--lora-scaled", kNoAdapters},
    {"--control-vector", kNoAdapters},
    {"-mm", kTextOnly},
    {"--mmproj", kTextOnly},
    {"--image", kTextOnly},
    {"--audio", kTextOnly},
    {"-md", kOneModel},
    {"--model-draft", kOneModel},
    {"--draft-min", kDraftsAsTheyPay},
    {"--draft-n-min", kDraftsAsTheyPay},
    {"--draft-p-min", kDraftsAsTheyPay},
    {"--log-disable", kNoLog},
    {"--log-file", kNoLog},
    {"-lv", kNoLog},
    {"--simple-io", "without a terminal, input and output are plain"},
    {"--numa", "numactl places a program on the nodes of a machine"},
    {"--prio", "nice sets a program's priority"},
    {"--context-shift", kNoShift},
    {"--no-context-shift", kNoShift},
    {"--keep", kNoShift},
    {"--chat-template", "--template takes a file"},
    {"--chat-template-file", "--template does that"},
    {"--chat-template-kwargs", "--template-var NAME=JSON does that"},
    {"--reasoning-budget", "--no-think turns thinking off where the template can"},
});

// How many letters have to be changed, added or left out to make one word of the other.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] != b[j] ? 1 : 0);
      diagonal = std::exchange(row[j + 1], std::min({row[j], row[j + 1]}) + 1);
      row[j + 1] = std::min(row[j + 1], changed);
    }
  }
  return row.back();
}

// ": did you mean WORD? " where one of them is close, else ": ".
std::string Guess(std::string_view typed, const std::vector<std::string>& words) {
  constexpr size_t kLongest = 40;  // letters; nobody mistypes more, and comparing them takes time
  const std::string* best = nullptr;
  size_t least = std::min<size_t>(typed.size() / 3 + 1, 3) + 1;
  for (const std::string& word : words) {
    if (typed.size() > kLongest) break;
    const bool begins = typed.size() > 2 && word.starts_with(typed);
    const size_t distance = begins ? 1 : Distance(typed, word);
    if (distance < std::min(least, typed.size())) {
      least = distance;
      best = &word;
    }
  }
  return best != nullptr ? ": did you mean " + *best + "? " : ": ";
}

template <size_t n>
std::string_view Find(const std::array<Names, n>& table, std::string_view typed) {
  const auto* const found = std::ranges::find(table, typed, &Names::typed);
  return found != table.end() ? found->ours : std::string_view();
}

const FlagInfo* FindFlag(const CommandInfo& command, std::string_view name) {
  for (const FlagInfo& flag : command.flags) {
    if (!flag.positional && std::ranges::find(flag.names, name) != flag.names.end()) return &flag;
  }
  return nullptr;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A flag, and not a text, a number or the dash that stands for stdin.
bool IsFlag(const std::string& arg) {
  return arg.size() > 1 && arg[0] == '-' && !IsDigit(arg[1]) && arg[1] != '.';
}

const CommandInfo& FindCommand(const std::string& name, const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  const std::string_view ours = Find(kOtherCommands, name), why = Find(kForeignCommands, name);
  if (!why.empty()) throw UsageError(name + ": " + std::string(why));
  throw UsageError(
      "there is no subcommand " + gguf::Quoted(name) +
      (ours.empty() ? Guess(name, names) : ": did you mean " + std::string(ours) + "? ") +
      "'pronk --help' lists them");
}

// The arguments of one subcommand, one by one.
class Arranger {
 public:
  explicit Arranger(const std::vector<CommandInfo>& commands) : commands_(commands) {}

  std::vector<std::string> Arrange(const std::vector<std::string>& args) {
    command_ = &FindCommand(args[0], commands_);
    ChooseCommand(args);
    for (size_t i = 1; i < args.size(); ++i) {
      if (args[i] == "--") {
        words_.insert(words_.end(), args.begin() + static_cast<ptrdiff_t>(i) + 1, args.end());
        break;
      }
      const std::string* const next = i + 1 < args.size() ? &args[i + 1] : nullptr;
      if (!IsFlag(args[i])) {
        words_.push_back(args[i]);
      } else if (TakeFlag(args[i], next)) {
        ++i;
      }
    }
    TakeModels();
    CheckWords();
    // pronk run "Once upon a time": a text, for the model that is used when none is named.
    if (command_->name == "run" && n_models_ == 0 && words_.size() == 1 && IsText(words_[0])) {
      model_ = {"-m", ""};
    }
    std::vector<std::string> all = {command_->name};
    all.insert(all.end(), model_.begin(), model_.end());
    all.insert(all.end(), flags_.begin(), flags_.end());
    if (!words_.empty()) all.emplace_back("--");
    all.insert(all.end(), words_.begin(), words_.end());
    return all;
  }

 private:
  // Several words, and no file.
  static bool IsText(const std::string& word) {
    return word.find_first_of(" \n") != std::string::npos && !std::ifstream(word);
  }

  // llama-cli completes and converses; here each is a subcommand.
  void ChooseCommand(const std::vector<std::string>& args) {
    const auto converses = [](const std::string& arg) {
      return arg == "--conversation" || Find(kLongNames, arg) == "--conversation";
    };
    if (command_->name != "run" || std::ranges::none_of(args, converses)) return;
    command_ = &FindCommand("chat", commands_);
  }

  // True where it is a matter of what is the subcommand, and settled.
  bool IsChoice(const std::string& name) const {
    const bool is_chat = command_->name == "chat";
    if (is_chat && name == "--no-conversation") {
      throw UsageError(name + ": pronk chat converses, and pronk run completes a text");
    }
    return (is_chat && name == "--conversation") ||
           (command_->name == "run" && name == "--no-conversation");
  }

  [[noreturn]] void Refuse(const std::string& name) const {
    const std::string_view why = Find(kForeign, name);
    if (!why.empty()) throw UsageError(name + ": " + std::string(why));
    std::vector<std::string> names;
    for (const FlagInfo& flag : command_->flags) {
      if (!flag.positional) names.insert(names.end(), flag.names.begin(), flag.names.end());
    }
    throw UsageError("pronk " + command_->name + " has no flag " + gguf::Quoted(name) +
                     Guess(name, names) + "'pronk " + command_->name + " --help' lists them");
  }

  // Returns whether the next argument is the flag's value.
  bool TakeFlag(const std::string& arg, const std::string* next) {
    const size_t equals = std::min(arg.find('='), arg.size());
    std::string name = arg.substr(0, equals), value = arg.substr(equals);
    if (const std::string_view ours = Find(kLongNames, name); !ours.empty()) name = ours;
    if (IsChoice(name)) return false;
    const FlagInfo* flag = FindFlag(*command_, name);
    // -n128
    if (flag == nullptr && arg[1] != '-' && arg.size() > 2 && IsDigit(arg[2])) {
      name = arg.substr(0, 2);
      value = "=" + arg.substr(2);
      flag = FindFlag(*command_, name);
      if (flag != nullptr && flag->type.empty()) flag = nullptr;
    }
    if (flag == nullptr) Refuse(arg.substr(0, equals));
    if (name == "-m" || name == "--model") ++n_models_;
    std::vector<std::string>& to = name == "-m" || name == "--model" ? model_ : flags_;
    // A value of its own only where it cannot be taken for another flag.
    if (!value.empty()) {
      to.push_back(flag->names.back().starts_with("--") ? flag->names.back() + value : name);
      if (!flag->names.back().starts_with("--")) to.push_back(value.substr(1));
      return false;
    }
    to.push_back(name);
    if (flag->may_be_alone) return TakeChoice(*flag, next);
    if (flag->type.empty()) return false;
    if (next == nullptr) {
      throw UsageError(name + ": expected " + flag->type + " behind it: 'pronk " + command_->name +
                       " --help' tells more");
    }
    to.push_back(*next);
    return true;
  }

  // --think low, or --think and something else.
  bool TakeChoice(const FlagInfo& flag, const std::string* next) {
    const bool takes_next =
        next != nullptr && ("|" + flag.type + "|").find("|" + *next + "|") != std::string::npos;
    flags_.back() += "=" + (takes_next ? *next : flag.type.substr(0, flag.type.find('|')));
    return takes_next;
  }

  // Where several models may be given, all words are models.
  void TakeModels() {
    const auto is_models = [](const FlagInfo& flag) {
      return flag.positional && flag.repeatable && flag.names[0] == "MODEL";
    };
    if (std::ranges::none_of(command_->flags, is_models)) return;
    for (const std::string& word : words_) model_.push_back("--model=" + word);
    words_.clear();
  }

  void CheckWords() const {
    const auto is_positional = [](const FlagInfo& flag) { return flag.positional; };
    auto n_places = static_cast<size_t>(std::ranges::count_if(command_->flags, is_positional));
    const auto is_model = [](const FlagInfo& flag) {
      return flag.positional && flag.names[0] == "MODEL";
    };
    if (n_models_ > 0 && std::ranges::any_of(command_->flags, is_model)) --n_places;
    if (words_.size() <= n_places) return;
    throw UsageError("pronk " + command_->name + " has no use for " +
                     gguf::Quoted(words_[n_places]) + ": 'pronk " + command_->name +
                     " --help' shows what it takes");
  }

  const std::vector<CommandInfo>& commands_;
  const CommandInfo* command_ = nullptr;
  // -m stands first: what stands without a flag then fills the places behind the model's.
  std::vector<std::string> model_, flags_, words_;
  size_t n_models_ = 0;
};

}  // namespace

std::vector<std::string> Arranged(const std::vector<std::string>& args,
                                  const std::vector<CommandInfo>& commands) {
  if (args.empty() || args[0] == "-h" || args[0] == "--help" || args[0] == "--version") return args;
  if (args[0] == "help") {
    return args.size() == 1 ? std::vector<std::string>{"--help"}
                            : Arranged({args[1], "--help"}, commands);
  }
  if (IsFlag(args[0])) {
    throw UsageError("a subcommand stands before " + gguf::Quoted(args[0]) +
                     ": 'pronk --help' lists them, and 'pronk run' completes a text");
  }
  return Arranger(commands).Arrange(args);
}

std::string Unescaped(std::string_view text) {
  constexpr std::string_view kLetters = "ntre\"'\\", kMeaning = "\n\t\r\033\"'\\";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const size_t letter = next == '\0' ? std::string_view::npos : kLetters.find(next);
    unsigned char byte = 0;
    const char* const hex = text.data() + i + 2;
    if (letter != std::string_view::npos) {
      out += kMeaning[letter];
      ++i;
    } else if (next == 'x' && i + 3 < text.size() &&
               std::from_chars(hex, hex + 2, byte, 16).ptr == hex + 2) {
      out += static_cast<char>(byte);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace cli
