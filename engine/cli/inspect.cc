// pronk inspect: what a GGUF file holds, for people (80 columns) or machines (--json).
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/json_file.h"
#include "engine/cli/model_options.h"
#include "engine/cli/terminal.h"
#include "gguf/error.h"
#include "gguf/file.h"
#include "gguf/load.h"

namespace cli {
namespace {

using gguf::Load;
using gguf::Value;
using gguf::ValueType;

constexpr size_t kColumns = 80;
constexpr size_t kArrayHead = 8;  // elements of an array that are shown

struct InspectOptions {
  std::string model;
  bool tensors = false;
  bool json = false;
};

Json ScalarJson(ValueType type, const std::byte* at) {
  switch (type) {
    case ValueType::kU8:
      return Load<uint8_t>(at);
    case ValueType::kI8:
      return Load<int8_t>(at);
    case ValueType::kU16:
      return Load<uint16_t>(at);
    case ValueType::kI16:
      return Load<int16_t>(at);
    case ValueType::kU32:
      return Load<uint32_t>(at);
    case ValueType::kI32:
      return Load<int32_t>(at);
    case ValueType::kU64:
      return Load<uint64_t>(at);
    case ValueType::kI64:
      return Load<int64_t>(at);
    case ValueType::kF32:
      return Load<float>(at);
    case ValueType::kF64:
      return Load<double>(at);
    case ValueType::kBool:
      return Load<uint8_t>(at) != 0;
    case ValueType::kString:
    case ValueType::kArray:
      break;  // have no fixed size
  }
  return nullptr;
}

// Arrays: their first elements only. Of arrays in arrays, none.
Json ValueJson(const Value& value) {
  if (value.type == ValueType::kString) return *gguf::StringArray(value).begin();
  if (value.type != ValueType::kArray) return ScalarJson(value.type, value.data);
  Json head = Json::array();
  const uint64_t n = std::min<uint64_t>(value.count, kArrayHead);
  if (value.element_type == ValueType::kString) {
    auto it = gguf::StringArray(value).begin();
    for (uint64_t i = 0; i < n; ++i, ++it) head.push_back(*it);
  } else if (value.element_type != ValueType::kArray) {
    const uint64_t size = gguf::ValueTypeBytes(value.element_type);
    for (uint64_t i = 0; i < n; ++i) {
      head.push_back(ScalarJson(value.element_type, value.data + i * size));
    }
  }
  return head;
}

// Any bytes as one line of printable ASCII and UTF-8.
std::string OneLine(const Json& json) {
  std::string line = JsonText(json, -1);
  line.pop_back();  // its line feed
  return line;
}

// Cut to a number of columns, at a character's edge. Counts code points: close enough for a table.
std::string Cut(const std::string& text, size_t columns) {
  size_t width = 0, last = 0;  // where the last character that was counted starts
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (!starts_character) continue;
    if (++width > columns) return text.substr(0, last) + "\u2026";
    last = i;
  }
  return text;
}

std::string DimsText(const gguf::TensorView& tensor) {
  std::string text;
  for (uint32_t i = 0; i < tensor.n_dims; ++i) {
    text += (i == 0 ? "" : " x ") + std::to_string(tensor.dims[i]);
  }
  return text;
}

uint64_t Parameters(const gguf::File& file) {
  uint64_t n = 0;
  for (const gguf::TensorView& tensor : file.tensors()) n += tensor.elements();
  return n;
}

std::string HumanCount(uint64_t n) {
  char text[32];
  const auto x = static_cast<double>(n);
  if (n < 1'000'000) {
    std::snprintf(text, sizeof(text), "%.1f thousand", x / 1e3);
  } else if (n < 1'000'000'000) {
    std::snprintf(text, sizeof(text), "%.1f million", x / 1e6);
  } else {
    std::snprintf(text, sizeof(text), "%.2f billion", x / 1e9);
  }
  return text;
}

struct TypeTotals {
  size_t tensors = 0;
  uint64_t bytes = 0;
};

std::string TypesText(const gguf::File& file) {
  std::map<gguf::DType, TypeTotals> totals;
  for (const gguf::TensorView& tensor : file.tensors()) {
    ++totals[tensor.dtype].tensors;
    totals[tensor.dtype].bytes += tensor.bytes;
  }
  std::string text;
  for (const auto& [dtype, total] : totals) {
    text += "  " + Padded(std::string(gguf::Info(dtype).name), 9) +
            Padded(std::to_string(total.tensors) + " tensors", 15) +
            HumanBytes(static_cast<double>(total.bytes)) + "\n";
  }
  return text;
}

void PrintText(const gguf::File& file, bool list_tensors) {
  std::string text = file.path() + "\n";
  text += "  GGUF version " + std::to_string(file.version()) + ", " +
          HumanBytes(static_cast<double>(file.file_bytes()));
  if (file.n_parts() > 1) text += " in " + std::to_string(file.n_parts()) + " parts";
  text += ", " + HumanCount(Parameters(file)) + " weights\n";

  const auto& entries = file.metadata().entries();
  text += "\nMetadata: " + std::to_string(entries.size()) + " keys\n";
  for (const auto& [key, value] : entries) {
    std::string shown = OneLine(ValueJson(value));
    if (value.type == ValueType::kArray) {
      if (value.count > kArrayHead) shown.replace(shown.size() - 1, 1, ",\u2026]");
      shown = std::to_string(value.count) + " x " +
              std::string(gguf::ValueTypeName(value.element_type)) + " " + shown;
    }
    const std::string head = "  " + Padded(gguf::PrintablePath(key), 40) + " ";
    // A long key has the line for itself.
    text += head.size() + 20 < kColumns
                ? head + Cut(shown, kColumns - head.size() - 1) + "\n"
                : Cut(head, kColumns - 1) + "\n    " + Cut(shown, kColumns - 5) + "\n";
  }

  text += "\nTensors: " + std::to_string(file.tensors().size()) + "\n" + TypesText(file);
  if (list_tensors) {
    text += "\n";
    for (const gguf::TensorView& tensor : file.tensors()) {
      text += "  " + Padded(gguf::PrintablePath(tensor.name), 32) + " " +
              Padded(std::string(gguf::Info(tensor.dtype).name), 8) + " " +
              Padded(DimsText(tensor), 20) + " " + HumanBytes(static_cast<double>(tensor.bytes)) +
              "\n";
    }
  }
  WriteOut(text);
}

void PrintJson(const gguf::File& file) {
  Json json = {{"path", file.path()},
               {"version", file.version()},
               {"parts", file.n_parts()},
               {"file_bytes", file.file_bytes()},
               {"tensor_bytes", file.tensor_bytes()},
               {"parameters", Parameters(file)},
               {"alignment", file.alignment()}};
  // Keys are put behind each other: to look each one up among those before would take minutes where
  // they are many, and none is there twice.
  auto& metadata = (json["metadata"] = Json::object()).get_ref<Json::object_t&>();
  for (const auto& [key, value] : file.metadata().entries()) {
    Json shown = ValueJson(value);
    if (value.type == ValueType::kArray) {
      shown = {{"type", gguf::ValueTypeName(value.element_type)},
               {"count", value.count},
               {"first", std::move(shown)}};
    }
    metadata.emplace_back(std::string(key), std::move(shown));
  }
  Json& tensors = json["tensors"] = Json::array();
  for (const gguf::TensorView& tensor : file.tensors()) {
    Json dims = Json::array();
    for (uint32_t i = 0; i < tensor.n_dims; ++i) dims.push_back(tensor.dims[i]);
    tensors.push_back({{"name", tensor.name},
                       {"type", gguf::Info(tensor.dtype).name},
                       {"dims", dims},
                       {"bytes", tensor.bytes}});
  }
  WriteOut(JsonText(json, 2));
}

int Inspect(const InspectOptions& options) {
  const gguf::File file = gguf::File::Open(ResolveModel(options.model));
  options.json ? PrintJson(file) : PrintText(file, options.tensors);
  return kExitDone;
}

}  // namespace

void AddInspect(CommandLine& line) {
  Command command = line.Add("inspect", "Show what a GGUF file holds");
  const auto options = std::make_shared<InspectOptions>();
  command.Add("MODEL", options->model, "A file or a name").Type("MODEL").Required();
  command.Add("--tensors", options->tensors, "List every tensor");
  command.Add("--json", options->json, "Print one JSON object");
  command.Does([options] { return Inspect(*options); });
}

}  // namespace cli
