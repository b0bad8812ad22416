// Results of earlier runs: finds the same test in a file, tells what differs, and compares files.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/bench/bench.h"
#include "cli/command.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/hf/fields.h"
#include "gguf/error.h"
#include "gguf/number.h"

namespace cli {
namespace {

using Row = EarlierResults::Row;

// Two rows are of the same test if these fields are equal. A field that one row lacks counts as
// equal.
using Keys = std::vector<const char*>;
const Keys kTestKeys = {"model_size", "model_n_params", "n_prompt", "n_gen",
                        "n_depth",    "n_threads",      "n_pass",   "n_parallel",
                        "n_batch",    "n_ubatch",       "type_k",   "type_v"};
const Keys kMachineKeys = {"cpu_info", "cpu_target"};
const Keys kOtherKeys = {"cpu_info", "cpu_target", "model_filename"};

// "n_threads: 4, here 2" for each of these keys.
std::vector<std::string> DifferencesIn(const Keys& keys, const Row& there, const Row& here) {
  std::vector<std::string> texts;
  for (const std::string key : keys) {
    const auto a = there.fields.find(key), b = here.fields.find(key);
    if (a == there.fields.end() || b == here.fields.end() || a->second == b->second) continue;
    texts.push_back(gguf::Printable(key + ": " + a->second + ", here " + b->second));
  }
  return texts;
}

// name: names the file and the row in errors.
Row ReadRow(const JsonView& json, const std::string& name) {
  const engine::Fields fields(name, json);
  Row row;
  for (const std::string key : kTestKeys) {
    if (key.starts_with("type_") || (key.ends_with("batch") && !fields.Has(key))) continue;
    const bool is_ours = key == "n_pass" || key == "n_parallel";
    row.fields[key] = Figures(is_ours ? fields.NumberOr(key, 1) : fields.Number(key), 20);
  }
  for (const std::string key :
       {"type_k", "type_v", "cpu_info", "cpu_target", "model_type", "model_filename"}) {
    const std::string text = fields.TextOr(key, "");
    if (text.empty() || text == "CPU") continue;  // llama-bench had no details
    row.fields[key] =
        key == "model_filename" ? std::filesystem::path(text).filename().string() : text;
  }
  row.samples = {fields.Numbers("samples_ts"), fields.NumberOr("limit_ts", 0),
                 fields.NumberOr("dot_limit", 0), fields.NumberOr("share_of_cores", 0)};
  return row;
}

}  // namespace

// The file holds an array of objects, or one object per line.
EarlierResults::EarlierResults(const std::string& path) : path_(path) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  const std::string text = ReadText(path, kMaxBytes);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) {
    throw engine::Error(path, ": expected what pronk bench -o json writes, found nothing");
  }
  const auto add = [&](const JsonView& json) {
    const std::string name = path + ": result " + std::to_string(rows_.size() + 1);
    const Row& row = rows_.emplace_back(ReadRow(json, name));
    if (row.samples.ts.empty() || std::ranges::min(row.samples.ts) <= 0)
      throw engine::Error(name, ": samples_ts: expected a list of numbers above 0");
  };
  if (text[begin] == '[') {
    for (const auto& item : ParseJson(text, path)) add(item.value);
    return;
  }
  std::istringstream lines(text);
  size_t number = 1;
  for (std::string line; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    add(ParseJson(line, path + ": line " + std::to_string(number)));
  }
}

Row EarlierResults::RowOf(const Json& fields) {
  return ReadRow(ParseJson(JsonText(fields, -1), "this run"), "this run");
}

const Row* EarlierResults::Find(const Row& test) const {
  const auto same = [&](const Row& row) { return DifferencesIn(kTestKeys, row, test).empty(); };
  const auto found = std::ranges::find_if(rows_, same);
  return found == rows_.end() ? nullptr : &*found;
}

std::string EarlierResults::NearMiss(const Row& test) const {
  for (const Row& row : rows_) {
    const std::vector<std::string> texts = DifferencesIn(kTestKeys, row, test);
    if (texts.size() == 1) return texts[0];
  }
  return "";
}

std::string EarlierResults::OtherMachine(const Row& test) const {
  for (const Row& row : rows_) {
    const std::vector<std::string> texts = DifferencesIn(kMachineKeys, row, test);
    if (!texts.empty()) return Joined(texts, "; ");
  }
  return "";
}

std::string Row::Name() const {
  const auto text = [&](const char* key) {
    const auto found = fields.find(key);
    return found == fields.end() ? "" : found->second;
  };
  const auto number = [&](const char* key) {
    return static_cast<size_t>(gguf::NumberIn<uint32_t>(text(key)).value_or(0));
  };
  const BenchTest test = {.n_prompt = number("n_prompt"),
                          .n_gen = number("n_gen"),
                          .n_depth = number("n_depth"),
                          .n_texts = number("n_parallel"),
                          .n_pass = number("n_pass")};
  return gguf::Printable(text("model_type")) + ", " + Counted(number("n_threads"), "thread") +
         ", " + test.Name();
}

int EarlierResults::Compare(const std::vector<Row>& now, double detect, std::string& text) const {
  std::vector<std::vector<std::string>> cells;
  bool slower = false, unknown = false;
  const double error = kGateError / static_cast<double>(now.size());
  for (const Row& row : now) {
    const Row* const other = Find(row);
    const std::string speed = Figures(MedianOf(row.samples.ts), 5);
    if (other == nullptr) {
      cells.push_back({row.Name(), "", speed, "", "not compared", NearMiss(row)});
      continue;
    }
    Comparison found = CompareSamples(other->samples, row.samples, error);
    found.verdict = found.For(detect);
    slower |= found.verdict == Verdict::kSlower;
    unknown |= found.verdict == Verdict::kUnknown;
    cells.push_back({row.Name(), Figures(MedianOf(other->samples.ts), 5), speed, found.Text(),
                     found.Word(), Joined(DifferencesIn(kOtherKeys, *other, row), "; ")});
  }
  Table table(Table::Style::kMarkdown, {{"test"},
                                        {"t/s before", true},
                                        {"t/s now", true},
                                        {"ratio (interval)", true},
                                        {"verdict"},
                                        {"what else differs"}});
  text = table.All(cells);
  return slower ? kExitDiffers : unknown ? kExitUnknown : kExitDone;
}

void EarlierResults::Expect(const std::vector<Row>& tests, const std::string& what) const {
  const auto is_there = [&](const Row& test) { return Find(test) != nullptr; };
  if (std::ranges::any_of(tests, is_there)) return;
  const std::string near = tests.empty() ? "" : NearMiss(tests[0]);
  throw engine::Error(path_, ": has none of the tests ", what, near.empty() ? "" : "; ", near);
}

}  // namespace cli
