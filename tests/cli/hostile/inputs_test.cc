// The program never writes into a file that it reads: every input flag with every output flag, by
// the command line's own table. Also inputs and outputs that are not files.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/cli/command_text.h"
#include "tests/cli/pronk.h"
#include "tests/support/hf_folder.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

namespace fs = std::filesystem;

using cli::Flag;

class Inputs : public testing::Test {
 protected:
  const TempDir dir_;
  const std::string text_ = dir_.Write("text", std::string(3000, 'a'));
  const std::string json_ = dir_.Write("json", "[]");
  const std::string folder_ = HfLlama().Write(dir_, "model");
  const CommandTable table_;
};

// A flag with a file is an input unless listed here.
TEST_F(Inputs, AreAllFilesButThese) {
  std::string outputs;
  for (const cli::Command& command : table_.line.commands()) {
    for (const Flag& flag : command.flags) {
      if (flag.writes) outputs += command.name + " " + flag.Title() + "\n";
    }
  }
  EXPECT_EQ(outputs,
            "run --prompt-cache\nrun --output\nchat --load\nchat --save\nbench --plot\n"
            "compare --plot\ntrace --plot\ntrace --html\nlogits OUT\n"
            "perplexity --save-logits\nconvert --outfile\nquantize OUT\nimatrix OUT\n");
}

// An unset variable of a script: without --grammar, for example, any text would be accepted.
TEST_F(Inputs, HaveNames) {
  for (const cli::Command& command : table_.line.commands()) {
    for (const Flag& flag : command.flags) {
      if (!flag.reads() && !flag.writes) continue;
      if (flag.names.empty() && !flag.required) continue;
      const std::string line = "exec " + CommandText(command, {{&flag, "$NONE"}});
      SCOPED_TRACE(line);
      ExpectError(Shell(line, {"NONE="}), 2, ": expected a file");
    }
  }
}

TEST_F(Inputs, AreNeverOutputs) {
  const std::string file = dir_.Write("file", "read me\n"), link = dir_.Path("link");
  fs::create_symlink(file, link);
  fs::create_hard_link(file, dir_.Path("hard"));
  size_t n_pairs = 0;
  for (const cli::Command& command : table_.line.commands()) {
    for (const Flag& in : command.flags) {
      for (const Flag& out : command.flags) {
        if (!in.reads() || !out.writes) continue;
        ++n_pairs;
        const std::string line = "exec " + CommandText(command, {{&in, "$IN"}, {&out, "$OUT"}});
        for (const std::string& name : {file, link, dir_.Path("hard")}) {
          SCOPED_TRACE(line + " " + name);
          ExpectError(Shell(line, {"IN=" + file, "OUT=" + name, "TEXT=" + text_}), 1,
                      name + ": is a file that is read: give another name");
          ExpectError(Shell(line + " <\"$OUT\"", {"IN=-", "OUT=" + name, "TEXT=" + text_}), 1,
                      name + ": is a file that is read: give another name");
        }
        ASSERT_EQ(ReadText(file), "read me\n") << line;
      }
    }
  }
  EXPECT_GT(n_pairs, 20u);
}

// With valid files, which a command without the check would overwrite.
TEST_F(Inputs, ThatWereWrittenOver) {
  const std::string baseline = dir_.Path("baseline");
  ASSERT_EQ(
      Shell("exec \"$PRONK\" bench -m \"$MODEL\" -p 4 -n 0 -r 1 -o json >\"$B\"", {"B=" + baseline})
          .status,
      0);
  for (const std::string line :
       {"bench -m \"$MODEL\" -p 4 -n 0 -r 1 --baseline \"$B\" --plot \"$B\"",
        "imatrix -m \"$MODEL\" -f - -c 8 \"$T\" <\"$T\"",
        "perplexity -m \"$MODEL\" -f - -c 8 --save-logits \"$T\" <\"$T\"",
        "compare \"$MODEL\" \"$MODEL\" -f - -c 8 -p 4 -n 0 -r 1 --plot \"$T\" <\"$T\"",
        "run -m \"$MODEL\" -n 1 --prompt-cache \"$T\" <\"$T\""}) {
    SCOPED_TRACE(line);
    const std::string before = ReadText(text_) + ReadText(baseline);
    ExpectError(Shell("exec \"$PRONK\" " + line, {"B=" + baseline, "T=" + text_}), 1,
                ": is a file that is read: give another name");
    EXPECT_EQ(ReadText(text_) + ReadText(baseline), before);
  }
}

TEST_F(Inputs, OfConvertAreAllFilesOfTheFolder) {
  for (const fs::directory_entry& file : fs::directory_iterator(folder_)) {
    SCOPED_TRACE(file.path());
    const std::string before = ReadText(file.path());
    ExpectError(Pronk({"convert", folder_, file.path()}), 1, ": is a file that is read");
    EXPECT_EQ(ReadText(file.path()), before);
  }
}

}  // namespace
}  // namespace test
