#include "tests/fuzz/hostile_model.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <list>
#include <set>
#include <span>
#include <string_view>

#include "engine/sampling/settings.h"
#include "gguf/error.h"
#include "gguf/writer.h"
#include "tests/support/data.h"
#include "tests/support/paths.h"
#include "tests/support/regex.h"
#include "tests/support/small_model.h"
#include "tests/support/texts.h"

namespace fuzz {
namespace {

namespace fs = std::filesystem;

using gguf::DType;
using gguf::Metadata;
using Bytes = std::vector<std::byte>;

// Every key that the sources read. Keys of an architecture have the form "ARCH.block_count".
std::vector<std::string> KeysOfSources() {
  const std::vector<std::string> named = test::Texts(
      "general.architecture | general.alignment | general.name | general.file_type"
      " | split.no | split.count | split.tensors.count | tokenizer.chat_template"
      " | tokenizer.ggml.token_type_count | ARCH.classifier.output_labels | xielu.alpha_n"
      " | xielu.alpha_p | xielu.beta | xielu.eps");
  std::set<std::string> keys(named.begin(), named.end());
  pronk::Sampling sampling;
  for (const engine::Setting& setting : engine::Settings(sampling)) {
    if (!setting.key.empty()) keys.insert(std::string(engine::kSamplingPrefix).append(setting.key));
  }
  const std::string own("(?:keys(?:\\.\\w+\\(|, )|DefaultValue\\{)\\s*\"([a-z0-9_.]+)\"");
  const std::string whole("\"(tokenizer\\.[a-z_.]+)\"");
  for (const char* folder : {"engine", "tokenizer"}) {
    for (const fs::directory_entry& file :
         fs::recursive_directory_iterator(fs::path(test::SourceDir()) / folder)) {
      if (file.path().extension() != ".cc") continue;
      const std::string text = test::ReadText(file.path().string());
      for (const auto& [pattern, prefix] : {std::pair(own, "ARCH."), std::pair(whole, "")}) {
        for (const test::Match& match : test::FindAll(text, pattern)) {
          keys.insert(prefix + match[1]);
        }
      }
    }
  }
  return {keys.begin(), keys.end()};
}

// A model's parts, which a test changes and assembles again.
struct Parts {
  explicit Parts(const Bytes& bytes) : file(gguf::File::Parse("base", bytes)) {
    for (const Metadata::Entry& entry : file.metadata().entries()) entries.emplace_back(entry);
    tensors = file.tensors();
  }

  void Remove(std::string_view key) {
    std::erase_if(entries, [&](const Metadata::Entry& entry) { return entry.key == key; });
  }
  Bytes& Data(size_t n) { return data.emplace_back(n); }
  std::string_view Text(std::string text) { return texts.emplace_back(std::move(text)); }

  // Leaves out keys and tensors that the writer refuses.
  gguf::Writer Written() const {
    gguf::Writer writer;
    const auto attempt = [](auto&& add) {
      try {
        add();
      } catch (const gguf::Error&) {
      }
    };
    for (const Metadata::Entry& entry : entries) attempt([&] { writer.Add(entry); });
    for (const auto& add : added) attempt([&] { add(writer); });
    for (const gguf::TensorView& t : tensors) attempt([&] { writer.AddTensor(t); });
    return writer;
  }

  gguf::File file;
  std::vector<Metadata::Entry> entries;
  std::vector<std::function<void(gguf::Writer&)>> added;
  std::vector<gguf::TensorView> tensors;
  std::list<Bytes> data;
  std::list<std::string> texts;
};

template <class T>
T Pick(const Choices& choose, std::initializer_list<T> list) {
  return list.begin()[choose(list.size())];
}

constexpr std::array<uint64_t, 22> kEdges = {
    0,  1,  2,  3,   4,    5,     7,        8,         16,         24,        31,
    32, 63, 64, 255, 4096, 65536, 1u << 20, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};

std::string OddText(const Choices& choose) {
  const size_t kind = choose(13);
  if (kind == 0) return std::string(1u << choose(20), static_cast<char>('a' + choose(3)));
  if (kind == 1) return std::string("nul\0nul", 7);
  return Pick<const char*>(choose, {"",        "evil\nforged\x1b[2J\x7f\xc2\x9b\xff",
                                    "none",    "linear",
                                    "yarn",    "longrope",
                                    "su",      "dynamic",
                                    "llama",   "gpt2",
                                    "gemma4",  "bert",
                                    "t5",      "default",
                                    "a",       "<s>",
                                    "{{ a }}", "0",
                                    "\u2581",  "\xe2\x96"});
}

double OddNumber(const Choices& choose) {
  return Pick<double>(
      choose, {0, -0.0, 1, -1, 0.5, 1e-5, 1e-45, 1e-300, 3, 1e4, 1e30, 1e300,
               std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
               -std::numeric_limits<double>::infinity()});
}

template <class T>
void AddNumbers(gguf::Writer& writer, const std::string& key, const Choices& choose, bool array) {
  const auto number = [&] {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(OddNumber(choose));
    } else if constexpr (std::is_same_v<T, bool>) {
      return choose(2) == 1;
    } else {
      return static_cast<T>(kEdges[choose(kEdges.size())]);
    }
  };
  if (!array) return writer.Add(key, number());
  // Lengths that equal some models' numbers of layers, and other lengths.
  const size_t n = Pick<size_t>(choose, {0, 1, 2, 3, 4, 5, 7, 46, 56, 64, 1000});
  if constexpr (std::is_same_v<T, bool>) {
    std::array<bool, 1000> flags;
    flags.fill(number());
    writer.AddArray<bool>(key, std::span<const bool>(flags).first(n));
  } else {
    std::vector<T> numbers(n, number());
    if (n > 1) numbers[choose(n)] = number();
    writer.AddArray<T>(key, std::span<const T>(numbers));
  }
}

// Adds a value of any type. The choices are made while it is added.
void AddOddValue(gguf::Writer& writer, const std::string& key, const Choices& choose) {
  const bool array = choose(4) == 0;
  using Add = void (*)(gguf::Writer&, const std::string&, const Choices&, bool array);
  constexpr std::array<Add, 12> kAdd = {
      AddNumbers<uint8_t>,  AddNumbers<int8_t>,   AddNumbers<uint16_t>, AddNumbers<int16_t>,
      AddNumbers<uint32_t>, AddNumbers<uint32_t>, AddNumbers<int32_t>,  AddNumbers<float>,
      AddNumbers<bool>,     AddNumbers<uint64_t>, AddNumbers<int64_t>,  AddNumbers<double>};
  const size_t type = choose(kAdd.size() + 1);
  if (type < kAdd.size()) return kAdd[type](writer, key, choose, array);
  if (!array) return writer.Add(key, OddText(choose));
  const std::vector<std::string> texts(choose(100), OddText(choose));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  writer.AddStrings(key, views);
}

// Templates with much output, deep nesting or no end.
std::string OddTemplate(const Choices& choose) {
  const std::string n = std::to_string(size_t{1} << choose(31));
  switch (choose(8)) {
    case 0:
      return "{{ '" + OddText(choose) + "' * " + n + " }}";
    case 1:
      return "{% for i in range(" + n + ") %}{{ 'aaaaaaaaaaaaaaaa' }}{% endfor %}";
    case 2:
      return "{% macro m(x) %}{{ m(x + 1) }}{% endmacro %}{{ m(0) }}";
    case 3:
      return "{% set ns = namespace(t='a') %}{% for i in range(40) %}{% set ns.t = ns.t + ns.t %}"
             "{% endfor %}{{ ns.t }}";
    case 4: {
      std::string text;
      for (size_t i = choose(2000); i > 0; --i) text += "{% if 1 %}";
      return text;
    }
    case 5:
      return "{{ " + std::string(choose(2000), '(') + "1";
    case 6:
      return "{% for m in messages %}{{ m.content * " + n + " }}<s>{% endfor %}";
    default:
      return "{{ raise_exception('" + OddText(choose) + "') }}";
  }
}

// Changes some of the vocabulary's strings: many long and nearly equal strings, duplicates, bytes
// that are not text.
void ChangeTokens(Parts& parts, const Choices& choose) {
  const gguf::Value* const value = parts.file.metadata().Find("tokenizer.ggml.tokens");
  if (value == nullptr || value->element_type != gguf::ValueType::kString) return;
  auto tokens = parts.file.metadata().GetStrings("tokenizer.ggml.tokens");
  const size_t length = size_t{1} << choose(15), first = choose(tokens.size());
  const size_t n = std::min(tokens.size() - first, choose(64));
  for (size_t i = 0; i < n; ++i) {
    tokens[first + i] =
        choose(8) == 0 ? parts.Text(OddText(choose)) : parts.Text(std::string(length + i, 'a'));
  }
  const auto type = static_cast<int32_t>(choose(8));
  std::vector<int32_t> types(tokens.size(), 1);
  for (size_t i = 0; i < n; ++i) types[first + i] = type;
  for (size_t i = 0; i < types.size(); ++i) {
    if (tokens[i].starts_with("<0x") && tokens[i].size() == 6) types[i] = 6;
  }
  parts.Remove("tokenizer.ggml.tokens");
  parts.Remove("tokenizer.ggml.token_type");
  parts.added.emplace_back([=](gguf::Writer& writer) {
    writer.AddStrings("tokenizer.ggml.tokens", tokens);
    writer.AddArray<int32_t>("tokenizer.ggml.token_type", std::span<const int32_t>(types));
  });
}

void ChangeTensor(Parts& parts, const Choices& choose) {
  if (parts.tensors.empty()) return;
  gguf::TensorView& tensor = parts.tensors[choose(parts.tensors.size())];
  switch (choose(6)) {
    case 0:
      parts.tensors.erase(parts.tensors.begin() +
                          static_cast<std::ptrdiff_t>(choose(parts.tensors.size())));
      return;
    case 1:
      tensor.name = parts.Text(std::string(tensor.name) + OddText(choose));
      return;
    case 2:
      tensor.name = parts.tensors[choose(parts.tensors.size())].name;  // the writer leaves out one
      return;
    case 3:
      std::swap(tensor.dims[0], tensor.dims[1]);
      tensor.n_dims = 2;
      break;
    case 4:
      tensor.dims[choose(4)] = kEdges[choose(12)] + 1;
      tensor.n_dims = static_cast<uint32_t>(1 + choose(4));
      break;
    default:
      tensor.dtype = Pick<DType>(choose, {DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_K,
                                          DType::kF32, DType::kIQ2_XXS, DType::kI32});
  }
  for (uint32_t i = tensor.n_dims; i < 4; ++i) tensor.dims[i] = 1;
  const uint64_t block = gguf::Info(tensor.dtype).block_size;
  if (tensor.dims[0] % block != 0) tensor.dims[0] = (tensor.dims[0] / block + 1) * block;
  Bytes& data = parts.Data(gguf::RowBytes(tensor.dtype, tensor.elements()));
  for (std::byte& byte : data) byte = static_cast<std::byte>(choose(256));
  tensor.data = data.data();
  tensor.bytes = data.size();
}

void SetKey(Parts& parts, const std::string& key, const Choices& choose) {
  parts.Remove(key);
  parts.added.emplace_back([=](gguf::Writer& writer) { AddOddValue(writer, key, choose); });
}

// Renames the model's architecture, also in its keys, to another family with equal computation.
Bytes Renamed(const Bytes& bytes, const std::string& from, const std::string& to) {
  Parts parts(bytes);
  parts.Remove("general.architecture");
  parts.added.emplace_back([&](gguf::Writer& writer) { writer.Add("general.architecture", to); });
  for (Metadata::Entry& entry : parts.entries) {
    if (entry.key.starts_with(from + ".")) {
      entry.key = parts.Text(to + std::string(entry.key.substr(from.size())));
    }
  }
  return parts.Written().ToBytes();
}

Bytes ReadBytes(const std::string& path) {
  const std::string text = test::ReadText(path);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

HostileModels::HostileModels() : keys_(KeysOfSources()) {
  std::vector<fs::path> paths = test::SmallModels({"families", "more", "hybrids", "vectors"});
  paths.push_back(test::DataPath("assistants/gemma4.gguf"));
  for (const fs::path& path : paths) {
    Bytes bytes = ReadBytes(path.string());
    const std::string name(
        gguf::File::Parse("base", bytes).metadata().GetString("general.architecture"));
    if (name == "hunyuan-dense") bases_.push_back({"qwen3", Renamed(bytes, name, "qwen3")});
    bases_.push_back({name, std::move(bytes)});
  }
  for (const char* family : {"llama", "gpt2"}) {
    test::SmallModel model = {.tokenizer = family};
    bases_.push_back({"llama", model.Bytes()});
    bases_.push_back({"qwen2", Renamed(bases_.back().bytes, "llama", "qwen2")});
  }
}

Bytes HostileModels::Base(size_t base) const { return bases_[base].bytes; }

std::vector<std::string> HostileModels::Keys(size_t base) const {
  std::vector<std::string> keys = keys_;
  for (std::string& key : keys) {
    if (key.starts_with("ARCH.")) key.replace(0, 4, bases_[base].name);
  }
  return keys;
}

Bytes HostileModels::WithKey(size_t base, const std::string& key, const Choices& choose) const {
  Parts parts(bases_[base].bytes);
  SetKey(parts, key, choose);
  return parts.Written().ToBytes();
}

Bytes HostileModels::Next(const Choices& choose) const {
  const size_t base = choose(bases_.size());
  Parts parts(bases_[base].bytes);
  const std::vector<std::string> keys = Keys(base);
  for (size_t n = 1 + choose(3); n > 0; --n) {
    switch (choose(8)) {
      case 0:
        ChangeTokens(parts, choose);
        break;
      case 1: {
        parts.Remove("tokenizer.chat_template");
        const std::string_view text = parts.Text(OddTemplate(choose));
        parts.added.emplace_back(
            [=](gguf::Writer& writer) { writer.Add("tokenizer.chat_template", text); });
        break;
      }
      case 2:
        ChangeTensor(parts, choose);
        break;
      case 3:
        if (!parts.entries.empty()) {
          parts.entries.erase(parts.entries.begin() +
                              static_cast<std::ptrdiff_t>(choose(parts.entries.size())));
        }
        break;
      default:
        SetKey(parts, keys[choose(keys.size())], choose);
    }
  }
  return parts.Written().ToBytes();
}

std::string HostileModels::NextInParts(const test::TempDir& folder, const Choices& choose) const {
  const Parts whole(bases_[choose(bases_.size())].bytes);
  const size_t n = 1 + choose(5);
  const auto path = [&](size_t no) {
    return folder.Path("m-0000" + std::to_string(no + 1) + "-of-0000" + std::to_string(n) +
                       ".gguf");
  };
  // The true number, or an odd value.
  const auto add = [&](gguf::Writer& writer, const std::string& key, size_t truth) {
    choose(8) == 0 ? AddOddValue(writer, key, choose)
                   : writer.Add(key, static_cast<uint32_t>(truth));
  };
  for (size_t no = 0; no < n; ++no) {
    gguf::Writer writer;
    for (const Metadata::Entry& entry : whole.entries) {
      if (no == 0 && !entry.key.starts_with("split.")) writer.Add(entry);
    }
    add(writer, "split.no", no);
    add(writer, "split.count", n);
    add(writer, "split.tensors.count", whole.tensors.size());
    for (size_t i = no; i < whole.tensors.size(); i += n) {
      const gguf::TensorView& t = whole.tensors[choose(16) == 0 ? 0 : i];
      try {
        writer.AddTensor(t);
      } catch (const gguf::Error&) {  // twice in one part
      }
    }
    if (no == 0 || choose(16) > 0) writer.WriteFile(path(no));
  }
  return path(0);
}

}  // namespace fuzz
