// pronk convert: the program makes a file that runs from a folder.
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/pronk.h"
#include "tests/support/hf_folder.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

TEST(ConvertCommand, AFolderBecomesAModelThatRuns) {
  const TempDir dir;
  const std::string folder = HfLlama().Write(dir), out = dir.Path("out.gguf");
  const Finished run = Done(Pronk({"convert", folder, out}));
  ExpectWritten(run, out);
  EXPECT_EQ(Pronk({"run", "-m", out, "-p", "a", "-n", "2"}).status, 0);
  const std::string inspected = Pronk({"inspect", out}).out;
  EXPECT_TRUE(Has(inspected, "llama.embedding_length"));
  EXPECT_TRUE(Has(inspected, "11 tensors"));
}

TEST(ConvertCommand, TypesAreNamedInAnyCase) {
  const TempDir dir;
  const std::string folder = HfLlama().Write(dir), out = dir.Path("out.gguf");
  for (const char* type : {"f16", "BF16", "q8_0", "F32"}) {
    EXPECT_EQ(Pronk({"convert", folder, out, type, "-t", "2"}).status, 0) << type;
    EXPECT_EQ(Pronk({"run", "-m", out, "-p", "a", "-n", "1"}).status, 0) << type;
  }
  ExpectError(Pronk({"convert", folder, out, "Q9"}), 2,
              "TYPE Q9: expected one of F32|F16|BF16|Q8_0|");
}

TEST(ConvertCommand, WhatIsLeftOutIsSaid) {
  const TempDir dir;
  HfLlama llama;
  llama.Add("mtp.norm.weight", {32});
  const Finished run = Done(Pronk({"convert", llama.Write(dir), dir.Path("out.gguf")}));
  ExpectWritten(
      run, dir.Path("out.gguf"),
      "pronk: note: 1 tensors are left out, as text does not need them: mtp.norm.weight\n");
}

TEST(ConvertCommand, WhatGoesWrongIsOneLine) {
  const TempDir dir;
  const std::string out = dir.Write("out", std::string_view("as before"));
  const auto refused = [&](const std::string& folder, const std::string& says) {
    ExpectError(Pronk({"convert", folder, out}), 1, says);
  };
  refused(dir.Path("none"),
          "none: expected a folder with config.json and safetensors files: no such");
  HfLlama llama;
  llama.config.replace(llama.config.find("LlamaFor"), 8, "Other\\u001b[31mFor");
  refused(llama.Write(dir, "other"),
          "config.json: architectures: architecture \"Other\\x1b[31mFor");
  llama = {};
  llama.tensors.erase("model.norm.weight");
  refused(llama.Write(dir, "missing"), "missing, as GGUF: tensor output_norm.weight: is missing");
  llama = {};
  llama.files["tokenizer_config.json"] = "{";
  refused(llama.Write(dir, "json"),
          "tokenizer_config.json: expected JSON; it is not JSON from byte 2 on");
  EXPECT_EQ(ReadText(out), "as before");
  llama = {};
  const std::string read = llama.Write(dir, "read");
  for (const char* name : {"config.json", "model.safetensors"}) {
    const std::string path = read + "/" + name, before = ReadText(path);
    ExpectError(Pronk({"convert", read, path}), 1, "is a file that is read");
    EXPECT_EQ(ReadText(path), before);
  }
  // A device is written to directly.
  EXPECT_EQ(Pronk({"convert", HfLlama().Write(dir), "/dev/null"}).status, 0);
}

}  // namespace
}  // namespace test
