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
  std::string messages;
  bool no_generation_prompt = false;
};

// The messages as `run --messages` and chat give them to a template; with keys that these do not
// know, only the style of texts changes.
tokenizer::Value MessagesFor(const JsonView& json, const engine::ChatForm& form) {
  constexpr std::string_view kKnown[] = {"role",         "content",           "name",
                                         "tool_calls",   "reasoning_content", "refusal",
                                         "tool_call_id", "function_call"};
  bool is_known = json.IsArray();
  for (const auto& [none, message] : json) {
    for (const auto& [key, value] : message.Members())
      is_known = is_known && std::ranges::find(kKnown, key) != std::end(kKnown);
    for (const auto& [index, part] : message["content"])
      is_known = is_known && part["type"].IsString() && part["type"].String() == "text";
  }
  if (!is_known) return tokenizer::Styled(tokenizer::ToTemplateValue(json), form.text_style);
  return tokenizer::ToTemplateValue(tokenizer::ReadMessages(json),
                                    form.call_style.value_or(tokenizer::CallStyle()),
                                    form.text_style);
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
  // A list of messages, or an object with more: {"messages": [...], "tools": [...], ...}.
  tokenizer::ChatInput input;
  const JsonView json = ReadJson(options.messages);
  if (!json.IsObject()) {
    input.messages = MessagesFor(json, form);
  } else {
    for (const auto& [key, value] : json.Members()) {
      if (key == "messages") {
        input.messages = MessagesFor(value, form);
      } else if (key == "tools") {
        input.tools = tokenizer::ToTemplateValue(value);
      } else {
        input.extra.emplace_back(key, tokenizer::ToTemplateValue(value));
      }
    }
  }
  if (!input.messages.IsList())
    throw engine::Error(options.messages, ": holds no list of messages");
  WriteOut(form.Render(std::move(input), tokenizer.get()).text);
  return kExitDone;
}

}  // namespace

void AddTemplate(CommandLine& line) {
  Command& command = line.Add("template", "Show a conversation as the model will see it");
  RenderOptions& options = command.Does(RunTemplate);
  options.model.AddModelFlag(command);
  options.template_options.AddFlags(command);
  command.Add("--messages FILE.json", options.messages, "The conversation (- for stdin)")
      .Required();
  command.Add("--no-generation-prompt", options.no_generation_prompt,
              "Leave out the beginning of an answer");
}

}  // namespace cli
