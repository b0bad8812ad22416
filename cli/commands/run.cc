// pronk run: completes a prompt and streams the text. Read Run() first, then Complete() and
// EncodePrompt().
#include "cli/commands/run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/output/report.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/session/encode.h"
#include "engine/session/session_file.h"
#include "engine/stopwatch.h"

namespace cli {
namespace {

// In a run at least this long, measuring the memory bandwidth costs no noticeable time.
constexpr double kLongRunSeconds = 2;

// The single request of a run without --jsonl.
RunRequest RequestOf(const RunOptions& options, RunRequest flags, RequestReader& reader) {
  if (!options.messages.empty()) return reader.ReadMessages(options.messages);
  // Fails before it waits for standard input: a word that names no model was perhaps meant as the
  // prompt, and the message says so.
  if (!options.text.is_given()) options.model.ModelPath();
  TextOptions text = options.text;
  if (text.prompt) text.prompt = options.generation.Typed(*text.prompt);
  flags.prompt = text.Read();
  return flags;
}

// Restores the prompt's beginning that the --prompt-cache file has. Returns its number of tokens. A
// cache of a longer context is of no use: it is replaced, as one of another prompt.
size_t ReuseCache(const std::string& path, std::span<const tokenizer::TokenId> ids,
                  engine::Session& session) {
  if (!std::filesystem::exists(path)) return 0;
  try {
    engine::LoadSession(session, path);
  } catch (const engine::SessionTooLong& error) {
    Note("(" + std::string(error.what()) + ": the prompt is read anew)");
    return 0;
  }
  const size_t n_reused = session.RewindToCommon(ids);
  Note("(" + std::to_string(n_reused) + " of " + std::to_string(ids.size()) +
       " tokens of the prompt taken from " + path + ")");
  return n_reused;
}

engine::GenerateResult Complete(const RunOptions& options, const RunParts& parts,
                                const RunRequest& request, grammar::Constraint* constraint,
                                TextOutput& out, Json& likely) {
  const engine::Model& model = parts.model;
  const std::vector<tokenizer::TokenId> ids = EncodePrompt(options, parts, request);
  engine::SessionOptions session_options = parts.session;
  session_options.context = ContextFor(options, model, request, ids.size());
  engine::Session session(model, session_options);
  if (options.model.verbose) ExplainChoices(options.model, model, session, session_options);

  ProgressLine progress("reading the prompt:");
  engine::GenerateOptions generate =
      GenerateOptionsFor(options, parts, request, constraint, likely);
  generate.on_thinking = [&](std::string_view text) {
    progress.Clear();
    if (!options.json) out.WriteThinking(text);
    return true;
  };
  generate.prompt_progress = [&](size_t done, size_t total) {
    progress.Update(done, total);
    return true;
  };
  size_t n_reused = 0;
  if (!options.prompt_cache.empty()) {
    n_reused = ReuseCache(options.prompt_cache, ids, session);
    generate.prompt_read = [&] {
      if (n_reused < ids.size()) engine::SaveSession(session, options.prompt_cache);
    };
  }
  const std::span<const tokenizer::TokenId> rest = std::span(ids).subspan(n_reused);
  // Before the prompt is shown: on an error only the error is printed.
  session.CheckRoom(rest);
  session.team().Start();
  const bool is_chat = options.chat || !request.messages.empty();
  if (!options.json && !is_chat && !options.no_display_prompt) out.Write(request.prompt);
  return engine::Generate(session, rest, generate, [&](std::string_view text) {
    progress.Clear();
    return options.json || out.Write(text);
  });
}

// A line of JSON for each.
void WriteCalls(const std::vector<tokenizer::ToolCall>& calls, bool is_first, TextOutput& out) {
  for (const tokenizer::ToolCall& call : calls) {
    out.Write((std::exchange(is_first, false) ? "" : "\n") + CallJson(call));
  }
}

// Notes and speeds, if a person is reading.
void ReportRun(const RunOptions& options, const engine::Model& model,
               const engine::GenerateResult& result) {
  if (options.json) return;
  if (result.stop_reason == pronk::StopReason::kContext) {
    Complain("note: the context is full, so the text ends here; -c makes it larger");
  }
  if (result.stop_reason == pronk::StopReason::kLength && result.text.empty() &&
      !result.thinking.empty()) {
    Complain("note: the answer was cut while the model was thinking, as -n says");
  }
  if (!IsTerminal(2) && !options.model.verbose) return;
  const bool reads_stdin = options.text.reads_stdin() || options.messages == "-";
  if (!reads_stdin && HasUnreadInput()) Note("note: the standard input is not read: -f - reads it");
  Note(SpeedLine(result, model, result.generate_seconds > kLongRunSeconds ? result.n_threads : 0));
  if (options.model.verbose) Note(ThreadsLine(result));
  if (options.model.verbose && result.drafts.n_passes > 0) Note(DraftLine(result.drafts));
}

// Refuses flags that would have no effect: the user expects one.
void CheckFlags(const RunOptions& options) {
  const auto refuse = [](bool given, const char* flag, const char* why) {
    if (given) throw UsageError(flag, why);
  };
  refuse(!options.messages.empty() && (options.text.is_given() || options.jsonl), "--messages",
         " is all that is answered: give no prompt, -f or --jsonl with it");
  refuse(options.n_likeliest >= 0 && !options.json && !options.jsonl, "--logprobs",
         " has no effect without --json or --jsonl");
  if (options.jsonl) {
    refuse(options.text.prompt || options.text.files.size() > 1, "--jsonl",
           " answers the lines of one -f, and no other prompt");
    refuse(options.json || !options.prompt_cache.empty(), "--jsonl",
           " does not go with --json or --prompt-cache");
    refuse(options.parallel > 1 && !options.generation.draft_model.empty(), "--draft-model",
           " has no effect with --parallel");
  } else {
    refuse(!options.output.empty(), "-o", " has no effect without --jsonl");
    refuse(options.parallel > 1, "--parallel", " has no effect without --jsonl");
  }
}

void CheckChatFlags(const RunOptions& options, bool is_chat, bool has_schema) {
  options.tools.CheckFlags(is_chat, has_schema);
  const auto refuse = [](bool given, const char* flag, const char* why) {
    if (given) throw UsageError(flag, why);
  };
  if (is_chat) {
    return refuse(options.special && !options.jsonl, "--special",
                  " has no effect with --chat: the template says what is special");
  }
  constexpr const char* kChatOnly = " has no effect without --chat";
  refuse(!options.system.empty(), "--system", kChatOnly);
  refuse(!options.form.file.empty(), "--template", kChatOnly);
  refuse(!options.form.variables.empty(), "--template-var", kChatOnly);
  refuse(!options.form.think.empty(), "--think", kChatOnly);
  refuse(options.form.no_think, "--no-think", kChatOnly);
}

// A token of `logprobs`. Its bytes, since a token may be a part of a character.
Json TokenJson(const tokenizer::Tokenizer& tokenizer, tokenizer::TokenId id,
               float log_probability) {
  const std::string piece = tokenizer.Piece(id, /*special=*/true);
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  Json json = {{"id", id}, {"token", piece}, {"bytes", bytes}, {"logprob", nullptr}};
  if (!std::isnan(log_probability)) json["logprob"] = log_probability;
  return json;
}

int Run(const RunOptions& options) {
  CheckFlags(options);
  const bool has_schema = !options.generation.schema.empty();
  if (!options.jsonl && options.messages.empty()) CheckChatFlags(options, options.chat, has_schema);
  engine::SessionOptions session_options = options.model.ForSession();
  // Checked before the model is loaded.
  std::string schema;
  const std::shared_ptr<const grammar::Grammar> grammar = options.generation.ReadGrammar(&schema);
  const std::string tools = options.tools.ReadTools();
  session_options.draft = options.generation.ForDrafts({});
  const std::optional<size_t> n_likeliest =
      options.n_likeliest < 0 ? std::nullopt : std::optional<size_t>(options.n_likeliest);
  const RunRequest flags = {.prompt = "",
                            .max_tokens = options.max_tokens,
                            .stop_texts = options.generation.Typed(options.stop_texts),
                            .grammar = grammar,
                            .schema = schema,
                            .n_likeliest = n_likeliest};
  RequestReader reader(flags, options.generation);
  const auto& files = options.text.files;
  std::vector<RunRequest> requests;
  if (options.jsonl)
    requests = reader.ReadLines(files.empty() ? "-" : files[0]);
  else
    requests.push_back(RequestOf(options, flags, reader));
  const bool is_chat = options.chat || std::ranges::any_of(requests, [](const RunRequest& request) {
                         return !request.messages.empty();
                       });
  const auto has = [](const RunRequest& request) { return !request.schema.empty(); };
  CheckChatFlags(options, is_chat, has_schema || std::ranges::any_of(requests, has));
  const engine::Stopwatch watch;
  const engine::Model model = LoadModel(options.model);
  const std::optional<engine::Model> draft_model = options.generation.LoadDraftModel(options.model);
  session_options.draft = options.generation.ForDrafts(draft_model);
  session_options.sampling = options.generation.SamplingFor(model, options.model.verbose);
  RunParts parts = {.model = model, .form = {}, .session = session_options};
  if (is_chat) {
    parts.form = options.form.For(model);
    options.tools.Apply(tools, "", *parts.form);
  }
  parts.load_seconds = watch.Seconds();
  CatchInterrupts();
  if (options.jsonl) return RunLines(options, parts, requests);
  const RunRequest& request = requests[0];
  parts.session.sampling = request.SamplingOver(parts.session.sampling);
  std::optional<grammar::Constraint> constraint;
  if (const auto answer_grammar = parts.GrammarOf(options, request))
    constraint.emplace(answer_grammar, *model.tokenizer);
  grammar::Constraint* const answer_constraint = constraint ? &*constraint : nullptr;
  TextOutput out;
  Json likely = Json::array();
  const engine::GenerateResult result =
      Complete(options, parts, request, answer_constraint, out, likely);
  if (!options.json) WriteCalls(result.tool_calls, result.text.empty(), out);
  const int64_t seed = parts.session.sampling.seed;
  const bool open =
      options.json
          ? WriteOut(ResultJson(result, seed, parts.load_seconds, MoreOf(request, likely), 2))
          : out.Finish();
  ReportRun(options, model, result);
  if (result.is_broken) ComplainOfBroken();
  if (!open) return kExitDone;  // nobody reads any more
  return ComplainIfCut(result.is_free ? nullptr : answer_constraint, result.stop_reason)
             ? kExitCut
             : kExitDone;
}

}  // namespace

std::optional<engine::ChatForm> RunParts::FormOf(const RunOptions& options,
                                                 const RunRequest& request) const {
  if (!options.chat && request.messages.empty()) return std::nullopt;
  std::optional<engine::ChatForm> of_request = form;
  of_request->instructions = options.tools.Instructions(request.schema);
  return of_request;
}

std::shared_ptr<const grammar::Grammar> RunParts::GrammarOf(const RunOptions& options,
                                                            const RunRequest& request) const {
  const bool is_chat = options.chat || !request.messages.empty();
  return is_chat ? form->GrammarFor(request.grammar, *model.tokenizer) : request.grammar;
}

size_t ContextFor(const RunOptions& options, const engine::Model& model, const RunRequest& request,
                  size_t n_prompt) {
  const size_t usual = options.model.context;
  if (usual != engine::kUsualContext || request.max_tokens < 0) return usual;
  const size_t trained = engine::MaxContextOf(model.config);
  const size_t needed = n_prompt + static_cast<size_t>(request.max_tokens);
  if (n_prompt > trained || needed <= engine::ContextOf(model.config)) return usual;
  if (needed > trained) {
    Complain("note: " + std::to_string(needed) + " tokens are more than the " +
             std::to_string(trained) + " this model was trained for");
  }
  return needed;
}

std::vector<tokenizer::TokenId> EncodePrompt(const RunOptions& options, const RunParts& parts,
                                             const RunRequest& request) {
  const engine::Model& model = parts.model;
  const size_t room = engine::MaxContextOf(model.config, options.model.context);
  const std::function<bool()> interrupted = Interrupted;
  const std::optional<engine::ChatForm> form = parts.FormOf(options, request);
  if (!form) {
    return engine::Encode(
        model, request.prompt,
        {.add_bos = true, .parse_special = options.special, .interrupted = &interrupted}, room);
  }
  std::vector<tokenizer::Message> messages = request.messages;
  if (messages.empty()) messages = {{"user", request.prompt}};
  size_t n_bytes = 0;
  for (const tokenizer::Message& message : messages) n_bytes += message.content.size();
  engine::CheckTextSize(model, n_bytes, room);  // checked before a template copies it
  if (!options.system.empty() && messages.front().role != "system") {
    messages.insert(messages.begin(), {"system", options.generation.Typed(options.system)});
  }
  return engine::EncodeChat(model, *form, messages, room, interrupted);
}

engine::GenerateOptions GenerateOptionsFor(const RunOptions& options, const RunParts& parts,
                                           const RunRequest& request,
                                           grammar::Constraint* constraint, Json& likely) {
  engine::GenerateOptions generate = {.max_tokens = request.max_tokens,
                                      .reads_last = false,  // nothing follows
                                      .stop_texts = request.stop_texts,
                                      .interrupted = Interrupted,
                                      .constraint = constraint};
  if (const auto form = parts.FormOf(options, request)) {
    form->Prepare(generate, request.grammar != nullptr);
    generate.is_answer = true;
  }
  for (const tokenizer::Message& message : request.messages)
    generate.n_calls += message.tool_calls.size();
  if (!request.n_likeliest) return generate;
  generate.n_likeliest = static_cast<int64_t>(*request.n_likeliest);
  generate.on_token = [&likely, &tokenizer = *parts.model.tokenizer](const pronk::Token& token) {
    likely.push_back(TokenJson(tokenizer, token.id, token.log_probability));
    Json& others = likely.back()["top_logprobs"] = Json::array();
    for (const auto& [other, log_probability] : token.likeliest)
      others.push_back(TokenJson(tokenizer, other, log_probability));
    return true;
  };
  return generate;
}

Json MoreOf(const RunRequest& request, const Json& likely) {
  Json more = Json::object();
  if (request.id.is_there()) more["id"] = Json::parse(request.id.text());
  if (request.n_likeliest) more["logprobs"] = {{"content", likely}};
  return more;
}

void AddRun(CommandLine& line) {
  Command& command = line.Add("run", "Complete a prompt");
  RunOptions& options = command.Does(Run);
  options.model.AddModelFlag(command);
  options.text.AddFlags(
      command, "The text to complete, literal without -e; also after MODEL, or alone",
      "A file to complete (- for stdin), or one that -p is about (repeatable: joined in order)");
  command.Add("--messages FILE", options.messages,
              "A conversation to answer, in OpenAI's format, by the model's chat template");
  command
      .Add("--prompt-cache FILE", options.prompt_cache,
           "Save the state after the prompt here, and start from it next time")
      .Writes();
  command
      .Add("-n,--n-predict,--predict N", options.max_tokens, {-2, kMaxTokens},
           "Tokens to generate; -1 or -2: to the end of the text or the context")
      .ShowDefault();
  command.Add("-r,--reverse-prompt TEXT", options.stop_texts, "Stop before this text (repeatable)");
  options.generation.AddEscapeFlag(command);
  command.Add("--chat,--single-turn", options.chat,
              "Also -st: take the text as a question, in the model's chat template");
  command.Add("--system,--system-prompt TEXT", options.system,
              "Also -sys: with --chat, the system message");
  command.Add("--special", options.special, "Read special tokens such as <s> in the prompt");
  command.Add("--no-display-prompt", options.no_display_prompt, "Print only the completion");
  command.group = "Results in JSON, and many prompts";
  command.Add("--json", options.json, "Print one JSON object: text, tokens, timings");
  command.Add(
      "--logprobs N", options.n_likeliest, {0, kMaxTokens},
      "With --json or --jsonl: log probabilities of each token and of the N most likely ones");
  command.Add(
      "--jsonl", options.jsonl,
      "Answer each line of -f, a string or an object with \"prompt\" or \"messages\" in JSON, "
      "with a line of JSON; its seed is --seed plus its number");
  command
      .Add("-o,--output FILE", options.output,
           "Where --jsonl writes; a file that has some of the lines is continued")
      .Writes();
  command
      .Add("--parallel N", options.parallel, {1, 64},
           "Also -np: how many lines of --jsonl are answered at once")
      .ShowDefault();
  command.group = kOwn;
  options.form.AddFlags(command);
  options.tools.AddAnswerFlags(command);
  options.model.AddSessionFlags(command);
  options.generation.AddFlags(command);
  options.tools.AddToolFlags(command);
}

}  // namespace cli
