// pronk tokenize: text to ids and pieces.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/output/json_file.h"
#include "cli/terminal/charset.h"
#include "cli/terminal/terminal.h"
#include "gguf/file.h"
#include "tokenizer/tokenizer.h"

namespace cli {
namespace {

struct TokenizeOptions {
  ModelOptions model;
  std::optional<std::string> prompt;
  bool ids = false;
  bool no_bos = false;
  bool special = false;
};

int Tokenize(const TokenizeOptions& options) {
  // Only the vocabulary is needed, so a file without weights will do.
  const gguf::File file = OpenFile(options.model.ModelPath());
  const auto tokenizer = tokenizer::Tokenizer::Create(file);
  const std::vector<tokenizer::TokenId> ids =
      tokenizer->Encode(options.prompt ? FromTerminal(*options.prompt) : ReadStdin(kMaxTextBytes),
                        {.add_bos = !options.no_bos, .parse_special = options.special});
  if (options.ids) {
    std::string line = "[";
    for (const tokenizer::TokenId id : ids) {
      line += (line.size() > 1 ? ", " : "") + std::to_string(id);
    }
    WriteOut(line + "]\n");
    return kExitDone;
  }
  std::string lines;
  const auto flush = [&](size_t at) {
    return lines.size() < at || WriteOut(std::exchange(lines, ""));
  };
  for (const tokenizer::TokenId id : ids) {
    // JSON's quotes show spaces, line feeds and bytes that are no text.
    const Json piece = tokenizer->Piece(id, /*special=*/true);
    const std::string number = std::to_string(id);
    lines += std::string(number.size() < 7 ? 7 - number.size() : 0, ' ') + number + "  " +
             JsonText(piece, -1);
    if (!flush(1 << 16)) break;
  }
  flush(0);
  return kExitDone;
}

}  // namespace

void AddTokenize(CommandLine& line) {
  Command& command = line.Add("tokenize", "Show how a text is cut into tokens");
  const auto options = std::make_shared<TokenizeOptions>();
  options->model.AddModelFlag(command);
  command.Add("-p,--prompt TEXT", options->prompt, "The text (default: stdin, byte for byte)");
  command.Add("--ids", options->ids, "Print the ids only: [1, 2, 3]");
  command.Add("--no-bos", options->no_bos, "Without the token that begins a text");
  command.Add("--special", options->special, "Read special tokens such as <s> in the text");
  command.Does([options] { return Tokenize(*options); });
}

}  // namespace cli
