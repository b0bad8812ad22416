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
#include "engine/folder/json.h"
#include "gguf/error.h"
#include "gguf/number.h"

namespace cli {
namespace {

using Row = EarlierResults::Row;

// Rows are of one test if none of these differs. A key that is absent in one of them is assumed to
// be equal, but those with a default have it.
struct TestKey {
  const char* name;
  const char* absent;  // its value then; nullptr: that of the other row
};
constexpr TestKey kTestKeys[] = {
    {"model_size", nullptr}, {"model_n_params", nullptr}, {"n_prompt", "0"},  {"n_gen", "0"},
    {"n_depth", "0"},        {"n_threads", nullptr},      {"n_pass", "1"},    {"n_parallel", "1"},
    {"n_batch", nullptr},    {"n_ubatch", nullptr},       {"type_k", nullptr}};
constexpr const char* kMachineKeys[] = {"cpu_info", "cpu_target", "model_filename"};

std::string ValueIn(const Row& row, const TestKey& key, const Row& other) {
  const auto own = row.fields.find(key.name);
  if (own != row.fields.end()) return own->second;
  if (key.absent != nullptr) return key.absent;
  const auto its = other.fields.find(key.name);
  return its != other.fields.end() ? its->second : "";
}

std::vector<const TestKey*> DifferingKeys(const Row& a, const Row& b) {
  std::vector<const TestKey*> differing;
  for (const TestKey& key : kTestKeys) {
    if (ValueIn(a, key, b) != ValueIn(b, key, a)) differing.push_back(&key);
  }
  return differing;
}

// name: of the file and the row, for faults.
Row ReadRow(const JsonView& json, const std::string& name) {
  const engine::Fields fields(name, json);
  Row row;
  for (const TestKey& key : kTestKeys) {
    const bool is_text = key.name == std::string_view("type_k");
    if (is_text || (key.absent != nullptr && !fields.Has(key.name))) continue;
    if (!fields.Has(key.name) && std::string_view(key.name).ends_with("batch")) continue;
    row.fields[key.name] = Figures(fields.Number(key.name), 20);
  }
  for (const char* key : {"type_k", "cpu_info", "cpu_target", "model_filename", "model_type"}) {
    const std::string text = fields.TextOr(key, "");
    if (!text.empty() && text != "CPU") row.fields[key] = text;  // a llama-bench that knows no more
  }
  row.samples = {fields.Has("samples_ts") ? fields.Numbers("samples_ts") : std::vector<double>(),
                 fields.NumberOr("limit_ts", 0), fields.NumberOr("int_rate", 0),
                 fields.NumberOr("share_of_cores", 0)};
  return row;
}

}  // namespace

// The file holds an array of objects, or one object per line.
EarlierResults::EarlierResults(const std::string& path) {
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
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) add(ParseJson(line, path + ": line " + std::to_string(rows_.size() + 1)));
  }
}

Row EarlierResults::RowOf(const Json& fields) {
  return ReadRow(ParseJson(JsonText(fields, -1), "this run"), "this run");
}

std::string EarlierResults::Differences(const Row& there, const Row& here) {
  std::string text;
  for (const std::string key : kMachineKeys) {
    const auto a = there.fields.find(key), b = here.fields.find(key);
    if (a == there.fields.end() || b == here.fields.end() || a->second == b->second) continue;
    const bool is_file = key == "model_filename";
    const auto shown = [&](const std::string& value) {
      const std::filesystem::path path(value);
      return is_file ? path.filename().string() : value;
    };
    if (shown(a->second) == shown(b->second)) continue;
    text +=
        (text.empty() ? "" : "; ") + key + ": " + shown(a->second) + ", here " + shown(b->second);
  }
  return gguf::Printable(text);
}

const Row* EarlierResults::Find(const Row& test) const {
  const auto same = [&](const Row& row) { return DifferingKeys(row, test).empty(); };
  const auto found = std::ranges::find_if(rows_, same);
  return found == rows_.end() ? nullptr : &*found;
}

std::string EarlierResults::NearMiss(const Row& test) const {
  for (const Row& row : rows_) {
    const std::vector<const TestKey*> keys = DifferingKeys(row, test);
    if (keys.size() == 1)
      return std::string(keys[0]->name) + ": " + ValueIn(row, *keys[0], test) + ", here " +
             ValueIn(test, *keys[0], row);
  }
  return "";
}

std::string EarlierResults::OtherMachine(const Row& test) const {
  for (const Row& row : rows_) {
    Row machine = row;
    machine.fields.erase("model_filename");
    if (std::string text = Differences(machine, test); !text.empty()) return text;
  }
  return "";
}

std::string Row::Name() const {
  const auto number = [&](const char* key) {
    const auto found = fields.find(key);
    const std::string text = found == fields.end() ? "" : found->second;
    return static_cast<size_t>(gguf::NumberIn<uint32_t>(text).value_or(0));
  };
  const BenchTest test = {.n_prompt = number("n_prompt"),
                          .n_gen = number("n_gen"),
                          .n_depth = number("n_depth"),
                          .n_texts = number("n_parallel"),
                          .n_pass = number("n_pass")};
  const auto model = fields.find("model_type");
  return (model == fields.end() ? "" : gguf::Printable(model->second) + ", ") +
         Counted(number("n_threads"), "thread") + ", " + test.Name();
}

int DiffResults(const std::string& before, const std::string& now, double detect) {
  const EarlierResults old(before), mine(now);
  Table table(Table::Style::kMarkdown, {{"test"},
                                        {"t/s before", true},
                                        {"t/s now", true},
                                        {"ratio (interval)", true},
                                        {"verdict"},
                                        {"what else differs"}});
  std::vector<std::vector<std::string>> cells;
  bool slower = false, unknown = false;
  const double error = kGateError / static_cast<double>(mine.rows().size());
  for (const Row& row : mine.rows()) {
    const Row* const other = old.Find(row);
    if (other == nullptr) {
      cells.push_back({row.Name(), "", Figures(MedianOf(row.samples.ts), 5), "", "not compared",
                       old.NearMiss(row)});
      continue;
    }
    Comparison found = CompareSamples(other->samples, row.samples, error);
    found.verdict = found.For(detect);
    slower |= found.verdict == Verdict::kSlower;
    unknown |= found.verdict == Verdict::kUnknown;
    cells.push_back({row.Name(), Figures(MedianOf(other->samples.ts), 5),
                     Figures(MedianOf(row.samples.ts), 5), found.Text(), found.Word(),
                     EarlierResults::Differences(*other, row)});
  }
  const auto is_compared = [](const auto& row) { return !row[3].empty(); };
  if (std::ranges::none_of(cells, is_compared))
    throw engine::Error(now, ": has no test that ", before, " has, too");
  WriteOut(table.All(cells));
  return slower ? kExitDiffers : unknown ? kExitUnknown : kExitDone;
}

}  // namespace cli
