// pronk embed: texts as vectors. pronk rerank: lines of a file by how well they answer a query.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/inputs.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/options/number_list.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/prediction/text_windows.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/embedder.h"
#include "engine/session/embedder_input.h"
#include "engine/session/encode.h"
#include "engine/stopwatch.h"
#include "gguf/error.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

static_assert(std::endian::native == std::endian::little, "raw output is little-endian");

using tokenizer::TokenId;

struct EmbedOptions {
  ModelOptions model;
  std::vector<std::string> words;  // texts, or with --ids the file to write
  std::string file, pooling;
  std::optional<std::string> ids, query, prompt_name;
  bool raw = false, json = false, truncate = false;
};

// The words given as texts, else lines of a file or standard input; JSON's quotes allow any text.
std::vector<std::string> ReadTexts(const EmbedOptions& options) {
  std::vector<std::string> texts;
  for (const std::string& text : options.words) {
    const bool is_line = !text.starts_with('"') && text.find('\n') == std::string::npos;
    texts.push_back(is_line ? text : JsonLine(text));
  }
  if (!texts.empty() && !options.file.empty())
    throw UsageError("-f and ", gguf::Quoted(options.words[0]), ": give one of them");
  if (!texts.empty()) return texts;
  if (options.file.empty() && IsTerminal(0))
    throw UsageError("no texts: give some as words, in a file (-f), or pipe them in, one a line");
  std::istringstream lines(ReadText(options.file.empty() ? "-" : options.file));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    texts.push_back(line);
  }
  return texts;
}

// A line in JSON's quotes may contain line feeds as \n.
std::string Unquoted(const std::string& line) { return UnquoteJson(line).value_or(line); }

std::optional<engine::Pooling> PoolingOf(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return name == "mean"  ? engine::Pooling::kMean
         : name == "cls" ? engine::Pooling::kFirst
                         : engine::Pooling::kLast;
}

// Writes the result of one text, whose ids --ids gives.
int WriteOne(const EmbedOptions& options, engine::Embedder& embedder) {
  if (options.words.size() != 1) throw UsageError("--ids: expected the file to write after it");
  if (!options.file.empty() || options.query || options.raw || options.json)
    throw UsageError("--ids and -f, -p, --raw or --json: give one of them");
  if (options.prompt_name || options.truncate)
    throw UsageError("--prompt-name, --truncate: not with --ids, which are taken as they are");
  const std::vector<TokenId> ids = ParseIds(*options.ids);
  gguf::OutputFile file(options.words[0], Inputs());
  CheckNoModelIsLost(options.words[0]);
  embedder.Embed({&ids, 1}, [&](size_t, size_t, std::span<const float> row) {
    CheckFinite(row, "the model's results");
    file.Write(std::as_bytes(row));
    return true;
  });
  file.Commit();
  return kExitDone;
}

// The ids of a text. If it is too long, only its beginning and the token that ends texts are kept.
std::vector<TokenId> Truncated(const engine::Model& model, const std::string& text, size_t most,
                               bool& is_cut) {
  constexpr size_t kAnyRoom = size_t{1} << 40;
  std::vector<TokenId> ids = engine::Encode(model, text, {}, kAnyRoom);
  is_cut = ids.size() > most;
  if (!is_cut) return ids;
  const TokenId last = ids.back();
  ids.resize(most);
  if (model.tokenizer->vocab().IsControl(last) && most > 0) ids.back() = last;
  return ids;
}

// The name of a text in messages: its line, unless it is a word of the command line.
std::string NameOf(const EmbedOptions& options, size_t i) {
  const std::string number = std::to_string(i + 1);
  if (!options.words.empty()) return "text " + number;
  const bool is_stdin = options.file.empty() || options.file == "-";
  return (is_stdin ? "stdin" : gguf::PrintablePath(options.file)) + ", line " + number;
}

// Calls `result` with each text's index, its number of tokens, and its vector or scores. A text
// without a result is reported, and `missing` is called with its index. Returns whether all texts
// have a result.
template <class Encode, class Result, class Missing>
bool EmbedAll(const EmbedOptions& options, engine::Embedder& embedder,
              const std::vector<std::string>& texts, Encode encode, Result result,
              Missing missing) {
  constexpr size_t kAtOnce = 256;  // texts tokenized before the first is embedded
  const engine::Stopwatch watch;
  ProgressLine progress("embedding", "texts");
  bool is_whole = true;
  size_t n_tokens = 0, done = 0;
  while (done < texts.size()) {
    std::vector<std::vector<TokenId>> ids;
    std::vector<size_t> numbers;
    const size_t end = std::min(done + kAtOnce, texts.size());
    for (size_t i = done; i < end; ++i) {
      try {
        std::vector<TokenId> of_text = encode(texts[i]);
        embedder.Check(of_text);
        ids.push_back(std::move(of_text));
        numbers.push_back(i);
      } catch (const engine::Error& error) {
        progress.Clear();
        is_whole = false;
        Complain(NameOf(options, i) + ": " + error.what());
      }
    }
    size_t next = done;  // text
    const auto skip_to = [&](size_t i) {
      for (; next < i; ++next) missing(next);
    };
    bool open = true;
    embedder.Embed(ids, [&](size_t first, size_t n, std::span<const float> rows) {
      CheckFinite(rows, "the model's results");
      if (IsTerminal(1)) progress.Clear();  // the results may be on the same screen
      for (size_t i = 0; open && i < n; ++i) {
        const size_t tokens = ids[first + i].size();
        n_tokens += tokens;
        const size_t number = numbers[first + i];
        skip_to(number);
        ++next;
        open = result(number, tokens, rows.subspan(i * embedder.width(), embedder.width()));
      }
      progress.Update(next, texts.size());
      if (Interrupted()) throw engine::Error("interrupted");
      return open;
    });
    if (!open) return is_whole;
    skip_to(end);
    done = end;
  }
  progress.Clear();
  if (!IsTerminal(2) && !options.model.verbose) return is_whole;
  Note(Counted(texts.size(), "text") + ", " + Counted(n_tokens, "token") +
       Format(", %.1f t/s", static_cast<double>(n_tokens) / watch.Seconds()));
  return is_whole;
}

// The shortest digits that read back as this number.
void AddNumber(float x, std::string& out) {
  std::array<char, 32> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.end(), x).ptr);
}

int Embed(const EmbedOptions& options) {
  const engine::SessionOptions session_options = options.model.ForSession();
  const std::vector<std::string> texts =
      options.ids ? std::vector<std::string>() : ReadTexts(options);
  if (options.raw && IsTerminal(1)) throw UsageError("--raw: not to a terminal");
  const engine::Model model = LoadModel(options.model);
  if (model.config.pooling == engine::Pooling::kRank)
    throw engine::Error("this is a reranker, which makes scores, not vectors: pronk rerank");
  engine::Embedder embedder(model, session_options, PoolingOf(options.pooling));
  if (options.ids) return WriteOne(options, embedder);
  const std::string prompt = engine::PromptOf(model, options.prompt_name);
  CatchInterrupts();
  Output out;
  const size_t most = embedder.capacity();
  size_t n_cut = 0;
  const auto encode = [&](const std::string& text) {
    const std::string whole = prompt + Unquoted(text);
    if (!options.truncate) return engine::Encode(model, whole, {}, most);
    bool is_cut = false;
    std::vector<TokenId> ids = Truncated(model, whole, most, is_cut);
    n_cut += is_cut ? 1 : 0;
    return ids;
  };
  const auto add_raw = [&](std::span<const float> vector) {
    out.Add({reinterpret_cast<const char*>(vector.data()), vector.size_bytes()});
    return out.is_open();
  };
  const auto add = [&](size_t i, size_t n_tokens, std::span<const float> vector) {
    if (options.raw) return add_raw(vector);
    std::string line = "{\"index\": " + std::to_string(i) +
                       ", \"tokens\": " + std::to_string(n_tokens) + ", \"embedding\": [";
    for (const float x : vector) {
      AddNumber(x, line);
      line += ", ";
    }
    line.replace(line.size() - 2, 2, "]}\n");
    out.Add(line);
    return out.is_open();
  };
  const bool is_whole = EmbedAll(options, embedder, texts, encode, add, [&](size_t) {
    if (options.raw) add_raw(std::vector<float>(embedder.width(), NAN));
  });
  out.Flush();
  if (n_cut > 0) {
    Complain(Format("note: cut %zu of %s to %s", n_cut, Counted(texts.size(), "text").c_str(),
                    Counted(most, "token").c_str()));
  }
  return is_whole ? kExitDone : kExitFault;
}

int Rerank(const EmbedOptions& options) {
  const engine::SessionOptions session_options = options.model.ForSession();
  std::vector<std::string> texts;
  if (!options.ids) {
    if (!options.query) throw UsageError("-p: expected the query");
    texts = ReadTexts(options);
  }
  const engine::Model model = LoadModel(options.model);
  engine::Embedder embedder(model, session_options, engine::Pooling::kRank);
  if (options.ids) return WriteOne(options, embedder);
  CatchInterrupts();
  const auto encode = [&](const std::string& text) {
    return engine::EncodePair(model, *options.query, Unquoted(text), embedder.capacity());
  };
  std::vector<std::pair<float, size_t>> scores;  // scores of texts, and the texts' numbers
  const auto add = [&](size_t i, size_t, std::span<const float> row) {
    scores.emplace_back(row[0], i);
    return true;
  };
  const bool is_whole = EmbedAll(options, embedder, texts, encode, add, [](size_t) {});
  std::ranges::stable_sort(scores, std::greater(), &std::pair<float, size_t>::first);
  Output out;
  for (const auto& [score, i] : scores) {
    std::string line;
    if (options.json) {
      line = JsonLine({{"index", i}, {"score", score}, {"text", Unquoted(texts[i])}});
    } else {
      AddNumber(score, line);
      line += "\t" + texts[i];
    }
    out.Add(line + "\n");
  }
  out.Flush();
  return is_whole ? kExitDone : kExitFault;
}

std::pair<Command&, EmbedOptions&> AddCommand(CommandLine& line, const std::string& name,
                                              const std::string& what,
                                              int (*does)(const EmbedOptions&)) {
  Command& command = line.Add(name, what);
  EmbedOptions& options = command.Does(does);
  options.model.kv = "f32";  // keys and values are kept for one pass
  options.model.AddSessionFlags(command);
  command
      .Add("-f,--file FILE", options.file,
           "The texts, one per line (- for stdin); a line in quotes is read as JSON, with \\n")
      .Once();
  command.Add(
      "--ids IDS", options.ids,
      "In place of texts, token ids (\"1 300 12\"): write the result as raw little-endian f32");
  return {command, options};
}

}  // namespace

void AddEmbed(CommandLine& line) {
  auto [command, options] = AddCommand(line, "embed", "Turn texts into vectors", Embed);
  command.Add("TEXT", options.words, "The texts; with --ids, the file to write");
  command
      .Add("--pooling", options.pooling,
           "How the vectors of a text's tokens become one (default: as the file says)")
      .OneOf({"mean", "cls", "last"});
  command.Add("--prompt-name NAME", options.prompt_name,
              "Put the model's prompt of this name, such as query or document, before each text "
              "('': none; default: as the file says)");
  command.Add("--raw", options.raw,
              "Write raw little-endian f32 instead of a JSON object per line (NaN: no vector)");
  command.Add("--truncate", options.truncate,
              "Cut texts that are too long, instead of reporting them and leaving them out");
}

void AddRerank(CommandLine& line) {
  auto [command, options] =
      AddCommand(line, "rerank", "Sort texts by how well they answer a query", Rerank);
  command.Add("-p,--query,--prompt TEXT", options.query, "The query").Once();
  command.Add("TEXT", options.words, "The texts to sort; with --ids, the file to write");
  command.Add("--json", options.json, "Print a JSON object per line: index, score, text");
}

}  // namespace cli
