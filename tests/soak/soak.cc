// soak [ROUNDS | MINUTESm] [SEED]: uses every part of the library repeatedly, in random order, in
// two threads that share a model. Earlier work must not change a text, and memory must not grow.
// Prints a line each minute and at the end. The exit status is 1 if anything was wrong.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/pronk.h"
#include "tests/support/data.h"
#include "tests/support/memory_is_ours.h"
#include "tests/support/temp_dir.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostTokens = 24;
constexpr size_t kContext = 96;
const std::vector<std::string> kWords = {"Once", "upon", "a time", "the dog", "saw",
                                         "\n",   "Tom",  "{\"a\"", "é",       "\xF0\x9F\x90\xB8",
                                         "12",   ","};
const std::vector<std::string> kSchemas = {
    R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})",
    R"({"enum": ["yes", "no", null]})",
    R"({"type": "array", "items": {"type": "boolean"}, "minItems": 2})",
    R"({"type": "string", "pattern": "^[a-f]{3,5}$"})",
    R"({"type": "string", "format": "date"})",
    R"({"type": "number", "minimum": 3, "exclusiveMaximum": 17.5})",
    R"({"anyOf": [{"const": 1}, {"type": "array", "prefixItems": [{"const": "a"}]}]})",
    R"({"allOf": [{"type": "integer"}, {"not": {"enum": [1, 2, 3]}}]})",
    R"({"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": 2})",
    R"({"$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        "$ref": "#/$defs/tree"})"};
const std::vector<std::string> kGrammars = {"root ::= \"yes\" | \"no\"",
                                            "root ::= [a-z]{2,6} (\" \" [a-z]{1,6})* \".\"",
                                            "root ::= \"(\" root \")\" | [0-9]+"};

// Returns the memory of this process alone, in MB.
double OwnMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::atof(line.c_str() + 8) / 1024;
  }
  return 0;
}

// The state that the threads share.
class Soak {
 public:
  explicit Soak(const std::string& path) : path_(path), model_(path) {}

  const pronk::Model& model() const { return model_; }
  const std::string& path() const { return path_; }

  void Fail(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (n_failed_++ < 10) std::fprintf(stderr, "soak: %s\n", what.c_str());
  }
  // Fails if this task wrote another text before.
  void Expect(const std::string& task, const std::string& text) {
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] = texts_.try_emplace(task, text);
    if (!is_new && known->second != text && n_failed_++ < 10) {
      std::fprintf(stderr, "soak: %s wrote \"%s\", and before \"%s\"\n", task.c_str(), text.c_str(),
                   known->second.c_str());
    }
  }
  size_t n_failed() const { return n_failed_; }

 private:
  const std::string path_;
  const pronk::Model model_;
  std::mutex mutex_;
  std::map<std::string, std::string> texts_;
  std::atomic<size_t> n_failed_ = 0;
};

class Worker {
 public:
  Worker(Soak& soak, unsigned seed)
      : soak_(soak), random_(seed), session_(soak.model(), Options(0)) {}

  void Round() {
    using Task = void (Worker::*)();
    static constexpr Task kTasks[] = {
        &Worker::Write,           &Worker::Write,          &Worker::TellTheStory,
        &Worker::FollowASchema,   &Worker::FollowAGrammar, &Worker::Cancel,
        &Worker::CancelThePrompt, &Worker::FillTheContext, &Worker::Converse,
        &Worker::OpenAndClose,    &Worker::WriteTogether,  &Worker::SaveAndLoad,
        &Worker::Embed,           &Worker::BeWrong};
    (this->*kTasks[Below(std::size(kTasks))])();
  }

 private:
  size_t Below(size_t n) { return random_() % n; }
  static pronk::Options Options(unsigned seed) {
    pronk::Options options = {.context = kContext, .threads = 1, .sampling = {.seed = seed}};
    if (seed == 0) options.sampling.temperature = 0;
    return options;
  }
  // One of about a hundred prompts, so that each is repeated.
  std::string Prompt() {
    std::string prompt;
    for (size_t n = 1 + Below(2); n > 0; --n) prompt += kWords[Below(kWords.size())] + " ";
    return prompt;
  }
  static pronk::Limits AtMost(int n) { return {.max_tokens = n}; }

  std::string Greedy(const std::string& prompt) {
    session_.Clear();
    return session_.Complete(prompt, {}, AtMost(kMostTokens)).text;
  }

  void Write() {
    const std::string prompt = Prompt();
    soak_.Expect("greedy " + prompt, Greedy(prompt));
    const auto seed = static_cast<unsigned>(1 + Below(3));
    pronk::Session session(soak_.model(), Options(seed));
    soak_.Expect("seed " + std::to_string(seed) + " " + prompt,
                 session.Complete(prompt, {}, AtMost(kMostTokens)).text);
  }

  // The story is stored in the repository; the plain pass wrote it (tests/engine/plain_test.cc).
  void TellTheStory() {
    static const std::string story = test::ReadText(test::DataPath("default.greedy.txt"));
    const std::string beginning = "Once upon a time, there lived a boy";
    session_.Clear();
    const std::string text = session_.Complete(beginning, {}, AtMost(40)).text;
    if (text.size() < 40 || !story.starts_with(beginning + text))
      soak_.Fail("another story: " + text);
  }

  void Follow(const pronk::Grammar& grammar, const std::string& source) {
    const std::string prompt = Prompt();
    pronk::Limits limits = AtMost(kMostTokens);
    limits.grammar = grammar;
    session_.Clear();
    soak_.Expect(source + " " + prompt, session_.Complete(prompt, {}, limits).text);
  }
  void FollowASchema() {
    const std::string& schema = kSchemas[Below(kSchemas.size())];
    Follow(pronk::Grammar::JsonSchema(schema), schema);
  }
  void FollowAGrammar() {
    const std::string& rules = kGrammars[Below(kGrammars.size())];
    Follow(pronk::Grammar::Gbnf(rules), rules);
  }

  void Cancel() {
    const std::string prompt = Prompt();
    const size_t most = Below(8);
    std::string heard;
    session_.Clear();
    session_.Complete(
        prompt,
        [&, n = size_t{0}](std::string_view text) mutable {
          heard += text;
          return ++n < most;
        },
        AtMost(kMostTokens));
    if (!Greedy(prompt).starts_with(heard)) soak_.Fail("a cancelled text is another: " + prompt);
  }

  void CancelThePrompt() {
    session_.Clear();
    pronk::Limits limits = AtMost(1);
    limits.on_prompt = [](size_t, size_t) { return false; };
    if (session_.Complete(Prompt(), {}, limits).stop_reason != pronk::StopReason::kInterrupted)
      soak_.Fail("a cancelled prompt was read");
    const std::string prompt = Prompt();
    soak_.Expect("greedy " + prompt, Greedy(prompt));
  }

  void FillTheContext() {
    session_.Clear();
    const pronk::Completion all = session_.Complete(Prompt());
    if (session_.tokens().size() > kContext) soak_.Fail("more than the context");
    const std::string prompt = Prompt();
    soak_.Expect("greedy " + prompt, Greedy(prompt));
  }

  // Talks until the oldest turns are dropped.
  void Converse() {
    const std::string prompt = Prompt();
    pronk::Chat chat(soak_.model(), "Be kind.", Options(0));
    std::string said;
    for (size_t turn = 0, n_dropped = 0; turn < 20 && n_dropped == 0; ++turn) {
      const pronk::Completion answer = chat.Say(prompt, {}, AtMost(8));
      n_dropped = answer.n_dropped;
      said += answer.text + "|" + std::to_string(n_dropped) + "\n";
    }
    soak_.Expect("turns " + prompt, said);
  }

  void OpenAndClose() {
    const bool is_exact = Below(4) == 0;
    const pronk::Model model(soak_.path(), is_exact);
    const std::string prompt = Prompt();
    const std::string kind = is_exact ? "exact " : "";
    pronk::Session session(model, Options(0));
    soak_.Expect(kind + "greedy " + prompt, session.Complete(prompt, {}, AtMost(kMostTokens)).text);
    pronk::Chat chat(model, "Be kind.", Options(0));
    soak_.Expect(kind + "chat " + prompt, chat.Say(prompt, {}, AtMost(8)).text);
  }

  void WriteTogether() {
    pronk::Batch batch(soak_.model(), 1);
    std::vector<std::string> tasks;
    const size_t stopped = Below(5);  // from 3 on, no text is stopped
    for (size_t i = 0; i < 3; ++i) {
      const std::string beginning = Prompt();
      pronk::Session session(soak_.model(), Options(0));
      batch.Add(
          session, beginning, [i, stopped](std::string_view) { return i != stopped; },
          AtMost(kMostTokens));
      tasks.push_back("greedy " + beginning);
    }
    const std::string prompt = Prompt();
    pronk::Chat chat(soak_.model(), "Be kind.", Options(0));
    batch.Add(chat, {{"user", prompt}}, {}, AtMost(8));
    tasks.push_back("chat " + prompt);
    const bool is_left = Below(8) == 0;  // leaves the batch before its texts have ended
    for (size_t step = 0; batch.size() > 0 && !(is_left && step == 4); ++step) {
      for (const auto& [i, completion] : batch.Step()) {
        if (i != stopped) soak_.Expect(tasks[i], completion.text);
      }
    }
  }

  void SaveAndLoad() {
    const std::string prompt = Prompt();
    session_.Clear();
    session_.Complete(prompt, {}, AtMost(0));
    session_.Save(dir_.Path("session"));
    pronk::Session other(soak_.model(), Options(0));
    other.Load(dir_.Path("session"));
    soak_.Expect("greedy " + prompt, other.Complete("", {}, AtMost(kMostTokens)).text);
  }

  void Embed() {
    std::vector<std::string> texts(1 + Below(3));
    std::string task = "vectors";
    for (std::string& text : texts) task += " | " + (text = kWords[Below(kWords.size())]);
    pronk::Embedder embedder(soak_.model(), pronk::Pooling::kMean, Options(0));
    std::string numbers;
    for (const std::vector<float>& row : embedder.Embed(texts)) {
      numbers.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
    }
    soak_.Expect(task, std::to_string(std::hash<std::string>()(numbers)));
  }

  template <class Fn>
  void MustThrow(Fn does, const char* what) {
    try {
      does();
    } catch (const pronk::Error&) {
      return;
    }
    soak_.Fail(std::string(what) + " was taken");
  }

  void BeWrong() {
    const std::string damaged = dir_.Write("damaged", std::string(Below(1000), 'x'));
    MustThrow([&] { session_.Load(damaged); }, "a damaged session");
    MustThrow([&] { pronk::Model model(damaged); }, "a damaged model");
    MustThrow([] { pronk::Grammar::JsonSchema("{\"type\": 7}"); }, "a wrong schema");
    MustThrow([&] { session_.Complete(std::string(100'000, 'x')); }, "a prompt without room");
    const std::string prompt = Prompt();
    soak_.Expect("greedy " + prompt, Greedy(prompt));
  }

  Soak& soak_;
  std::mt19937_64 random_;
  pronk::Session session_;
  const test::TempDir dir_;
};

int Run(int argc, char** argv) {
  const std::string length = argc > 1 ? argv[1] : "100";
  const bool in_minutes = length.ends_with('m');
  const double most = std::atof(length.c_str());
  const auto seed = static_cast<unsigned>(argc > 2 ? std::atoi(argv[2]) : 1);
  Soak soak(test::kDefault);
  const auto start = Clock::now();
  const auto minutes = [&] {
    return std::chrono::duration<double>(Clock::now() - start).count() / 60;
  };
  std::atomic<size_t> n_rounds = 0;
  const auto is_done = [&](double part) {
    return (in_minutes ? minutes() : static_cast<double>(n_rounds)) >= part * most;
  };
  // The peaks of memory in the first half, which runs every task at least once, and in the second.
  double first = 0, second = 0;
  std::mutex mutex;
  double reported = 0;
  const auto report = [&] {
    std::printf("%.0f minutes, %zu rounds, %.1f MB, %zu failed\n", minutes(), n_rounds.load(),
                OwnMemory(), soak.n_failed());
    std::fflush(stdout);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      Worker worker(soak, 2 * seed + i);
      while (!is_done(1)) {
        try {
          worker.Round();
        } catch (const std::exception& error) {
          soak.Fail(error.what());
        }
        ++n_rounds;
        const std::lock_guard lock(mutex);
        double& peak = is_done(0.5) ? second : first;
        peak = std::max(peak, OwnMemory());
        if (minutes() >= reported + 1) {
          reported = minutes();
          report();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  report();
  constexpr double kSlack = 8;  // MB, for the allocator
  // Sanitizers keep freed memory.
  if (test::kMemoryIsOurs && second > first + kSlack)
    soak.Fail("memory grew from " + std::to_string(first) + " MB to " + std::to_string(second));
  return soak.n_failed() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n", error.what());
    return 1;
  }
}
