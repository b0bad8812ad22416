#include "cli/chat/conversation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cli/chat/saved_chats.h"
#include "cli/options/model_options.h"
#include "cli/output/json_file.h"
#include "cli/output/report.h"
#include "cli/output/text.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/session/session_file.h"
#include "gguf/number.h"

namespace cli {
namespace {

// A state is saved by itself if neither it nor the model, all of which is hashed, is larger.
constexpr size_t kMaxStateBytes = size_t{256} << 20;
constexpr uint64_t kMaxModelBytes = uint64_t{8} << 30;

// "~/talk.json" as the shell would read it.
std::string WithHome(const std::string& path) {
  const char* const home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

// When a file was written last; the clock's smallest time if there is none.
std::filesystem::file_time_type WrittenAt(const std::string& path) {
  std::error_code none;
  return std::filesystem::last_write_time(path, none);
}

// Our name for a command that other programs call differently.
std::string OurName(const std::string& name) {
  if (name == "/bye" || name == "/quit") return "/exit";
  if (name == "/?") return "/help";
  return name;
}

// The settings of /set.
std::vector<engine::Setting> Settings(engine::SamplerOptions& sampler, int64_t& max_tokens) {
  std::vector<engine::Setting> settings = engine::Settings(sampler);
  settings.push_back({"seed", &sampler.seed, 0, 0x1p53});
  settings.push_back({"num_predict", &max_tokens, -2, kMaxTokens});
  return settings;
}

// "--top-k" as "top_k".
std::string Plain(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::ranges::replace(name, '-', '_');
  return name;
}

// Whether /set may call the setting so: by its own name, Ollama's, or one of its flags'.
bool IsCalled(const engine::Setting& setting, const std::string& name,
              const ConversationOptions& options) {
  const std::string plain = Plain(name);
  if (plain == setting.name || plain == ShownName(setting.name)) return true;
  const auto flags = options.flags.find(setting.name);
  return flags != options.flags.end() &&
         std::ranges::any_of(flags->second, [&](const auto& f) { return Plain(f) == plain; });
}

// "temperature 0.5", or "parameter temperature 0.5". Throws engine::Error if it cannot be set.
void ChangeSetting(const std::string& text, ConversationOptions& options) {
  constexpr std::string_view kPrefix = "parameter ";
  const std::string rest = text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
  const std::string name = rest.substr(0, rest.find(' '));
  const size_t at = rest.find_first_not_of(' ', name.size());
  const std::string number = at == std::string::npos ? "" : rest.substr(at);
  for (const engine::Setting& setting : Settings(options.sampler, options.max_tokens)) {
    if (!IsCalled(setting, name, options)) continue;
    const auto value = gguf::NumberIn<double>(number);
    const bool ok = value && *value >= setting.low && *value <= setting.high &&
                    (!setting.is_whole() || *value == std::floor(*value));
    if (!ok) {
      throw engine::Error("/set ", name, ": expected a ",
                          (setting.is_whole() ? "whole number" : "number"), " from ",
                          Figures(setting.low, 7), " to ", Figures(setting.high, 7), ", found '",
                          number, "'");
    }
    options.origins[std::string(setting.name)] = "/set";
    return setting.Set(*value);
  }
  if (name == "num_ctx") {
    throw engine::Error("/set num_ctx: the context's size is chosen at the start, with -c");
  }
  throw engine::Error("/set ", name,
                      ": there is no such setting; /set alone shows those there are");
}

}  // namespace

struct Conversation::ChatCommand {
  std::string name;      // "/save"
  std::string argument;  // as /help shows it
  std::string what;
  void (Conversation::*function)(const std::string& argument);
};

const std::vector<Conversation::ChatCommand>& Conversation::Commands() {
  static const std::vector<ChatCommand> commands = {
      {"/help", "", "this list", &Conversation::Help},
      {"/regen", "", "answer the last question again", &Conversation::Regenerate},
      {"/undo", "[N]", "take the last question and its answer back, or the last N",
       &Conversation::Undo},
      {"/clear", "", "begin anew", &Conversation::Clear},
      {"/system", "[TEXT]", "what the model is told first: show or change; - is nothing",
       &Conversation::System},
      {"/think", "[LEVEL]", "think before answering: on, off, low, medium, high, or N tokens",
       &Conversation::Think},
      {"/set", "[NAME VALUE]", "how answers are picked: temperature, top_k, seed, ...",
       &Conversation::Set},
      {"/save", "[FILE]", "write the conversation (JSON) and what is remembered of it",
       &Conversation::Save},
      {"/load", "FILE", "take up a conversation that was saved", &Conversation::Load},
      {"/stats", "", "how the last answer was made", &Conversation::Stats},
      {"/exit", "", "leave; so do /bye, /quit and Ctrl-D", &Conversation::Exit},
  };
  return commands;
}

std::vector<std::string> Conversation::Completions(const std::string& typed) {
  std::vector<std::string> lines;
  for (const ChatCommand& command : Commands()) {
    const std::string line = command.name + (command.argument.empty() ? "" : " ");
    if (line != typed) lines.push_back(line);  // files go on from there
  }
  for (const std::string command : {"/load ", "/save "}) {
    if (!typed.starts_with(command)) continue;
    const std::string given = typed.substr(command.size());
    const std::string folder = given.substr(0, given.rfind('/') + 1);  // "" if there is none
    for (const auto& path : Entries(folder.empty() ? "." : WithHome(folder))) {
      std::error_code ignored;  // no exception may pass through libedit, which calls this
      lines.push_back(command + folder + path.filename().string() +
                      (std::filesystem::is_directory(path, ignored) ? "/" : ""));
    }
  }
  return lines;
}

Conversation::Conversation(engine::Session& session, const ConversationOptions& options,
                           engine::ChatForm form)
    : session_(session), options_(options), chat_(session, options.system, std::move(form)) {}

bool Conversation::Take(const std::string& entry) {
  const size_t space = entry.find(' ');
  const size_t argument = entry.find_first_not_of(' ', space);
  const std::string name = OurName(entry.substr(0, space));
  const auto command = std::ranges::find(Commands(), name, &ChatCommand::name);
  // Pasted text may begin with a slash without being a command.
  if (!entry.starts_with('/') || entry.find('\n') != std::string::npos) {
    Answer(entry);
  } else if (command == Commands().end()) {
    Note("(no command " + name + "; /help lists them. A question may begin with a space.)");
  } else {
    (this->*command->function)(argument == std::string::npos ? "" : entry.substr(argument));
  }
  return open_;
}

void Conversation::Answer(const std::string& question) {
  const QuietKeyboard quiet;
  ProgressLine progress("reading");
  TextOutput out;
  engine::GenerateOptions generate = {.max_tokens = options_.max_tokens,
                                      .stop_texts = options_.stop_texts,
                                      .interrupted = Interrupted,
                                      .constraint = options_.constraint};
  generate.prompt_progress = [&](size_t done, size_t total) {
    progress.Update(done, total);
    return true;
  };
  generate.on_thinking = [&](std::string_view text) {
    progress.Clear();
    out.WriteThinking(text);
    return true;
  };
  bool at_start = options_.constraint == nullptr;
  last_ = chat_.Say(question, generate, [&](std::string_view text) {
    progress.Clear();
    // The template ends where the answer begins; a leading space comes from the vocabulary.
    if (std::exchange(at_start, false) && text.starts_with(' ')) text.remove_prefix(1);
    return open_ = out.Write(text);
  });
  progress.Clear();
  open_ = open_ && out.Finish();
  SaveItself();
  if (!open_) return;
  ExplainEnd(*last_);
  is_cut_ |= ComplainIfCut(options_.constraint, last_->generated.stop_reason);
  if (options_.verbose) Stats("");
}

void Conversation::ExplainEnd(const engine::Chat::Answer& answer) const {
  if (answer.n_dropped > 0) {
    Note("(the context is full: the oldest " + Counted(answer.n_dropped, "message") +
         " are forgotten)");
  }
  switch (answer.generated.stop_reason) {
    case engine::StopReason::kContext:
      return Note("(the context is full: the answer ends here; -c makes it larger)");
    case engine::StopReason::kLength:
      return Note("(the answer was cut after " + Counted(answer.generated.tokens.size(), "token") +
                  ", as -n says)");
    case engine::StopReason::kInterrupted:
      if (answer.generated.n_unread > 0) {
        return Note("(stopped while reading: the question is taken back; " +
                    Counted(answer.generated.n_unread, "token") + " of it were not read, " +
                    std::to_string(answer.generated.n_prompt) + " were)");
      }
      return Note(answer.generated.text.empty() && answer.generated.thinking.empty()
                      ? "(stopped before the first word: the question is taken back)"
                      : "(stopped)");
    case engine::StopReason::kEos:
    case engine::StopReason::kStop:
      return;
  }
}

void Conversation::Help(const std::string&) {
  for (const ChatCommand& command : Commands()) {
    std::fprintf(stderr, "%-17s  %s\n", (command.name + " " + command.argument).c_str(),
                 command.what.c_str());
  }
  std::fputs(
      "\nCtrl-C stops an answer. A line that ends in \\ goes on in the next one,\n"
      "Alt-Enter begins a new line, and so do all between \"\"\" and \"\"\"; what is pasted\n"
      "stays together. The arrow keys bring back what was typed.\n",
      stderr);
}

void Conversation::Clear(const std::string&) {
  chat_.Clear();
  last_.reset();
  LeaveFile();
  Note("(a new conversation)");
}

void Conversation::Regenerate(const std::string&) {
  const std::string question = chat_.Undo();
  if (!question.empty()) return Answer(question);
  Note("(nothing to answer again)");
}

void Conversation::Undo(const std::string& argument) {
  const size_t n = argument.empty() ? 1 : gguf::NumberIn<size_t>(argument).value_or(0);
  if (n == 0) throw engine::Error("/undo ", argument, ": expected a number of questions");
  std::vector<std::string> questions;
  for (std::string question; questions.size() < n && !(question = chat_.Undo()).empty();)
    questions.push_back(question);
  SaveItself();
  Note(questions.empty() ? "(nothing to take back)"
                         : "(taken back: " + Joined(questions, "; ") + ")");
}

void Conversation::System(const std::string& argument) {
  if (!argument.empty()) chat_.SetSystem(argument == "-" ? "" : argument);
  Note(chat_.system().empty() ? "(the model is told nothing before the conversation)"
                              : "(the model is told: " + chat_.system() + ")");
}

void Conversation::LeaveFile() {
  if (options_.save_to.empty() || !std::filesystem::exists(options_.save_to)) return;
  if (options_.is_kept) {
    options_.save_to = NewChatPath();
  } else {
    options_.save_to = FreeName(given_name_);
    Note("(what follows is saved as " + options_.save_to + ")");
  }
  written_at_ = WrittenAt(options_.save_to);
}

void Conversation::Write(const std::string& path) {
  WriteMessages(path, chat_.Messages());
  if (path == options_.save_to) written_at_ = WrittenAt(path);
}

// A person goes on where nothing can be saved.
void Conversation::SaveItself() {
  if (options_.save_to.empty()) return;
  if (WrittenAt(options_.save_to) != written_at_) {
    Note("(" + options_.save_to + " was written by another chat)");
    LeaveFile();
  }
  if (chat_.Messages().empty()) {  // all that was saved is taken back
    for (const char* const suffix : {"", kSessionSuffix}) {
      std::error_code ignored;
      if (options_.is_kept) std::filesystem::remove(options_.save_to + suffix, ignored);
    }
    written_at_ = WrittenAt(options_.save_to);
    return;
  }
  try {
    const auto private_files = options_.is_kept ? std::make_optional<PrivateFiles>() : std::nullopt;
    Write(options_.save_to);
  } catch (const std::exception& error) {
    if (!options_.is_kept) throw;
    Complain(std::string(error.what()) + ": this chat is not saved");
    options_.save_to.clear();
  }
}

void Conversation::SaveState() {
  if (options_.save_to.empty() || chat_.Messages().empty()) return;
  if (!last_ || !session_.has_logits()) return;
  if (WrittenAt(options_.save_to) != written_at_) return;  // another chat's now
  const size_t bytes = session_.RememberedState().PieceBytes(session_.position());
  const uint64_t model_bytes = session_.model().file.tensor_bytes();
  const std::string path = options_.save_to + kSessionSuffix;
  if (options_.is_kept) KeepOnlyStateOf(options_.save_to);
  std::filesystem::remove(path);
  if (bytes > kMaxStateBytes || model_bytes > kMaxModelBytes) return;
  const auto private_files = options_.is_kept ? std::make_optional<PrivateFiles>() : std::nullopt;
  engine::SaveSession(session_, path);
}

void Conversation::Save(const std::string& argument) {
  const std::string path = argument.empty() ? file_ : WithHome(argument);
  if (path.empty()) throw engine::Error("/save needs the name of a file");
  for (const std::string& name : {path, path + kSessionSuffix}) {
    if (path != file_ && std::filesystem::exists(name)) {
      throw engine::Error(name, ": is there already; choose another name");
    }
  }
  Write(path);
  file_ = path;
  std::string note = Counted(chat_.Messages().size(), "message") + " saved to " + path;
  if (session_.has_logits()) {
    engine::SaveSession(session_, path + kSessionSuffix);
    note += std::string(", and beside it (") + kSessionSuffix + ") what the model remembers";
  }
  Note("(" + note + ")");
}

void Conversation::Load(const std::string& argument) {
  if (argument.empty()) throw engine::Error("/load needs the name of a file");
  const std::string path = WithHome(argument);
  const auto written_at = WrittenAt(path);
  const std::vector<tokenizer::Message> messages = ReadMessages(path);
  try {
    const std::string last = messages.empty() ? "" : messages.back().role;
    if (last == "user" || last == "tool") throw engine::Error("the last question has no answer");
    chat_.SetMessages(messages);
  } catch (const engine::Error& error) {
    throw engine::Error(path, ": ", error.what());
  }
  if (path != options_.save_to) LeaveFile();
  if (path == options_.save_to) written_at_ = written_at;
  file_ = path;
  last_.reset();
  Note("(" + Counted(messages.size(), "message") + " loaded from " + path + ")");
  if (!std::filesystem::exists(path + kSessionSuffix)) return;
  try {
    engine::LoadSession(session_, path + kSessionSuffix);
  } catch (const std::exception& error) {  // perhaps another model's
    Note("(" + std::string(error.what()) + ": the conversation will be read again)");
  }
}

void Conversation::Stats(const std::string&) {
  std::string text = Format("context %zu of %zu tokens", session_.position(), session_.capacity());
  if (last_) {
    text += Format("; of the last question %zu tokens reused, %zu read\n", last_->n_reused,
                   last_->generated.n_prompt) +
            SpeedLine(last_->generated, session_.model()) + " | ended by " +
            std::string(engine::StopReasonName(last_->generated.stop_reason)) + "\n" +
            ThreadsLine(last_->generated);
    const engine::DraftCounts& drafts = last_->generated.drafts;
    if (drafts.n_passes > 0) text += "\n" + DraftLine(drafts);
  } else {
    text += "; no answer yet";
  }
  Note(text);
}

void Conversation::Set(const std::string& argument) {
  if (argument == "verbose" || argument == "quiet") {
    options_.verbose = argument == "verbose";
  } else if (argument == "think" || argument.starts_with("think ")) {
    return Think(argument == "think" ? "" : argument.substr(6));
  } else if (argument == "nothink") {
    return Think("off");
  } else if (argument.starts_with("system ")) {
    return System(argument.substr(7));
  } else if (!argument.empty()) {
    ChangeSetting(argument, options_);
    engine::DryOptions& dry = options_.sampler.dry;
    if (dry.Active() && dry.breakers.empty())
      dry.breakers = engine::TokensWith(kDryBreakers, *session_.model().tokenizer);
    session_.SetSampling(options_.sampler);
  }
  Note("(" + SettingsText(Settings(options_.sampler, options_.max_tokens), options_.origins) + ")");
}

void Conversation::Think(const std::string& argument) {
  const std::string level = argument.empty() ? "on" : argument;
  if (const auto budget = gguf::NumberIn<int64_t>(level); budget && *budget >= -1) {
    chat_.SetThinkingBudget(*budget);
    return Note(*budget < 0 ? "(thinking: as long as it takes)"
                            : "(thinking: at most " +
                                  Counted(static_cast<size_t>(*budget), "token") + " of it)");
  }
  if (std::ranges::find(engine::kThinkingLevels, level) == engine::kThinkingLevels.end()) {
    throw engine::Error("/think takes on, off, low, medium, high or a number of tokens");
  }
  chat_.SetThinking(level);
  Note("(thinking: " + level + ")");
}

void Conversation::Exit(const std::string&) { open_ = false; }

}  // namespace cli
