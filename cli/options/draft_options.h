// The flags about reading ahead while generating, shared by run and chat.
#ifndef PRONK_CLI_OPTIONS_DRAFT_OPTIONS_H_
#define PRONK_CLI_OPTIONS_DRAFT_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "cli/options/command_line.h"
#include "engine/draft/speculation.h"
#include "engine/model/model.h"

namespace cli {

struct DraftFlags {
  std::string draft = "auto";  // or off, or a number
  size_t max = 0;              // 0: as many as a pass takes
  std::string model;           // a small one, as -m names it

  void AddFlags(Command& command);
  // The draft model, where there is one. Throws as LoadModel().
  std::optional<engine::Model> Load() const;
  // What a session gets; `draft_model` is what Load() gave. Throws UsageError where the flags make
  // no sense together, with or without the model.
  engine::DraftOptions For(const std::optional<engine::Model>& draft_model) const;
};

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_DRAFT_OPTIONS_H_
