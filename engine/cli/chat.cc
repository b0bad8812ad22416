// pronk chat: converse, a line at a time.
#include "engine/chat.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/model_options.h"
#include "engine/cli/sampling_options.h"
#include "engine/cli/terminal.h"
#include "engine/model.h"

namespace cli {
namespace {

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::string system;
  std::optional<std::string> first;
  int64_t max_tokens = -1;
};

constexpr const char* kHelp =
    "/regen  answer the last question again\n"
    "/undo   take the last question and its answer back\n"
    "/clear  begin anew\n"
    "/stats  how the last answer was made\n"
    "/exit   leave (so does the end of input)\n"
    "Ctrl-C stops an answer. A line that ends in \\ goes on in the next.\n";

// A question: one line, or several where each but the last ends in a backslash. False at the end of
// input.
bool ReadQuestion(std::string& question) {
  question.clear();
  for (bool more = true; more;) {
    if (IsTerminal(0)) std::fputs(question.empty() ? "> " : ". ", stderr);
    std::string line;
    if (!std::getline(std::cin, line)) return !question.empty();
    more = line.ends_with('\\');
    if (more) line.back() = '\n';
    question += line;
  }
  return true;
}

class Conversation {
 public:
  Conversation(engine::Session& session, const ChatOptions& options)
      : session_(session), options_(options), chat_(session, options.system) {}

  // False where nobody reads the answers any more.
  bool Say(const std::string& question) {
    CatchInterrupts();
    ProgressLine progress("reading:", 1.0);
    engine::GenerateOptions generate;
    generate.max_tokens = options_.max_tokens;
    generate.interrupted = Interrupted;
    generate.prompt_progress = [&](size_t done) {
      progress.Update(done, done);
      return true;
    };
    bool open = true, at_start = true;
    last_ = chat_.Say(question, generate, [&](std::string_view text) {
      progress.Clear();
      // The template ends where the answer begins; a space there is the vocabulary's.
      if (std::exchange(at_start, false) && text.starts_with(' ')) text.remove_prefix(1);
      return open = WriteOut(text);
    });
    ReleaseInterrupts();
    if (last_->n_dropped > 0) {
      std::fprintf(stderr, "\n(the context is full: the oldest %zu messages are forgotten)",
                   last_->n_dropped);
    }
    return open && WriteOut("\n");
  }

  // True where the line was a command and not a question; `open` as from Say().
  bool Command(const std::string& line, bool& open) {
    if (line == "/help") {
      std::fputs(kHelp, stderr);
    } else if (line == "/clear") {
      chat_.Clear();
    } else if (line == "/undo") {
      if (chat_.Undo().empty()) std::fputs("(nothing to take back)\n", stderr);
    } else if (line == "/regen") {
      const std::string question = chat_.Undo();
      question.empty() ? void(std::fputs("(nothing to answer again)\n", stderr))
                       : void(open = Say(question));
    } else if (line == "/stats") {
      PrintStats();
    } else if (line.starts_with('/')) {
      std::fputs("(unknown command; /help lists them)\n", stderr);
    } else {
      return false;
    }
    return true;
  }

 private:
  void PrintStats() const {
    if (!last_) return void(std::fputs("(no answer yet)\n", stderr));
    const engine::GenerateResult& g = last_->generated;
    std::fprintf(stderr,
                 "context %zu of %zu tokens; last answer: %zu tokens reused, %zu read in %.0f ms, "
                 "%zu generated at "
                 "%.1f t/s, ended by %s\n",
                 session_.position(), session_.capacity(), last_->n_reused, g.n_prompt,
                 g.prompt_seconds * 1e3, g.tokens.size(),
                 g.n_decoded == 0 ? 0.0 : static_cast<double>(g.n_decoded) / g.decode_seconds,
                 std::string(engine::StopReasonName(g.stop_reason)).c_str());
  }

  engine::Session& session_;
  const ChatOptions& options_;
  engine::Chat chat_;
  std::optional<engine::Chat::Answer> last_;
};

int RunChat(const ChatOptions& options) {
  engine::SessionOptions session_options = options.model.Session();
  const engine::Model model = engine::Model::Load(options.model.ModelPath());
  session_options.sampler = options.sampling.For(model.tokenizer->vocab());
  engine::Session session(model, session_options);
  Conversation conversation(session, options);
  if (IsTerminal(0)) {
    std::fprintf(
        stderr, "Chatting with %s. /help lists the commands.\n",
        std::string(model.file.metadata().GetStringOr("general.name", model.file.path())).c_str());
  }
  bool open = !options.first || conversation.Say(*options.first);
  for (std::string question; open && ReadQuestion(question);) {
    if (question == "/exit") break;
    if (question.empty() || conversation.Command(question, open)) continue;
    open = conversation.Say(question);
  }
  return kExitDone;
}

}  // namespace

void AddChat(CommandLine& line) {
  Command command = line.Add("chat", "Converse with a model");
  const auto options = std::make_shared<ChatOptions>();
  command.Add("--system", options->system, "What the model is told before the conversation")
      .Type("TEXT");
  command.Add("-p,--prompt", options->first, "The first question").Type("TEXT");
  command.Add("-n,--n-predict", options->max_tokens, "Tokens of an answer; -1: until its end")
      .ShowDefault()
      .Between(-1, 1e9)
      .Type("N");
  options->model.AddSessionFlags(command);
  options->sampling.AddFlags(command);
  command.Does([options] { return RunChat(*options); });
}

}  // namespace cli
