#include "cli/options/template_options.h"

#include <algorithm>

#include "cli/command.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"

namespace cli {

tokenizer::Value ToTemplateValue(const JsonView& json) {
  switch (json.kind()) {
    case JsonView::Kind::kBool:
      return json.Bool();
    case JsonView::Kind::kNumber:
      if (const auto whole = json.Signed()) return *whole;
      return json.Number();
    case JsonView::Kind::kString:
      return json.String();
    case JsonView::Kind::kArray: {
      std::vector<tokenizer::Value> items;
      for (const auto& item : json) items.push_back(ToTemplateValue(item.value));
      return tokenizer::Value::ListOf(std::move(items));
    }
    case JsonView::Kind::kObject: {
      std::vector<std::pair<std::string, tokenizer::Value>> entries;
      for (const auto& [key, value] : json.Members())
        entries.emplace_back(key, ToTemplateValue(value));
      return tokenizer::Value::DictOf(std::move(entries));
    }
    default:
      return {};
  }
}

void TemplateOptions::AddFlags(Command& command) {
  command.Add("--template FILE", file, "A chat template instead of the model's own").Reads();
  command.Add("--template-var NAME=JSON", variables,
              "A variable for the template, for example enable_thinking=false (repeatable)");
  const auto& levels = engine::kThinkingLevels;
  command
      .Add("--think", think, "Think before answering, where the model's template has that switch")
      .OneOf({levels.begin(), levels.end()})
      .MayBeAlone();
  command.Add("--no-think,--nothink", no_think, "The same as --think off");
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
      values.emplace_back(name, ToTemplateValue(ParseJson(json, name + "=...")));
    } catch (const engine::Error& error) {
      throw UsageError("--template-var: " + gguf::Printable(error.what()) +
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

engine::ChatForm TemplateOptions::For(const engine::Model& model) const {
  engine::ChatForm form =
      file.empty() ? engine::ChatForm(model) : engine::ChatForm(ReadTemplate(file));
  form.variables = Variables(form.chat_template);
  if (form.is_transcript && IsTerminal(2)) {
    Note("(this model's file has no chat template: it is to go on with a plain transcript)");
  }
  return form;
}

}  // namespace cli
