// pronk run --jsonl: a line of prompt becomes a line of answer, several at a time.
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/commands/run.h"
#include "cli/options/inputs.h"
#include "cli/output/json_file.h"
#include "cli/output/line_file.h"
#include "cli/output/report.h"
#include "cli/output/text.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/session/batch.h"
#include "engine/session/encode.h"
#include "engine/session/memory.h"
#include "engine/stopwatch.h"

namespace cli {
namespace {

using tokenizer::TokenId;

constexpr std::string_view kAnswer = "{\"text\":";  // ResultJson() begins so

std::string NameOf(size_t i) { return "line " + std::to_string(i + 1); }

std::vector<std::vector<TokenId>> EncodeLines(const RunOptions& options, const RunParts& parts,
                                              const std::vector<std::string>& prompts) {
  std::vector<std::vector<TokenId>> ids;
  ids.reserve(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    try {
      ids.push_back(EncodePrompt(options, parts, prompts[i]));
      const size_t usual = engine::DefaultContext(parts.model.config);
      const size_t room = options.model.context != 0 ? options.model.context : usual;
      if (ids[i].size() > room)
        engine::ThrowNoRoom(ids[i].size(), /*at_least=*/false, room, parts.model.config);
      if (ids[i].empty()) throw engine::Error("the prompt is empty");
    } catch (const engine::Error& error) {
      throw engine::Error(NameOf(i) + ": " + error.what());
    }
  }
  return ids;
}

// Lines that an earlier run wrote, which have to be answers of these prompts, as far as the
// prompts' numbers of tokens tell.
size_t Answered(const std::string& path, const std::vector<std::string>& lines,
                const std::vector<std::vector<TokenId>>& ids) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string name = path + ", " + NameOf(i);
    const JsonView n_tokens = ParseJson(lines[i], name)["prompt_tokens"];
    if (i < ids.size() && n_tokens.IsNumber() &&
        n_tokens.Number() == static_cast<double>(ids[i].size()))
      continue;
    throw engine::Error(name + ": answers another prompt: give another name");
  }
  return lines.size();
}

// One of the texts that are written at a time.
struct Place {
  std::optional<size_t> line = {};  // none: it is free
  std::unique_ptr<engine::Session> session = nullptr;
  std::unique_ptr<grammar::Constraint> constraint = nullptr;
};

}  // namespace

std::vector<std::string> ReadPromptLines(const std::string& path) {
  std::vector<std::string> prompts;
  std::istringstream lines(ReadText(path));
  for (std::string line; std::getline(lines, line);) {
    const std::string name = path + ", " + NameOf(prompts.size());
    const JsonView json = ParseJson(line, name);
    const JsonView prompt = json.IsObject() ? json["prompt"] : json;
    if (!prompt.IsString()) {
      throw engine::Error(name + ": expected a string, or an object with one as \"prompt\"");
    }
    prompts.push_back(prompt.String());
  }
  return prompts;
}

int RunLines(const RunOptions& options, const RunParts& parts,
             const std::vector<std::string>& prompts) {
  const std::vector<std::vector<TokenId>> ids = EncodeLines(options, parts, prompts);
  std::optional<LineFile> file;
  if (!options.output.empty()) file.emplace(options.output, kAnswer, Inputs());
  const size_t first = file ? Answered(options.output, file->lines(), ids) : 0;
  if (first > 0) Note(Format("%zu of %zu lines are answered already", first, ids.size()));

  if (file) file->Begin();

  const engine::Stopwatch watch;
  engine::Memory memory = engine::MachineMemory();
  memory.available /= options.parallel;  // for each text
  engine::Batch batch(parts.model, parts.session.n_threads);
  std::vector<Place> places(options.parallel);
  std::map<size_t, std::string> answers;  // by line; they wait for those of earlier lines
  size_t next = first, written = first, n_tokens = 0;
  int status = kExitDone;

  const auto start = [&](Place& place) {
    place.line = next;
    engine::SessionOptions session = parts.session;
    session.sampler.seed += next;
    session.draft.on = session.draft.on && options.parallel == 1;
    session.context = ContextFor(options, parts.model, ids[next].size());
    place.session = std::make_unique<engine::Session>(parts.model, session, memory);
    if (parts.grammar != nullptr && place.constraint == nullptr) {
      place.constraint =
          std::make_unique<grammar::Constraint>(parts.grammar, *parts.model.tokenizer);
    }
    batch.Add(*place.session, ids[next], GenerateOptionsFor(options, parts, place.constraint.get()),
              [](std::string_view) { return true; });
    ++next;
  };
  const auto take = [&](const engine::Batch::Ended& ended) {
    const size_t line = first + ended.number;
    Place& place = *std::ranges::find(places, std::optional(line), &Place::line);
    if (ComplainIfCut(place.constraint.get(), ended.result.stop_reason)) status = kExitCut;
    answers[line] =
        ResultJson(ended.result, parts.session.sampler.seed + line, parts.load_seconds, -1);
    n_tokens += ended.result.tokens.size();
    place.line.reset();
    place.session.reset();
  };

  ProgressLine progress("answering", "prompts");
  while (written < ids.size()) {
    for (Place& place : places) {
      if (!place.line && next < ids.size() && !Interrupted()) start(place);
    }
    const std::vector<engine::Batch::Ended> all_ended = batch.Step();
    if (Interrupted()) {
      throw engine::Error(
          Format("interrupted: %zu of %zu lines are answered", written, ids.size()));
    }
    for (const engine::Batch::Ended& ended : all_ended) take(ended);
    for (; answers.contains(written); answers.erase(written++)) {
      if (!file && IsTerminal(1)) progress.Clear();
      if (file) file->Add(answers[written]);
      if (!file && !WriteOut(answers[written])) return kExitDone;  // nobody reads any more
    }
    progress.Update(written, ids.size());
  }
  progress.Clear();
  if (IsTerminal(2) || options.model.verbose) {
    Note(Format("%zu lines, %zu tokens, %.1f t/s", written - first, n_tokens,
                static_cast<double>(n_tokens) / watch.Seconds()));
  }
  return status;
}

}  // namespace cli
