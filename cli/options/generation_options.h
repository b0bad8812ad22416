// The flags of run and chat that affect the generated text: sampling (names and defaults are
// llama.cpp's), a grammar for the text, and drafts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/command_line.h"
#include "cli/options/model_options.h"
#include "engine/draft/speculation.h"
#include "engine/model/model.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/settings.h"
#include "engine/session/generate.h"
#include "grammar/grammar.h"
#include "grammar/json_schema.h"

namespace cli {

// Where a setting's value comes from: "file", "flag" and so on; "" for a default.
using OriginOf = std::function<std::string(const engine::Setting&)>;
std::string OriginName(const engine::Setting& setting);
// "temperature 0.7 (file), top_k 40, ...": -v and /set.
std::string SettingsText(const std::vector<engine::Setting>& settings, const OriginOf& origin_of);

// Whether the value of --grammar or --json-schema is the text itself; otherwise it names a file.
bool IsGrammarText(const std::string& given);
bool IsSchemaText(const std::string& given);

struct GenerationOptions {
  pronk::Sampling sampling;  // set by the flags; texts are in texts_
  bool escape = false;       // \n in texts of flags is a line feed
  std::string grammar;       // GBNF: a file, "-" for stdin, or the text itself
  std::string schema;        // JSON Schema: a file, "-" for stdin, or the text itself
  bool json_object = false;
  bool json_free_space = false;
  bool json_open = false;
  std::string draft = "auto";  // or off, or a number
  size_t draft_max = 0;        // 0: as many as fit into a pass
  std::string draft_model;     // a small model, named as in -m

  void AddFlags(Command& command);
  void AddEscapeFlag(Command& command);
  // Replaces the escapes in a text of the command line, with -e.
  std::string ResolveEscapes(const std::string& text) const;
  std::vector<std::string> ResolveEscapes(std::vector<std::string> texts) const;
  // The sampling options for this model: flags override the file's recommendations. Prints a note
  // for each ignored recommendation; explain: prints where each setting comes from. Throws
  // UsageError, gguf::Error.
  pronk::Sampling SamplingFor(const engine::Model& model, bool explain) const;
  // How schemas become grammars, of flags and of requests; `name` begins the notes ("" for flags).
  grammar::SchemaOptions ForSchemas(const std::string& name = "") const;
  // nullptr without a flag. Sets schema_text to the schema's text. has_requests: requests may have
  // schemas to which --json-open and --json-free-space apply. Throws UsageError for several
  // flags, engine::Error for a wrong grammar.
  std::shared_ptr<const grammar::Grammar> ReadGrammar(std::string* schema_text = nullptr,
                                                      bool has_requests = false) const;
  // The draft model, if one was named, with `main`'s changes of keys. Throws as LoadModel().
  std::optional<engine::Model> LoadDraftModel(const ModelOptions& main) const;
  // `model` is from LoadDraftModel(). Throws UsageError if flags do not fit together or the model.
  engine::DraftOptions ForDrafts(const std::optional<engine::Model>& model) const;

 private:
  void AddGrammarFlags(Command& command);
  void AddSamplingFlags(Command& command);
  void AddDraftFlags(Command& command);

  std::map<std::string_view, std::vector<std::string>> texts_;  // texts of flags, [setting's name]
  Flag* draft_flag_ = nullptr;
};

// The schema in `text`, which may also be OpenAI's response_format, {"type": "json_schema",
// "json_schema": {"name": ..., "schema": ...}}, or its inner object. Other texts are returned as
// they are.
std::string SchemaIn(const std::string& text);

// Warns of weights that are not numbers. Callers call it once.
void ComplainOfBadLogits();
// Warns, and returns true, if a text ended in the middle of its grammar.
bool ComplainIfCut(grammar::Constraint* constraint, pronk::StopReason reason,
                   const std::string& name = "");

}  // namespace cli
