// pronk run: completes a prompt and streams the text. Read Run() first, then AnswerOne(),
// Complete() and EncodePrompt(). run_flags.cc has the flags, run_input.cc reads the prompt, and
// run_report.cc writes all output except the text.
#include "cli/commands/run.h"

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "cli/command.h"
#include "cli/options/loading.h"
#include "cli/output/report.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/session/encode.h"
#include "engine/session/session_file.h"
#include "engine/stopwatch.h"

namespace cli {
namespace {

// Restores the beginning of the prompt from the --prompt-cache file. Returns its number of tokens.
// A cache with more tokens than the context has room for is not used; it is replaced, like the
// cache of another prompt.
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

engine::GenerateResult Complete(const RunOptions& options, const RunSetup& setup,
                                const RunRequest& request, grammar::Constraint* constraint,
                                TextOutput& out, Json& likely) {
  const engine::Model& model = setup.model;
  const std::vector<tokenizer::TokenId> ids = EncodePrompt(options, setup, request);
  engine::SessionOptions session_options = setup.session;
  session_options.context = ContextFor(options, model, request, ids.size());
  engine::Session session(model, session_options);
  if (options.model.verbose) ExplainChoices(options.model, model, session, session_options);

  ProgressLine progress("reading the prompt:");
  engine::GenerateOptions generate =
      GenerateOptionsFor(options, setup, request, constraint, likely);
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
  // Checked before the prompt is printed, so that an error is the only output.
  session.CheckRoom(rest);
  session.pool().Start();
  const bool is_chat = options.chat || !request.messages.empty();
  if (!options.json && !is_chat && !options.no_display_prompt) out.Write(request.prompt);
  return engine::Generate(session, rest, generate, [&](std::string_view text) {
    progress.Clear();
    return options.json || out.Write(text);
  });
}

RunSetup MakeSetup(const RunOptions& options, const RunInput& input, const engine::Model& model,
                   const std::optional<engine::Model>& draft_model) {
  RunSetup setup = {.model = model, .chat_form = {}, .session = input.session};
  setup.session.draft = options.generation.ForDrafts(draft_model);
  setup.session.sampling = options.generation.SamplingFor(model, options.model.verbose);
  if (input.is_chat) {
    setup.chat_form = options.template_options.For(model);
    options.tools.Apply(input.tools, "", *setup.chat_form);
  }
  return setup;
}

// Answers the single request of a run without --jsonl. Returns the exit status.
int AnswerOne(const RunOptions& options, RunSetup setup, const RunRequest& request) {
  setup.session.sampling = request.SamplingOver(setup.session.sampling);
  std::optional<grammar::Constraint> constraint;
  if (const auto answer_grammar = setup.GrammarOf(options, request))
    constraint.emplace(answer_grammar, *setup.model.tokenizer);
  grammar::Constraint* const answer_constraint = constraint ? &*constraint : nullptr;
  TextOutput out;
  Json likely = Json::array();
  const engine::GenerateResult result =
      Complete(options, setup, request, answer_constraint, out, likely);
  if (!options.json) WriteCalls(result.tool_calls, result.text.empty(), out);
  const int64_t seed = setup.session.sampling.seed;
  const bool can_write =
      options.json
          ? WriteOut(ResultJson(result, seed, setup.load_seconds, ExtraFields(request, likely), 2))
          : out.Finish();
  ReportRun(options, setup.model, result);
  if (result.has_bad_logits) ComplainOfBadLogits();
  if (!can_write) return kExitDone;  // the reader has closed the pipe
  return ComplainIfCut(result.is_unconstrained ? nullptr : answer_constraint, result.stop_reason)
             ? kExitCut
             : kExitDone;
}

}  // namespace

int Run(const RunOptions& options) {
  const RunInput input = ReadInput(options);
  const engine::Stopwatch watch;
  const engine::Model model = LoadModel(options.model);
  const std::optional<engine::Model> draft_model = options.generation.LoadDraftModel(options.model);
  RunSetup setup = MakeSetup(options, input, model, draft_model);
  setup.load_seconds = watch.Seconds();
  CatchInterrupts();
  return options.jsonl ? RunLines(options, setup, input.requests)
                       : AnswerOne(options, setup, input.requests[0]);
}

std::optional<engine::ChatForm> RunSetup::FormOf(const RunOptions& options,
                                                 const RunRequest& request) const {
  if (!options.chat && request.messages.empty()) return std::nullopt;
  std::optional<engine::ChatForm> form = chat_form;
  form->instructions = options.tools.Instructions(request.schema);
  return form;
}

std::shared_ptr<const grammar::Grammar> RunSetup::GrammarOf(const RunOptions& options,
                                                            const RunRequest& request) const {
  const bool is_chat = options.chat || !request.messages.empty();
  return is_chat ? chat_form->GrammarFor(request.grammar, *model.tokenizer) : request.grammar;
}

size_t ContextFor(const RunOptions& options, const engine::Model& model, const RunRequest& request,
                  size_t n_prompt) {
  const size_t context = options.model.context;
  if (context != engine::kDefaultContext || request.max_tokens < 0) return context;
  const size_t trained = engine::MaxContextOf(model.config);
  const size_t needed = n_prompt + static_cast<size_t>(request.max_tokens);
  if (n_prompt > trained || needed <= engine::ContextOf(model.config)) return context;
  if (needed > trained) {
    Complain("note: " + std::to_string(needed) + " tokens are more than the " +
             std::to_string(trained) + " this model was trained for");
  }
  return needed;
}

std::vector<tokenizer::TokenId> EncodePrompt(const RunOptions& options, const RunSetup& setup,
                                             const RunRequest& request) {
  const engine::Model& model = setup.model;
  const size_t room = engine::MaxContextOf(model.config, options.model.context);
  const std::function<bool()> should_stop = Interrupted;
  const std::optional<engine::ChatForm> form = setup.FormOf(options, request);
  if (!form) {
    return engine::Encode(
        model, request.prompt,
        {.add_special = true, .parse_special = options.special, .should_stop = &should_stop}, room);
  }
  std::vector<tokenizer::Message> messages = request.messages;
  if (messages.empty()) messages = {{"user", request.prompt}};
  size_t n_bytes = 0;
  for (const tokenizer::Message& message : messages) n_bytes += message.content.size();
  engine::CheckTextSize(model, n_bytes, room);  // checked before a template copies it
  if (!options.system.empty() && messages.front().role != "system") {
    messages.insert(messages.begin(),
                    {"system", options.generation.ResolveEscapes(options.system)});
  }
  return engine::EncodeChat(model, *form, messages, room, should_stop);
}

engine::GenerateOptions GenerateOptionsFor(const RunOptions& options, const RunSetup& setup,
                                           const RunRequest& request,
                                           grammar::Constraint* constraint, Json& likely) {
  engine::GenerateOptions generate = {.max_tokens = request.max_tokens,
                                      .runs_last = false,  // nothing follows
                                      .stop_texts = request.stop_texts,
                                      .should_stop = Interrupted,
                                      .constraint = constraint};
  if (const auto form = setup.FormOf(options, request)) {
    form->Prepare(generate, request.grammar != nullptr);
    generate.is_answer = true;
  }
  for (const tokenizer::Message& message : request.messages)
    generate.n_calls += message.tool_calls.size();
  if (!request.n_likeliest) return generate;
  generate.n_likeliest = static_cast<int64_t>(*request.n_likeliest);
  generate.on_token = [&likely, &tokenizer = *setup.model.tokenizer](const pronk::Token& token) {
    likely.push_back(LogprobJson(tokenizer, token));
    return true;
  };
  return generate;
}

}  // namespace cli
