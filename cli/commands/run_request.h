// The requests that pronk run answers: from the flags' prompt, a line of --jsonl, or the file of
// --messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/options/generation_options.h"
#include "cli/output/json_file.h"
#include "engine/model/model.h"
#include "engine/sampling/sampler.h"
#include "grammar/grammar.h"
#include "tokenizer/messages.h"

namespace cli {

// Fields that the JSON does not set have the flags' values.
struct RunRequest {
  // A number, or texts as the setting's flag takes them.
  using Value = std::variant<double, std::vector<std::string>>;

  std::string prompt;
  std::vector<tokenizer::Message> messages = {};                  // if any, replace the prompt
  JsonView source = {};                                           // what it was read from
  JsonView id = {};                                               // returned with the answer
  std::vector<std::pair<std::string_view, Value>> settings = {};  // names of engine::Settings
  int64_t max_tokens = -1;
  std::vector<std::string> stop_texts = {};
  std::shared_ptr<const grammar::Grammar> grammar = nullptr;  // null: none
  std::string schema = {};                                    // the grammar's source, or ""
  std::optional<size_t> n_likeliest = {};  // alternatives per token, and probabilities; empty: no
  size_t line = 0;  // the line's number in its file, from 1; 0: not from a line

  // `base` with these settings.
  pronk::Sampling SamplingOver(pronk::Sampling base) const;
};

// Reads requests, with the fields of llama-server and of OpenAI.
class RequestReader {
 public:
  RequestReader(RunRequest flags, const GenerationOptions& generation)
      : flags_(std::move(flags)), generation_(generation) {}

  // The lines of a file: each a prompt, or an object.
  std::vector<RunRequest> ReadLines(const std::string& path);
  // A conversation, or an object with one.
  RunRequest ReadMessages(const std::string& path);

 private:
  RunRequest Read(const JsonView& json, const std::string& name);
  // The grammar of a GBNF text or a schema; `name` begins the notes on it.
  std::shared_ptr<const grammar::Grammar> ReadGrammar(const std::string& text, bool is_schema,
                                                      const std::string& name);

  RunRequest flags_;
  const GenerationOptions& generation_;
  // The grammars by their text: lines often have the same one.
  std::map<std::string, std::shared_ptr<const grammar::Grammar>> grammars_;
};

}  // namespace cli
