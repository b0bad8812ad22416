// pronk bench --baseline: finds the same tests in an earlier run and compares their speed.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "cli/bench/bench.h"
#include "cli/output/json_file.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"

namespace cli {
namespace {

// Student's t for 95%, in standard errors, by the degrees of freedom (at least 1). Beyond the table
// the formula is accurate to a percent.
double StudentT(size_t freedom) {
  constexpr double kFirst[] = {12.71, 4.303, 3.182, 2.776};
  if (freedom <= 4) return kFirst[std::max<size_t>(freedom, 1) - 1];
  const double n = static_cast<double>(freedom);
  return 1.96 + 2.37 / n + 2.8 / (n * n);
}

double SquaredLogDeviations(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  return SquaredDeviations(values);
}

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
    if (same(before.model_size, test.model->size) &&
        same(before.model_n_params, test.model->n_params) && same(before.n_prompt, test.n_prompt) &&
        same(before.n_gen, test.n_gen) && same(before.n_depth, test.n_depth) &&
        same(before.n_threads, test.n_threads) && same(before.n_pass, test.n_pass) &&
        same(before.n_batch.value_or(static_cast<double>(test.n_batch)), test.n_batch) &&
        same(before.n_ubatch.value_or(static_cast<double>(test.n_ubatch)), test.n_ubatch) &&
        (before.kv.empty() || before.kv == test.kv))
      return &before;
  }
  return nullptr;
}

std::optional<Comparison> Baseline::Compare(const BenchTest& test) const {
  const Row* const before = Find(test);
  if (before == nullptr) return std::nullopt;
  return CompareSamples(before->samples,
                        {test.samples_ts, test.Limit(), test.MedianLimit(&BenchLimits::integer),
                         test.share_of_cores});
}

// Speeds vary in proportion to their size, so logarithms are compared. Equal programs differ for
// two reasons. Repetitions vary: the pooled deviation measures that. Repetitions of one run are
// seconds apart and alike, so the median counts as no more certain than one of them. And the
// machine is faster or slower at another time: the limits, the integer operations and the share of
// CPU time measure that. The two are added, since repetitions on a changing machine see several of
// its states, but too little of each.
std::optional<Comparison> CompareSamples(const BenchSamples& before, const BenchSamples& now) {
  if (before.ts.size() < 2 || now.ts.size() < 2) return std::nullopt;
  const size_t freedom = before.ts.size() + now.ts.size() - 2;
  const double variance = (SquaredLogDeviations(before.ts) + SquaredLogDeviations(now.ts)) /
                          static_cast<double>(freedom);
  const double within = StudentT(freedom) * std::sqrt(2 * variance);
  const auto drift = [](double then, double later) {
    return then > 0 && later > 0 ? std::log(later / then) : 0;
  };
  const double between =
      std::hypot(drift(before.limit, now.limit), drift(before.integer_rate, now.integer_rate),
                 drift(before.cores, now.cores));
  const double median = MedianOf(before.ts);
  const double ratio = MedianOf(now.ts) / median;
  return Comparison{median, ratio, ratio * std::expm1(within + between)};
}

}  // namespace cli
