// The flags that keep what is generated to a grammar.
#ifndef PRONK_CLI_OPTIONS_GRAMMAR_OPTIONS_H_
#define PRONK_CLI_OPTIONS_GRAMMAR_OPTIONS_H_

#include <memory>
#include <string>

#include "cli/options/command_line.h"
#include "engine/session/generate.h"
#include "grammar/grammar.h"

namespace cli {

struct GrammarOptions {
  std::string grammar;  // GBNF: a file, "-" for stdin, or the text itself
  std::string schema;   // JSON Schema: likewise
  bool json_object = false;

  void AddFlags(Command& command);
  // None where no flag was given. Throws UsageError where there are several, and engine::Error,
  // which says where it is from, where what was given is no grammar.
  std::shared_ptr<const grammar::Grammar> Read() const;
};

// Says it where a text ended in the middle of its grammar.
void ComplainIfCut(grammar::Constraint* constraint, engine::StopReason reason);

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_GRAMMAR_OPTIONS_H_
