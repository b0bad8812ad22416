// The flags of run and chat that decide what is generated: sampling (names and defaults are
// llama.cpp's), a grammar for the text, and drafts.
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
  int64_t seed = -1;  // -1: a new one each time
  std::vector<std::string> logit_bias;
  std::string samplers;
  int mirostat = 0;
  std::vector<std::string> dry_breakers;
  bool ignore_eos = false;
  std::string grammar;  // GBNF: a file, "-" for stdin, or the text itself
  std::string schema;   // JSON Schema: likewise
  bool json_object = false;
  std::string draft = "auto";  // or off, or a number
  size_t draft_max = 0;        // 0: as many as fit into a pass
  std::string draft_model;     // a small model, named as in -m

  void AddFlags(Command& command);
  // The sampler's options for this vocabulary. Throws UsageError.
  engine::SamplerOptions Sampler(const tokenizer::Tokenizer& tokenizer) const;
  // nullptr if no flag was given. Throws UsageError if several were, and engine::Error, which names
  // the source, if it is not a valid grammar.
  std::shared_ptr<const grammar::Grammar> ReadGrammar() const;
  // The draft model, if one was named. Throws as LoadModel().
  std::optional<engine::Model> LoadDraftModel() const;
  // Options for a session; `model` is from LoadDraftModel(). Throws UsageError if the flags do not
  // fit together, with or without the model.
  engine::DraftOptions Draft(const std::optional<engine::Model>& model) const;

 private:
  void AddGrammarFlags(Command& command);
  void AddSamplingFlags(Command& command);
  void AddDraftFlags(Command& command);
};

// Warns if a text ended in the middle of its grammar.
void ComplainIfCut(grammar::Constraint* constraint, engine::StopReason reason);

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_GENERATION_OPTIONS_H_
