// pronk logits: the logits of every position of a sequence of ids, to compare engines with.
#include <bit>
#include <string>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/inputs.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/number_list.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

struct LogitsOptions {
  ModelOptions model;
  std::string ids, out;
};

int Logits(const LogitsOptions& options) {
  static_assert(std::endian::native == std::endian::little, "the output is little-endian");
  const std::vector<tokenizer::TokenId> ids = ParseIds(options.ids);
  const engine::SessionOptions session_options = options.model.Session();
  const engine::Model model = ReadModel(options.model);
  engine::Session session(model, session_options);

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
  options.model.AddSessionFlags(command);
  command.Add("--ids IDS", options.ids, "Token ids, for example \"1 300 12\"").Required();
  command.Add("OUT FILE", options.out, "File to write: [positions][vocabulary]")
      .Required()
      .Writes();
}

}  // namespace cli
