// Published files: the keys of tests/data/published, applied to small models. Each runs with the
// logits of the bare small model, or is refused with the line that its list states.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/family.h"
#include "engine/model/model.h"
#include "engine/session/embedder.h"
#include "gguf/writer.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/guesses.h"
#include "tests/support/logits.h"
#include "tests/support/temp_dir.h"
#include "tests/support/transformers.h"
#include "tokenizer/split.h"

namespace engine {
namespace {

using tokenizer::TokenId;

struct Key {
  std::string name, type, value;
  bool instead = false;  // of the small model's own
};

struct List {
  std::string small, architecture;
  std::string refusal;    // "": it runs
  bool permuted = false;  // rows of q and k in the order of halves
  std::vector<Key> keys;
  std::vector<std::string> tensors;    // further ones
  std::set<std::string> without;       // of the small model's keys, without the architecture
  std::map<std::string, double> bare;  // numbers that the bare model gets, too
  std::vector<std::pair<std::string, std::string>> renamed;  // parts of tensors' names
};

// "KEY TYPE VALUE": VALUE is "-" for the small model's value or a text. "small V" after it replaces
// the small model's own value.
Key ReadKey(std::istringstream& words, std::string name) {
  Key key = {std::move(name), "", ""};
  std::string small;
  words >> key.type >> std::ws;
  std::getline(words, key.value);
  const size_t at = key.value.find(" small ");
  if (at == std::string::npos) return key;
  key.value.erase(0, at + 7);
  key.instead = true;
  return key;
}

List ReadList(const std::filesystem::path& path) {
  List list;
  for (const auto& file : {test::DataPath("published/general.txt"), path}) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string word, rest;
      words >> word;
      if (word == "#" || word == "runs") continue;
      if (word == "permuted") {
        list.permuted = true;
      } else if (word == "bare") {
        words >> rest;
        words >> list.bare[rest];
      } else if (word == "rename") {
        std::string to;
        words >> rest >> to;
        list.renamed.emplace_back(rest, to);
      } else if (word == "model" || word == "tensor" || word == "without" || word == "refused") {
        std::getline(words >> std::ws, rest);
        if (word == "model") list.small = rest;
        if (word == "tensor") list.tensors.push_back(rest);
        if (word == "without") list.without.insert(rest);
        if (word == "refused") list.refusal = rest;
      } else {
        list.keys.push_back(ReadKey(words, word));
      }
    }
  }
  for (const Key& key : list.keys) {
    if (key.name == "general.architecture") list.architecture = key.value;
  }
  return list;
}

// The elements of "arr[i32,layers] 1,1,0": repeated for each layer.
template <class T>
void AddArray(gguf::Writer& writer, const Key& key, size_t n_layers) {
  std::vector<T> values;
  std::istringstream in(key.value);
  for (std::string one; std::getline(in, one, ',');) values.push_back(T(std::stod(one)));
  const size_t n = values.size();
  if (key.type.find(",layers]") != std::string::npos) {
    for (size_t i = n; i < n_layers; ++i) values.push_back(values[i % n]);
    values.resize(n_layers);
  }
  writer.AddArray(key.name, std::span<const T>(values));
}

void Add(gguf::Writer& writer, const Key& key, size_t n_layers) {
  const std::string& type = key.type;
  if (type == "str") {
    writer.Add(key.name, key.value);
  } else if (type.starts_with("arr[str")) {
    std::vector<std::string_view> texts = {key.value};
    writer.AddStrings(key.name, texts);
  } else if (type.starts_with("arr[f32")) {
    AddArray<float>(writer, key, n_layers);
  } else if (type.starts_with("arr[bool")) {  // as GGUF writes them: a byte each
    AddArray<uint8_t>(writer, key, n_layers);
  } else if (type.starts_with("arr[u32")) {
    AddArray<uint32_t>(writer, key, n_layers);
  } else if (type.starts_with("arr[i32")) {
    AddArray<int32_t>(writer, key, n_layers);
  } else if (type == "bool") {
    writer.Add(key.name, key.value == "true");
  } else if (type == "f32") {
    writer.Add(key.name, std::stof(key.value));
  } else if (type == "i32") {
    writer.Add(key.name, static_cast<int32_t>(std::stol(key.value)));
  } else if (type == "u64") {
    writer.Add(key.name, static_cast<uint64_t>(std::stoull(key.value)));
  } else {
    ASSERT_EQ(type, "u32") << key.name;
    writer.Add(key.name, static_cast<uint32_t>(std::stoul(key.value)));
  }
}

// A key's value as a list writes it.
std::string ValueOf(const gguf::Metadata& meta, const gguf::Metadata::Entry& entry) {
  std::ostringstream out;
  out.precision(17);
  const gguf::ValueType type = entry.value.type, of = entry.value.element_type;
  const auto join = [&](const auto& numbers) {
    for (const auto number : numbers) out << number << ',';
  };
  if (type == gguf::ValueType::kString) {
    out << meta.GetString(entry.key);
  } else if (type == gguf::ValueType::kBool) {
    out << (meta.GetBoolOr(entry.key, false) ? "true" : "false");
  } else if (type != gguf::ValueType::kArray) {
    out << meta.GetFloat(entry.key);
  } else if (of == gguf::ValueType::kF32) {
    join(meta.GetFloats(entry.key));
  } else {
    join(meta.GetInts(entry.key));
  }
  return out.str();
}

// Rows of each head: those of pair i of `n` rotated numbers, at 2i and 2i + 1, go to i and i + n/2.
std::vector<float> Permuted(const gguf::TensorView& tensor, size_t head, size_t n) {
  const size_t width = tensor.dims[0], rows = tensor.elements() / width;
  const auto* const from = reinterpret_cast<const float*>(tensor.data);
  std::vector<float> to(from, from + tensor.elements());
  for (size_t row = 0; row < rows; ++row) {
    const size_t at = row % head;
    if (at >= n) continue;
    const size_t moved = row - at + at / 2 + at % 2 * (n / 2);
    std::copy_n(from + row * width, width, to.begin() + static_cast<ptrdiff_t>(moved * width));
  }
  return to;
}

// The small model with the list's keys and tensors; its own keys under the list's architecture.
void Write(const List& list, const std::string& path) {
  const gguf::File small = gguf::File::Open(test::DataPath(list.small + ".gguf").string());
  const std::string own = std::string(small.metadata().GetString("general.architecture")) + ".";
  const auto name_of = [&](std::string_view key) {
    return key.starts_with(own) ? list.architecture + "." + std::string(key.substr(own.size()))
                                : std::string(key);
  };
  const size_t n_layers = small.metadata().GetUint(own + "block_count");
  std::map<std::string, const gguf::Metadata::Entry*> kept;
  for (const auto& entry : small.metadata().entries()) {
    const bool dropped = entry.key.starts_with(own) &&
                         list.without.contains(std::string(entry.key.substr(own.size())));
    if (!dropped && entry.key != "general.architecture") kept[name_of(entry.key)] = &entry;
  }
  gguf::Writer writer;
  for (Key key : list.keys) {
    if (key.instead) kept.erase(key.name);
    if (key.value == "-" && key.type.starts_with("arr")) continue;
    if (const auto found = kept.find(key.name); found != kept.end()) {
      const gguf::Value& value = found->second->value;
      const bool is_array = value.type == gguf::ValueType::kArray;
      // Lists of texts, and values that are equal in all layers of a published model but not of
      // this one.
      if (is_array &&
          (value.element_type == gguf::ValueType::kString || !key.type.starts_with("arr"))) {
        continue;
      }
      key.value = ValueOf(small.metadata(), *found->second);  // in the list's type
      kept.erase(found);
    }
    Add(writer, key, n_layers);
  }
  for (const auto& [name, entry] : kept) writer.Add({name, entry->value});
  std::vector<std::vector<float>> moved;
  for (gguf::TensorView tensor : small.tensors()) {
    std::string name(tensor.name);
    for (const auto& [from, to] : list.renamed) {
      const size_t at = name.find(from);
      if (at != std::string::npos) name.replace(at, from.size(), to);
    }
    tensor.name = name;
    if (list.permuted &&
        (name.find("attn_q.") != std::string::npos || name.find("attn_k.") != std::string::npos)) {
      const bool is_bias = tensor.n_dims == 1;
      gguf::TensorView view = tensor;
      if (is_bias) view.dims = {1, tensor.dims[0], 1, 1};
      moved.push_back(Permuted(view, small.metadata().GetUint(own + "attention.key_length"),
                               small.metadata().GetUint(own + "rope.dimension_count")));
      tensor.data = std::as_bytes(std::span(moved.back())).data();
    }
    writer.AddTensor(tensor);
  }
  const std::vector<float> zeros(8);
  for (const std::string& name : list.tensors) {
    writer.AddTensor(name, gguf::DType::kF32, {8}, std::as_bytes(std::span(zeros)));
  }
  writer.WriteFile(path);
}

std::vector<std::filesystem::path> Lists() {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(test::DataPath("published"))) {
    if (file.path().filename() != "general.txt") paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<float> LogitsOf(const std::string& path,
                            const std::map<std::string, double>& set = {}) {
  gguf::File file = gguf::File::Open(path);
  for (const auto& [key, number] : set) file.metadata().SetFloat(key, number);
  const Model model = Model::From(std::move(file));
  std::vector<TokenId> ids;
  for (int i = 0; i < 24; ++i) ids.push_back(3 + i * 7 % 37);
  if (model.config.backbone_length > 0) return test::Guess(test::Backbone(), model, ids, 2).logits;
  return test::Results(model, ids, {.context = 256, .n_threads = 1});
}

class PublishedTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(PublishedTest, RunsAsTheBareModelOrIsRefusedForAReason) {
  const List list = ReadList(GetParam());
  const test::TempDir dir;
  const std::string path = dir.Path("model.gguf");
  Write(list, path);
  if (!list.refusal.empty()) {
    EXPECT_TRUE(test::Has(test::ErrorOf([&] { Model::Load(path); }), list.refusal));
    return;
  }
  std::vector<float> bare;
  ASSERT_EQ(
      test::ErrorOf([&] { bare = LogitsOf(test::DataPath(list.small + ".gguf"), list.bare); }), "");
  std::vector<float> logits;
  ASSERT_EQ(test::ErrorOf([&] { logits = LogitsOf(path); }), "");
  EXPECT_LT(test::Nmse(logits, bare), list.permuted ? 1e-9 : 1e-30);
  // If there is an encoder, one note says that images are not read.
  const auto notes = Model::Load(path).notes;
  const auto n = std::ranges::count_if(
      notes, [](const std::string& note) { return note.find("images") != std::string::npos; });
  EXPECT_EQ(n, list.tensors.empty() || list.tensors[0].starts_with("mtp") ? 0 : 1);
}

INSTANTIATE_TEST_SUITE_P(Lists, PublishedTest, testing::ValuesIn(Lists()),
                         [](const auto& tested) { return test::TestName(tested.param.stem()); });

TEST(Published, HasAListForEachArchitecture) {
  std::set<std::string, std::less<>> listed = test::MadeWhileTesting();
  for (const auto& path : Lists()) listed.insert(ReadList(path).architecture);
  for (const Family& arch : Families()) {
    EXPECT_TRUE(listed.contains(std::string(arch.name))) << arch.name;
  }
}

// Small models do not split text, so the lists' splitting patterns are looked up here.
TEST(Published, NamesSplitPatternsThatAreKnown) {
  for (const auto& path : Lists()) {
    for (const Key& key : ReadList(path).keys) {
      if (key.name != "tokenizer.ggml.pre" || key.value == "gemma4") continue;
      EXPECT_NE(tokenizer::FindSplitRule(key.value), nullptr) << path << ": " << key.value;
    }
  }
}

}  // namespace
}  // namespace engine
