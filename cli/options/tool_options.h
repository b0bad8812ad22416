// The flags about answers in a chat: tools that the model may call, the schema in the prompt, and
// how long it may think.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/options/command_line.h"
#include "engine/session/chat.h"

namespace cli {

struct ToolOptions {
  std::string tools;  // OpenAI's form: a file, "-" for stdin, or the text itself
  std::string choice;
  bool schema_in_prompt = false, no_schema_in_prompt = false;
  int64_t thinking_budget = -1;
  std::string thinking_message;

  void AddToolsFlag(Command& command);  // --tools alone
  void AddToolFlags(Command& command);
  void AddAnswerFlags(Command& command);  // the other flags
  // Throws UsageError if a flag has no effect.
  void CheckFlags(bool is_chat, bool has_schema) const;
  // Reads and checks --tools. Returns its text, "" without the flag. Throws engine::Error.
  std::string ReadTools() const;
  // Sets these options in `form`. schema: the schema that answers must follow, "" for none. Throws
  // UsageError, engine::Error.
  void Apply(const std::string& read_tools, const std::string& schema,
             engine::ChatForm& form) const;
  // The sentence about the schema in the system message.
  std::string Instructions(const std::string& schema) const;
};

}  // namespace cli
