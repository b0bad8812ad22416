// The commands of pronk chat, which begin with a slash: their table, completion and functions.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/chat/chat_settings.h"
#include "cli/chat/conversation.h"
#include "cli/chat/saved_chats.h"
#include "cli/options/model_options.h"
#include "cli/options/model_stores.h"
#include "cli/options/other_programs.h"
#include "cli/output/report.h"
#include "cli/output/text.h"
#include "cli/terminal/charset.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/session/session_file.h"
#include "gguf/error.h"
#include "gguf/number.h"

namespace cli {
namespace {

// "~/talk.json" as the shell would read it.
std::string WithHome(const std::string& path) {
  const char* const home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

// Our name for a command that other programs call differently.
std::string OurName(const std::string& name) {
  if (name == "/bye" || name == "/quit") return "/exit";
  if (name == "/?") return "/help";
  return name;
}

// The text that was taken back; a file may have been a part of it.
std::string Shown(const std::string& text) {
  constexpr size_t kMost = 4000;  // bytes
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "... (" + std::to_string(text.size()) + " bytes)";
}

// The file that an argument names: without spaces after it, and without the quotes that a terminal
// puts around a file that is dropped on it, unless a file has that name.
std::string FileIn(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find_last_not_of(' ') + 1);
  const bool is_quoted =
      name.size() > 2 && name[0] == name.back() && (name[0] == '\'' || name[0] == '"');
  std::error_code error;
  return is_quoted && !std::filesystem::exists(name, error) ? name.substr(1, name.size() - 2)
                                                            : name;
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
      {"/file", "PATH", "put a file into the next question; - drops the files",
       &Conversation::File},
      {"/undo", "[N]", "take back the last question and its answer, or the last N",
       &Conversation::Undo},
      {"/clear", "", "begin a new conversation", &Conversation::Clear},
      {"/system", "[TEXT]", "show or change the system message; - removes it",
       &Conversation::System},
      {"/think", "[LEVEL]", "think first: on, off, low, medium, high, or N tokens",
       &Conversation::Think},
      {"/set", "[NAME VALUE]", "show or change sampling, and num_ctx, the context",
       &Conversation::Set},
      {"/model", "[NAME]", "continue with another model", &Conversation::Model},
      {"/chats", "", "the saved chats, the last one first", &Conversation::Chats},
      {"/load", "CHAT", "continue a saved chat, by its number, name or file", &Conversation::Load},
      {"/save", "[FILE]", "save the conversation (JSON) and the state of the model",
       &Conversation::Save},
      {"/stats", "", "the tokens, speed and end of the last answer", &Conversation::Stats},
      {"/exit", "", "leave; so do /bye, /quit and Ctrl-D", &Conversation::Exit},
  };
  return commands;
}

std::vector<std::string> Conversation::Completions(const std::string& typed) const {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& line) {
    if (line != typed) lines.push_back(line);  // not the typed line itself
  };
  for (const ChatCommand& command : Commands())
    add(command.name + (command.argument.empty() ? "" : " "));
  const size_t space = typed.find(' ');
  if (space == std::string::npos) return lines;
  const std::string command = typed.substr(0, space + 1), given = typed.substr(space + 1);
  if (command == "/set ") {
    for (const std::string& line : SettingCompletions(given, *ready_)) add(command + line);
  }
  if (command == "/model ") {
    add(command + kDefaultModel);
    for (const StoredModel& model : FindModels().models) add(command + model.name);
  }
  if (command == "/load ") {
    try {
      for (const std::string& path : SavedChats()) add(command + ShownChat(path));
    } catch (const engine::Error&) {  // no exception may pass through libedit, which calls this
    }
  }
  if (command != "/load " && command != "/save " && command != "/file " && command != "/model ")
    return lines;
  const std::string folder = given.substr(0, given.rfind('/') + 1);  // "" if there is none
  for (const auto& path : Entries(folder.empty() ? "." : WithHome(folder))) {
    std::error_code ignored;
    const std::string name = path.filename().string();
    const bool is_folder = std::filesystem::is_directory(path, ignored);
    if (command == "/model " && !is_folder && !name.ends_with(".gguf")) continue;
    add(command + folder + name + (is_folder ? "/" : ""));
  }
  return lines;
}

bool Conversation::Take(const std::string& entry) {
  const size_t space = entry.find(' ');
  const size_t argument = entry.find_first_not_of(' ', space);
  const std::string name = OurName(entry.substr(0, space));
  const auto command = std::ranges::find(Commands(), name, &ChatCommand::name);
  // Pasted text may begin with a slash without being a command.
  if (!entry.starts_with('/') || entry.find('\n') != std::string::npos) {
    if (texts_.empty()) {  // no copy: an entry may be long
      Answer(entry);
    } else {
      const size_t n_before = chat_->Messages().size();
      Answer(Joined(texts_, "\n\n") + "\n\n" + entry);
      if (chat_->Messages().size() > n_before) texts_.clear();  // else the question was taken back
    }
  } else if (command == Commands().end()) {
    std::vector<std::string> names;
    for (const ChatCommand& one : Commands()) names.push_back(one.name);
    Note("(no command " + name + Guess(name, names) +
         "/help lists them. A question may begin with a "
         "space.)");
  } else {
    (this->*command->function)(argument == std::string::npos ? "" : entry.substr(argument));
  }
  return open_;
}

void Conversation::Help(const std::string&) {
  for (const ChatCommand& command : Commands()) {
    std::fprintf(stderr, "%-17s  %s\n", (command.name + " " + command.argument).c_str(),
                 command.what.c_str());
  }
  std::fputs(
      "\nCtrl-C stops an answer, and leaves at an empty prompt. A line that ends in \\\n"
      "goes on in the next one, Alt-Enter begins a new line, and so do all between \"\"\"\n"
      "and \"\"\"; what is pasted stays together. Tab completes commands and what they\n"
      "take. The arrow keys bring back what was typed.\n",
      stderr);
}

void Conversation::Clear(const std::string&) {
  chat_->Clear();
  last_.reset();
  saver_.Leave();
  Note("(a new conversation)");
}

void Conversation::Regenerate(const std::string&) {
  const std::vector<tokenizer::Message> before = chat_->Messages();
  const std::optional<std::string> question = chat_->Undo();
  if (!question) return Note("(nothing to answer again)");
  const size_t n_left = chat_->Messages().size();
  const auto restore = [&] {
    chat_->SetMessages(before);
    saver_.Save(Now());
  };
  try {
    Answer(*question);
  } catch (...) {
    restore();
    throw;
  }
  if (chat_->Messages().size() > n_left) return;
  restore();
  Note("(the earlier answer stays)");
}

void Conversation::Undo(const std::string& argument) {
  const size_t n = argument.empty() ? 1 : gguf::NumberIn<size_t>(argument).value_or(0);
  if (n == 0) throw engine::Error("/undo ", argument, ": expected how many questions to take back");
  std::vector<std::string> questions;
  while (questions.size() < n) {
    const std::optional<std::string> question = chat_->Undo();
    if (!question) break;
    questions.push_back(*question);
  }
  saver_.Save(Now());
  Note(questions.empty() ? "(nothing to take back)"
                         : "(taken back: " + Shown(Joined(questions, "; ")) + ")");
}

void Conversation::System(const std::string& argument) {
  if (!argument.empty()) chat_->SetSystem(argument == "-" ? "" : argument);
  Note(chat_->system().empty() ? "(there is no system message)"
                               : "(the system message is: " + chat_->system() + ")");
}

void Conversation::File(const std::string& given) {
  const std::string argument = FileIn(given);
  if (argument == "-") texts_.clear();
  if (!argument.empty() && argument != "-") {
    const std::string text = ReadFile(WithHome(argument), kMaxTextBytes);
    texts_.push_back(text.ends_with('\n') ? text.substr(0, text.size() - 1) : text);
  }
  size_t n_bytes = 0;
  for (const std::string& text : texts_) n_bytes += text.size();
  Note(texts_.empty() ? "(no file precedes the next question)"
                      : "(the next question begins with " + Counted(texts_.size(), "text") +
                            " of " + HumanBytes(n_bytes) + ")");
}

void Conversation::Model(const std::string& argument) {
  const ModelIdentity now = ready_->identity;
  if (argument.empty()) return Note("(" + now.name + ", " + now.path + ")");
  const std::string path = ResolveModel(WithHome(argument));
  if (IdentityOf(path).IsSame(now)) return Note("(" + now.name + " is already answering)");
  ChatSetup setup = ready_->setup;
  DropModelsOwn(setup);
  SwitchTo(path, setup, chat_->Messages());
  const std::string& name = ready_->identity.name;
  Note("(" + name +
       (chat_->Messages().empty() ? " answers from here on)"
                                  : " continues the conversation as a new chat)"));
  saver_.Leave();
  file_ = OwnFile();
}

void Conversation::Save(const std::string& given) {
  const std::string argument = FileIn(given);
  const std::string path = argument.empty() ? file_.path() : WithHome(argument);
  if (path.empty()) throw engine::Error("/save needs the name of a file");
  OwnFile file = path == file_.path() ? file_ : OwnFile(path);
  for (const std::string& name : {path, path + kSessionSuffix}) {
    if (path != file_.path() && std::filesystem::exists(name)) {
      throw engine::Error(name, ": already exists; choose another name");
    }
  }
  std::optional<PrivateFiles> private_files;
  if (IsSavedChat(path)) private_files.emplace();
  if (!file.Write(ChatText(Now())))
    throw engine::Error(path, ": was written by another chat; choose another name");
  file_ = file;
  if (path == saver_.path()) saver_.GoOnWith(file);
  std::string note = Counted(chat_->Messages().size(), "message") + " saved to " + path;
  if (ready_->session->has_logits()) {
    engine::SaveSession(*ready_->session, path + kSessionSuffix);
    note += std::string(", and beside it (") + kSessionSuffix + ") what the model remembers";
  }
  Note("(" + note + ")");
}

void Conversation::Load(const std::string& given) {
  const std::string argument = FileIn(given);
  if (argument.empty()) throw engine::Error("/load needs the number, name or file of a chat");
  const std::string path = FindChat(WithHome(argument));
  const SavedChat chat = ReadChat(path);
  if (!chat.model) {
    GoOnWith(chat, path, /*is_other=*/false);
    saver_.Leave();  // the file does not name this model
    file_ = OwnFile();
    return;
  }
  const bool is_other = !chat.model->IsSame(ready_->identity);
  const std::string model = ModelFileOf(*chat.model, path);
  try {
    options_.kept->CheckSaved(chat.setup.flags);
    CheckAnswered(chat.messages);
    SwitchTo(model, chat.setup, chat.messages);
  } catch (const gguf::Fault& error) {
    throw engine::Error(path, ": ", error.what());
  }
  if (is_other) Note("(" + ready_->identity.name + " answers from here on)");
  GoOnWith(chat, path, /*is_other=*/false);
}

void Conversation::Chats(const std::string&) {
  const std::string text = SavedChatsText(Columns(STDERR_FILENO));
  std::fputs(text.empty() ? "(no chat is saved)\n" : ForTerminal(text).c_str(), stderr);
}

void Conversation::Stats(const std::string&) {
  // Tokens that /clear left in the cache are not part of the conversation.
  const size_t used = chat_->Messages().empty() ? 0 : ready_->session->position();
  std::string text = Format("context %zu of %zu tokens", used, ready_->session->capacity());
  if (last_) {
    text += Format("; of the last question %zu tokens reused, %zu read\n", last_->n_reused,
                   last_->generated.n_prompt) +
            SpeedLine(last_->generated, ready_->session->model()) + " | ended by " +
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
    verbose_ = argument == "verbose";
  } else if (argument == "think" || argument.starts_with("think ")) {
    return Think(argument == "think" ? "" : argument.substr(6));
  } else if (argument == "nothink") {
    return Think("off");
  } else if (argument.starts_with("system ")) {
    return System(argument.substr(7));
  } else if (argument == kContextSetting) {
    return Note("(num_ctx " + std::to_string(ready_->session->capacity()) + ")");
  } else if (const auto context = ContextIn(argument)) {
    return Resize(*context);
  } else if (!argument.empty()) {
    ChangeSetting(argument, *ready_);
    const engine::Model& model = ready_->model;
    engine::ResolveSampling(model.file.metadata(), *model.tokenizer,
                            ready_->session_options.sampling);
    ready_->session->SetSampling(ready_->session_options.sampling);
  }
  Note("(" + ChatSettingsText(options_, *ready_) + ")");
}

void Conversation::Think(const std::string& argument) {
  const std::string level = argument.empty() ? "on" : argument;
  if (const auto budget = gguf::NumberIn<int64_t>(level);
      budget && *budget >= -1 && *budget <= kMaxTokens) {
    chat_->SetThinkingBudget(*budget);
    ready_->form.thinking_budget = *budget;
    ready_->setup.flags["--reasoning-budget"] = {level};
    return Note(*budget < 0 ? "(thinking: without a limit)"
                            : "(thinking: at most " +
                                  Counted(static_cast<size_t>(*budget), "token") + " of it)");
  }
  if (std::ranges::find(engine::kThinkingLevels, level) == engine::kThinkingLevels.end()) {
    throw engine::Error("/think takes on, off, low, medium, high or a number of tokens");
  }
  chat_->SetThinking(level);
  engine::SetThinking(ready_->form.chat_template, level, ready_->form.variables);
  ready_->setup.flags.erase("--no-think");
  ready_->setup.flags["--think"] = {level};
  Note("(thinking: " + level + ")");
}

void Conversation::Exit(const std::string&) { open_ = false; }

}  // namespace cli
