// --override-kv, and the commands that show whether a file will run: inspect --check, list.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

class OverrideTest : public testing::Test {
 protected:
  void SetUp() override {
    const gguf::File file = gguf::File::Open(kModel);
    gguf::Writer writer;
    for (const auto& entry : file.metadata().entries()) writer.Add(entry);
    writer.Add("llama.attention.new_idea", uint32_t{1});
    for (const gguf::TensorView& t : file.tensors()) writer.AddTensor(t);
    std::filesystem::create_directories(dir_.Path(".lmstudio/models/a/b"));
    writer.WriteFile(path_);
  }

  Finished Run(const std::string& model, const Args& more = {}) {
    return Pronk(With({"run", "-m", model, "-p", "x", "-n", "8", "--temp", "0"}, more));
  }

  TempDir dir_;
  std::string path_ = dir_.Path(".lmstudio/models/a/b/new.gguf");
};

TEST_F(OverrideTest, TakesAKeyAwayAndSaysSo) {
  ExpectError(Run(path_), 1, "(--override-kv llama.attention.new_idea= runs it without this key)");
  for (int i = 0; i < 2; ++i) {  // on every run
    const Finished run = Done(Run(path_, {"--override-kv", "llama.attention.new_idea="}));
    EXPECT_EQ(run.out, Run(kModel).out);
    EXPECT_TRUE(Has(run.err, "note: --override-kv: without the file's llama.attention.new_idea\n"));
  }
  EXPECT_FALSE(Has(Run(kModel).err, "override"));
}

TEST_F(OverrideTest, PutsAValueInItsPlace) {
  const auto with = [&](const std::string& text) {
    const Finished run = Run(kModel, {"--override-kv", text});
    EXPECT_EQ(run.status, 0) << text << run.err;
    EXPECT_TRUE(Has(run.err, ", whatever the file says\n"));
    return run.out;
  };
  const std::string bare = Run(kModel).out;
  EXPECT_NE(with("llama.rope.freq_base=float:3"), bare);
  EXPECT_EQ(with("llama.rope.freq_base=float:10000"), bare);
  EXPECT_NE(with("llama.attention.sliding_window=int:2"), bare);
  EXPECT_NE(with("tokenizer.ggml.add_bos_token=bool:false"), bare);
  EXPECT_EQ(with("llama.rope.scaling.type=str:none"), bare);
  // Several keys; their values are checked like the file's.
  EXPECT_EQ(Run(path_, {"--override-kv", "llama.attention.new_idea=", "--override-kv",
                        "llama.rope.freq_base=float:10000"})
                .out,
            bare);
  ExpectError(Run(kModel, {"--override-kv", "llama.block_count=int:0"}), 1, "must not be 0");
  ExpectError(Run(kModel, {"--override-kv", "llama.rope.scaling.type=str:dynamic"}), 1,
              "with type none (--override-kv llama.rope.scaling.type=str:none)");
  ExpectError(Run(kModel, {"--override-kv", "llama.classifier.output_labels=int:1"}), 1,
              "pooling_type 4 (--override-kv llama.pooling_type=int:4)");
  // Joined by commas; a text in double quotes may have commas.
  const Finished joined =
      Run(path_, {"--override-kv",
                  "llama.attention.new_idea=,\"x=str:a, \"\"b\"\"\",llama.rope.freq_base=float:3"});
  EXPECT_EQ(joined.out, with("llama.rope.freq_base=float:3"));
  EXPECT_TRUE(Has(joined.err, "note: --override-kv: x is a, \"b\", whatever the file says\n"));
}

TEST_F(OverrideTest, WrongForms) {
  for (const char* text :
       {"llama.x", "=int:1", "llama.x=int", "llama.x=int:", "llama.x=int:1x", "llama.x=float:a",
        "llama.x=bool:1", "llama.x=u32:1", "llama.x=int:1,", "llama.x=int:99999999999999999999"}) {
    ExpectError(Run(kModel, {"--override-kv", text}), 2, "--override-kv");
  }
}

// Each of several models is changed; a note names a model that lacks the key.
TEST_F(OverrideTest, EveryCommandThatRunsModels) {
  const Args key = {"--override-kv", "llama.attention.new_idea="};
  const std::string change = "note: --override-kv: without the file's llama.attention.new_idea\n";
  const std::string none = "note: --override-kv: the file has no llama.attention.new_idea\n";
  for (const Args& args : {Args{"bench", "-p", "1", "-n", "0", "-r", "1", "-m", kModel, path_},
                           {"compare", "-p", "1", "-n", "0", "-r", "1", kModel, path_},
                           {"run", "-m", kModel, "-md", path_, "-p", "x", "-n", "2"},
                           {"trace", "-m", path_}}) {
    ExpectError(Pronk(args), 1, "(--override-kv llama.attention.new_idea= runs it without");
    const Finished run = Pronk(With(args, key));
    EXPECT_EQ(run.status, 0) << args[0] << run.err;
    EXPECT_EQ(run.err.find(change), run.err.rfind(change)) << args[0] << run.err;  // once
    EXPECT_TRUE(Has(run.err, change)) << args[0];
    EXPECT_EQ(run.err.find(none) != std::string::npos, args[0] != "trace") << run.err;
  }
  EXPECT_EQ(Run(kModel, {"-md", path_, "--override-kv", "llama.attention.new_idea="}).out,
            Run(kModel).out);
}

TEST_F(OverrideTest, InspectAndListSayWhetherAFileRuns) {
  EXPECT_TRUE(Pronk({"inspect", kModel, "--check"}).out.ends_with("finite\nruns\n"));
  const Finished check = Done(Pronk({"inspect", path_, "--check"}));
  const size_t at = check.out.find("\ndoes not run: ");
  ASSERT_NE(at, std::string::npos) << check.out;
  EXPECT_NE(check.out.find("new_idea", at), std::string::npos);
  EXPECT_EQ(check.out.find('\n', at + 1), check.out.size() - 1);  // in one line, the last
  const auto json = Json::parse(Pronk({"inspect", path_, "--check", "--json"}).out);
  EXPECT_EQ(json["runs"], false);
  EXPECT_TRUE(Has(json["problem"].get<std::string>(), "new_idea"));
  const Finished list =
      Pronk({"list"}, "",
            {"HOME=" + dir_.Path(""), "HF_HUB_CACHE=/nonexistent", "OLLAMA_MODELS=/nonexistent"});
  EXPECT_TRUE(Has(list.out, "cannot be run"));
  EXPECT_TRUE(Has(list.err, "new_idea"));
}

}  // namespace
}  // namespace test
