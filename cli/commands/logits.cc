// pronk logits: the logits of every position of a text or of ids, to compare engines with.
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/inputs.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/number_list.h"
#include "cli/options/text_options.h"
#include "engine/model/model.h"
#include "engine/session/encode.h"
#include "engine/session/session.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

struct LogitsOptions {
  ModelOptions model;
  TextOptions text;
  std::optional<std::string> ids;
  std::string out;
};

int Logits(const LogitsOptions& options) {
  static_assert(std::endian::native == std::endian::little, "the output is little-endian");
  const bool has_ids = options.ids.has_value();
  if (has_ids && options.text.is_given()) throw UsageError("--ids and a text: give one of them");
  std::vector<tokenizer::TokenId> ids = has_ids ? ParseIds(*options.ids) : decltype(ids)();
  const std::string text = has_ids ? "" : options.text.Read();
  const engine::SessionOptions session_options = options.model.ForSession();
  const engine::Model model = ReadModel(options.model);
  engine::Session session(model, session_options);
  if (!has_ids) ids = engine::Encode(model, text, {}, session.capacity());

  gguf::OutputFile file(options.out, Inputs());
  CheckNoModelIsLost(options.out);
  session.PrefillAllLogits(
      ids, [&](size_t, size_t, std::span<const float> rows) { file.Write(std::as_bytes(rows)); });
  file.Commit();
  return kExitDone;
}

}  // namespace

void AddLogits(CommandLine& line) {
  Command& command =
      line.Add("logits", "Write the logits of every position as raw little-endian f32");
  LogitsOptions& options = command.Does(Logits);
  // The first word is the model, so that no model given alone is overwritten.
  options.model.AddModelFlag(command, /*is_required=*/true);
  options.model.AddSessionFlags(command);
  command.Add("--ids IDS", options.ids, "In place of a text, token ids: \"1 300 12\"");
  command.Add("OUT FILE", options.out, "File to write: [positions][vocabulary]")
      .Required()
      .Writes();
  options.text.AddFlags(command, "The text (default: stdin)",
                        "A file with the text (repeatable: joined by empty lines, -p last)");
}

}  // namespace cli
