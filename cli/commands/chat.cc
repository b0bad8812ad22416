// pronk chat: reads what the person types; conversation.h answers.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "cli/chat/conversation.h"
#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/generation_options.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/template_options.h"
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
  ConversationOptions conversation;
  std::optional<std::string> first;
  bool escape = false, single_turn = false;
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

// A question: one line, or several lines of which all but the last end in a backslash, or
// everything between three quotes.
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

void Converse(Conversation& conversation, const std::optional<std::string>& first,
              bool single_turn) {
  LineEditor editor(Conversation::CommandNames());
  CatchInterrupts();
  if (first) {
    if (IsTerminal(0)) std::fprintf(stderr, "> %s\n", ForTerminal(*first).c_str());
    if (!TakeEntry(conversation, *first)) return;
  }
  for (std::string entry; !(single_turn && conversation.has_answered());) {
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
    editor.Remember(entry);
    if (!TakeEntry(conversation, entry)) return;
  }
}

int RunChat(const ChatOptions& options) {
  engine::SessionOptions session_options = options.model.Session();
  const std::shared_ptr<const grammar::Grammar> grammar = options.generation.ReadGrammar();
  session_options.draft = options.generation.Draft({});  // the draft model is not needed yet
  const engine::Model model = LoadModel(options.model);
  const std::optional<engine::Model> draft_model = options.generation.LoadDraftModel();
  session_options.draft = options.generation.Draft(draft_model);
  ConversationOptions how = options.conversation;
  session_options.sampler = options.generation.Sampler(model, options.model.verbose, how.origins);
  engine::Session session(model, session_options);
  if (options.model.verbose) ExplainChoices(options.model, model, session, session_options);
  const auto text = [&](const std::string& typed) {
    return options.escape ? Unescaped(FromTerminal(typed)) : FromTerminal(typed);
  };
  how.system = text(how.system);
  how.verbose = options.model.verbose;
  how.sampler = session_options.sampler;
  std::optional<grammar::Constraint> constraint;
  if (grammar != nullptr) constraint.emplace(grammar, *model.tokenizer);
  how.constraint = constraint ? &*constraint : nullptr;
  Conversation conversation(session, how, options.form.For(model));
  if (IsTerminal(0)) {
    Note("Chatting with " + ModelTitle(model) + ". /help lists the commands.");
  }
  Converse(conversation, options.first ? std::optional(text(*options.first)) : std::nullopt,
           options.single_turn);
  return kExitDone;
}

}  // namespace

void AddChat(CommandLine& line) {
  Command& command = line.Add("chat", "Converse with a model");
  ChatOptions& options = command.Does(RunChat);
  ConversationOptions& conversation = options.conversation;
  command.Add("--system,--system-prompt TEXT", conversation.system,
              "Also -sys: what the model is told before the conversation");
  command.Add("-p,--prompt TEXT", options.first, "The first question");
  command
      .Add("-n,--n-predict,--predict N", conversation.max_tokens,
           "Tokens of an answer; -1: until its end")
      .ShowDefault()
      .Between(-1, kMaxTokens);
  command.Add("-r,--reverse-prompt TEXT", conversation.stop_texts,
              "Stop an answer before this text");
  command.Add("-e,--escape", options.escape, "In -p and --system, \\n is a line feed and so on");
  command.Add("--single-turn", options.single_turn, "Also -st: leave after one answer");
  options.form.AddFlags(command);
  options.model.AddSessionFlags(command);
  options.generation.AddFlags(command);
}

}  // namespace cli
