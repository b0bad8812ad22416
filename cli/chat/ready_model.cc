// Loads a model for a chat, and prepares its session, sampler and chat template.
#include "cli/chat/ready_model.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/options/loading.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"

namespace cli {
namespace {

engine::SessionOptions SessionFor(const ChatOptions& options) {
  engine::SessionOptions session = options.model.ForSession();
  session.draft = options.generation.ForDrafts({});  // checks the flags; the model comes later
  return session;
}

engine::Model LoadFrom(const std::string& path, ModelOptions options) {
  options.model = std::filesystem::absolute(path);
  return LoadModel(options);
}

// --template belongs to the first chat's setup only.
engine::ChatForm FormOf(TemplateOptions options, const engine::Model& model,
                        const std::string& chat_template) {
  options.file.clear();
  return options.For(model, chat_template);
}

}  // namespace

ReadyModel::ReadyModel(const ChatOptions& options, const std::string& path, const ChatSetup& wanted,
                       bool is_first)
    : setup(wanted),
      identity(IdentityOf(path)),
      grammar(options.generation.ReadGrammar(&schema)),
      session_options(SessionFor(options)),
      model(LoadFrom(path, options.model)),
      draft_model(is_first ? options.generation.LoadDraftModel(options.model) : std::nullopt),
      form(FormOf(options.template_options, model, wanted.chat_template)),
      max_tokens(options.max_tokens),
      stop_texts(options.generation.ResolveEscapes(options.stop_texts)) {
  options.answers.Apply("", schema, form);
  session_options.draft = options.generation.ForDrafts(draft_model);
  session_options.sampling = options.generation.SamplingFor(model, options.model.verbose);
  if (grammar != nullptr) constraint.emplace(grammar, *model.tokenizer);
}

void DropModelsOwn(ChatSetup& setup) {
  setup.chat_template.clear();
  for (const char* const flag : {"--override-kv", "--template-var", "--think", "--no-think"})
    setup.flags.erase(flag);
}

std::string ModelFileOf(const ModelIdentity& model, const std::string& chat) {
  const std::string what = chat + ": its model " + gguf::Printable(model.name) + " ";
  const std::string path = gguf::PrintablePath(model.path);
  std::error_code error;
  if (!std::filesystem::exists(model.path, error)) {
    throw engine::Error(what, "is gone (", path,
                        "): -m names a model to continue the chat with, under a new name");
  }
  try {
    if (IdentityOf(model.path).IsSame(model)) return model.path;
  } catch (const gguf::Error& failure) {
    throw engine::Error(what, "cannot be opened: ", failure.what());
  }
  throw engine::Error(what, "has changed (", path, "): -m ", path,
                      " continues with it as it is now, under a new name");
}

}  // namespace cli
