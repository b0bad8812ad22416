// pronk run --jsonl: each line, a prompt, becomes a line with its answer, several at a time.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/commands/run.h"
#include "cli/options/inputs.h"
#include "cli/output/json_file.h"
#include "cli/output/report.h"
#include "cli/output/text.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/sampling/settings.h"
#include "engine/session/batch.h"
#include "engine/session/encode.h"
#include "engine/session/memory.h"
#include "engine/session/xxh64.h"
#include "engine/stopwatch.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

using tokenizer::TokenId;

constexpr std::string_view kAnswer = "{\"text\":";  // the beginning of ResultJson()

constexpr std::string_view kHash = "request_hash";

// The hash of all that determines an answer besides the seed: the model, the prompt's ids, and what
// the request and the flags ask for.
std::string HashOf(const RunOptions& options, const RunSetup& setup, const RunRequest& request,
                   std::span<const TokenId> ids) {
  std::ostringstream all;
  const gguf::File& file = setup.model.file;
  all << std::filesystem::path(file.path()).filename() << ' ' << file.file_bytes();
  for (const TokenId id : ids) all << ' ' << id;
  all << '\n' << request.source.Compact() << '\n' << request.max_tokens << '\n' << request.schema;
  all << '\n' << options.generation.grammar << '\n' << options.tools.tools;
  all << '\n' << request.n_likeliest.value_or(0);
  for (const std::string& text : request.stop_texts) all << '\n' << gguf::JsonQuoted(text);
  pronk::Sampling sampling = request.SamplingOver(setup.session.sampling);
  for (const engine::Setting& setting : engine::Settings(sampling)) {
    if (setting.is_number() && setting.name != "seed") all << '\n' << setting.Get();
  }
  const std::string text = all.str();
  return Format("%016llx", static_cast<unsigned long long>(
                               engine::Xxh64(std::as_bytes(std::span<const char>(text)))));
}

std::string LineName(size_t number) { return "line " + std::to_string(number); }

std::vector<std::vector<TokenId>> EncodeLines(const RunOptions& options, const RunSetup& setup,
                                              const std::vector<RunRequest>& requests) {
  std::vector<std::vector<TokenId>> ids;
  ids.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    try {
      ids.push_back(EncodePrompt(options, setup, requests[i]));
      const size_t room = engine::MaxContextOf(setup.model.config, options.model.context);
      if (ids[i].size() > room)
        engine::ThrowNoRoom(ids[i].size(), /*at_least=*/false, room, setup.model.config);
      if (ids[i].empty()) throw engine::Error("the prompt is empty");
    } catch (const engine::TooLong& error) {
      throw engine::TooLong(LineName(requests[i].line), ": ", error.what());
    } catch (const tokenizer::TemplateError& error) {
      throw engine::Error(LineName(requests[i].line), ": ", error.what());
    } catch (const engine::Error& error) {
      throw engine::Error(LineName(requests[i].line), ": ", error.what());
    }
  }
  return ids;
}

// The file of the answers: an interrupted run leaves it, and the next run continues it.
class AnswerFile {
 public:
  // Opens and locks it. Its lines must be answers to these requests, judged by their hashes; only
  // an unfinished last line is cut off. Throws engine::Error, gguf::Error.
  AnswerFile(const std::string& path, const std::vector<std::string>& hashes) : path_(path) {
    // A serial line or a pipe is opened without waiting, and refused.
    const int fd =
        open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    file_.reset(fd < 0 ? nullptr : fdopen(fd, "a+"));
    struct stat status = {};
    if (!file_ || fstat(fd, &status) != 0) Fail("cannot be opened");
    gguf::RefuseInputs(path, status, Inputs());
    if (!S_ISREG(status.st_mode)) throw engine::Error(path, ": expected a file, to continue it");
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
      Fail("cannot be locked; perhaps another run is writing to it");
    off_t n_bytes = 0;
    bool is_whole = true;  // the last line has its line feed
    for (std::string line; Read(line); ++n_lines_) {
      is_whole = line.ends_with('\n');
      const std::string name = path + ", " + LineName(n_lines_ + 1);
      if (!line.starts_with(kAnswer) && (is_whole || !kAnswer.starts_with(line))) FailOther();
      JsonView hash;
      try {
        hash = ParseJson(line, name)[kHash];
      } catch (const engine::Error&) {
        if (is_whole) throw;
        is_whole = true;  // it is cut off
        break;
      }
      if (n_lines_ >= hashes.size() || !hash.IsString() || hash.String() != hashes[n_lines_])
        throw engine::Error(name, ": answers another request: give another name");
      n_bytes += static_cast<off_t>(line.size());
    }
    if (std::ferror(file_.get()) != 0) Fail("cannot be read");
    if (ftruncate(fd, n_bytes) != 0 || std::fseek(file_.get(), 0, SEEK_END) != 0)
      Fail("cannot be written to");
    if (!is_whole) Add("\n");
  }

  size_t n_lines() const { return n_lines_; }  // lines of earlier runs
  // Appends a line, which includes its line feed. Throws engine::Error.
  void Add(const std::string& line) {
    if (std::fputs(line.c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0)
      Fail("cannot be written to");
  }

 private:
  // The next line, with its line feed if it has one.
  bool Read(std::string& line) {
    line.clear();
    for (int c = 0; c != '\n' && (c = std::getc(file_.get())) != EOF;) {
      line += static_cast<char>(c);
      if (line.size() > kMaxDocumentBytes) FailOther();
    }
    return !line.empty();
  }
  [[noreturn]] void FailOther() const {
    throw engine::Error(path_, ": has lines that are not answers: give another name");
  }
  [[noreturn]] void Fail(const std::string& what) const {
    throw engine::Error(path_, ": ", what, ": ", std::strerror(errno));
  }

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
  size_t n_lines_ = 0;
};

// The place of one of the texts generated together.
struct Place {
  std::optional<size_t> line = {};  // empty: free
  std::unique_ptr<engine::Session> session = nullptr;
  int64_t seed = 0;
  // The parts that the constraint is made of: the request's grammar, and whether it is a
  // conversation.
  std::optional<std::pair<std::shared_ptr<const grammar::Grammar>, bool>> kept_to = {};
  std::unique_ptr<grammar::Constraint> constraint = nullptr;
  Json likely = Json::array();
};

}  // namespace

int RunLines(const RunOptions& options, const RunSetup& setup,
             const std::vector<RunRequest>& requests) {
  const std::vector<std::vector<TokenId>> ids = EncodeLines(options, setup, requests);
  std::optional<AnswerFile> file;
  std::vector<std::string> hashes;  // empty without a file
  if (!options.output.empty()) {
    for (size_t i = 0; i < ids.size(); ++i)
      hashes.push_back(HashOf(options, setup, requests[i], ids[i]));
    file.emplace(options.output, hashes);
  }
  const size_t first = file ? file->n_lines() : 0;
  if (first > 0) Note(Format("%zu of %zu lines are answered already", first, ids.size()));

  const engine::Stopwatch watch;
  engine::Memory memory = engine::MachineMemory();
  memory.available /= options.parallel;  // each text gets a part
  engine::Batch batch(setup.model, setup.session.n_threads);
  std::vector<Place> places(options.parallel);
  std::map<size_t, std::string> answers;  // [line]; they wait for the answers of earlier lines
  size_t next = first, written = first, n_tokens = 0;
  int status = kExitDone;

  const auto start = [&](Place& place) {
    const RunRequest& request = requests[next];
    place.line = next;
    engine::SessionOptions session = setup.session;
    // After the largest seed, seeds restart at 0.
    const uint64_t seed = static_cast<uint64_t>(session.sampling.seed.value) + next;
    session.sampling.seed = static_cast<int64_t>(seed & INT64_MAX);
    session.sampling = request.SamplingOver(session.sampling);
    place.seed = session.sampling.seed;
    place.likely = Json::array();
    session.draft.on = session.draft.on && options.parallel == 1;
    session.context = ContextFor(options, setup.model, request, ids[next].size());
    place.session = std::make_unique<engine::Session>(setup.model, session, memory);
    const auto kept_to = std::make_pair(request.grammar, options.chat || !request.messages.empty());
    if (place.kept_to != kept_to) {  // else the constraint's caches are reused
      place.kept_to = kept_to;
      const auto grammar = setup.GrammarOf(options, request);
      place.constraint = nullptr;
      if (grammar != nullptr)
        place.constraint = std::make_unique<grammar::Constraint>(grammar, *setup.model.tokenizer);
    }
    batch.Add(*place.session, ids[next],
              GenerateOptionsFor(options, setup, request, place.constraint.get(), place.likely),
              [](std::string_view) { return true; });
    ++next;
  };
  bool has_bad_logits = false;  // broken weights were reported
  const auto take = [&](const engine::Batch::Ended& ended) {
    const size_t line = first + ended.number;
    Place& place = *std::ranges::find(places, std::optional(line), &Place::line);
    if (ended.result.has_bad_logits && !std::exchange(has_bad_logits, true)) ComplainOfBadLogits();
    if (ComplainIfCut(ended.result.is_unconstrained ? nullptr : place.constraint.get(),
                      ended.result.stop_reason, LineName(requests[line].line)))
      status = kExitCut;
    Json more = ExtraFields(requests[line], place.likely);
    if (file) more[kHash] = hashes[line];
    answers[line] = ResultJson(ended.result, place.seed, setup.load_seconds, more, -1);
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
      if (!file && !WriteOut(answers[written])) return kExitDone;  // the reader has closed the pipe
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
