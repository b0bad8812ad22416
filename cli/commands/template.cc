// pronk template: prints a conversation as the model will see it.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/template_options.h"
#include "cli/options/tool_options.h"
#include "cli/output/json_file.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/session/chat.h"
#include "gguf/file.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/messages.h"
#include "tokenizer/tokenizer.h"

namespace cli {
namespace {

struct RenderOptions {
  ModelOptions model;
  TemplateOptions template_options;
  ToolOptions tools;
  std::string messages;
  bool no_generation_prompt = false;
};

// Whether all messages consist of what `run --messages` and chat know.
bool AreKnown(const JsonView& messages) {
  constexpr std::string_view kKnown[] = {"role",         "content",           "name",
                                         "tool_calls",   "reasoning_content", "refusal",
                                         "tool_call_id", "function_call"};
  bool is_known = messages.IsArray();
  for (const auto& [none, message] : messages) {
    for (const auto& [key, value] : message.Members())
      is_known = is_known && std::ranges::find(kKnown, key) != std::end(kKnown);
    for (const auto& [index, part] : message["content"])
      is_known = is_known && part["type"].IsString() && part["type"].String() == "text";
  }
  return is_known;
}

// As `run --messages` and chat give messages to a template; messages with other keys are given to
// it as they are, but for the style of texts.
std::string Rendered(const JsonView& messages, const engine::ChatForm& form,
                     const tokenizer::Tokenizer* tokenizer) {
  if (AreKnown(messages))
    return engine::RenderChat(tokenizer, form, tokenizer::ReadMessages(messages)).text;
  tokenizer::ChatInput input;
  input.messages = tokenizer::Styled(tokenizer::ToTemplateValue(messages), form.text_style);
  return form.Render(std::move(input), tokenizer).text;
}

int RunTemplate(const RenderOptions& options) {
  std::string source;
  std::optional<gguf::File> file;  // outlives the tokenizer, which reads it
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  if (!options.template_options.file.empty()) source = ReadTemplate(options.template_options.file);
  // With --template a model is opened only if one is named: the template may read its tokens'
  // texts.
  if (options.template_options.file.empty() || !options.model.model.empty()) {
    file.emplace(OpenFile(options.model.ModelPath()));
    tokenizer = tokenizer::Tokenizer::Create(*file);
    if (options.template_options.file.empty())
      source = engine::ChatTemplateSource(*file, *tokenizer);
  }
  engine::ChatForm form(source);
  form.variables = options.template_options.Variables(form.chat_template);
  form.begins_answer = !options.no_generation_prompt;
  if (const std::string tools = options.tools.ReadTools(); !tools.empty()) form.SetTools(tools);
  const std::string name = options.messages == "-" ? "stdin" : options.messages;
  // A list of messages, or an object with more: {"messages": [...], "tools": [...], ...}.
  const JsonView json = ReadJson(options.messages);
  JsonView messages = json;
  if (json.IsObject()) {
    messages = json["messages"];
    for (const auto& [key, value] : json.Members()) {
      if (key == "tools") {
        form.SetTools(std::string(value.text()));
      } else if (key != "messages") {
        form.variables.emplace_back(key, tokenizer::ToTemplateValue(value));
      }
    }
  }
  if (!messages.IsArray()) throw engine::Error(name, ": expected a list of messages");
  try {
    WriteOut(Rendered(messages, form, tokenizer.get()));
  } catch (const gguf::Error& error) {  // a message
    throw engine::Error(name, ": ", error.what());
  }
  return kExitDone;
}

}  // namespace

void AddTemplate(CommandLine& line) {
  Command& command = line.Add("template", "Show a conversation as the model will see it");
  RenderOptions& options = command.Does(RunTemplate);
  options.model.AddModelFlag(command);
  options.template_options.AddFlags(command);
  command
      .Add("--messages FILE.json", options.messages,
           "The conversation (- for stdin): a list of messages, or {\"messages\": [...], "
           "\"tools\": [...]}")
      .Required();
  options.tools.AddToolsFlag(command);
  command.Add("--no-generation-prompt", options.no_generation_prompt,
              "Leave out the beginning of an answer");
}

}  // namespace cli
