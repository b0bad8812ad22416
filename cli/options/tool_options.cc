// Declares the flags of tools and thinking, and checks that they fit together.
#include "cli/options/tool_options.h"

#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/options/model_options.h"
#include "cli/output/json_file.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"

namespace cli {

void ToolOptions::AddToolFlags(Command& command) {
  command.group = "Tool calls";
  AddToolsFlag(command);
  command.Add("--tool-choice CHOICE", choice,
              "auto (default), none, required, or the name of the function to call");
}

void ToolOptions::AddAnswerFlags(Command& command) {
  const std::string group = std::exchange(command.group, "Thinking, and the schema in the prompt");
  command.Add("--schema-in-prompt", schema_in_prompt,
              "Show the schema of --json-schema in the system message (the default in a chat)");
  command.Add("--no-schema-in-prompt", no_schema_in_prompt,
              "Do not show the schema in the system message");
  command
      .Add("--reasoning-budget N", thinking_budget, {-1, kMaxTokens},
           "End the thinking after this many tokens; 0: no thinking, -1: no limit")
      .ShowDefault();
  command.Add("--reasoning-budget-message TEXT", thinking_message,
              "With --reasoning-budget: a text to write before the thinking ends");
  command.group = group;
}

void ToolOptions::AddToolsFlag(Command& command) {
  command.Add("--tools FILE", tools,
              "Functions that the model may call, in OpenAI's format: a file, or [...]");
}

void ToolOptions::CheckFlags(bool is_chat, bool has_schema) const {
  const auto refuse = [](bool given, const char* flag, const char* why) {
    if (given) throw UsageError(flag, why);
  };
  constexpr const char *kChatOnly = " has no effect without --chat",
                       *kSchemaOnly = " has no effect without --json-schema";
  refuse(!is_chat && !tools.empty(), "--tools", kChatOnly);
  refuse(!is_chat && schema_in_prompt, "--schema-in-prompt", kChatOnly);
  refuse(!is_chat && no_schema_in_prompt, "--no-schema-in-prompt", kChatOnly);
  refuse(!is_chat && thinking_budget >= 0, "--reasoning-budget", kChatOnly);
  refuse(thinking_budget < 0 && !thinking_message.empty(), "--reasoning-budget-message",
         " has no effect without --reasoning-budget");
  refuse(tools.empty() && !choice.empty(), "--tool-choice", " has no effect without --tools");
  refuse(schema_in_prompt && no_schema_in_prompt, "--schema-in-prompt and --no-schema-in-prompt",
         ": give one of them");
  refuse(!has_schema && schema_in_prompt, "--schema-in-prompt", kSchemaOnly);
  refuse(!has_schema && no_schema_in_prompt, "--no-schema-in-prompt", kSchemaOnly);
}

std::string ToolOptions::ReadTools() const {
  if (tools.empty()) return "";
  const size_t begin = tools.find_first_not_of(" \t\r\n");
  const bool is_one = begin == tools.find('{'), is_text = is_one || begin == tools.find('[');
  const std::string name = is_text ? "--tools" : tools;
  const std::string text = is_one    ? "[" + tools + "]"
                           : is_text ? tools
                                     : ReadText(tools, kMaxDocumentBytes);
  try {
    if (!engine::ReadTools(text).is_there()) throw engine::Error("tools: expected at least one");
  } catch (const engine::Error& error) {
    throw engine::Error(name, ": ", error.what());
  }
  return text;
}

std::string ToolOptions::Instructions(const std::string& schema) const {
  if (schema.empty() || no_schema_in_prompt) return "";
  return "Answer with JSON that is valid under this JSON Schema:\n" +
         ParseJson(schema, "the schema").Compact();
}

void ToolOptions::Apply(const std::string& read_tools, const std::string& schema,
                        engine::ChatForm& form) const {
  form.instructions = Instructions(schema);
  if (!read_tools.empty()) form.SetTools(read_tools);
  if (!choice.empty()) {
    try {
      form.tool_choice = engine::ReadToolChoice(choice, form.tools);
    } catch (const engine::Error& error) {
      throw UsageError("--tool-choice: ", error.what());
    }
  }
  if (thinking_budget >= 0 && form.thinking.kind == engine::ThinkingFormat::Kind::kNone)
    Complain("note: this chat template has no thinking that --reasoning-budget could end");
  form.thinking_budget = thinking_budget;
  form.thinking_message = thinking_message;
}

}  // namespace cli
