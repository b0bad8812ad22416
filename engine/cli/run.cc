// pronk run: complete a prompt, streaming.
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/model_options.h"
#include "engine/cli/sampling_options.h"
#include "engine/cli/terminal.h"
#include "engine/generate.h"
#include "engine/model.h"
#include "kernels/cpu.h"

namespace cli {
namespace {

struct RunOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::optional<std::string> prompt;
  std::string file;
  int64_t max_tokens = -1;
  std::vector<std::string> stop_texts;
  bool no_display_prompt = false;
  bool special = false;
  bool json = false;
};

double Rate(size_t n, double seconds) { return n == 0 ? 0 : static_cast<double>(n) / seconds; }

// A file or a pipe ends with a line feed that nobody typed.
std::string WithoutLastNewline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::string ReadPrompt(const RunOptions& options) {
  if (options.prompt && !options.file.empty()) throw UsageError("-p and -f: give one of them");
  if (options.prompt) return *options.prompt;
  if (!options.file.empty()) return WithoutLastNewline(ReadFile(options.file));
  if (IsTerminal(0)) throw UsageError("no prompt: give one with -p TEXT or -f FILE, or pipe it in");
  return WithoutLastNewline(ReadStdin());
}

// The default context holds the tokens that -n asks for, even if that is more than the model has
// seen in training; but a prompt that is too long by itself is refused.
size_t ContextFor(const RunOptions& options, const engine::Model& model, size_t n_prompt) {
  if (options.model.context != 0 || options.max_tokens < 0) return options.model.context;
  const size_t usual = engine::DefaultContext(model.config);
  const size_t needed = n_prompt + static_cast<size_t>(options.max_tokens);
  if (n_prompt > usual || needed <= usual) return usual;
  if (needed > model.config.context_length) {
    std::fprintf(stderr,
                 "pronk: note: %zu tokens are more than the %zu this model was trained for\n",
                 needed, model.config.context_length);
  }
  return needed;
}

void PrintTimings(const engine::GenerateResult& result, const engine::Model& model) {
  const double speed = Rate(result.n_decoded, result.decode_seconds);
  std::fprintf(stderr, "prompt %zu tokens, %.1f t/s | generated %zu tokens, %.1f t/s (%.1f GB/s)\n",
               result.n_prompt, Rate(result.n_prompt, result.prompt_seconds), result.tokens.size(),
               speed, speed * static_cast<double>(model.BytesPerToken()) / 1e9);
}

void PrintJson(const engine::GenerateResult& result, double load_seconds) {
  const nlohmann::ordered_json json = {
      {"text", result.text},
      {"prompt_tokens", result.n_prompt},
      {"tokens", result.tokens},
      {"stop_reason", engine::StopReasonName(result.stop_reason)},
      {"timings",
       {{"load_ms", load_seconds * 1e3},
        {"prompt_ms", result.prompt_seconds * 1e3},
        {"prompt_per_second", Rate(result.n_prompt, result.prompt_seconds)},
        {"predicted_ms", result.decode_seconds * 1e3},
        {"predicted_per_second", Rate(result.n_decoded, result.decode_seconds)}}},
  };
  WriteOut(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

int Run(const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  engine::SessionOptions session_options = options.model.Session();
  const engine::Model model = engine::Model::Load(options.model.ModelPath());
  const std::string prompt = ReadPrompt(options);
  session_options.sampler = options.sampling.For(model.tokenizer->vocab());
  const std::vector<tokenizer::TokenId> ids =
      model.tokenizer->Encode(prompt, {.add_bos = true, .parse_special = options.special});
  session_options.context = ContextFor(options, model, ids.size());
  engine::Session session(model, session_options);
  const double load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.model.verbose) {
    std::fprintf(stderr,
                 "model %s, context %zu, KV cache %s\nthreads %zu, CPU target %s, seed %llu\n",
                 model.file.path().c_str(), session.capacity(),
                 HumanBytes(static_cast<double>(session.cache().bytes())).c_str(),
                 session.n_threads(), kernels::CpuTarget().c_str(),
                 static_cast<unsigned long long>(session_options.sampler.seed));
  }

  CatchInterrupts();
  ProgressLine progress("reading the prompt:", 1.0);
  engine::GenerateOptions generate;
  generate.max_tokens = options.max_tokens;
  generate.stop_texts = options.stop_texts;
  generate.interrupted = Interrupted;
  generate.prompt_progress = [&](size_t done) {
    progress.Update(done, ids.size());
    return true;
  };
  // The space that SPM puts before a text belongs to the vocabulary, not to the text: where there
  // is no prompt for it to follow, nobody wants to see it.
  bool at_start = prompt.empty() && model.tokenizer->vocab().add_space_prefix;
  session.CheckRoom(ids);  // before the prompt is shown: an error should stand alone
  if (!options.json && !options.no_display_prompt) WriteOut(prompt);
  const engine::GenerateResult result =
      engine::Generate(session, ids, generate, [&](std::string_view text) {
        progress.Clear();
        if (options.json) return true;
        if (std::exchange(at_start, false) && text.starts_with(' ')) text.remove_prefix(1);
        return WriteOut(text);
      });
  if (options.json) {
    PrintJson(result, load_seconds);
  } else {
    WriteOut("\n\n");  // sets the text apart from what the terminal says next
  }
  if (IsTerminal(2) && !options.json) PrintTimings(result, model);
  return kExitDone;
}

}  // namespace

void AddRun(CommandLine& line) {
  Command command = line.Add("run", "Complete a prompt");
  const auto options = std::make_shared<RunOptions>();
  command.Add("-p,--prompt", options->prompt, "The text to complete").Type("TEXT");
  command.Add("-f,--file", options->file, "Read the text from a file (default: stdin)")
      .Type("FILE");
  command.Add("-n,--n-predict", options->max_tokens, "Tokens to generate; -1: until the end")
      .ShowDefault()
      .Between(-1, 1e9)
      .Type("N");
  command.Add("-r,--reverse-prompt", options->stop_texts, "Stop before this text (repeatable)")
      .Type("TEXT");
  command.Add("--special", options->special, "Read special tokens such as <s> in the prompt");
  command.Add("--no-display-prompt", options->no_display_prompt, "Print the completion only");
  command.Add("--json", options->json, "Print one JSON object: text, tokens, timings");
  options->model.AddSessionFlags(command);
  options->sampling.AddFlags(command);
  command.Does([options] { return Run(*options); });
}

}  // namespace cli
