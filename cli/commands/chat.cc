// pronk chat: reads the typed entries; conversation.h answers.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/chat/chat_file.h"
#include "cli/chat/chat_saver.h"
#include "cli/chat/conversation.h"
#include "cli/chat/kept_flags.h"
#include "cli/chat/ready_model.h"
#include "cli/chat/saved_chats.h"
#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/generation_options.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/model_stores.h"
#include "cli/options/template_options.h"
#include "cli/terminal/charset.h"
#include "cli/terminal/line_editor.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/stopwatch.h"

namespace cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

struct ChatCommandOptions {
  ChatOptions chat;
  std::string system;
  std::optional<std::string> first;
  std::optional<std::string> go_on;  // "": with the last chat
  std::string load, save;
  bool single_turn = false, no_save = false, list = false;
};

// Reads lines until one that ends with three quotes.
LineEditor::Result ReadQuoted(LineEditor& editor, std::string& entry) {
  entry.erase(0, kQuotes.size());
  while (!entry.ends_with(kQuotes)) {
    std::string line;
    const LineEditor::Result result = editor.Read(". ", line);
    if (result == LineEditor::Result::kEnd) return LineEditor::Result::kLine;
    entry += (entry.empty() ? "" : "\n") + line;
    if (result != LineEditor::Result::kLine) return result;
    if (entry.size() > kMaxEntryBytes) throw engine::Error("stdin: an entry is too long");
  }
  entry.resize(entry.size() - kQuotes.size());
  return LineEditor::Result::kLine;
}

// Reads a question: one line, lines joined by backslashes at their ends, or all lines between
// triple quotes. If Ctrl-C ends it, `entry` is the text typed so far.
LineEditor::Result ReadEntry(LineEditor& editor, std::string& entry) {
  entry.clear();
  for (;;) {
    std::string line;
    const LineEditor::Result result = editor.Read(entry.empty() ? "> " : ". ", line);
    if (result == LineEditor::Result::kEnd && !entry.empty()) return LineEditor::Result::kLine;
    const bool is_first = entry.empty();
    entry += line;
    if (result != LineEditor::Result::kLine) return result;
    if (is_first && entry.starts_with(kQuotes)) return ReadQuoted(editor, entry);
    if (entry.size() > kMaxEntryBytes) throw engine::Error("stdin: an entry is too long");
    if (!entry.ends_with('\\')) return result;
    entry.back() = '\n';
  }
}

// Reports an error. A person may continue; a script must not continue after an error.
bool TakeEntry(Conversation& conversation, const std::string& entry) {
  try {
    return conversation.Take(entry);
  } catch (const engine::TooLong& error) {
    if (!IsTerminal(0)) throw;
    Complain(std::string(error.what()) + "; /set num_ctx makes it larger");
    return true;
  } catch (const std::exception& error) {
    if (!IsTerminal(0)) throw;
    Complain(error.what());
    return true;
  }
}

// Adds an entry to the history of this chat and of later chats.
void Remember(LineEditor& editor, const std::string& entry, bool saves) {
  editor.Remember(entry);
  if (!saves || !IsTerminal(0)) return;
  try {
    AddTypedLine(entry);
  } catch (const engine::Error&) {  // reported when the conversation could not be saved
  }
}

// Handles Ctrl-C at a prompt. If a person presses it twice to stop an answer, one or both may
// arrive here; these do not leave the chat.
class PromptInterrupts {
 public:
  // stops: how many Ctrl-C an answer that has just ended may still get.
  void Expect(int stops) {
    stops_ = stops;
    since_ = engine::Stopwatch();
  }
  // entry: the text typed before it.
  bool Leaves(const std::string& entry) {
    constexpr double kQuick = 1;  // seconds
    const bool is_late = stops_-- > 0 && since_.Seconds() < kQuick;
    since_ = engine::Stopwatch();
    if (!IsTerminal(0) || (entry.empty() && !is_late)) return true;
    Note("(Ctrl-C again, Ctrl-D or /exit leaves)");
    return false;
  }

 private:
  int stops_ = 0;
  engine::Stopwatch since_;  // the answer, or the last Ctrl-C
};

void Converse(Conversation& conversation, const std::optional<std::string>& first,
              const ChatCommandOptions& options) {
  LineEditor editor([&](const std::string& typed) { return conversation.Completions(typed); });
  if (!options.no_save && IsTerminal(0)) {
    try {
      for (const std::string& line : TypedLines()) editor.Remember(line);
    } catch (const engine::Error&) {  // there is no history then
    }
  }
  const int n_caught = IsTerminal(0) ? 2 : 1;  // a third ends an answer that does not stop
  CatchInterrupts(n_caught);
  PromptInterrupts interrupts;
  const auto take = [&](const std::string& entry) {
    const size_t n_answers = conversation.n_answers();
    const bool goes_on = TakeEntry(conversation, entry);
    const int n_quick = Interrupted() ? 1 : 2;
    interrupts.Expect(conversation.n_answers() != n_answers ? n_quick : 0);
    return goes_on;
  };
  if (first) {
    if (IsTerminal(0)) std::fprintf(stderr, "> %s\n", ForTerminal(*first).c_str());
    if (!take(*first)) return;
  }
  for (std::string entry; !(options.single_turn && conversation.n_answers() > 0);) {
    if (Interrupted() && !IsTerminal(0)) return;  // a script's Ctrl-C is not for one answer
    CatchInterrupts(n_caught);
    const LineEditor::Result result = ReadEntry(editor, entry);
    if (result == LineEditor::Result::kEnd) return;
    if (result == LineEditor::Result::kInterrupted) {
      if (interrupts.Leaves(entry)) return;
      continue;
    }
    if (entry.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    Remember(editor, entry, !options.no_save);
    if (!take(entry)) return;
  }
}

// The beginning of the chat.
struct ChatStart {
  std::string path;       // the chat to continue; "": a new one
  SavedChat chat;         // read from there
  std::string model;      // the file to open
  bool is_other = false;  // the model is not the chat's
};

// Asks which model shall continue a chat that names no model.
std::string AskForModel(const std::string& path) {
  const std::string what = ShownChat(path) + ": does not say which model it is by";
  if (!IsTerminal(0)) throw engine::Error(what, ": give -m");
  Note("(" + what + ".)");
  LineEditor editor([](const std::string&) {
    std::vector<std::string> names = {kDefaultModel};
    for (const StoredModel& model : FindModels().models) names.push_back(model.name);
    return names;
  });
  for (std::string line;;) {
    if (editor.Read("model: ", line) != LineEditor::Result::kLine || line.empty())
      throw engine::Error(what, ": give -m");
    try {
      return ResolveModel(line);
    } catch (const engine::Error& error) {
      Complain(error.what());
    }
  }
}

ChatStart StartOf(const ChatCommandOptions& options) {
  if (options.go_on && !options.load.empty())
    throw UsageError("--continue and --load: give one of them");
  if (options.no_save && !options.save.empty())
    throw UsageError("--no-save and --save: give one of them");
  ChatStart start;
  std::string model_name = options.chat.model.model, go_on = options.go_on.value_or("");
  if (options.go_on && go_on.empty() && IsNameOfSavedChat(model_name))
    go_on = std::exchange(model_name, "");  // --continue NAME
  const bool has_model = !model_name.empty();
  if (!options.go_on && options.load.empty()) {
    start.model = options.chat.model.ModelPath();
    start.chat.setup.flags = options.chat.kept->Typed();
    return start;
  }
  if (options.go_on && go_on.empty() && SavedChats().empty())
    throw engine::Error("--continue: no chat is saved");
  start.path = !options.go_on  ? FindChat(options.load)
               : go_on.empty() ? SavedChats().front()
                               : FindSavedChat(go_on);
  start.chat = ReadChat(start.path);
  const std::optional<ModelIdentity>& model = start.chat.model;
  if (has_model) {
    start.model = options.chat.model.ModelPath();
    start.is_other = model && !IdentityOf(start.model).IsSame(*model);
  } else {
    start.model = model ? ModelFileOf(*model, start.path) : AskForModel(start.path);
  }
  FlagValues& flags = start.chat.setup.flags;
  try {
    options.chat.kept->CheckSaved(flags);
    if (start.is_other) DropModelsOwn(start.chat.setup);
    flags = options.chat.kept->WithTyped(std::move(flags));
    options.chat.kept->Apply(flags);
  } catch (const engine::Error& error) {
    throw engine::Error(start.path, ": ", error.what());
  }
  return start;
}

// Where the chat is saved: in the file of --save; else, on a terminal or with --continue, among the
// saved chats.
ChatSaver SaverFor(const ChatCommandOptions& options, const ChatStart& start) {
  const bool goes_on_there = !start.path.empty() && !start.is_other;
  if (options.no_save) return {};
  if (!options.save.empty()) {
    if (options.save == start.path) {
      if (goes_on_there) return ChatSaver(OwnFile(options.save, start.chat.content), false);
      const std::string path = FreeName(options.save);
      Note("(what follows is saved as " + path + ")");
      return ChatSaver(OwnFile(path), false);
    }
    if (std::filesystem::exists(options.save))
      throw engine::Error(options.save, ": already exists; choose another name");
    return ChatSaver(OwnFile(options.save), false);
  }
  if (!options.go_on && !IsTerminal(0)) return {};
  try {
    if (options.go_on && goes_on_there)
      return ChatSaver(OwnFile(start.path, start.chat.content), true);
    return ChatSaver(OwnFile(NewChatPath()), true);
  } catch (const engine::Error& error) {
    Complain(std::string(error.what()) + ": this chat is not saved");
    return {};
  }
}

void Greet(const ReadyModel& ready) {
  if (IsDefaultModel(ready.identity.path)) {
    const Suggestion other = SuggestedModel();
    Note("This model is a toy that tells stories and knows nothing else. One that answers, of " +
         other.size + ": " + other.line);
  }
  Note("Chatting with " + ModelTitle(ready.model) + ". /help lists the commands.");
}

int RunChat(const ChatCommandOptions& options) {
  if (options.list) {
    const std::string text = SavedChatsText(Columns(1));
    if (text.empty()) Note("(no chat is saved)");
    WriteOut(text);
    return kExitDone;
  }
  const ChatOptions& chat = options.chat;
  chat.answers.CheckFlags(/*is_chat=*/true, !chat.generation.schema.empty());
  ChatStart start = StartOf(options);
  if (!chat.template_options.file.empty())
    start.chat.setup.chat_template = ReadTemplate(chat.template_options.file);
  auto ready = std::make_unique<ReadyModel>(chat, start.model, start.chat.setup, /*is_first=*/true);
  ready->setup.flags = chat.kept->WithTexts(std::move(ready->setup.flags));
  ready->Begin();
  if (chat.model.verbose)
    ExplainChoices(chat.model, ready->model, *ready->session, ready->session_options);
  if (IsTerminal(0)) Greet(*ready);
  Conversation conversation(chat, std::move(ready), SaverFor(options, start));
  if (!start.path.empty()) conversation.GoOnWith(start.chat, start.path, start.is_other);
  if (!options.system.empty()) conversation.System(chat.generation.ResolveEscapes(options.system));
  std::optional<std::string> first = options.first;
  if (first) first = chat.generation.ResolveEscapes(*first);
  Converse(conversation, first, options);
  conversation.SaveState();
  return conversation.is_cut() ? kExitCut : kExitDone;
}

}  // namespace

void AddChat(CommandLine& line) {
  Command& command = line.Add("chat", "Chat with a model");
  ChatCommandOptions& options = command.Does(RunChat);
  ChatOptions& chat = options.chat;
  command.Add("--system,--system-prompt TEXT", options.system, "Also -sys: the system message");
  command.Add("-p,--prompt TEXT", options.first, "The first question").Once();
  command
      .Add(kPredictFlags, chat.max_tokens, {-2, kMaxTokens},
           "Tokens of an answer; -1 or -2: until it ends or the context is full")
      .ShowDefault();
  command.Add("-r,--reverse-prompt TEXT", chat.stop_texts, "Stop an answer before this text");
  chat.generation.AddEscapeFlag(command);
  command
      .Add("--continue N", options.go_on,
           "Continue the last chat, or the one with this number or name in --list")
      .MayBeAlone();
  command
      .Add("--load FILE", options.load,
           "Continue a chat that /save wrote, with its own model unless -m names one")
      .Writes();  // if --save names it, too
  command
      .Add("--save FILE", options.save,
           "Save the conversation here; otherwise it is saved where --list finds it")
      .Writes();
  command.Add("--no-save", options.no_save, "Save neither the conversation nor what is typed");
  command.Add("--list", options.list, "List the saved chats, the last one first");
  command.Add("--single-turn", options.single_turn, "Also -st: leave after one answer");
  chat.template_options.AddFlags(command);
  chat.answers.AddAnswerFlags(command);
  chat.model.AddSessionFlags(command);
  chat.generation.AddFlags(command);
  chat.kept = std::make_shared<KeptFlags>(command);
}

}  // namespace cli
