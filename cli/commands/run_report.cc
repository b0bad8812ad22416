// Writes all output of pronk run except the text: tool calls, notes, and the log probabilities of
// --json.
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands/run.h"
#include "cli/output/report.h"
#include "cli/terminal/terminal.h"

namespace cli {
namespace {

// In a run at least this long, measuring the memory bandwidth costs no noticeable time.
constexpr double kLongRunSeconds = 2;

// A token of `logprobs`, with its bytes, since a token may be a part of a character.
Json TokenJson(const tokenizer::Tokenizer& tokenizer, tokenizer::TokenId id,
               float log_probability) {
  const std::string piece = tokenizer.Piece(id, /*special=*/true);
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  Json json = {{"id", id}, {"token", piece}, {"bytes", bytes}, {"logprob", nullptr}};
  if (!std::isnan(log_probability)) json["logprob"] = log_probability;
  return json;
}

}  // namespace

void WriteCalls(const std::vector<tokenizer::ToolCall>& calls, bool is_first, TextOutput& out) {
  for (const tokenizer::ToolCall& call : calls) {
    out.Write((std::exchange(is_first, false) ? "" : "\n") + CallJson(call));
  }
}

void ReportRun(const RunOptions& options, const engine::Model& model,
               const engine::GenerateResult& result) {
  if (options.json) return;
  if (result.stop_reason == pronk::StopReason::kContext) {
    Complain("note: the context is full, so the text ends here; -c makes it larger");
  }
  if (result.stop_reason == pronk::StopReason::kLength && result.text.empty() &&
      !result.thinking.empty()) {
    Complain(
        "note: -n ended the answer while the model was still thinking; a larger -n leaves room for "
        "it");
  }
  if (!IsTerminal(2) && !options.model.verbose) return;
  const bool reads_stdin = options.text.reads_stdin() || options.messages == "-";
  if (!reads_stdin && HasUnreadInput()) Note("note: standard input is ignored; -f - reads it");
  Note(SpeedLine(result, model, result.generate_seconds > kLongRunSeconds ? result.n_threads : 0));
  if (options.model.verbose) Note(ThreadsLine(result));
  if (options.model.verbose && result.drafts.n_passes > 0) Note(DraftLine(result.drafts));
}

Json LogprobJson(const tokenizer::Tokenizer& tokenizer, const pronk::Token& token) {
  Json json = TokenJson(tokenizer, token.id, token.log_probability);
  Json& others = json["top_logprobs"] = Json::array();
  for (const auto& [other, log_probability] : token.likeliest)
    others.push_back(TokenJson(tokenizer, other, log_probability));
  return json;
}
Json ExtraFields(const RunRequest& request, const Json& likely) {
  Json more = Json::object();
  if (request.id.is_there()) more["id"] = Json::parse(request.id.text());
  if (request.n_likeliest) more["logprobs"] = {{"content", likely}};
  return more;
}

}  // namespace cli
