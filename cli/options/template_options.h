// Flags for another chat template and its variables, of `pronk chat`, `run --chat` and `template`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/options/command_line.h"
#include "engine/session/chat.h"

namespace cli {

struct TemplateOptions {
  std::string file;                    // empty: the model's own
  std::vector<std::string> variables;  // "NAME=JSON"
  std::string think;  // one of engine::kThinkingLevels; empty: the template's default
  bool no_think = false;

  void AddFlags(Command& command);

  // Variables that this template can read besides the conversation. Throws UsageError, and
  // engine::Error if it has no switch for thinking.
  std::vector<std::pair<std::string, tokenizer::Value>> Variables(
      const tokenizer::ChatTemplate& chat_template) const;
  // The chat form of this template source; if it is empty, of the template in `file`, else of the
  // model's own. Throws UsageError, engine::Error, tokenizer::TemplateError.
  engine::ChatForm For(const engine::Model& model, const std::string& source = "") const;
};

// A chat template in a file. Throws engine::Error.
std::string ReadTemplate(const std::string& path);

}  // namespace cli
