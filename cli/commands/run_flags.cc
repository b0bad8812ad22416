// The flags of pronk run, and which of them go together.
#include <cstdint>

#include "cli/command.h"
#include "cli/commands/run.h"
#include "cli/options/command_line.h"

namespace cli {
namespace {

void RefuseIf(bool given, const char* flag, const char* why) {
  if (given) throw UsageError(flag, why);
}

}  // namespace

void CheckRunFlags(const RunOptions& options) {
  RefuseIf(!options.messages.empty() && (options.text.is_given() || options.jsonl), "--messages",
           " does not go with -p, -f or --jsonl: its file is the whole conversation");
  RefuseIf(options.n_likeliest >= 0 && !options.json && !options.jsonl, "--logprobs",
           " has no effect without --json or --jsonl");
  if (options.jsonl) {
    RefuseIf(options.text.prompt || options.text.files.size() > 1, "--jsonl",
             " answers the lines of one -f, and no other prompt");
    RefuseIf(options.json || !options.prompt_cache.empty(), "--jsonl",
             " does not go with --json or --prompt-cache");
    RefuseIf(options.parallel > 1 && !options.generation.draft_model.empty(), "-md",
             " has no effect with --parallel");
  } else {
    RefuseIf(!options.output.empty(), "-o", " has no effect without --jsonl");
    RefuseIf(options.parallel > 1, "--parallel", " has no effect without --jsonl");
  }
  if (!options.jsonl && options.messages.empty())
    CheckChatFlags(options, options.chat, !options.generation.schema.empty());
}

void CheckChatFlags(const RunOptions& options, bool is_chat, bool has_schema) {
  options.tools.CheckFlags(is_chat, has_schema);
  if (is_chat) {
    return RefuseIf(options.special && !options.jsonl, "--special",
                    " has no effect in a conversation: the template says what is special");
  }
  constexpr const char* kChatOnly = " has no effect without --chat";
  RefuseIf(!options.system.empty(), "--system", kChatOnly);
  RefuseIf(!options.template_options.file.empty(), "--template", kChatOnly);
  RefuseIf(!options.template_options.variables.empty(), "--template-var", kChatOnly);
  RefuseIf(!options.template_options.think.empty(), "--think", kChatOnly);
  RefuseIf(options.template_options.no_think, "--no-think", kChatOnly);
}

void AddRun(CommandLine& line) {
  Command& command = line.Add("run", "Complete a prompt");
  RunOptions& options = command.Does(Run);
  options.model.AddModelFlag(command);
  options.text.AddFlags(
      command, "The text to complete, literal without -e; also after MODEL, or alone",
      "A file to complete (- for stdin), or one that -p is about (repeatable: joined in order)");
  command.Add("--messages FILE", options.messages,
              "A conversation to answer, in OpenAI's format, by the model's chat template");
  command
      .Add("--prompt-cache FILE", options.prompt_cache,
           "Save the state after the prompt here, and start from it next time")
      .Writes();
  command
      .Add("-n,--n-predict,--predict N", options.max_tokens, {-2, kMaxTokens},
           "Tokens to generate; -1 or -2: to the end of the text or the context")
      .ShowDefault();
  command.Add("-r,--reverse-prompt TEXT", options.stop_texts, "Stop before this text (repeatable)");
  options.generation.AddEscapeFlag(command);
  command.Add("--chat,--single-turn", options.chat,
              "Also -st: take the text as a question, in the model's chat template");
  command.Add("--system,--system-prompt TEXT", options.system,
              "Also -sys: with --chat, the system message");
  command.Add("--special", options.special, "Read special tokens such as <s> in the prompt");
  command.Add("--no-display-prompt", options.no_display_prompt, "Print only the completion");
  command.group = "Results in JSON, and many prompts";
  command.Add("--json", options.json, "Print one JSON object: text, tokens, timings");
  command.Add(
      "--logprobs N", options.n_likeliest, {0, kMaxTokens},
      "With --json or --jsonl: log probabilities of each token and of the N most likely ones");
  command.Add("--jsonl", options.jsonl,
              "Read -f as lines of JSON, strings or objects with \"prompt\" or \"messages\", and "
              "answer each "
              "with a line of JSON; line i, from 0, has the seed --seed + i");
  command
      .Add("-o,--output FILE", options.output,
           "Where --jsonl writes; a file that has some of the lines is continued")
      .Writes();
  command
      .Add("--parallel N", options.parallel, {1, 64},
           "Also -np: how many lines of --jsonl are answered at once")
      .ShowDefault();
  command.group = kOwn;
  options.template_options.AddFlags(command);
  options.tools.AddAnswerFlags(command);
  options.model.AddSessionFlags(command);
  options.generation.AddFlags(command);
  options.tools.AddToolFlags(command);
}

}  // namespace cli
