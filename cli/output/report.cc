// Counts and speeds of a run as lines or as JSON.
#include "cli/output/report.h"

#include <cinttypes>
#include <nlohmann/json.hpp>

#include "cli/output/text.h"
#include "kernels/matmul/ceiling.h"
#include "kernels/threads/thread_pool.h"

namespace cli {
namespace {

Json JsonOf(const tokenizer::ToolCall& call) {
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

double Rate(size_t n, double seconds) { return n == 0 ? 0 : static_cast<double>(n) / seconds; }

}  // namespace

std::string SpeedLine(const engine::GenerateResult& result, const engine::Model& model,
                      size_t measure_with_threads) {
  const double speed = Rate(result.n_decoded, result.generate_seconds);
  const double reads =
      Rate(result.n_passes, result.generate_seconds) * static_cast<double>(model.BytesPerToken());
  const size_t n_prompt = result.n_prompt + result.n_unread;
  const std::string of = result.n_unread > 0 ? Format(" of %zu", n_prompt) : "";
  std::string text = n_prompt == 0
                         ? "prompt remembered"
                         : Format("prompt %zu%s tokens, %.1f t/s", result.n_prompt, of.c_str(),
                                  Rate(result.n_prompt, result.prompt_seconds));
  text += Format(" | generated %zu tokens, %.1f t/s (%.1f GB/s", result.tokens.size(), speed,
                 reads / 1e9);
  if (measure_with_threads > 0 && result.n_decoded > 0) {
    kernels::ThreadPool pool(static_cast<int>(measure_with_threads));
    const double most = kernels::ReadCeiling(pool, model.LargestStretch(), /*repeats=*/1);
    text += Format(", %.0f%% of this machine's reads", 100 * reads / most);
  }
  return text + ")";
}

std::string ThreadsLine(const engine::GenerateResult& result) {
  return Format("threads: %zu generating, %zu for prompts", result.n_threads,
                result.n_threads_batch);
}

std::string DraftLine(const engine::DraftCounts& drafts) {
  const std::string text =
      Format("drafts: %" PRIu64 " guessed, %" PRIu64 " right; %.2f tokens a pass", drafts.drafted,
             drafts.accepted, Rate(drafts.n_tokens, static_cast<double>(drafts.n_passes)));
  const std::optional<double> gain = drafts.Gain();
  // If no draft was right, the gain would be only timing noise.
  if (drafts.accepted == 0 || !gain) return text;
  return text + Format("; about %.1f times as fast as without", *gain);
}

std::string CallJson(const tokenizer::ToolCall& call) { return JsonLine(JsonOf(call)); }

std::string ResultJson(const engine::GenerateResult& result, int64_t seed, double load_seconds,
                       const Json& more, int indent) {
  Json json = {{"text", result.text}};
  if (!result.thinking.empty()) json["thinking"] = result.thinking;
  for (const tokenizer::ToolCall& call : result.tool_calls)
    json["tool_calls"].push_back(JsonOf(call));
  json.update({
      {"prompt_tokens", result.n_prompt},
      {"tokens", result.tokens},
      {"stop_reason", engine::StopReasonName(result.stop_reason)},
      {"seed", seed},
      {"timings",
       {{"load_ms", load_seconds * 1e3},
        {"prompt_ms", result.prompt_seconds * 1e3},
        {"prompt_per_second", Rate(result.n_prompt, result.prompt_seconds)},
        {"predicted_ms", result.generate_seconds * 1e3},
        {"predicted_per_second", Rate(result.n_decoded, result.generate_seconds)},
        {"threads", result.n_threads},
        {"threads_batch", result.n_threads_batch}}},
  });
  json["draft"] = {{"drafted", result.drafts.drafted},
                   {"accepted", result.drafts.accepted},
                   {"passes", result.drafts.n_passes}};
  if (const auto gain = result.drafts.Gain()) json["draft"]["gain"] = *gain;
  json.update(more);
  return JsonText(json, indent);
}

}  // namespace cli
