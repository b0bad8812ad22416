// Declarations that pronk run's single prompt and its lines of JSON share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/run_request.h"
#include "cli/options/generation_options.h"
#include "cli/options/model_options.h"
#include "cli/options/template_options.h"
#include "cli/options/text_options.h"
#include "cli/options/tool_options.h"
#include "cli/output/json_file.h"
#include "cli/terminal/terminal.h"
#include "engine/model/model.h"
#include "engine/session/chat.h"
#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "grammar/grammar.h"
#include "tokenizer/tokenizer.h"

namespace cli {

struct RunOptions {
  ModelOptions model;
  TemplateOptions template_options;
  GenerationOptions generation;
  ToolOptions tools;
  TextOptions text;
  std::string messages;  // a file with a conversation, in place of the text
  std::string prompt_cache;
  std::string system;
  int64_t max_tokens = -1;
  std::vector<std::string> stop_texts;
  bool chat = false, special = false;
  bool no_display_prompt = false, json = false;
  int64_t n_likeliest = -1;  // listed for each token of --json; -1: no log probabilities
  bool jsonl = false;
  std::string output;   // the file that jsonl writes
  size_t parallel = 1;  // texts at a time
};

// How a prompt is answered, ready for use.
struct RunSetup {
  const engine::Model& model;
  std::optional<engine::ChatForm> chat_form;  // empty: prompts are plain text
  engine::SessionOptions session;
  double load_seconds = 0;

  // The chat form, if the request is a conversation or, with --chat, a question; else none.
  std::optional<engine::ChatForm> FormOf(const RunOptions& options,
                                         const RunRequest& request) const;
  // The grammar that its answer must follow, tool calls included; or null.
  std::shared_ptr<const grammar::Grammar> GrammarOf(const RunOptions& options,
                                                    const RunRequest& request) const;
};

// All input that is read and checked before the model is loaded.
struct RunInput {
  engine::SessionOptions session;  // set by the flags, without drafts and sampling
  std::string tools;               // the text of --tools
  std::vector<RunRequest> requests;
  bool is_chat = false;  // --chat is given, or a request is a conversation
};

// Refuses flags that would have no effect: the user expects one. Throws UsageError.
void CheckRunFlags(const RunOptions& options);
// Refuses flags that have no effect with a chat, or without one. Throws UsageError.
void CheckChatFlags(const RunOptions& options, bool is_chat, bool has_schema);
// Reads one request, or one for each line of --jsonl. Throws UsageError.
RunInput ReadInput(const RunOptions& options);
// Runs the subcommand. Returns the exit status.
int Run(const RunOptions& options);

std::vector<tokenizer::TokenId> EncodePrompt(const RunOptions& options, const RunSetup& setup,
                                             const RunRequest& request);
// The context grows with the text; if a number of tokens to generate is given, it has room for them
// from the start, even beyond the training length. But a prompt that is too long by itself is
// refused.
size_t ContextFor(const RunOptions& options, const engine::Model& model, const RunRequest& request,
                  size_t n_prompt);
// `likely`, the log probabilities of the tokens in OpenAI's form, outlives the options.
engine::GenerateOptions GenerateOptionsFor(const RunOptions& options, const RunSetup& setup,
                                           const RunRequest& request,
                                           grammar::Constraint* constraint, Json& likely);
// A token of `logprobs`, with the likeliest tokens at its place.
Json LogprobJson(const tokenizer::Tokenizer& tokenizer, const pronk::Token& token);
// Fields that --json adds to the result: the log probabilities, if they were asked for.
Json ExtraFields(const RunRequest& request, const Json& likely);
// Writes each call as a line of JSON.
void WriteCalls(const std::vector<tokenizer::ToolCall>& calls, bool is_first, TextOutput& out);
// Reports what cut the answer. Adds notes and speeds if standard error is a terminal, or with -v.
void ReportRun(const RunOptions& options, const engine::Model& model,
               const engine::GenerateResult& result);

// Answers the lines of --jsonl, several together, with a line for each in their order. Returns the
// exit status.
int RunLines(const RunOptions& options, const RunSetup& setup,
             const std::vector<RunRequest>& requests);

}  // namespace cli
