// pronk tokenize: text to ids and pieces, with the positions that pronk trace --token counts.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/text_options.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "gguf/file.h"
#include "tokenizer/tokenizer.h"

namespace cli {
namespace {

struct TokenizeOptions {
  ModelOptions model;
  TextOptions text;
  bool ids = false, no_bos = false, special = false;
};

int Tokenize(const TokenizeOptions& options) {
  // Only the vocabulary is needed, so a file without weights is enough.
  const gguf::File file = OpenFile(options.model.ModelPath());
  const auto tokenizer = tokenizer::Tokenizer::Create(file);
  const std::vector<tokenizer::TokenId> ids =
      tokenizer->Encode(options.text.Read(/*exact=*/true),
                        {.add_special = !options.no_bos, .parse_special = options.special});
  Output out;
  for (size_t i = 0; i < ids.size() && out.is_open(); ++i) {
    const std::string number = std::to_string(ids[i]), position = std::to_string(i + 1);
    if (options.ids) {
      out.Add((i == 0 ? "[" : ", ") + number);
      continue;
    }
    // JSON's quotes show spaces, line feeds and bytes that are not UTF-8.
    const Json piece = tokenizer->Piece(ids[i], /*special=*/true);
    if (i == 0) out.Add("position       id  text\n");
    out.Add(Padded(position, 8, /*right=*/true) + " " + Padded(number, 8, /*right=*/true) + "  " +
            JsonText(piece, -1));
  }
  if (options.ids) out.Add(ids.empty() ? "[]\n" : "]\n");
  out.Flush();
  return kExitDone;
}

}  // namespace

void AddTokenize(CommandLine& line) {
  Command& command = line.Add("tokenize", "Show how a text is cut into tokens");
  TokenizeOptions& options = command.Does(Tokenize);
  options.model.AddModelFlag(command);
  options.text.AddFlags(command, "The text (default: stdin, byte for byte)",
                        "A file with the text (repeatable: joined by empty lines, -p last)");
  command.Add("--ids", options.ids, "Print the ids only: [1, 2, 3]");
  command.Add("--no-bos", options.no_bos, "Leave out the token that begins a text");
  command.Add("--special", options.special, "Read special tokens such as <s> in the text");
}

}  // namespace cli
