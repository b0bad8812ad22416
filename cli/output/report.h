// The summary of a run, for people and for programs.
#pragma once

#include <cstddef>
#include <string>

#include "cli/output/json_file.h"
#include "engine/model/model.h"
#include "engine/session/generate.h"

namespace cli {

// "prompt 35 tokens, 412.0 t/s | generated 128 tokens, 44.1 t/s (27.3 GB/s)". With the number of
// threads it adds the share of this machine's memory bandwidth, which takes up to a fifth of a
// second to measure: "(27.3 GB/s, 90% of this machine's reads)".
std::string SpeedLine(const engine::GenerateResult& result, const engine::Model& model,
                      size_t measure_with_threads = 0);

// "threads: 4 generating, 10 for prompts".
std::string ThreadsLine(const engine::GenerateResult& result);

// The gain from drafts: "drafts: 120 guessed, 96 right; 3.10 tokens a pass; about 2.4 times as fast
// as without". The last part is there if some guesses were right and enough passes had none.
std::string DraftLine(const engine::DraftCounts& drafts);

// A call in OpenAI's form, in one line.
std::string CallJson(const tokenizer::ToolCall& call);

// One JSON object: text, thinking and tool_calls (if any), prompt_tokens, tokens, stop_reason,
// seed, timings, draft (if tokens were drafted), and more members. indent as in JsonText.
std::string ResultJson(const engine::GenerateResult& result, int64_t seed, double load_seconds,
                       const Json& more, int indent);

}  // namespace cli
