// pronk chat: reads what the person types; conversation.h answers.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/chat/conversation.h"
#include "cli/chat/saved_chats.h"
#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/generation_options.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/template_options.h"
#include "cli/options/tool_options.h"
#include "cli/terminal/charset.h"
#include "cli/terminal/line_editor.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/model/model.h"

namespace cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

struct ChatOptions {
  ModelOptions model;
  TemplateOptions form;
  GenerationOptions generation;
  ToolOptions answers;
  ConversationOptions conversation;
  std::optional<std::string> first;
  std::string load, save;
  bool escape = false, single_turn = false;
  bool go_on = false, no_save = false, list = false;
};

// Reads lines until one that ends with three quotes.
LineEditor::Result ReadQuoted(LineEditor& editor, std::string& entry) {
  entry.erase(0, kQuotes.size());
  while (!entry.ends_with(kQuotes)) {
    std::string line;
    const LineEditor::Result result = editor.Read(". ", line);
    if (result == LineEditor::Result::kEnd) return LineEditor::Result::kLine;
    if (result != LineEditor::Result::kLine) return result;
    entry += (entry.empty() ? "" : "\n") + line;
    if (entry.size() > kMaxEntryBytes) throw engine::Error("stdin: an entry is too long");
  }
  entry.resize(entry.size() - kQuotes.size());
  return LineEditor::Result::kLine;
}

// A question: one line, lines joined by backslashes at their ends, or all between three quotes.
LineEditor::Result ReadEntry(LineEditor& editor, std::string& entry) {
  entry.clear();
  for (;;) {
    std::string line;
    const LineEditor::Result result = editor.Read(entry.empty() ? "> " : ". ", line);
    if (result == LineEditor::Result::kEnd && !entry.empty()) return LineEditor::Result::kLine;
    if (result != LineEditor::Result::kLine) return result;
    const bool is_first = entry.empty();
    entry += line;
    if (is_first && entry.starts_with(kQuotes)) return ReadQuoted(editor, entry);
    if (entry.size() > kMaxEntryBytes) throw engine::Error("stdin: an entry is too long");
    if (!entry.ends_with('\\')) return result;
    entry.back() = '\n';
  }
}

// Reports an error. A person may go on; a script must not go on as if nothing had happened.
bool TakeEntry(Conversation& conversation, const std::string& entry) {
  try {
    return conversation.Take(entry);
  } catch (const std::exception& error) {
    if (!IsTerminal(0)) throw;
    Complain(error.what());
    return true;
  }
}

// Adds to what the arrow keys bring back, now and in later chats.
void Remember(LineEditor& editor, const std::string& entry, bool saves) {
  editor.Remember(entry);
  if (!saves || !IsTerminal(0)) return;
  try {
    AddTypedLine(entry);
  } catch (const engine::Error&) {  // said when the conversation could not be saved
  }
}

void Converse(Conversation& conversation, const std::optional<std::string>& first,
              const ChatOptions& options) {
  LineEditor editor(Conversation::Completions);
  if (!options.no_save && IsTerminal(0)) {
    try {
      for (const std::string& line : TypedLines()) editor.Remember(line);
    } catch (const engine::Error&) {  // goes without
    }
  }
  CatchInterrupts();
  if (first) {
    if (IsTerminal(0)) std::fprintf(stderr, "> %s\n", ForTerminal(*first).c_str());
    if (!TakeEntry(conversation, *first)) return;
  }
  for (std::string entry; !(options.single_turn && conversation.has_answered());) {
    if (Interrupted() && !IsTerminal(0)) return;  // a script's Ctrl-C is not for one answer
    CatchInterrupts();
    const LineEditor::Result result = ReadEntry(editor, entry);
    if (result == LineEditor::Result::kEnd) return;
    if (result == LineEditor::Result::kInterrupted) {
      if (!IsTerminal(0)) return;
      Note("(Ctrl-D or /exit leaves)");
      continue;
    }
    if (entry.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    Remember(editor, entry, !options.no_save);
    if (!TakeEntry(conversation, entry)) return;
  }
}

// The conversation to go on with; "" for a new one.
std::string PathToLoad(const ChatOptions& options) {
  if (options.go_on && !options.load.empty())
    throw UsageError("--continue and --load: give one of them");
  if (options.no_save && !options.save.empty())
    throw UsageError("--no-save and --save: give one of them");
  if (!options.go_on) return options.load;
  const std::vector<std::string> chats = SavedChats();
  if (chats.empty()) throw engine::Error("--continue: no chat is saved");
  return chats.front();
}

// Where it saves itself: as --save says; else a person's chats are kept among our own.
void ChooseWhereToSave(const ChatOptions& options, const std::string& loaded,
                       ConversationOptions& how) {
  how.save_to = options.save;
  if (options.no_save || !options.save.empty()) {
    if (!options.save.empty() && options.save != loaded && std::filesystem::exists(options.save))
      throw engine::Error(options.save, ": is there already; choose another name");
    return;
  }
  if (!options.go_on && !IsTerminal(0)) return;
  how.is_kept = true;
  try {
    how.save_to = options.go_on ? loaded : NewChatPath();
  } catch (const engine::Error& error) {
    Complain(std::string(error.what()) + ": this chat is not saved");
  }
}

int RunChat(const ChatOptions& options) {
  if (options.list) {
    ListSavedChats();
    return kExitDone;
  }
  const std::string loaded = PathToLoad(options);
  engine::SessionOptions session_options = options.model.Session();
  options.answers.CheckFlags(/*is_chat=*/true, !options.generation.schema.empty());
  std::string schema;
  const std::shared_ptr<const grammar::Grammar> grammar = options.generation.ReadGrammar(&schema);
  session_options.draft = options.generation.Draft({});  // the draft model is not needed yet
  const engine::Model model = LoadModel(options.model);
  const std::optional<engine::Model> draft_model = options.generation.LoadDraftModel(options.model);
  session_options.draft = options.generation.Draft(draft_model);
  ConversationOptions how = options.conversation;
  session_options.sampler = options.generation.Sampler(model, options.model.verbose, how.origins);
  engine::Session session(model, session_options);
  if (options.model.verbose) ExplainChoices(options.model, model, session, session_options);
  const auto text = [&](const std::string& typed) {
    return options.escape ? Unescaped(typed) : typed;
  };
  how.system = text(how.system);
  how.verbose = options.model.verbose;
  how.sampler = session_options.sampler;
  how.flags.merge(options.generation.FlagNames());
  std::optional<grammar::Constraint> constraint;
  if (grammar != nullptr) constraint.emplace(grammar, *model.tokenizer);
  how.constraint = constraint ? &*constraint : nullptr;
  ChooseWhereToSave(options, loaded, how);
  engine::ChatForm form = options.form.For(model);
  options.answers.Apply("", schema, form);
  Conversation conversation(session, how, std::move(form));
  if (IsTerminal(0)) {
    Note("Chatting with " + ModelTitle(model) + ". /help lists the commands.");
  }
  if (!loaded.empty()) conversation.Load(loaded);
  if (!loaded.empty() && !how.system.empty()) conversation.System(how.system);
  Converse(conversation, options.first ? std::optional(text(*options.first)) : std::nullopt,
           options);
  conversation.SaveState();
  return conversation.is_cut() ? kExitCut : kExitDone;
}

}  // namespace

void AddChat(CommandLine& line) {
  Command& command = line.Add("chat", "Converse with a model");
  ChatOptions& options = command.Does(RunChat);
  ConversationOptions& conversation = options.conversation;
  command.Add("--system,--system-prompt TEXT", conversation.system,
              "Also -sys: what the model is told before the conversation");
  command.Add("-p,--prompt TEXT", options.first, "The first question");
  conversation.flags["num_predict"] =
      command
          .Add("-n,--n-predict,--predict N", conversation.max_tokens, {-2, kMaxTokens},
               "Tokens of an answer; -1 or -2: until its end, or the context is full")
          .ShowDefault()
          .names;
  command.Add("-r,--reverse-prompt TEXT", conversation.stop_texts,
              "Stop an answer before this text");
  command.Add("-e,--escape", options.escape, "In -p and --system, \\n is a line feed and so on");
  command.Add("--continue", options.go_on, "Go on with the last chat");
  command
      .Add("--load FILE", options.load, "Go on with this conversation, as /save and --list have it")
      .Writes();  // where --save names it, too
  command
      .Add("--save FILE", options.save,
           "Save the conversation here; otherwise it is saved where --list finds it")
      .Writes();
  command.Add("--no-save", options.no_save, "Save neither the conversation nor what is typed");
  command.Add("--list", options.list, "List the saved chats, the last one first");
  command.Add("--single-turn", options.single_turn, "Also -st: leave after one answer");
  options.form.AddFlags(command);
  options.answers.AddAnswerFlags(command);
  options.model.AddSessionFlags(command);
  options.generation.AddFlags(command);
}

}  // namespace cli
