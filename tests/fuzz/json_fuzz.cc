// The JSON reader, and every reader built on it. Input: a letter that selects the reader, then the
// text: r the JSON reader alone, compared with nlohmann's; c config.json, t tokenizer.json, w the
// head of a file of weights; s a schema; v a template's values; m a conversation; h a saved chat; k
// calls in a model's answer; b a baseline. Two formats are not JSON: p tiktoken.model, x
// sentencepiece.bpe.model.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/chat/chat_file.h"
#include "cli/output/json_file.h"
#include "convert/hf_tokenizer.h"
#include "convert/source.h"
#include "engine/answer/tool_calls.h"
#include "engine/error.h"
#include "engine/hf/fields.h"
#include "engine/hf/safetensors.h"
#include "gguf/error.h"
#include "gguf/json.h"
#include "grammar/grammar.h"
#include "grammar/json_schema.h"
#include "tests/fuzz/input.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace {

using gguf::JsonView;

void Check(bool holds) {
  if (!holds) std::abort();
}

size_t Walk(const JsonView& value) {
  size_t n = 1;
  if (value.IsString()) Check(gguf::JsonQuoted(value.String()) == value.Compact());
  if (value.Signed()) Check(static_cast<double>(*value.Signed()) == value.Number());
  for (const auto& [key, part] : value) n += Walk(part);
  if (!value.IsObject()) return n;
  for (const auto& [key, part] : value.Members()) Check(value[key].text() == part.text());
  return n;
}

// Both readers accept the same texts, except for limits, and read the same values.
void Compare(const std::string& text) {
  if (text.find('\0') != std::string::npos) return;  // ends the text for the other reader
  const bool is_json = test::Json::accept(text);
  JsonView view;
  try {
    view = JsonView::Parse(text, {.values = 1000});
  } catch (const gguf::Error& error) {
    const std::string_view what = error.what();
    const bool is_limit = what.starts_with("has more") || what.starts_with("is nested");
    Check(is_limit || !is_json);
    return;
  }
  Check(is_json);
  Check(Walk(view) <= 1000);
  const std::string compact = view.Compact();
  Check(test::Json::parse(compact).dump() == test::Json::parse(text).dump());
  Check(JsonView::Parse(compact) == view);
  if (!view.IsObject()) return;
  Check(JsonView::Object(view.Members()).Members().size() == view.Members().size());
}

void AsConfig(const std::string& text) {
  const convert::Fields config = convert::ParseObject("config.json", text);
  const convert::Fields all = convert::TextConfig(config);
  for (const auto& [key, value] : config.json()) {
    if (all.IsText(key)) Check(all.Text(key) == all.TextOr(key, ""));
    if (all.IsObject(key)) Check(all.Object(key).is_there());
  }
  convert::FindSource(config);
}

void AsWeights(const std::string& text) {
  const uint64_t length = text.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  file += text + std::string(64, 'w');
  const auto* const bytes = reinterpret_cast<const std::byte*>(file.data());
  convert::Safetensors::Parse("f", {bytes, file.size()});
}

// The input is a template, in which only marks count, a line feed, and the model's answer.
void AsCalls(const std::string& text) {
  const size_t line = std::min(text.find('\n'), text.size());
  engine::CallSplitter splitter(engine::FindCallForm(text.substr(0, line)), {});
  const std::string written = text.substr(std::min(line + 1, text.size()));
  std::vector<tokenizer::ToolCall> calls;
  std::string rest = splitter.Push(written);
  rest += splitter.Finish(calls);
  Check(!calls.empty() || rest == written);
  for (const tokenizer::ToolCall& call : calls) tokenizer::ParseArguments(call.arguments);
}

// A written chat must be read back unchanged.
void AsChat(const std::string& text) {
  const cli::SavedChat chat = cli::ParseChat(text, "h");
  if (!chat.model) return;
  const std::string written = cli::ChatText(chat);
  const cli::SavedChat again = cli::ParseChat(written, "h");
  Check(again.model->IsSame(*chat.model));
  Check(cli::ChatText(again) == written);
}

std::string FileOf(const std::string& text) {
  static const test::TempDir dir;
  return dir.Write("text", text);
}

void Take(char what, const std::string& text) {
  switch (what) {
    case 'c':
      return AsConfig(text);
    case 't':
      convert::ReadTokenizerJson(convert::ParseObject("tokenizer.json", text), "llama");
      return;
    case 'w':
      return AsWeights(text);
    case 's':
      grammar::ParseJsonSchema(text);
      return;
    case 'v':
      tokenizer::ToTemplateValue(cli::ParseJson(text, "v"));
      return;
    case 'm':
      cli::ReadMessages(FileOf(text));
      return;
    case 'h':
      return AsChat(text);
    case 'k':
      return AsCalls(text);
    case 'p':
      convert::ReadTiktoken("p", text);
      return;
    case 'x':
      convert::ReadSentencePiece("x", text, /*fairseq=*/true);
      return;
    case 'b':
      cli::EarlierResults{FileOf(text)};
      return;
    default:
      return Compare(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const char what = static_cast<char>(input.Byte());
  try {
    Take(what, std::string(input.Rest()));
  } catch (const gguf::Error&) {
  } catch (const engine::Error&) {
  } catch (const grammar::Error&) {
  }
  return 0;
}
