// The flags of run and chat that decide what is generated: sampling (names and defaults are
// llama.cpp's), a grammar for the text, and drafts.
#ifndef PRONK_CLI_OPTIONS_GENERATION_OPTIONS_H_
#define PRONK_CLI_OPTIONS_GENERATION_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/command_line.h"
#include "cli/options/model_options.h"
#include "engine/draft/speculation.h"
#include "engine/model/model.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/settings.h"
#include "engine/session/generate.h"
#include "grammar/grammar.h"

namespace cli {

// What ends a repetition for DRY, unless a flag says otherwise.
inline const std::vector<std::string> kDryBreakers = {"\n", ":", "\"", "*"};

// Sources of the sampler's settings, by name: "flag", "file" or "/set"; none for the defaults.
using Origins = std::map<std::string, std::string, std::less<>>;

// What a setting is called here: Ollama's name.
std::string ShownName(std::string_view name);
// "temperature 0.7 (file), top_k 40, ...": -v and /set.
std::string SettingsText(const std::vector<engine::Setting>& settings, const Origins& origins);

struct GenerationOptions {
  engine::SamplerOptions sampler;
  int64_t seed = -1;  // -1: a new one each time
  std::vector<std::string> logit_bias;
  std::optional<std::string> samplers;
  std::vector<std::string> dry_breakers;
  bool ignore_eos = false;
  bool escape = false;  // in texts that are typed: \n is a line feed
  std::string grammar;  // GBNF: a file, "-" for stdin, or the text itself
  std::string schema;   // JSON Schema: likewise
  bool json_object = false;
  bool json_free_space = false;
  bool json_open = false;
  std::string draft = "auto";  // or off, or a number
  size_t draft_max = 0;        // 0: as many as fit into a pass
  std::string draft_model;     // a small model, named as in -m

  void AddFlags(Command& command);
  void AddEscapeFlag(Command& command);
  // A text of the command line, as -e has it.
  std::string Typed(const std::string& text) const;
  std::vector<std::string> Typed(std::vector<std::string> texts) const;
  // The sampler's options for this model: flags win over what the file recommends. Notes what of
  // that is passed over; explain: says where each setting is from. Throws UsageError, gguf::Error.
  engine::SamplerOptions Sampler(const engine::Model& model, bool explain, Origins& origins) const;
  // The names of the flags for each setting of engine/sampling/settings.h.
  std::map<std::string_view, std::vector<std::string>> FlagNames() const;
  // nullptr without a flag. schema_text becomes that of a schema. Throws UsageError for several
  // flags, engine::Error for a wrong grammar.
  std::shared_ptr<const grammar::Grammar> ReadGrammar(std::string* schema_text = nullptr) const;
  // The draft model, if one was named, with `main`'s changes of keys. Throws as LoadModel().
  std::optional<engine::Model> LoadDraftModel(const ModelOptions& main) const;
  // `model` is from LoadDraftModel(). Throws UsageError if flags do not fit together or the model.
  engine::DraftOptions Draft(const std::optional<engine::Model>& model) const;

 private:
  void AddGrammarFlags(Command& command);
  void AddSamplingFlags(Command& command);
  void AddDraftFlags(Command& command);
  // Restores what flags said after the file's values were taken.
  void TakeFlags(engine::SamplerOptions& options, Origins& origins) const;

  std::vector<std::pair<std::string_view, const Flag*>> setting_flags_;  // by the setting's name
  Flag* draft_flag_ = nullptr;
};

// Warns of weights that are no numbers. Callers say it once.
void ComplainOfBroken();
// Warns, and returns true, if a text ended in the middle of its grammar.
bool ComplainIfCut(grammar::Constraint* constraint, engine::StopReason reason);

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_GENERATION_OPTIONS_H_
