// pronk diff: keys and tensors that differ in two GGUF files, and the error between their numbers.
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
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
#include "kernels/matmul/reference.h"
#include "kernels/threads/thread_pool.h"

namespace cli {
namespace {

struct DiffOptions {
  std::string a, b;
  bool json = false;
  int n_threads = 0;
};

// Items of the same name in both files; nullptr: missing in that file.
template <class T>
struct Pair {
  std::string_view name;
  const T* a;
  const T* b;
};

// Pairs items by name: in the first file's order, then the second's items without a partner.
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

using KeyPair = Pair<gguf::Metadata::Entry>;

struct TensorPair : Pair<gguf::TensorView> {
  std::optional<TensorError> error;  // if the numbers can be compared
};

struct Differences {
  std::vector<KeyPair> keys;
  std::vector<TensorPair> tensors;
  size_t n_same_keys = 0, n_same_tensors = 0;
  TensorError all;  // the error of all numbers that can be compared
};

void DiffKeys(const gguf::File& a, const gguf::File& b, Differences& found) {
  for (const KeyPair& pair : Paired(a.metadata().entries(), b.metadata().entries(),
                                    [](const auto& entry) { return entry.key; })) {
    const bool same = pair.a != nullptr && pair.b != nullptr && Same(pair.a->value, pair.b->value);
    same ? void(++found.n_same_keys) : found.keys.push_back(pair);
  }
}

void DiffTensors(const gguf::File& a, const gguf::File& b, int n_threads, Differences& found) {
  kernels::ThreadPool pool(n_threads);
  ProgressLine progress("comparing", "MB", 1'000'000);
  uint64_t done = 0;
  for (const auto& pair :
       Paired(a.tensors(), b.tensors(), [](const auto& tensor) { return tensor.name; })) {
    TensorPair both{pair, std::nullopt};
    if (pair.a != nullptr) done += pair.a->bytes;
    progress.Update(done, a.tensor_bytes());
    const bool in_both = pair.a != nullptr && pair.b != nullptr;
    if (in_both && pair.a->dims == pair.b->dims && kernels::IsWeightType(pair.a->dtype) &&
        kernels::IsWeightType(pair.b->dtype)) {
      both.error = CompareTensors(pool, *pair.a, *pair.b);
      found.all.Add(*both.error);  // equal tensors count, too: the error is the whole model's
    }
    const bool same = in_both && Same(*pair.a, *pair.b);
    same ? void(++found.n_same_tensors) : found.tensors.push_back(both);
  }
}

std::string Mark(const void* a, const void* b) {
  return a == nullptr ? "+ " : b == nullptr ? "- " : "~ ";
}

std::string KeyLine(const KeyPair& pair) {
  const std::string head = Mark(pair.a, pair.b) + Column(pair.name, 36) + " ";
  // Each value gets the rest of the line, or half of it.
  constexpr size_t kRest = kColumns - 40, kHalf = kRest / 2 - 3;
  if (pair.a == nullptr || pair.b == nullptr) {
    return head + Cut(ValueLine((pair.a != nullptr ? pair.a : pair.b)->value, kRest), kRest) + "\n";
  }
  const bool same_type = pair.a->value.type == pair.b->value.type;
  const auto half = [&](const gguf::Value& value) {
    const std::string type = std::string(gguf::ValueTypeName(value.type)) + " ";
    return Cut((same_type ? "" : type) + ValueLine(value, kHalf), kHalf);
  };
  const std::string from = half(pair.a->value), to = half(pair.b->value);
  return head + from + " -> " + (from == to ? "another, which begins alike" : to) + "\n";
}

std::string KindText(const gguf::TensorView& tensor) {
  return TypeName(tensor.dtype) + " " + ShapeText(tensor);
}

std::string ErrorText(const TensorError& error) {
  return Format(" error %.2e, max %.2g", error.Relative(), error.largest);
}

std::string TensorLine(const TensorPair& pair) {
  std::string line = Mark(pair.a, pair.b) + Column(pair.name, 30) + " ";
  if (pair.a == nullptr || pair.b == nullptr) {
    line += KindText(pair.a != nullptr ? *pair.a : *pair.b);
  } else if (pair.a->dims != pair.b->dims) {
    line += KindText(*pair.a) + " -> " + KindText(*pair.b);
  } else {
    line += TypeName(pair.a->dtype);
    if (pair.a->dtype != pair.b->dtype) line += " -> " + TypeName(pair.b->dtype);
  }
  return (pair.error ? Padded(line, 51) + ErrorText(*pair.error) : line) + "\n";
}

void PrintText(const gguf::File& a, const gguf::File& b, const Differences& found) {
  Output out;
  out.Add("--- " + gguf::PrintablePath(a.path()) + "\n+++ " + gguf::PrintablePath(b.path()) +
          "\n\n");
  for (const KeyPair& pair : found.keys) out.Add(KeyLine(pair));
  out.Add(Format("  metadata: %zu keys are the same\n\n", found.n_same_keys));
  for (const TensorPair& pair : found.tensors) out.Add(TensorLine(pair));
  out.Add(Format("  tensors: %zu are the same\n", found.n_same_tensors));
  if (found.all.error_squares != 0) {
    out.Add(Padded("  of all numbers that can be compared:", 51) + ErrorText(found.all) + "\n");
  }
  out.Flush();
}

void AddError(const TensorError& error, Json& json) {
  json["relative_squared_error"] = error.Relative();
  json["largest_difference"] = error.largest;
}

void PrintJson(const gguf::File& a, const gguf::File& b, const Differences& found) {
  constexpr size_t kShown = 60;  // columns: a value may be as large as its file
  Json keys = Json::array(), tensors = Json::array();
  for (const KeyPair& pair : found.keys) {
    Json entry = {{"key", pair.name}};
    for (const auto& [side, of] : {std::pair("a", pair.a), std::pair("b", pair.b)}) {
      if (of == nullptr) continue;
      entry[side] = Cut(ValueLine(of->value, kShown), kShown);
      entry[side + std::string("_type")] = gguf::ValueTypeName(of->value.type);
    }
    keys.push_back(entry);
  }
  for (const TensorPair& pair : found.tensors) {
    Json entry = {{"name", pair.name}};
    for (const auto& [side, of] : {std::pair("a", pair.a), std::pair("b", pair.b)}) {
      if (of == nullptr) continue;
      entry[side] = {{"type", TypeName(of->dtype)},
                     {"dims", std::span(of->dims.data(), of->n_dims)}};
    }
    if (pair.error) AddError(*pair.error, entry);
    tensors.push_back(entry);
  }
  Json json = {{"a", a.path()},
               {"b", b.path()},
               {"metadata", keys},
               {"tensors", tensors},
               {"same_keys", found.n_same_keys},
               {"same_tensors", found.n_same_tensors}};
  AddError(found.all, json);
  WriteOut(JsonText(json, 2));
}

int Diff(const DiffOptions& options) {
  const gguf::File a = OpenFile(ResolveModel(options.a)), b = OpenFile(ResolveModel(options.b));
  Differences found;
  DiffKeys(a, b, found);
  DiffTensors(a, b, options.n_threads, found);
  options.json ? PrintJson(a, b, found) : PrintText(a, b, found);
  return found.keys.empty() && found.tensors.empty() ? kExitDone : kExitDiffers;
}

}  // namespace

void AddDiff(CommandLine& line) {
  Command& command = line.Add("diff", "Show how two GGUF files differ (exit status 3 if they do)");
  DiffOptions& options = command.Does(Diff);
  command.Add("A MODEL", options.a, "A file or a name").Required();
  command.Add("B MODEL", options.b, "The file or name to compare with A").Required();
  AddThreadsFlag(command, options.n_threads);
  command.Add("--json", options.json, "Print one JSON object");
}

}  // namespace cli
