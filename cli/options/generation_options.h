// The flags of run and chat that decide what is generated: how the next token is picked (names and
// defaults are llama.cpp's), a grammar that the text keeps to, and reading ahead.
#ifndef PRONK_CLI_OPTIONS_GENERATION_OPTIONS_H_
#define PRONK_CLI_OPTIONS_GENERATION_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/command_line.h"
#include "engine/draft/speculation.h"
#include "engine/model/model.h"
#include "engine/sampling/sampler.h"
#include "engine/session/generate.h"
#include "grammar/grammar.h"
#include "tokenizer/tokenizer.h"

namespace cli {

struct GenerationOptions {
  engine::SamplerOptions sampler;
  int64_t seed = -1;  // -1: another one each time
  std::vector<std::string> logit_bias;
  std::string samplers;
  int mirostat = 0;
  std::vector<std::string> dry_breakers;
  bool ignore_eos = false;
  std::string grammar;  // GBNF: a file, "-" for stdin, or the text itself
  std::string schema;   // JSON Schema: likewise
  bool json_object = false;
  std::string draft = "auto";  // or off, or a number
  size_t draft_max = 0;        // 0: as many as a pass takes
  std::string draft_model;     // a small one, as -m names it

  void AddFlags(Command& command);
  // What the flags mean for this vocabulary. Throws UsageError.
  engine::SamplerOptions Sampler(const tokenizer::Tokenizer& tokenizer) const;
  // None where no flag was given. Throws UsageError where there are several, and engine::Error,
  // which says where it is from, where what was given is no grammar.
  std::shared_ptr<const grammar::Grammar> ReadGrammar() const;
  // The draft model, where there is one. Throws as LoadModel().
  std::optional<engine::Model> LoadDraftModel() const;
  // What a session gets; `model` is what LoadDraftModel() gave. Throws UsageError where the flags
  // make no sense together, with or without the model.
  engine::DraftOptions Draft(const std::optional<engine::Model>& model) const;

 private:
  void AddGrammarFlags(Command& command);
  void AddSamplingFlags(Command& command);
  void AddDraftFlags(Command& command);
};

// Says it where a text ended in the middle of its grammar.
void ComplainIfCut(grammar::Constraint* constraint, engine::StopReason reason);

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_GENERATION_OPTIONS_H_
