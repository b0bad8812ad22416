// pronk list and -m NAME, on stores made here: the models found, the meaning of names, broken
// stores.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/options/model_stores.h"
#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

namespace fs = std::filesystem;

const std::string kHash(64, 'a');

class ModelsTest : public testing::Test {
 protected:
  void SetUp() override {
    // A repository of the Hugging Face cache: links to blobs, in two revisions.
    const std::string repo = "hub/models--Owner--Tiny-GGUF/";
    Copy(repo + "blobs/123");
    for (const char* revision : {"aaa", "bbb"}) {
      Link("../../blobs/123", repo + "snapshots/" + revision + "/Tiny-Q8_0.gguf");
    }
    Link("../../blobs/456", repo + "snapshots/aaa/Tiny-Q4_0.gguf");  // not downloaded yet
    Copy(repo + "snapshots/aaa/mmproj-Tiny.gguf");
    Write(repo + "snapshots/aaa/README.md", "# Tiny");
    // Ollama: a model, one of a user, one whose blob is gone, one that leads elsewhere, and noise.
    const std::string library = "ollama/manifests/registry.ollama.ai/";
    Copy("ollama/blobs/sha256-" + kHash);
    Write(library + "library/small/latest", Manifest("sha256:" + kHash));
    Write(library + "somebody/small/1b", Manifest("sha256:" + kHash));
    Write(library + "library/gone/7b", Manifest("sha256:" + std::string(64, 'b')));
    Write(library + "library/evil/1b", Manifest("sha256:../../../../etc/passwd"));
    Write(library + "library/noise/1b", "{{{{");
    // LM Studio.
    Copy(".lmstudio/models/publisher/repo/other-model.gguf");
    Copy(".lmstudio/models/publisher/repo/split-00001-of-00002.gguf");
    Copy(".lmstudio/models/publisher/repo/split-00002-of-00002.gguf");
    Write(".lmstudio/models/publisher/repo/broken.gguf", "<!DOCTYPE html>");
    // llama.cpp.
    Copy("llama/acme_Wee-GGUF_wee-q4_0.gguf");
    Copy("llama/acme_Wee-GGUF_mmproj-wee.gguf");
    Write("llama/manifest=acme=Wee-GGUF=latest.json", "{}");
  }

  static std::string Manifest(const std::string& digest) {
    return R"({"layers": [{"mediaType": "application/vnd.ollama.image.license", "digest": "x"},
      {"mediaType": "application/vnd.ollama.image.model", "digest": ")" +
           digest + "\"}]}";
  }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(dir_.Path(path)).parent_path());
    dir_.Write(path, text);
  }
  void Copy(const std::string& to) { Write(to, ReadText(kModel)); }
  void Link(const std::string& to, const std::string& from) {
    fs::create_directories(fs::path(dir_.Path(from)).parent_path());
    fs::create_symlink(to, dir_.Path(from));
  }

  Finished Pronk(const Args& args) {
    return test::Pronk(
        args, "",
        {"HOME=" + dir_.Path(""), "HF_HUB_CACHE=" + dir_.Path("hub"),
         "OLLAMA_MODELS=" + dir_.Path("ollama"), "LLAMA_CACHE=" + dir_.Path("llama")});
  }
  // The error of -m `name`; "" if the model is found.
  std::string ErrorOf(const std::string& name) {
    return Pronk({"tokenize", "-m", name, "-p", "x"}).err;
  }

  TempDir dir_;
};

// A file called "default" in the working directory is not the default model.
TEST_F(ModelsTest, TheDefaultIsNoFileOfThatName) {
  Write("default", "not a model");
  const std::string there = "cd \"$HOME\" && \"$PRONK\" tokenize --ids -p x ";
  const std::vector<std::string> environment = {"HOME=" + dir_.Path("")};
  const Finished run = Done(Shell(there, environment));
  EXPECT_EQ(Shell(there + "-m default", environment).out, run.out);
  ExpectError(Shell(there + "-m ./default", environment), 1, "GGUF");
}

// Names come from untrusted files: an error that lists them is one line without escape codes.
TEST_F(ModelsTest, NamesCannotCommandTheTerminal) {
  for (const char* number : {"1", "2"}) {
    Copy(std::string(".lmstudio/models/evil\033[2J/\npronk: ") + number + ".gguf");
  }
  for (const std::string name : {"evil", "evils"}) {  // two have this name; two have similar names
    ExpectError(Pronk({"tokenize", "-m", name, "-p", "x"}), 1, R"(evil\x1b[2J/\npronk: 1.gguf)");
    EXPECT_FALSE(Has(ErrorOf(name), "\033"));
  }
}

TEST_F(ModelsTest, ListsWhatIsThere) {
  const Finished run = Done(Pronk({"list", "--json"}));
  std::map<std::string, Json> models;
  for (const Json& model : Json::parse(run.out)) models[model["name"]] = model;
  models.erase("default");
  std::vector<std::string> names;
  for (const auto& [name, model] : models) names.push_back(name);
  const std::vector<std::string> expected = {"Owner/Tiny-GGUF/Tiny-Q8_0.gguf",
                                             "acme_Wee-GGUF_wee-q4_0.gguf",
                                             "publisher/repo/broken.gguf",
                                             "publisher/repo/other-model.gguf",
                                             "publisher/repo/split-00001-of-00002.gguf",
                                             "small:latest",
                                             "somebody/small:1b"};
  EXPECT_EQ(names, expected);
  const Json& small = models["small:latest"];
  EXPECT_EQ(small["store"], "Ollama");
  EXPECT_EQ(small["architecture"], "llama");
  EXPECT_EQ(small["problem"], "");
  EXPECT_EQ(small["bytes"], fs::file_size(kModel));
  EXPECT_GT(small["memory_bytes"], 100000);
  EXPECT_EQ(small["fits"], "yes");
  EXPECT_NE(models["publisher/repo/broken.gguf"]["problem"], "");
  // Broken files are skipped with a note.
  for (const char* says : {"Tiny-Q4_0.gguf: leads to no file", "gone/7b: its model is missing",
                           "evil/1b: names no model", "is not JSON", "HTML"}) {
    EXPECT_TRUE(Has(run.err, says));
  }
  EXPECT_TRUE(Has(Pronk({"list"}).out, "small:latest"));
  const std::string only_names = Pronk({"list", "--names"}).out;
  EXPECT_TRUE(Has(only_names, "\nsmall:latest\n"));
}

TEST_F(ModelsTest, NamesThatAreFound) {
  for (const char* name :
       {"small", "SMALL:latest", "somebody/small:1b", "owner/tiny-gguf:q8_0", "Tiny-Q8_0.gguf",
        "tiny-q8_0", "other", "publisher other-model", "hf.co/Owner/Tiny-GGUF",
        "https://huggingface.co/acme/Wee-GGUF:Q4_0", "acme/wee-GGUF"}) {
    EXPECT_EQ(ErrorOf(name), "") << name;
  }
  EXPECT_EQ(Pronk({"tokenize", "-hf", "acme/Wee-GGUF", "-p", "x"}).err, "");  // llama.cpp's flag
}

// OWNER/REPO is that repository, and a type is a whole word: -hf must not run another model.
TEST_F(ModelsTest, RepositoriesAreNamedExactly) {
  Copy("hub/models--Owner--Wide-GGUF/snapshots/aaa/wide-IQ4_NL.gguf");
  Copy("hub/models--Owner--Wide-GGUF/snapshots/aaa/wide-BF16.gguf");
  for (const char* name : {"owner/wide-gguf:iq4_nl", "owner/Wide-GGUF:bf16", "wide q4_nl"}) {
    EXPECT_EQ(ErrorOf(name), "") << name;
  }
  for (const char* name : {"Owner/Wide-GGUF:Q4_NL", "Owner/Wide-GGUF:F16", "er/Tiny-GGUF",
                           "Owner/Tiny", "Owner/Tiny-GGUF:Q8", "acme/Wee", "me/Wee-GGUF"}) {
    EXPECT_TRUE(Has(ErrorOf(name), "no file and no model called")) << name;
  }
}

// After an update, a name means the file of the revision that was downloaded last.
TEST_F(ModelsTest, TheNewestRevisionIsMeant) {
  const std::string repo = "hub/models--Owner--New-GGUF/";
  const auto path = [&] {
    for (const Json& model : Json::parse(Pronk({"list", "--json"}).out)) {
      if (model["name"] == "Owner/New-GGUF/new.gguf") return model["path"].get<std::string>();
    }
    return std::string();
  };
  for (const char* revision : {"ccc", "ddd", "bbb"}) {
    Copy(repo + "snapshots/" + revision + "/new.gguf");
    fs::last_write_time(dir_.Path(repo + "snapshots/" + revision),
                        fs::file_time_type::clock::now() + std::chrono::hours(revision[0]));
  }
  EXPECT_EQ(path(), dir_.Path(repo + "snapshots/ddd/new.gguf"));
  Write(repo + "refs/main", "ccc");
  EXPECT_EQ(path(), dir_.Path(repo + "snapshots/ccc/new.gguf"));
}

// The working directory and the user's own folder come before a store.
TEST_F(ModelsTest, OwnFolders) {
  Copy("here/Own-0.5B.gguf");
  Copy("here/Tiny-Q8_0.gguf");
  Copy("here/deeper/Hidden.gguf");
  Copy("mine/a/Deep-Q4_0.gguf");
  const auto shell = [&](const std::string& line) {
    return Shell(
        "cd \"$HOME/here\" && " + line,
        {"HOME=" + dir_.Path(""), "HF_HUB_CACHE=" + dir_.Path("hub"), "OLLAMA_MODELS=/nonexistent",
         "LLAMA_CACHE=/nonexistent", "PRONK_MODELS=" + dir_.Path("mine")});
  };
  for (const std::string name :
       {"Own-0.5B", "own-0.5b", "OWN-0.5B.GGUF", "./Own-0.5B", "own", "deeper/Hidden", "Deep-q4_0",
        "a/deep-q4_0.gguf", "$HOME/mine/a/Deep-Q4_0", "../here/Own-0.5B.gguf"}) {
    EXPECT_EQ(shell("\"$PRONK\" tokenize -p x -m \"" + name + "\"").err, "") << name;
  }
  ExpectError(shell("\"$PRONK\" tokenize -p x -m hidden"), 1, "no model called hidden");
  // If names are equal, the one here counts: the cache's file is damaged.
  Write("hub/models--Owner--Tiny-GGUF/blobs/123", "<!DOCTYPE html>");
  EXPECT_EQ(shell("\"$PRONK\" tokenize -p x -m tiny-q8_0").err, "");
  ExpectError(shell("\"$PRONK\" tokenize -p x -m owner/tiny-gguf/tiny-q8_0"), 1, "HTML");
  const auto names = [&](const std::string& environment) {
    std::string text;
    for (const Json& model : Json::parse(shell(environment + " \"$PRONK\" list --json").out)) {
      const std::string store = model["store"], name = model["name"];
      if (store == "this folder" || store == "PRONK_MODELS") text += store + ": " + name + "\n";
    }
    return text;
  };
  EXPECT_EQ(names(""),
            "this folder: Own-0.5B.gguf\nthis folder: Tiny-Q8_0.gguf\n"
            "PRONK_MODELS: a/Deep-Q4_0.gguf\n");
  EXPECT_EQ(names("PRONK_MODELS=$PWD"),  // each file once
            "this folder: Own-0.5B.gguf\nthis folder: Tiny-Q8_0.gguf\n"
            "PRONK_MODELS: deeper/Hidden.gguf\n");
}

// Types have llama-bench's names, not the name of the type that most weights have.
TEST_F(ModelsTest, ListsTheTypeOfTheFile) {
  const std::string mixed = ".lmstudio/models/publisher/repo/mixed.gguf";
  Done(Pronk({"quantize", kModel, dir_.Path(mixed), "Q4_K_M"}));
  std::map<std::string, std::string> types;
  for (const Json& model : Json::parse(Done(Pronk({"list", "--json"})).out)) {
    types[model["name"]] = model["type"].get<std::string>();
  }
  EXPECT_EQ(types["publisher/repo/mixed.gguf"], "Q4_K - Medium");
  EXPECT_EQ(types["default"], "Q8_0");
  const Finished bench =
      Done(Pronk({"bench", "-m", dir_.Path(mixed), "-p", "4", "-n", "0", "-r", "1"}));
  EXPECT_TRUE(Has(bench.out, "Q4_K - Medium"));
}

TEST_F(ModelsTest, NamesThatAreNot) {
  // No match or several: one line with similar names.
  const auto expect = [&](const std::string& name, const std::string& says) {
    ExpectError(Pronk({"run", "-m", name, "-p", "x"}), 1, says);
  };
  expect("smal", "could be small:latest, somebody/small:1b");
  expect("somebody/smell", "similar: somebody/small:1b");
  const std::string pull = "; to download one: " + cli::SuggestedModel().line + "\n";
  expect("xyz", "pronk: -m: no file and no model called xyz ('pronk list')" + pull);
  expect("defualt", "no model called defualt ('pronk list'); similar: default\n");
  // Similarity counts: words that all names have, types and owners do not.
  const auto near = [&](const std::string& name, const std::string& names) {
    expect(name, "no model called " + name + " ('pronk list'); similar: " + names + "\n");
  };
  near("publisher/repo/othr", "publisher/repo/other-model.gguf");
  near("owner/tinny-gguf:q8_0", "Owner/Tiny-GGUF/Tiny-Q8_0.gguf");
  near("small3", "small:latest, somebody/small:1b");
  near("publisher/repo/splti", "publisher/repo/split-00001-of-00002.gguf");
  for (const std::string far : {"mistral", "zephyr-q8_0.gguf", "zephyr-model", "instruct", "q4_k_m",
                                "other99999999", "wxy"}) {
    expect(far, "no model called " + far + " ('pronk list')" + pull);
  }
  // A name that looks like a published model's can be downloaded.
  for (const std::string name : {"owner/Zephyr-GGUF", "acme/Zephyr-GGUF:Q4_0"}) {
    expect(name, "; to download it: ./pronk pull " + name + "\n");
  }
  expect("hf.co/acme/Zephyr-GGUF", "; to download it: ./pronk pull acme/Zephyr-GGUF\n");
  expect("broken", "HTML");
  expect("gone:7b", "no model called gone:7b");
  expect("./small", "no such file");  // a path is not a name
}

// A text in the place of the model.
TEST_F(ModelsTest, ATextIsNoModel) {
  const std::string pull = "; to download one: " + cli::SuggestedModel().line;
  ExpectError(Pronk({"chat", "Xyz, xyz"}), 1,
              "no model called \"Xyz, xyz\" ('pronk list'); to take it as a text: -p\n");
  for (const char* command : {"tokenize", "trace"}) {  // several words are a text, as for run
    ExpectError(Pronk({command, "xyz"}), 1,
                "no model called xyz ('pronk list')" + pull + "; to take it as a text: -p\n");
    EXPECT_EQ(Pronk({command, "Xyz, xyz"}).status, 0);
  }
  ExpectError(Pronk({"inspect", "Xyz, xyz"}), 1, "('pronk list')\n");  // inspect reads no text
  ExpectError(
      Pronk({"run", "hi"}), 1,
      "no file and no model called hi ('pronk list')" + pull + "; to complete it as a text: -p\n");
  ExpectError(Pronk({"embed", "hi"}), 1, pull + "; the first word names the model");
  for (const Args& text : {Args{"-p", "x"}, {"x"}}) {  // no hint if a text is given
    ExpectError(Pronk(With({"run", "hi"}, text)), 1, "called hi ('pronk list')" + pull + "\n");
  }
  ExpectError(Pronk({"run", "-"}), 1, pull + "; to complete the standard input: -f -");
  EXPECT_FALSE(Has(ErrorOf("xyz.gguf"), "a text"));  // texts do not end like this
}

// The flag that was wrong is named, and not -m.
TEST_F(ModelsTest, WhatNamedTheModel) {
  const Args run = {"run", "-p", "x", "-n", "1"};
  const auto with = [&](const Args& args) { return Pronk(With(run, args)); };
  ExpectError(with({"-m", kModel, "-md", "xyz"}), 1, "-md: no file and no model called");
  ExpectError(with({"--model", "xyz"}), 1, "--model: no file and no model called xyz");
  ExpectError(Pronk({"bench", "-m", kModel, "-m", "xyz"}), 1,
              "-m: no file and no model called xyz");
  ExpectError(Pronk({"compare", kModel, "xyz"}), 1, "pronk: no file and no model called xyz");
  ExpectError(with({"-m", ""}), 2, "-m: expected a file or a name");  // "$UNSET"
  ExpectError(with({"-md", ""}), 2, "-md: expected a file or a name");
  ExpectError(Pronk({"inspect", ""}), 2, "--model: expected a file or a name");
  ExpectError(
      with({"-hf", "xyz"}), 1,
      "-hf: no file and no model called xyz ('pronk list'); to download one: ./pronk pull ");
  ExpectError(with({"-hf", "acme/Zephyr-GGUF:Q4_K_M"}), 1,
              "; to download it: ./pronk pull acme/Zephyr-GGUF:Q4_K_M\n");
  ExpectError(test::Pronk({"tokenize", "-p", "x"}, "", {"PRONK_MODEL=xyz", "HOME=/nonexistent"}), 1,
              "pronk: PRONK_MODEL: no file and no model called xyz");
  // A word after a flag with an optional value.
  const std::string expected = "--think: expected on|off|low|medium|high, found maybe";
  ExpectError(with({"--chat", "--think", "maybe"}), 2, expected);
  ExpectError(with({"-m", kModel, "--chat", "--think", "maybe"}), 2, expected);
  ExpectError(Pronk({"chat", "-m", kModel, "--think", "maybe"}), 2, expected);
  ExpectError(Pronk({"chat", kModel, "--think", "maybe"}), 2, expected);
}

TEST_F(ModelsTest, NoStoresAtAll) {
  const Finished run = Done(test::Pronk({"list", "--names"}, "",
                                        {"HOME=/nonexistent", "HF_HUB_CACHE=/nonexistent",
                                         "OLLAMA_MODELS=/dev/null", "LLAMA_CACHE=/dev/null"}));
  EXPECT_EQ(run.err, "");
  // The message says what to do next.
  const TempDir home;
  const cli::Suggestion model = cli::SuggestedModel();
  const Finished list =
      Done(Shell("cd \"$HOME\" && exec \"$PRONK\" list",
                 {"HOME=" + home.Path(""), "HF_HOME=", "HF_HUB_CACHE=", "OLLAMA_MODELS=/dev/null",
                  "LLAMA_CACHE=", "XDG_CACHE_HOME="}));
  EXPECT_EQ(list.err, "no other model is on this machine; to download one (" + model.size +
                          "): ./pronk pull " + model.name + "\n");
  EXPECT_TRUE(Has(list.out, "default"));
  for (const std::string file : {"/README.md", "/models/README.md"}) {
    EXPECT_TRUE(Has(ReadText(SourceDir() + file), "./pronk pull " + model.name)) << file;
  }
}

}  // namespace
}  // namespace test
