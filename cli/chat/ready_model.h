// A model that is open and ready to converse, and how its answers are made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/chat/chat_file.h"
#include "cli/chat/kept_flags.h"
#include "cli/options/generation_options.h"
#include "cli/options/model_options.h"
#include "cli/options/template_options.h"
#include "cli/options/tool_options.h"
#include "engine/model/model.h"
#include "engine/session/chat.h"
#include "engine/session/session.h"
#include "grammar/constraint.h"

namespace cli {

// The flags of chat that models and answers depend on.
struct ChatOptions {
  ModelOptions model;
  TemplateOptions template_options;
  GenerationOptions generation;
  ToolOptions answers;
  int64_t max_tokens = -1;  // tokens of an answer
  std::vector<std::string> stop_texts;
  std::shared_ptr<KeptFlags> kept;
};
// The flags of max_tokens.
inline constexpr const char* kPredictFlags = "-n,--n-predict,--predict N";

struct ReadyModel {
  // Opens the model; the flags' variables must have the setup's values. is_first: uses the draft
  // model of -md, which belongs to the program's first model. Throws as LoadModel() and the options
  // do.
  ReadyModel(const ChatOptions& options, const std::string& path, const ChatSetup& wanted,
             bool is_first);
  ReadyModel(const ReadyModel&) = delete;
  ReadyModel& operator=(const ReadyModel&) = delete;
  // Makes the session. Throws engine::Error if the machine lacks memory.
  void Begin() { session = std::make_unique<engine::Session>(model, session_options); }

  ChatSetup setup;
  const ModelIdentity identity;
  std::string schema;  // the grammar's schema, "" if it has none
  const std::shared_ptr<const grammar::Grammar> grammar;
  engine::SessionOptions session_options;
  const engine::Model model;
  const std::optional<engine::Model> draft_model;
  engine::ChatForm form;
  int64_t max_tokens;
  std::vector<std::string> stop_texts;
  std::set<std::string, std::less<>> changed;     // settings changed by /set
  std::optional<grammar::Constraint> constraint;  // constrains each answer
  std::unique_ptr<engine::Session> session;
};

// Removes the settings of the chat's previous model before another model takes over.
void DropModelsOwn(ChatSetup& setup);

// The file of a saved chat's model. Throws engine::Error, which names chat and model, if it is gone
// or has changed.
std::string ModelFileOf(const ModelIdentity& model, const std::string& chat);

}  // namespace cli
