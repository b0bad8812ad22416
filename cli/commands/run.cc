// pronk run: completes a prompt and streams the text.
#include "cli/commands/run.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <utility>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/output/report.h"
#include "cli/terminal/charset.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/session/encode.h"
#include "engine/session/session_file.h"
#include "engine/stopwatch.h"

namespace cli {
namespace {

// In a run at least this long, measuring the memory bandwidth costs no noticeable time.
constexpr double kLongRunSeconds = 2;

// Files and pipes end with a line feed that nobody typed.
std::string WithoutLastNewline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

// What is piped in besides -p and -f; "" if nothing is. Some programs start others with a pipe that
// nobody writes to: a pipe without a byte within a second counts as such.
std::string Piped() {
  constexpr int kPatience = 1000;  // milliseconds
  if (!IsPiped(0)) return "";
  if (HasInput(0, kPatience)) return WithoutLastNewline(ReadText("-"));
  Complain("note: nothing came from stdin so far, so it is left out; '-f -' would wait for it");
  return "";
}

// Adds a part after an empty line. The first one is not copied: it may be hundreds of megabytes.
void Append(std::string part, std::string& text) {
  if (text.empty()) {
    text = std::move(part);
  } else if (!part.empty()) {
    text += "\n\n" + part;
  }
}

// What is piped in, the files in their order, and the text of -p, which is about them.
std::string PromptOf(const RunOptions& options) {
  std::string prompt = options.prompt.value_or("");
  if (options.escape) prompt = Unescaped(prompt);
  std::string all;
  const bool is_given = options.prompt || !options.files.empty();
  if (!is_given) options.model.ModelPath();  // a word that names no model may be the prompt
  if (!is_given && !IsTerminal(0)) all = WithoutLastNewline(ReadText("-"));
  if (!is_given && all.empty()) {
    throw UsageError(
        "no prompt: give one with -p TEXT or -f FILE, or pipe it in; 'pronk chat' converses");
  }
  if (is_given && std::ranges::count(options.files, "-") == 0) all = Piped();
  for (const std::string& file : options.files) {
    Append(WithoutLastNewline(ReadText(file)), all);
  }
  Append(std::move(prompt), all);
  return all;
}

// Restores the prompt's beginning that the --prompt-cache file has. Returns its number of tokens.
size_t ReuseCache(const std::string& path, std::span<const tokenizer::TokenId> ids,
                  engine::Session& session) {
  if (!std::filesystem::exists(path)) return 0;
  engine::LoadSession(session, path);
  const size_t n_reused = session.RewindToCommon(ids);
  Note("(" + std::to_string(n_reused) + " of " + std::to_string(ids.size()) +
       " tokens of the prompt taken from " + path + ")");
  return n_reused;
}

engine::GenerateResult Complete(const RunOptions& options, const RunParts& parts,
                                grammar::Constraint* constraint, const std::string& prompt,
                                TextOutput& out) {
  const engine::Model& model = parts.model;
  const std::vector<tokenizer::TokenId> ids = EncodePrompt(options, parts, prompt);
  engine::SessionOptions session_options = parts.session;
  session_options.context = ContextFor(options, model, ids.size());
  engine::Session session(model, session_options);
  if (options.model.verbose) ExplainChoices(options.model, model, session, session_options);

  ProgressLine progress("reading the prompt:");
  engine::GenerateOptions generate = GenerateOptionsFor(options, parts, constraint);
  generate.on_thinking = [&](std::string_view text) {
    progress.Clear();
    if (!options.json) out.WriteThinking(text);
    return true;
  };
  generate.prompt_progress = [&](size_t done, size_t total) {
    progress.Update(done, total);
    return true;
  };
  // The space that SPM puts before a text is not part of it: without a prompt it is not shown.
  bool at_start = constraint == nullptr &&
                  (options.chat || (prompt.empty() && model.tokenizer->vocab().add_space_prefix));
  size_t n_reused = 0;
  if (!options.prompt_cache.empty()) {
    n_reused = ReuseCache(options.prompt_cache, ids, session);
    generate.prompt_read = [&] {
      if (n_reused < ids.size()) engine::SaveSession(session, options.prompt_cache);
    };
  }
  const std::span<const tokenizer::TokenId> rest = std::span(ids).subspan(n_reused);
  // Before the prompt is shown: on an error only the error is printed.
  session.CheckRoom(rest);
  session.team().Start();
  if (!options.json && !options.chat && !options.no_display_prompt) out.Write(prompt);
  return engine::Generate(session, rest, generate, [&](std::string_view text) {
    progress.Clear();
    if (options.json) return true;
    if (std::exchange(at_start, false) && text.starts_with(' ')) text.remove_prefix(1);
    return out.Write(text);
  });
}

// A line of JSON for each.
void WriteCalls(const std::vector<tokenizer::ToolCall>& calls, bool is_first, TextOutput& out) {
  for (const tokenizer::ToolCall& call : calls) {
    out.Write((std::exchange(is_first, false) ? "" : "\n") + CallJson(call));
  }
}

// Notes and speeds, if a person is reading.
void ReportRun(const RunOptions& options, const engine::Model& model,
               const engine::GenerateResult& result) {
  if (options.json) return;
  if (result.stop_reason == engine::StopReason::kContext) {
    Complain("note: the context is full, so the text ends here; -c makes it larger");
  }
  if (result.stop_reason == engine::StopReason::kLength && result.text.empty() &&
      !result.thinking.empty()) {
    Complain("note: the answer was cut while the model was thinking, as -n says");
  }
  if (!IsTerminal(2) && !options.model.verbose) return;
  Note(SpeedLine(result, model, result.decode_seconds > kLongRunSeconds ? result.n_threads : 0));
  if (options.model.verbose) Note(ThreadsLine(result));
  if (options.model.verbose && result.drafts.n_passes > 0) Note(DraftLine(result.drafts));
}

// Flags without effect are refused: whoever gives one expects an effect.
void CheckFlags(const RunOptions& options) {
  const auto refuse = [](bool given, const char* flag, const char* why) {
    if (given) throw UsageError(flag, why);
  };
  if (options.jsonl) {
    refuse(options.prompt || options.files.size() > 1, "--jsonl",
           " answers the lines of one -f, and no other prompt");
    refuse(options.json || !options.prompt_cache.empty(), "--jsonl",
           " does not go with --json or --prompt-cache");
    refuse(options.parallel > 1 && !options.generation.draft_model.empty(), "--draft-model",
           " has no effect with --parallel");
  } else {
    refuse(!options.output.empty(), "-o", " has no effect without --jsonl");
    refuse(options.parallel > 1, "--parallel", " has no effect without --jsonl");
  }
  options.tools.CheckFlags(options.chat, !options.generation.schema.empty());
  if (options.chat) {
    refuse(options.special, "--special",
           " has no effect with --chat: the template says what is special");
    return;
  }
  constexpr const char* kChatOnly = " has no effect without --chat";
  refuse(!options.system.empty(), "--system", kChatOnly);
  refuse(!options.form.file.empty(), "--template", kChatOnly);
  refuse(!options.form.variables.empty(), "--template-var", kChatOnly);
  refuse(!options.form.think.empty(), "--think", kChatOnly);
  refuse(options.form.no_think, "--no-think", kChatOnly);
}

int Run(const RunOptions& options) {
  CheckFlags(options);
  engine::SessionOptions session_options = options.model.Session();
  // Checked before the model is loaded.
  std::string schema;
  const std::shared_ptr<const grammar::Grammar> grammar = options.generation.ReadGrammar(&schema);
  const std::string tools = options.tools.ReadTools();
  session_options.draft = options.generation.Draft({});
  std::vector<std::string> lines;
  std::string prompt;
  if (options.jsonl) {
    lines = ReadPromptLines(options.files.empty() ? "-" : options.files[0]);
  } else {
    prompt = PromptOf(options);
  }
  const engine::Stopwatch watch;
  const engine::Model model = LoadModel(options.model);
  const std::optional<engine::Model> draft_model = options.generation.LoadDraftModel(options.model);
  session_options.draft = options.generation.Draft(draft_model);
  Origins origins;
  session_options.sampler = options.generation.Sampler(model, options.model.verbose, origins);
  RunParts parts = {.model = model, .form = {}, .session = session_options, .grammar = grammar};
  if (options.chat) {
    parts.form = options.form.For(model);
    options.tools.Apply(tools, schema, *parts.form);
    parts.keeps_answer = grammar != nullptr;
    parts.grammar = parts.form->GrammarFor(grammar, *model.tokenizer);
  }
  std::optional<grammar::Constraint> constraint;
  if (parts.grammar != nullptr) constraint.emplace(parts.grammar, *model.tokenizer);
  grammar::Constraint* const kept_to = constraint ? &*constraint : nullptr;
  parts.load_seconds = watch.Seconds();
  CatchInterrupts();
  if (options.jsonl) return RunLines(options, parts, lines);
  TextOutput out;
  const engine::GenerateResult result = Complete(options, parts, kept_to, prompt, out);
  if (!options.json) WriteCalls(result.calls, result.text.empty(), out);
  const uint64_t seed = session_options.sampler.seed;
  const bool open =
      options.json ? WriteOut(ResultJson(result, seed, parts.load_seconds, 2)) : out.Finish();
  ReportRun(options, model, result);
  if (!open) return kExitDone;  // nobody reads any more
  return ComplainIfCut(result.is_free ? nullptr : kept_to, result.stop_reason) ? kExitCut
                                                                               : kExitDone;
}

}  // namespace

size_t ContextFor(const RunOptions& options, const engine::Model& model, size_t n_prompt) {
  const size_t usual = engine::ContextOf(model.config, options.model.context);
  if (options.model.context != engine::kUsualContext || options.max_tokens < 0) return usual;
  const size_t needed = n_prompt + static_cast<size_t>(options.max_tokens);
  if (n_prompt > usual || needed <= usual) return usual;
  if (needed > model.config.context_length) {
    Complain("note: " + std::to_string(needed) + " tokens are more than the " +
             std::to_string(model.config.context_length) + " this model was trained for");
  }
  return needed;
}

std::vector<tokenizer::TokenId> EncodePrompt(const RunOptions& options, const RunParts& parts,
                                             const std::string& prompt) {
  const engine::Model& model = parts.model;
  const size_t context = engine::ContextOf(model.config, options.model.context);
  const std::function<bool()> interrupted = Interrupted;
  if (!parts.form) {
    return engine::Encode(
        model, prompt,
        {.add_bos = true, .parse_special = options.special, .interrupted = &interrupted}, context);
  }
  engine::CheckTextSize(model, prompt.size(), context);  // checked before a template copies it
  std::vector<tokenizer::Message> messages = {{"user", prompt}};
  if (!options.system.empty()) {
    messages.insert(messages.begin(),
                    {"system", options.escape ? Unescaped(options.system) : options.system});
  }
  return engine::EncodeChat(model, *parts.form, messages, context, interrupted);
}

engine::GenerateOptions GenerateOptionsFor(const RunOptions& options, const RunParts& parts,
                                           grammar::Constraint* constraint) {
  engine::GenerateOptions generate = {.max_tokens = options.max_tokens,
                                      .stop_texts = options.stop_texts,
                                      .interrupted = Interrupted,
                                      .constraint = constraint};
  if (parts.form) parts.form->Prepare(generate, parts.keeps_answer);
  return generate;
}

void AddRun(CommandLine& line) {
  Command& command = line.Add("run", "Complete a prompt");
  RunOptions& options = command.Does(Run);
  options.model.AddModelFlag(command);
  command.Add("-p,--prompt,TEXT TEXT", options.prompt,
              "The text to complete, as it is: \\n stays \\n; without -p, after MODEL or alone");
  command.Add(
      "-f,--file FILE", options.files,
      "A file (- for stdin) to complete, or that -p is about (repeatable: joined in order)");
  command
      .Add("--prompt-cache FILE", options.prompt_cache,
           "Keep what was read of the prompt in this file, and start from it next time")
      .Writes();
  command
      .Add("-n,--n-predict,--predict N", options.max_tokens, {-2, kMaxTokens},
           "Tokens to generate; -1 or -2: until the end, or the context is full")
      .ShowDefault();
  command.Add("-r,--reverse-prompt TEXT", options.stop_texts, "Stop before this text (repeatable)");
  command.Add("-e,--escape", options.escape, "In -p and --system, \\n is a line feed and so on");
  command.Add("--chat,--single-turn", options.chat,
              "Also -st: the text is a question; use the model's chat template");
  command.Add("--system,--system-prompt TEXT", options.system,
              "Also -sys: with --chat, what the model is told before");
  command.Add("--special", options.special, "Read special tokens such as <s> in the prompt");
  command.Add("--no-display-prompt", options.no_display_prompt, "Print the completion only");
  command.Add("--json", options.json, "Print one JSON object: text, tokens, timings");
  command.Add(
      "--jsonl", options.jsonl,
      "Answer each line of -f, a string or an object with \"prompt\" in JSON, with a line of "
      "JSON; its seed is --seed and its number");
  command
      .Add("-o,--output FILE", options.output,
           "Where --jsonl writes; a file that has some of the lines already is continued")
      .Writes();
  command
      .Add("--parallel N", options.parallel, {1, 64},
           "Also -np: lines of --jsonl answered together")
      .ShowDefault();
  options.form.AddFlags(command);
  options.tools.AddAnswerFlags(command);
  options.model.AddSessionFlags(command);
  options.generation.AddFlags(command);
  options.tools.AddToolFlags(command);
}

}  // namespace cli
