// A traced token as a table, JSON, a picture and a page; and tables of the plain pass (plain.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/trace/trace_values.h"
#include "engine/model/model.h"
#include "engine/pass/trace.h"
#include "engine/session/session.h"

namespace cli {

struct TraceReport {
  const engine::Model& model;
  std::vector<tokenizer::TokenId> tokens;  // the last one is walked
  size_t n_threads = 1;
  double read_ceiling = 0;      // bytes per second
  double dot_ceiling = 0;       // operations per second
  std::string reads_from = {};  // where read_ceiling's bytes came from: "memory", "the cache"
  engine::Trace token = {};     // a pass of the last token alone
  engine::Trace prompt = {};    // a pass of all tokens; empty: not measured
  // The values of the last token, or of all tokens; empty: not requested.
  std::vector<TokenValues> values = {};
};

// Every operation with its time, and totals; then the operations of all tokens at once, summed over
// the layers. At most 80 columns. Layers with the same operations are shown once, unless all_layers
// is set.
std::string TraceTable(const TraceReport& report, bool all_layers);
// The output of --values as text. heads: every head's attention, too.
std::string ValuesText(const TraceReport& report, bool heads);
// One JSON object. Values, if any, are of all tokens. Positions count from 1, layers, heads from 0.
std::string TraceJson(const TraceReport& report);
// A page for a browser, complete in itself: page.html with the roofline and the JSON in it.
std::string TraceHtml(const TraceReport& report);
// page.html as a string, with places to fill in, in order: @NONCE@, @ROOFLINE@, @TRACE@, @NONCE@.
extern const std::string_view kTracePage;
// The roofline (Williams et al. 2009): operations' speeds over operations per byte, and the limits.
std::string TraceSvg(const TraceReport& report);

// PlainTable() and HeadTable() run the plain pass, and throw engine::Error for a model that it does
// not support. PlainTable() appends up to n tokens, then reads the text with the engine, too. It
// shows after each token what both predict, and the error of the logits. The session must be empty.
std::string PlainTable(engine::Session& session, std::vector<tokenizer::TokenId> ids, size_t n);
// How one head (from 0) of the last token attends: query, keys, scores, softmax, values and mean.
std::string HeadTable(const engine::Model& model, const std::vector<tokenizer::TokenId>& ids,
                      size_t layer, size_t head);

// A token in quotes, at most this wide; and with its position, counted from 1: `"<s>"@1`.
std::string TokenText(const engine::Model& model, tokenizer::TokenId id, size_t columns);
std::string TokenAt(const engine::Model& model, const std::vector<tokenizer::TokenId>& ids,
                    size_t position, size_t columns);
// The part of the model that an operation belongs to: "token", "layer 3" or "output".
std::string OperationPart(const engine::Trace& trace, size_t operation);
// "attn_q attn_k" for the tensors of an operation, without their layer.
std::string OperationTensors(const engine::TraceOperation& operation);

}  // namespace cli
