// pronk diff: keys and tensors in which two GGUF files differ, and how far apart their numbers are.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/output/file_values.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "gguf/error.h"
#include "gguf/file.h"
#include "kernels/machine/default_threads.h"
#include "kernels/machine/team.h"
#include "kernels/matmul/reference.h"

namespace cli {
namespace {

struct DiffOptions {
  std::string a, b;
  bool json = false;
  int n_threads = 0;
};

// What has one name in either file, in the order of the first, then of the second.
// nullptr: in the other file alone.
template <class T>
struct Pair {
  std::string_view name;
  const T* a;
  const T* b;
};

template <class T, class Name>
std::vector<Pair<T>> Paired(const std::vector<T>& of_a, const std::vector<T>& of_b, Name name) {
  std::map<std::string_view, const T*> left;
  for (const T& b : of_b) left.emplace(name(b), &b);
  std::vector<Pair<T>> pairs;
  for (const T& a : of_a) {
    const auto found = left.find(name(a));
    pairs.push_back({name(a), &a, found != left.end() ? found->second : nullptr});
    if (found != left.end()) left.erase(found);
  }
  for (const T& b : of_b) {
    if (left.contains(name(b))) pairs.push_back({name(b), nullptr, &b});
  }
  return pairs;
}

bool SameBytes(const std::byte* a, const std::byte* b, uint64_t n) {
  return n == 0 || std::memcmp(a, b, n) == 0;
}

bool Same(const gguf::Value& a, const gguf::Value& b) {
  return a.type == b.type && a.element_type == b.element_type && a.count == b.count &&
         a.bytes == b.bytes && SameBytes(a.data, b.data, a.bytes);
}

bool Same(const gguf::TensorView& a, const gguf::TensorView& b) {
  return a.dtype == b.dtype && a.dims == b.dims && SameBytes(a.data, b.data, a.bytes);
}

bool CanBeCompared(const gguf::TensorView& a, const gguf::TensorView& b) {
  return a.dims == b.dims && kernels::IsWeightType(a.dtype) && kernels::IsWeightType(b.dtype);
}

// Shows the differences one by one.
class Report {
 public:
  virtual ~Report() = default;
  // a or b is null where a file has none.
  virtual void Key(std::string_view key, const gguf::Value* a, const gguf::Value* b) = 0;
  virtual void EndKeys(size_t n_same) = 0;
  // error: where the numbers can be compared.
  virtual void Tensor(std::string_view name, const gguf::TensorView* a, const gguf::TensorView* b,
                      const TensorError* error) = 0;
  virtual void End(size_t n_same, const TensorError& all) = 0;
};

class TextReport : public Report {
 public:
  TextReport(const gguf::File& a, const gguf::File& b) {
    out_.Add("--- " + gguf::PrintablePath(a.path()) + "\n+++ " + gguf::PrintablePath(b.path()) +
             "\n\n");
  }

  void Key(std::string_view key, const gguf::Value* a, const gguf::Value* b) override {
    const std::string head = Mark(a, b) + Column(key, 36) + " ";
    // Each value has the rest of the line, or half of it.
    constexpr size_t kRest = kColumns - 40;
    if (a == nullptr || b == nullptr) {
      return out_.Add(head + Cut(ValueLine(a != nullptr ? *a : *b, kRest), kRest) + "\n");
    }
    constexpr size_t kHalf = kRest / 2 - 3;
    const bool same_type = a->type == b->type;
    const auto half = [&](const gguf::Value& value) {
      const std::string type = std::string(gguf::ValueTypeName(value.type)) + " ";
      return Cut((same_type ? "" : type) + ValueLine(value, kHalf), kHalf);
    };
    std::string from = half(*a), to = half(*b);
    if (from == to) to = "another, which begins alike";
    out_.Add(head + from + " -> " + to + "\n");
  }
  void EndKeys(size_t n_same) override {
    out_.Add(Format("  metadata: %zu keys are the same\n\n", n_same));
  }
  void Tensor(std::string_view name, const gguf::TensorView* a, const gguf::TensorView* b,
              const TensorError* error) override {
    std::string line = Mark(a, b) + Column(name, 30) + " ";
    if (a == nullptr || b == nullptr) {
      line += KindText(a != nullptr ? *a : *b);
    } else if (a->dims != b->dims) {
      line += KindText(*a) + " -> " + KindText(*b);
    } else {
      line += a->dtype == b->dtype ? TypeName(*a) : TypeName(*a) + " -> " + TypeName(*b);
    }
    if (error != nullptr) line = Padded(line, 51) + ErrorText(*error);
    out_.Add(line + "\n");
  }
  void End(size_t n_same, const TensorError& all) override {
    out_.Add(Format("  tensors: %zu are the same\n", n_same));
    if (all.error_squares != 0) {
      out_.Add(Padded("  of all numbers that can be compared:", 51) + ErrorText(all) + "\n");
    }
    out_.Flush();
  }

 private:
  static std::string Mark(const void* a, const void* b) {
    return a == nullptr ? "+ " : b == nullptr ? "- " : "~ ";
  }
  static std::string TypeName(const gguf::TensorView& tensor) {
    return std::string(gguf::Info(tensor.dtype).name);
  }
  static std::string KindText(const gguf::TensorView& tensor) {
    return TypeName(tensor) + " " + ShapeText(tensor);
  }
  static std::string ErrorText(const TensorError& error) {
    return Format(" error %.2e, max %.2g", error.Relative(), error.largest);
  }

  Output out_;
};

class JsonReport : public Report {
 public:
  JsonReport(const gguf::File& a, const gguf::File& b)
      : json_({{"a", a.path()},
               {"b", b.path()},
               {"metadata", Json::array()},
               {"tensors", Json::array()}}) {}

  void Key(std::string_view key, const gguf::Value* a, const gguf::Value* b) override {
    constexpr size_t kShown = 60;  // columns: a value may be as large as its file
    Json entry = {{"key", key}};
    const auto add = [&](const std::string& side, const gguf::Value& value) {
      entry[side] = Cut(ValueLine(value, kShown), kShown);
      entry[side + "_type"] = gguf::ValueTypeName(value.type);
    };
    if (a != nullptr) add("a", *a);
    if (b != nullptr) add("b", *b);
    json_["metadata"].push_back(entry);
  }
  void EndKeys(size_t n_same) override { json_["same_keys"] = n_same; }
  void Tensor(std::string_view name, const gguf::TensorView* a, const gguf::TensorView* b,
              const TensorError* error) override {
    Json entry = {{"name", name}};
    if (a != nullptr) entry["a"] = Kind(*a);
    if (b != nullptr) entry["b"] = Kind(*b);
    if (error != nullptr) AddError(*error, entry);
    json_["tensors"].push_back(entry);
  }
  void End(size_t n_same, const TensorError& all) override {
    json_["same_tensors"] = n_same;
    AddError(all, json_);
    WriteOut(JsonText(json_, 2));
  }

 private:
  static Json Kind(const gguf::TensorView& tensor) {
    return {{"type", gguf::Info(tensor.dtype).name},
            {"dims", std::span(tensor.dims.data(), tensor.n_dims)}};
  }
  static void AddError(const TensorError& error, Json& json) {
    json["relative_squared_error"] = error.Relative();
    json["largest_difference"] = error.largest;
  }

  Json json_;
};

// Returns whether there is a difference.
bool DiffKeys(const gguf::File& a, const gguf::File& b, Report& report) {
  size_t n_same = 0, n_different = 0;
  for (const auto& pair : Paired(a.metadata().entries(), b.metadata().entries(),
                                 [](const auto& entry) { return entry.key; })) {
    if (pair.a != nullptr && pair.b != nullptr && Same(pair.a->value, pair.b->value)) {
      ++n_same;
      continue;
    }
    ++n_different;
    report.Key(pair.name, pair.a != nullptr ? &pair.a->value : nullptr,
               pair.b != nullptr ? &pair.b->value : nullptr);
  }
  report.EndKeys(n_same);
  return n_different > 0;
}

bool DiffTensors(const gguf::File& a, const gguf::File& b, int n_threads, Report& report) {
  kernels::Team team(n_threads > 0 ? n_threads : kernels::DefaultThreads());
  ProgressLine progress("comparing", 0.5, "MB");
  TensorError all;
  uint64_t done = 0;
  size_t n_same = 0, n_different = 0;
  for (const auto& pair :
       Paired(a.tensors(), b.tensors(), [](const auto& tensor) { return tensor.name; })) {
    const bool both = pair.a != nullptr && pair.b != nullptr;
    if (pair.a != nullptr) done += pair.a->bytes;
    progress.Update(done / 1'000'000, a.tensor_bytes() / 1'000'000);
    const bool same = both && Same(*pair.a, *pair.b);
    ++(same ? n_same : n_different);
    if (both && CanBeCompared(*pair.a, *pair.b)) {
      const TensorError error = CompareTensors(team, *pair.a, *pair.b);
      all.Add(error);  // what is the same counts, too: the error is one of the whole model
      if (!same) report.Tensor(pair.name, pair.a, pair.b, &error);
    } else if (!same) {
      report.Tensor(pair.name, pair.a, pair.b, nullptr);
    }
  }
  progress.Clear();
  report.End(n_same, all);
  return n_different > 0;
}

int Diff(const DiffOptions& options) {
  const gguf::File a = OpenFile(ResolveModel(options.a)), b = OpenFile(ResolveModel(options.b));
  std::unique_ptr<Report> report;
  if (options.json) {
    report = std::make_unique<JsonReport>(a, b);
  } else {
    report = std::make_unique<TextReport>(a, b);
  }
  const bool keys_differ = DiffKeys(a, b, *report);
  const bool tensors_differ = DiffTensors(a, b, options.n_threads, *report);
  return keys_differ || tensors_differ ? kExitDiffers : kExitDone;
}

}  // namespace

void AddDiff(CommandLine& line) {
  Command& command = line.Add("diff", "Show how two GGUF files differ; status 3 where they do");
  const auto options = std::make_shared<DiffOptions>();
  command.Add("A MODEL", options->a, "A file or a name").Required();
  command.Add("B MODEL", options->b, "The one that is compared with it").Required();
  AddThreadsFlag(command, options->n_threads);
  command.Add("--json", options->json, "Print one JSON object");
  command.Does([options] { return Diff(*options); });
}

}  // namespace cli
