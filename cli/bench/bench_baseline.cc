// pronk bench --baseline: finds the same tests in an earlier run and compares their speed.
#include <sstream>

#include "cli/bench/bench.h"
#include "cli/output/json_file.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"

namespace cli {
namespace {

// One result of a file; fields are checked when they are read.
class Fields {
 public:
  Fields(const JsonView& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.IsObject()) Fail("", "an object", json);
  }

  std::optional<double> Find(const std::string& key) const {
    const JsonView found = json_[key];
    if (!found.is_there() || found.kind() == JsonView::Kind::kNull) return std::nullopt;
    if (!found.IsNumber()) Fail(key, "a number", found);
    return found.Number();
  }

  double Number(const std::string& key) const {
    const std::optional<double> number = Find(key);
    if (!number) Fail(key, "a number", JsonView());
    return *number;
  }

  std::string Text(const std::string& key) const {
    const JsonView found = json_[key];
    if (!found.is_there()) return "";
    if (!found.IsString()) Fail(key, "a text", found);
    return found.String();
  }

  std::vector<double> Speeds(const std::string& key) const {
    const JsonView list = json_[key];
    std::vector<double> speeds;
    for (const auto& item : list) {
      speeds.push_back(item.value.IsNumber() ? item.value.Number() : 0);
      if (speeds.back() <= 0) Fail(key, "a list of numbers above 0", list);
    }
    if (speeds.empty()) Fail(key, "a list of numbers above 0", list);
    return speeds;
  }

 private:
  [[noreturn]] void Fail(const std::string& key, const std::string& expected,
                         const JsonView& found) const {
    throw engine::Error(where_ + (key.empty() ? "" : ": " + key) + ": expected " + expected +
                        ", found " + found.KindName());
  }

  const JsonView& json_;
  std::string where_;
};

}  // namespace

// The file holds an array of objects, or one object per line.
Baseline::Baseline(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  const std::string text = path == "-" ? ReadStdin(kMaxBytes) : ReadFile(path, kMaxBytes);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) {
    throw engine::Error(path + ": expected what pronk bench -o json writes, found nothing");
  }
  if (text[begin] == '[') {
    for (const auto& item : ParseJson(text, path)) Add(item.value, path);
    return;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    Add(ParseJson(line, path + ": line " + std::to_string(rows_.size() + 1)), path);
  }
}

void Baseline::Add(const JsonView& json, const std::string& path) {
  const Fields fields(json, path + ": result " + std::to_string(rows_.size() + 1));
  rows_.push_back(
      {fields.Number("model_size"),
       fields.Number("model_n_params"),
       fields.Number("n_prompt"),
       fields.Number("n_gen"),
       fields.Number("n_depth"),
       fields.Number("n_threads"),
       fields.Find("n_pass").value_or(1),
       fields.Find("n_batch"),
       fields.Find("n_ubatch"),
       fields.Text("type_k"),
       {fields.Speeds("samples_ts"), fields.Find("limit_ts").value_or(0),
        fields.Find("int_rate").value_or(0), fields.Find("share_of_cores").value_or(0)}});
}

const Baseline::Row* Baseline::Find(const BenchTest& test) const {
  const auto same = [](double before, auto now) { return before == static_cast<double>(now); };
  for (const Row& before : rows_) {
    if (same(before.model_size, test.model->opened.file.tensor_bytes()) &&
        same(before.model_n_params, test.model->opened.file.elements()) &&
        same(before.n_prompt, test.n_prompt) && same(before.n_gen, test.n_gen) &&
        same(before.n_depth, test.n_depth) && same(before.n_threads, test.n_threads) &&
        same(before.n_pass, test.n_pass) &&
        same(before.n_batch.value_or(static_cast<double>(test.n_batch)), test.n_batch) &&
        same(before.n_ubatch.value_or(static_cast<double>(test.n_ubatch)), test.n_ubatch) &&
        (before.kv.empty() || before.kv == test.kv))
      return &before;
  }
  return nullptr;
}

Comparison Baseline::Compare(const BenchTest& test, double error) const {
  return CompareSamples(
      Find(test)->samples,
      {test.samples_ts, test.Limit(), test.MedianLimit(&BenchLimits::integer), test.share_of_cores},
      error);
}

}  // namespace cli
