// What pronk run's one prompt and its many lines have in common.
#ifndef PRONK_CLI_COMMANDS_RUN_H_
#define PRONK_CLI_COMMANDS_RUN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/generation_options.h"
#include "cli/options/model_options.h"
#include "cli/options/template_options.h"
#include "cli/options/tool_options.h"
#include "engine/model/model.h"
#include "engine/session/chat.h"
#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "grammar/grammar.h"
#include "tokenizer/tokenizer.h"

namespace cli {

struct RunOptions {
  ModelOptions model;
  TemplateOptions form;
  GenerationOptions generation;
  ToolOptions tools;
  std::optional<std::string> prompt;
  std::vector<std::string> files;  // documents
  std::string prompt_cache;
  std::string system;
  int64_t max_tokens = -1;
  std::vector<std::string> stop_texts;
  bool chat = false, escape = false, special = false;
  bool no_display_prompt = false, json = false;
  bool jsonl = false;
  std::string output;   // of jsonl
  size_t parallel = 1;  // texts at a time
};

// How a prompt is answered, ready for use.
struct RunParts {
  const engine::Model& model;
  std::optional<engine::ChatForm> form;  // empty: prompts are plain text
  engine::SessionOptions session;
  std::shared_ptr<const grammar::Grammar> grammar;  // or null
  bool keeps_answer = false;                        // to the flags' grammar
  double load_seconds = 0;
};

std::vector<tokenizer::TokenId> EncodePrompt(const RunOptions& options, const RunParts& parts,
                                             const std::string& prompt);
// The default context has room for the -n tokens, even beyond the length used in training; but a
// prompt that is too long by itself is refused.
size_t ContextFor(const RunOptions& options, const engine::Model& model, size_t n_prompt);
engine::GenerateOptions GenerateOptionsFor(const RunOptions& options, const RunParts& parts,
                                           grammar::Constraint* constraint);

// The prompts of --jsonl. Throws engine::Error, which names the line that has none.
std::vector<std::string> ReadPromptLines(const std::string& path);
// Answers them, several together, with a line for each in their order. Returns the exit status.
int RunLines(const RunOptions& options, const RunParts& parts,
             const std::vector<std::string>& prompts);

}  // namespace cli

#endif  // PRONK_CLI_COMMANDS_RUN_H_
