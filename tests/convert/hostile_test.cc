// Hostile folders: each gives one line that names the fault, or becomes a file. Only gguf::Error
// may be thrown, and no byte outside a file may be read (AddressSanitizer checks this).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "convert/convert.h"
#include "engine/hf/fields.h"
#include "tests/support/allocations.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/hf_folder.h"
#include "tests/support/hf_json_folder.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wrong_json.h"

namespace convert {
namespace {

using test::Json;

namespace fs = std::filesystem;
using test::HfLlama;
using test::TempDir;

// Returns the message of converting this folder, or "" if it became a file.
std::string ErrorOf(const std::string& folder) {
  const TempDir dir;
  const std::string error = test::ErrorOf([&] { Convert(folder, dir.Path("out"), {}); });
  EXPECT_TRUE(std::ranges::all_of(error, [](char c) { return c >= ' ' && c <= '~'; })) << error;
  EXPECT_LT(error.size(), 4000u);
  EXPECT_EQ(fs::exists(dir.Path("out")), error.empty());
  return error;
}

TEST(ConvertHostile, ValuesOfTheWrongKind) {
  const HfLlama good = test::HfLlamaWithJson();
  const TempDir dir;
  const std::string folder = good.Write(dir);
  ASSERT_EQ(ErrorOf(folder), "");
  std::vector<std::pair<std::string, std::string>> texts(good.files.begin(), good.files.end());
  texts.emplace_back("config.json", "{" + good.config + "}");
  size_t n_refused = 0, n_all = 0;
  for (const auto& [name, text] : texts) {
    const Json json = Json::parse(text);
    for (const test::JsonPlace& place : test::Places(json)) {
      for (const Json& wrong : test::WrongValues()) {
        SCOPED_TRACE(name + test::PathOf(place) + " " + wrong.dump().substr(0, 40));
        Json damaged = json;
        test::At(damaged, place) = wrong;
        dir.Write("model/" + name, damaged.dump());
        n_refused += ErrorOf(folder).empty() ? 0 : 1;
        ++n_all;
      }
    }
    dir.Write("model/" + name, text);
  }
  EXPECT_GT(n_refused, n_all / 4);
  EXPECT_LT(n_refused, n_all);
}

TEST(ConvertHostile, BytesThatChanged) {
  std::mt19937 random(20261122);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  constexpr std::string_view kLikely = "0123456789[]{},:\"-e.\\";
  for (const HfLlama& good : {HfLlama(), test::HfLlamaWithJson()}) {
    const TempDir dir;
    const std::string folder = good.Write(dir);
    for (const auto& file : fs::directory_iterator(folder)) {
      const std::string name = file.path().filename(), bytes = test::ReadText(file.path());
      // Damages only the header of the weights: the rest is numbers.
      const size_t n_bytes = std::min<size_t>(bytes.size(), 1200);
      for (int i = 0; i < 150; ++i) {
        std::string damaged = bytes;
        for (size_t n = 1 + below(3); n > 0; --n) {
          const bool any = below(2) == 0;
          damaged[below(n_bytes)] =
              any ? static_cast<char>(random()) : kLikely[below(kLikely.size())];
        }
        if (i % 10 == 0) damaged.resize(below(bytes.size()));
        dir.Write("model/" + name, damaged);
        SCOPED_TRACE(name + " round " + std::to_string(i));
        ErrorOf(folder);
      }
      dir.Write("model/" + name, bytes);
    }
  }
}

// Reading these files could take far more memory than their size.
TEST(ConvertHostile, FilesThatAreTooMuch) {
  constexpr size_t kMany = 5'000'000;
  const HfLlama good = test::HfLlamaWithJson();
  const TempDir dir;
  const std::string folder = good.Write(dir);
  const auto expect = [&](const std::string& name, const std::string& text,
                          const std::string& error) {
    dir.Write("model/" + name, text);
    const size_t before = test::CountAllocations().bytes;
    test::ResetPeak();
    EXPECT_EQ(ErrorOf(folder), folder + "/" + name + ": expected " + error);
    if (test::kAllocationsAreCounted) {
      EXPECT_LT(test::CountAllocations().peak - before, 3 * text.size() + 4'000'000) << name;
    }
  };
  std::string many = "{\"a\":[";
  for (size_t i = 0; i < kMany; ++i) many += "0,";
  for (const std::string name : {"config.json", "tokenizer.json", "generation_config.json"}) {
    const auto old = name == "config.json" ? "{" + good.config + "}" : good.files.at(name);
    expect(name, "{\"a\":" + std::string(100'000, '['), "JSON; it is nested deeper than 32 levels");
    expect(name, many + "0]}", "JSON; it has more than 4194304 values");
    expect(name, "{\"a\":1e999}", "JSON; it has a number that is too large at byte 6");
    expect(name, "{\"a\":\"\xff\"}", "JSON; it is not JSON from byte 7 on");
    expect(name, "", "a text file, found an empty file");
    expect(name, "[]", "a JSON object, found a list");
    // These zeros take no space on the disk.
    dir.Write("model/" + name, std::string_view());
    fs::resize_file(folder + "/" + name, uint64_t{1} << 40);
    EXPECT_EQ(ErrorOf(folder), folder + "/" + name + ": expected at most 128 MB, found 1048576");
    dir.Write("model/" + name, old);
  }
  ASSERT_EQ(ErrorOf(folder), "");
}

TEST(ConvertHostile, EmbeddingsOfTooManyRows) {
  constexpr uint64_t kRows = uint64_t{1} << 31;
  HfLlama llama;
  llama.tensors.erase("model.embed_tokens.weight");
  const TempDir dir;
  const std::string folder = llama.Write(dir), path = folder + "/model.safetensors";
  const std::string end = std::to_string(2 * kRows);
  dir.Write("model/model.safetensors",
            test::Safetensors(R"({"model.embed_tokens.weight":{"dtype":"F16","shape":[)" +
                                  std::to_string(kRows) + R"(,1],"data_offsets":[0,)" + end + "]}}",
                              0));
  fs::resize_file(path, fs::file_size(path) + 2 * kRows);  // holes
  EXPECT_EQ(ErrorOf(folder),
            folder +
                "/config.json: vocab_size: expected an embedding of at most 1048576 rows, "
                "found 2147483648");
}

TEST(ConvertHostile, FilesThatAreNone) {
  const HfLlama good = test::HfLlamaWithJson();
  for (const char* const name :
       {"config.json", "tokenizer.json", "model.safetensors", "tokenizer_config.json"}) {
    const TempDir dir;
    const std::string folder = good.Write(dir), path = folder + "/" + name;
    const auto error = [&] {
      std::string text = ErrorOf(folder);
      EXPECT_EQ(text.substr(0, path.size()), path) << text;
      return text.substr(std::min(path.size(), text.size()));
    };
    fs::remove(path);
    fs::create_directory(path);
    EXPECT_TRUE(test::Has(error(), "found a directory"));
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);  // opening it would wait
    EXPECT_TRUE(test::Has(error(), "found a pipe (FIFO)"));
    fs::remove(path);
    fs::create_symlink("/dev/zero", path);
    EXPECT_TRUE(test::Has(error(), "is a link out of the folder, to /dev/zero"));
  }
}

// The hub's cache consists of links to files in its blobs. Convert() follows these links.
TEST(ConvertHostile, Links) {
  const HfLlama good = test::HfLlamaWithJson();
  const TempDir dir;
  fs::create_directories(dir.Path("models--a--b/snapshots/1"));
  const std::string real = good.Write(dir, "models--a--b/blobs");
  const std::string folder = dir.Path("models--a--b/snapshots/1");
  for (const auto& file : fs::directory_iterator(real)) {
    fs::create_symlink("../../blobs/" + file.path().filename().string(),
                       folder / file.path().filename());
  }
  EXPECT_EQ(ErrorOf(folder), "");
  fs::create_symlink(folder, dir.Path("named"));
  EXPECT_EQ(ErrorOf(dir.Path("named")), "");
  // An input is not overwritten, under any of its names.
  const std::string before = test::ReadText(real + "/model.safetensors");
  const std::string error =
      test::ErrorOf([&] { Convert(folder, real + "/model.safetensors", {}); });
  EXPECT_TRUE(test::Has(error, "is a file that is read"));
  EXPECT_EQ(test::ReadText(real + "/model.safetensors"), before);
  for (const std::string name : {"config.json", "model.safetensors"}) {
    const std::string path = folder + "/" + name;
    fs::remove(path);
    fs::create_symlink(path, path);  // to itself
    EXPECT_NE(ErrorOf(folder), "");
    fs::remove(path);
    fs::create_symlink("nowhere", path);
    EXPECT_NE(ErrorOf(folder), "");
    fs::remove(path);
    fs::create_symlink(real + "/" + name, path);
  }
  EXPECT_EQ(ErrorOf(folder), "");
}

// A private file must not become a part of a model that is then given away.
TEST(ConvertHostile, LinksOutOfTheFolder) {
  const HfLlama good = test::HfLlamaWithJson();
  const TempDir dir;
  const std::string secret = dir.Write("secret", "{{ messages[0].content }}");
  fs::create_directories(dir.Path("models--a--b/snapshots"));
  fs::create_directory(dir.Path("models--a--b/blobs"));
  const std::string folder = good.Write(dir, "models--a--b/snapshots/1");
  const auto expect_refused = [&](const std::string& name, const std::string& target) {
    SCOPED_TRACE(name + " -> " + target);
    const std::string path = folder + "/" + name;
    const bool is_there = fs::exists(path);
    if (is_there) fs::rename(path, dir.Path("kept"));
    fs::create_symlink(target, path);
    const std::string error = ErrorOf(folder);
    EXPECT_EQ(error, path + ": is a link out of the folder, to " + fs::canonical(path).string() +
                         ": if that is meant, put a copy in its place");
    fs::remove(path);
    if (is_there) fs::rename(dir.Path("kept"), path);
  };
  for (const char* name :
       {"chat_template.jinja", "config.json", "tokenizer.json", "tokenizer_config.json",
        "generation_config.json", "model.safetensors", "model.safetensors.index.json"}) {
    expect_refused(name, secret);
    expect_refused(name, "../../../secret");
  }
  // A link to a blob that is itself a link out.
  fs::create_symlink(secret, dir.Path("models--a--b/blobs/x"));
  expect_refused("chat_template.jinja", "../../blobs/x");
  fs::remove_all(dir.Path("models--a--b/blobs"));
  fs::create_directory(dir.Path("private"));
  dir.Write("private/x", "{{ messages[0].content }}");
  fs::create_symlink(dir.Path("private"), dir.Path("models--a--b/blobs"));
  expect_refused("chat_template.jinja", "../../blobs/x");
  // A link to itself.
  fs::rename(folder + "/model.safetensors", dir.Path("kept"));
  dir.Write("models--a--b/snapshots/1/model.safetensors.index.json",
            R"({"weight_map": {"a": "loop"}})");
  fs::create_symlink("loop", folder + "/loop");
  EXPECT_EQ(ErrorOf(folder), folder + "/loop: Too many levels of symbolic links");
  fs::remove(folder + "/model.safetensors.index.json");
  fs::rename(dir.Path("kept"), folder + "/model.safetensors");
  // A link may lead to any file within the folder.
  dir.Write("models--a--b/snapshots/1/other", "{{ messages[0].content }}");
  fs::create_symlink("other", folder + "/chat_template.jinja");
  EXPECT_EQ(ErrorOf(folder), "");
}

TEST(ConvertHostile, Shards) {
  HfLlama good;
  const TempDir dir;
  const std::string folder = good.Write(dir), index = "model/model.safetensors.index.json";
  const std::string start = folder + "/model.safetensors.index.json: weight_map: ";
  const auto map = [](size_t n) {
    Json names = Json::object();
    for (size_t i = 0; i < n; ++i) {
      names["t" + std::to_string(i)] = std::to_string(i) + ".safetensors";
    }
    return Json{{"weight_map", names}}.dump();
  };
  dir.Write(index, map(4097));
  EXPECT_EQ(ErrorOf(folder), start + "expected 1 to 4096 files, found 4097");
  // A program may not have this many files open at once.
  constexpr size_t kFiles = 2000;
  for (size_t i = 0; i < kFiles; ++i) {
    dir.Write("model/" + std::to_string(i) + ".safetensors",
              test::Safetensors(test::HfTensors{{"t" + std::to_string(i), {{1}, {1}}}}));
  }
  dir.Write(index, map(kFiles));
  EXPECT_TRUE(test::Has(ErrorOf(folder), "has no place in a model of architecture llama"));
  // One file has two names.
  fs::create_hard_link(folder + "/model.safetensors", folder + "/again.safetensors");
  dir.Write(index, std::string_view(R"({"weight_map":{"a":"model.safetensors",)"
                                    R"("b":"again.safetensors"}})"));
  EXPECT_TRUE(test::Has(ErrorOf(folder), "expected each name once"));
  for (const std::string name : {"model", ".", "x\\u0000y", "\\u001b[2J", "\\n", "a\\\\b"}) {
    dir.Write(index, R"({"weight_map":{"model.norm.weight":")" + name + "\"}}");
    EXPECT_NE(ErrorOf(folder), "") << name;
  }
}

}  // namespace
}  // namespace convert
