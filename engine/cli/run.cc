// pronk run: complete a prompt, or several one after the other, streaming.
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "engine/chat.h"
#include "engine/cli/charset.h"
#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/json_file.h"
#include "engine/cli/loading.h"
#include "engine/cli/model_options.h"
#include "engine/cli/report.h"
#include "engine/cli/sampling_options.h"
#include "engine/cli/signals.h"
#include "engine/cli/template_options.h"
#include "engine/cli/terminal.h"
#include "engine/encode.h"
#include "engine/generate.h"
#include "engine/model.h"
#include "engine/stopwatch.h"

namespace cli {
namespace {

// From this long a run on, measuring what the memory could give costs nothing that anyone notices.
constexpr double kLongRunSeconds = 2;

struct RunOptions {
  ModelOptions model;
  SamplingOptions sampling;
  TemplateOptions form;
  std::optional<std::string> prompt;
  std::string file;
  std::string prompts;  // a file of them
  std::string system;
  int64_t max_tokens = -1;
  std::vector<std::string> stop_texts;
  bool chat = false;
  bool no_display_prompt = false;
  bool special = false;
  bool json = false;
};

// A file or a pipe ends with a line feed that nobody typed.
std::string WithoutLastNewline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

// One prompt a line; empty lines are none. A line in JSON's quotes may hold line feeds as \n.
std::vector<std::string> ReadPrompts(const std::string& path) {
  std::vector<std::string> prompts;
  std::istringstream lines(ReadText(path));
  for (std::string line; std::getline(lines, line);) {
    line = WithoutLastNewline(line);
    if (line.empty()) continue;
    prompts.push_back(UnquoteJson(line).value_or(line));
  }
  return prompts;
}

std::vector<std::string> PromptsOf(const RunOptions& options) {
  if (int{options.prompt.has_value()} + !options.file.empty() + !options.prompts.empty() > 1) {
    throw UsageError("-p, -f and --prompts: give one of them");
  }
  if (options.prompt) return {FromTerminal(*options.prompt)};
  if (!options.file.empty()) return {WithoutLastNewline(ReadFile(options.file, kMaxTextBytes))};
  if (!options.prompts.empty()) return ReadPrompts(options.prompts);
  if (IsTerminal(0)) throw UsageError("no prompt: give one with -p TEXT or -f FILE, or pipe it in");
  return {WithoutLastNewline(ReadStdin(kMaxTextBytes))};
}

// The default context holds the tokens that -n asks for, even if that is more than the model has
// seen in training; but a prompt that is too long by itself is refused.
size_t ContextFor(const RunOptions& options, const engine::Model& model, size_t n_prompt) {
  if (options.model.context != 0 || options.max_tokens < 0) return options.model.context;
  const size_t usual = engine::DefaultContext(model.config);
  const size_t needed = n_prompt + static_cast<size_t>(options.max_tokens);
  if (n_prompt > usual || needed <= usual) return usual;
  if (needed > model.config.context_length) {
    Complain("note: " + std::to_string(needed) + " tokens are more than the " +
             std::to_string(model.config.context_length) + " this model was trained for");
  }
  return needed;
}

std::vector<tokenizer::TokenId> Encode(const RunOptions& options, const engine::Model& model,
                                       const std::optional<engine::ChatForm>& form,
                                       const std::string& prompt) {
  const size_t context = options.model.context;
  const std::function<bool()> interrupted = Interrupted;
  if (!form) {
    return engine::Encode(
        model, prompt,
        {.add_bos = true, .parse_special = options.special, .interrupted = &interrupted}, context);
  }
  engine::CheckTextSize(model, prompt.size(), context);  // before a template copies it
  std::vector<tokenizer::Message> messages = {{"user", prompt}};
  if (!options.system.empty()) {
    messages.insert(messages.begin(), {"system", FromTerminal(options.system)});
  }
  return engine::EncodeChat(model, *form, messages, context, interrupted);
}

// Completes one prompt, in a session of its own: what comes out does not depend on other prompts.
engine::GenerateResult Complete(const RunOptions& options, const engine::Model& model,
                                const std::optional<engine::ChatForm>& form,
                                engine::SessionOptions session_options, const std::string& prompt) {
  const std::vector<tokenizer::TokenId> ids = Encode(options, model, form, prompt);
  session_options.context = ContextFor(options, model, ids.size());
  engine::Session session(model, session_options);
  if (options.model.verbose) ExplainChoices(options.model, model, session, session_options);

  ProgressLine progress("reading the prompt:", 1.0);
  engine::GenerateOptions generate;
  generate.max_tokens = options.max_tokens;
  generate.stop_texts = options.stop_texts;
  if (form && form->is_transcript) {
    generate.stop_texts.emplace_back(tokenizer::kTranscriptStop);
  }
  generate.interrupted = Interrupted;
  generate.prompt_progress = [&](size_t done, size_t total) { progress.Update(done, total); };
  // The space that SPM puts before a text belongs to the vocabulary, not to the text: where there
  // is no prompt for it to follow, nobody wants to see it.
  bool at_start = options.chat || (prompt.empty() && model.tokenizer->vocab().add_space_prefix);
  session.CheckRoom(ids);  // before the prompt is shown: an error should stand alone
  if (!options.json && !options.chat && !options.no_display_prompt) WriteOut(prompt);
  return engine::Generate(session, ids, generate, [&](std::string_view text) {
    progress.Clear();
    if (options.json) return true;
    if (std::exchange(at_start, false) && text.starts_with(' ')) text.remove_prefix(1);
    return WriteOut(text);
  });
}

// Flags that would have no effect: whoever gives one believes it has.
void CheckFlags(const RunOptions& options) {
  const auto refuse = [](bool given, const char* flag, const char* why) {
    if (given) throw UsageError(std::string(flag) + why);
  };
  if (options.chat) {
    refuse(options.special, "--special",
           " has no effect with --chat: the template says what is special");
    return;
  }
  constexpr const char* kChatOnly = " has no effect without --chat";
  refuse(!options.system.empty(), "--system", kChatOnly);
  refuse(!options.form.file.empty(), "--template", kChatOnly);
  refuse(!options.form.variables.empty(), "--template-var", kChatOnly);
}

int Run(const RunOptions& options) {
  CheckFlags(options);
  engine::SessionOptions session_options = options.model.Session();
  const std::vector<std::string> prompts = PromptsOf(options);  // no model is loaded in vain
  const engine::Stopwatch watch;
  const engine::Model model = LoadModel(options.model);
  session_options.sampler = options.sampling.For(model.tokenizer->vocab());
  std::optional<engine::ChatForm> form;  // none: the prompts are plain text
  if (options.chat) form = options.form.For(model);
  const double load_seconds = watch.Seconds();
  CatchInterrupts();
  for (const std::string& prompt : prompts) {
    const engine::GenerateResult result = Complete(options, model, form, session_options, prompt);
    // Several objects stand one to a line.
    const bool open =
        WriteOut(options.json ? ResultJson(result, load_seconds, options.prompts.empty() ? 2 : -1)
                              : "\n\n");  // sets the text apart from what comes next
    if (result.stop_reason == engine::StopReason::kContext && !options.json) {
      Complain("note: the context is full, so the text ends here; -c makes it larger");
    }
    if (IsTerminal(2) && !options.json) {
      const bool was_long = result.decode_seconds > kLongRunSeconds;
      const int n_threads = session_options.n_threads;
      Note(SpeedLine(result, model,
                     !was_long        ? 0
                     : n_threads != 0 ? n_threads
                                      : kernels::DefaultThreads()));
    }
    if (!open || Interrupted()) break;
  }
  return kExitDone;
}

}  // namespace

void AddRun(CommandLine& line) {
  Command command = line.Add("run", "Complete a prompt");
  const auto options = std::make_shared<RunOptions>();
  command.Add("-p,--prompt", options->prompt, "The text to complete, as it is: \\n stays \\n")
      .Type("TEXT");
  command.Add("-f,--file", options->file, "Read the text from a file (default: stdin)")
      .Type("FILE");
  command
      .Add("--prompts", options->prompts,
           "Complete each line of a file; a line in JSON's quotes may hold \\n")
      .Type("FILE");
  command.Add("-n,--n-predict", options->max_tokens, "Tokens to generate; -1: until the end")
      .ShowDefault()
      .Between(-1, 1e9)
      .Type("N");
  command.Add("-r,--reverse-prompt", options->stop_texts, "Stop before this text (repeatable)")
      .Type("TEXT");
  command.Add("--chat", options->chat, "The text is a question: use the model's chat template");
  command.Add("--system", options->system, "With --chat: what the model is told before")
      .Type("TEXT");
  command.Add("--special", options->special, "Read special tokens such as <s> in the prompt");
  command.Add("--no-display-prompt", options->no_display_prompt, "Print the completion only");
  command.Add("--json", options->json, "Print one JSON object: text, tokens, timings");
  options->form.AddFlags(command);
  options->model.AddSessionFlags(command);
  options->sampling.AddFlags(command);
  command.Does([options] { return Run(*options); });
}

}  // namespace cli
