#include "cli/options/grammar_options.h"

#include <functional>
#include <string_view>

#include "cli/command.h"
#include "cli/terminal/charset.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "grammar/error.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"

namespace cli {
namespace {

using grammar::Grammar;

// What a reader makes of a file, or of the text that was given in its place.
Grammar From(const std::string& given, bool is_text, const char* flag,
             const std::function<Grammar(const std::string& text)>& read) {
  try {
    if (is_text) return read(FromTerminal(given));
    return read(given == "-" ? ReadStdin(kMaxDocumentBytes) : ReadFile(given, kMaxDocumentBytes));
  } catch (const grammar::Error& error) {
    const std::string what = error.what();
    const std::string name = is_text ? flag : given;
    throw engine::Error(what.starts_with(name + ": ") ? what : name + ": " + what);
  }
}

bool IsSchemaText(const std::string& given) {
  const size_t begin = given.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && given[begin] == '{';
}

}  // namespace

void GrammarOptions::AddFlags(Command& command) {
  constexpr const char* kGroup = "Output that always parses";
  command
      .Add("-j,--json-schema,--json-schema-file FILE", schema,
           "Write JSON that is valid by this schema: a file, or {...}")
      .Group(kGroup);
  command.Add("--json-object", json_object, "Write a JSON object").Group(kGroup);
  command
      .Add("--grammar,--grammar-file FILE", grammar,
           "Write what this grammar (GBNF) allows: a file, or the text with its ::=")
      .Group(kGroup);
}

std::shared_ptr<const Grammar> GrammarOptions::Read() const {
  if (!grammar.empty() + !schema.empty() + json_object > 1) {
    throw UsageError("--grammar, --json-schema and --json-object: give one of them");
  }
  if (json_object) return std::make_shared<const Grammar>(grammar::JsonObject());
  if (!schema.empty()) {
    return std::make_shared<const Grammar>(
        From(schema, IsSchemaText(schema), "--json-schema", grammar::ParseJsonSchema));
  }
  if (grammar.empty()) return nullptr;
  const bool is_text = grammar.find("::=") != std::string::npos;
  return std::make_shared<const Grammar>(From(grammar, is_text, "--grammar", grammar::ParseGbnf));
}

void ComplainIfCut(grammar::Constraint* constraint, engine::StopReason reason) {
  if (constraint == nullptr || reason == engine::StopReason::kEos || constraint->may_end()) return;
  Complain("note: the text ends before its grammar does, so it is incomplete");
}

}  // namespace cli
