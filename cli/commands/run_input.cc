// Reads the input of pronk run before the model is loaded: prompts, grammar and tools.
#include <algorithm>
#include <optional>
#include <utility>

#include "cli/commands/run.h"

namespace cli {
namespace {

// The single request of a run without --jsonl.
RunRequest RequestOf(const RunOptions& options, RunRequest flags, RequestReader& reader) {
  if (!options.messages.empty()) return reader.ReadMessages(options.messages);
  // Fails before it waits for standard input: a word that names no model was perhaps meant as the
  // prompt, and the message says so.
  if (!options.text.is_given()) options.model.ModelPath();
  TextOptions text = options.text;
  if (text.prompt) text.prompt = options.generation.ResolveEscapes(*text.prompt);
  flags.prompt = text.Read();
  return flags;
}

// One request, or one for each line of --jsonl. Grammar and schema are the flags'.
std::vector<RunRequest> ReadRequests(const RunOptions& options,
                                     const std::shared_ptr<const grammar::Grammar>& grammar,
                                     const std::string& schema) {
  const std::optional<size_t> n_likeliest =
      options.n_likeliest < 0 ? std::nullopt : std::optional<size_t>(options.n_likeliest);
  const RunRequest flags = {.prompt = "",
                            .max_tokens = options.max_tokens,
                            .stop_texts = options.generation.ResolveEscapes(options.stop_texts),
                            .grammar = grammar,
                            .schema = schema,
                            .n_likeliest = n_likeliest};
  RequestReader reader(flags, options.generation);
  const std::vector<std::string>& files = options.text.files;
  if (options.jsonl) return reader.ReadLines(files.empty() ? "-" : files[0]);
  std::vector<RunRequest> one;  // not copied: the prompt may be long
  one.push_back(RequestOf(options, flags, reader));
  return one;
}

}  // namespace

RunInput ReadInput(const RunOptions& options) {
  CheckRunFlags(options);
  RunInput input = {.session = options.model.ForSession(), .tools = {}, .requests = {}};
  std::string schema;
  const std::shared_ptr<const grammar::Grammar> grammar =
      options.generation.ReadGrammar(&schema, options.jsonl || !options.messages.empty());
  input.tools = options.tools.ReadTools();
  options.generation.ForDrafts({});  // throws if the flags of drafts do not fit together
  input.requests = ReadRequests(options, grammar, schema);
  const auto is_conversation = [](const RunRequest& request) { return !request.messages.empty(); };
  const auto has_schema = [](const RunRequest& request) { return !request.schema.empty(); };
  input.is_chat = options.chat || std::ranges::any_of(input.requests, is_conversation);
  CheckChatFlags(
      options, input.is_chat,
      !options.generation.schema.empty() || std::ranges::any_of(input.requests, has_schema));
  return input;
}

}  // namespace cli
