// A traced token as a table, as JSON and as a picture.
#ifndef PRONK_CLI_TRACE_TRACE_REPORT_H_
#define PRONK_CLI_TRACE_TRACE_REPORT_H_

#include <string>
#include <vector>

#include "cli/trace/trace_values.h"
#include "engine/model/model.h"
#include "engine/pass/trace.h"

namespace cli {

struct TraceReport {
  const engine::Model& model;
  std::vector<tokenizer::TokenId> tokens;  // the last one is walked
  size_t n_threads = 1;
  double read_ceiling = 0;               // bytes per second
  double dot_ceiling = 0;                // operations per second; 0: not measured
  engine::Trace token = {};              // of the last token alone
  engine::Trace prompt = {};             // of all tokens at once; empty: not measured
  std::vector<LayerValues> layers = {};  // empty: not asked for
};

// Every operation with its time, layer by layer, and totals; at most 80 columns.
std::string TraceTable(const TraceReport& report);
// What --values shows, likewise. heads: every head's attention, too.
std::string ValuesText(const TraceReport& report, bool heads);
std::string TraceJson(const TraceReport& report);
// The roofline (Williams, Waterman, Patterson 2009): every operation's speed over its operations
// per byte read, below the machine's limits.
std::string TraceSvg(const TraceReport& report);

// "attn_q attn_k" for the tensors of a step; without `with_layer`, "blk.3." is left out.
std::string StepTensors(const engine::TraceStep& step, bool with_layer);

}  // namespace cli

#endif  // PRONK_CLI_TRACE_TRACE_REPORT_H_
