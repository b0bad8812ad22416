// Declares the flags of chat templates, and reads templates and variables.
#include "cli/options/template_options.h"

#include <algorithm>
#include <utility>

#include "cli/command.h"
#include "cli/output/json_file.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"

namespace cli {

void TemplateOptions::AddFlags(Command& command) {
  const std::string group = std::exchange(command.group, "Chat template");
  command.Add("--template FILE", file, "A chat template instead of the model's own");
  command.Add("--template-var NAME=JSON", variables,
              "A variable for the template, for example enable_thinking=false (repeatable)");
  const auto& levels = engine::kThinkingLevels;
  command
      .Add("--think", think, "Think before answering, where the model's template has that switch")
      .OneOf({levels.begin(), levels.end()})
      .MayBeAlone();
  command.Add("--no-think,--nothink", no_think, "The same as --think off");
  command.group = group;
}

std::vector<std::pair<std::string, tokenizer::Value>> TemplateOptions::Variables(
    const tokenizer::ChatTemplate& chat_template) const {
  if (!think.empty() && no_think) throw UsageError("--think and --no-think: give one of them");
  std::vector<std::pair<std::string, tokenizer::Value>> values;
  for (const std::string& variable : variables) {
    const size_t equals = std::min(variable.find('='), variable.size());
    const std::string name = variable.substr(0, equals);
    try {
      if (name.empty()) throw engine::Error("has no name");
      const std::string json = variable.substr(std::min(equals + 1, variable.size()));
      values.emplace_back(name, tokenizer::ToTemplateValue(ParseJson(json, name + "=...")));
    } catch (const engine::Error& error) {
      throw UsageError("--template-var: ", gguf::Printable(error.what()),
                       ": expected NAME=JSON, for example enable_thinking=false or mode=\"high\"");
    }
  }
  const std::string level = no_think ? "off" : think;
  if (!level.empty()) engine::SetThinking(chat_template, level, values);
  return values;
}

std::string ReadTemplate(const std::string& path) {
  return ReadFile(path, tokenizer::kMaxTemplateBytes);
}

engine::ChatForm TemplateOptions::For(const engine::Model& model, const std::string& source) const {
  const std::string given = source.empty() && !file.empty() ? ReadTemplate(file) : source;
  engine::ChatForm form = given.empty() ? engine::ChatForm(model) : engine::ChatForm(given);
  form.variables = Variables(form.chat_template);
  if (form.is_transcript && IsTerminal(2)) {
    Note("(this model's file has no chat template: it is to go on with a plain transcript)");
  }
  return form;
}

}  // namespace cli
