// Files, prompts and disks that fail, as a user sees them: one line that says what, status 1, and
// no half-written file left.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/cli/pronk.h"
#include "tests/support/data.h"
#include "tests/support/hf_folder.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

namespace fs = std::filesystem;

// Whatever was written before.
void ExpectOneLine(Finished run, const std::string& says) {
  run.out.clear();
  ExpectError(run, 1, says);
}

TEST(HostileFile, PipesAndDirectoriesAreNamed) {
  const TempDir dir;
  const std::string pipe = dir.Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ExpectOneLine(Pronk({"run", "-m", pipe, "-p", "x"}), "found a pipe (FIFO)");
  ExpectOneLine(Pronk({"inspect", dir.Path("")}), "found a directory");
  ExpectOneLine(Pronk({"tokenize", "-m", "/dev/null", "-p", "x"}), "found a device");
}

// A damaged draft model is refused or drafts worse: the text stays the same.
TEST(HostileFile, ThatDrafts) {
  const TempDir dir;
  const Args run = {"run", "-m", kModel, "-p", "Hello", "-n", "12", "-t", "1", "--temp", "0"};
  const std::string plain = Pronk(run).out;
  std::minstd_rand random(7);
  size_t n_run = 0;
  for (int i = 0; i < 16; ++i) {
    std::string bytes = ReadText(kModel);
    if (i % 2 == 0) {  // any bytes
      for (int n = 0; n < 4; ++n) bytes[random() % bytes.size()] = static_cast<char>(random());
    } else {  // weights: NaN
      std::fill(bytes.end() - static_cast<ptrdiff_t>(4 * (1 + random() % 2000)), bytes.end(),
                '\xFF');
    }
    std::vector<std::string> args = run;
    args.insert(args.end(), {"-md", dir.Write("draft", bytes)});
    const Finished drafted = Pronk(args);
    if (drafted.status != 0) {
      ExpectOneLine(drafted, "");
    } else {
      EXPECT_EQ(drafted.out, plain);
      ++n_run;
    }
  }
  EXPECT_GT(n_run, 4u);
}

// The program has opened the model and waits for a question, on a pipe, when the file is truncated.
// The model is larger than the copy of its head.
TEST(HostileFile, ThatShrinksInUse) {
  const TempDir dir;
  const Finished run = Shell(
      "cp \"$LARGE\" \"$D/model\" && chmod u+w \"$D/model\" && mkfifo \"$D/in\" || exit 9\n"
      "\"$PRONK\" chat -m \"$D/model\" -n 4 --verbose <\"$D/in\" 2>\"$D/err\" &\n"
      "exec 3>\"$D/in\"\n"
      "until grep -qs ^seed \"$D/err\"; do sleep 0.01; done\n"  // the last line of --verbose
      ": >\"$D/model\"\n"
      "echo Hello >&3; exec 3>&-\n"
      "wait $!; status=$?; sed 1,/^seed/d \"$D/err\" >&2; exit $status",
      {"D=" + dir.Path(""), "LARGE=" + kDefault});
  ExpectOneLine(run, "/model: can no longer be read: it was shortened, or its disk failed");
}

// The file is overwritten or replaced: the checked data stays, weights are as in the overwritten
// file, and the replacement is ignored.
TEST(HostileFile, ThatChangesInUse) {
  const TempDir dir;
  for (const std::string change : {"head -c \"$(wc -c <\"$D/model\")\" /dev/urandom | dd "
                                   "of=\"$D/model\" conv=notrunc status=none",
                                   "echo other >\"$D/other\"; mv -f \"$D/other\" \"$D/model\""}) {
    SCOPED_TRACE(change);
    const Finished run = Shell(
        "rm -f \"$D\"/*; cp \"$MODEL\" \"$D/model\" && chmod u+w \"$D/model\" && mkfifo \"$D/in\" "
        "|| exit 9\n"
        "\"$PRONK\" chat -m \"$D/model\" -n 4 --verbose <\"$D/in\" 2>\"$D/err\" &\n"
        "exec 3>\"$D/in\"\n"
        "until grep -qs ^seed \"$D/err\"; do sleep 0.01; done\n" +
            change +
            "\necho Hello >&3; echo Hello >&3; exec 3>&-\n"
            "wait $!; status=$?; sed 1,/^seed/d \"$D/err\" >&2; exit $status",
        {"D=" + dir.Path("")});
    // With random weights logits may be NaN, so status 1 is allowed. Ending by a signal is not.
    EXPECT_TRUE(run.status == 0 || run.status == 1) << run.status << run.err;
  }
}

// A row of the last matrix is NaN, so one token can never be chosen. The program says that once.
TEST(HostileWeights, ThatAreNoNumbers) {
  const TempDir dir;
  const std::string path = dir.Path("nan.gguf");
  {
    const gguf::File file = gguf::File::Open(kModel);
    const bool is_tied = file.FindTensor("output.weight") == nullptr;
    const std::string_view name = is_tied ? "token_embd.weight" : "output.weight";
    std::vector<std::byte> bytes;
    gguf::Writer writer;
    for (const auto& entry : file.metadata().entries()) writer.Add(entry);
    for (gguf::TensorView tensor : file.tensors()) {
      if (tensor.name == name) {
        bytes.assign(tensor.data, tensor.data + tensor.bytes);
        std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(300 * tensor.row_bytes()),
                    tensor.row_bytes(), std::byte{0xFF});
        tensor.data = bytes.data();
      }
      writer.AddTensor(tensor);
    }
    writer.WriteFile(path);
  }
  const std::string warning = "are NaN or infinite, and their tokens were left out";
  const auto n_warnings = [&](const Finished& run) {
    EXPECT_EQ(run.status, 0) << run.err;
    size_t n = 0;
    for (size_t at = 0; (at = run.err.find(warning, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  const Args more = {"-n", "4", "--temp", "0"};
  EXPECT_EQ(n_warnings(Pronk(With({"run", "-m", path, "-p", "Hello"}, more))), 1u);
  EXPECT_EQ(n_warnings(Pronk(With({"run", "-m", path, "-p", "Hello", "--json"}, more))), 1u);
  EXPECT_EQ(
      n_warnings(Pronk(With({"run", "-m", path, "--jsonl", "-f", "-"}, more), R"({"prompt": "A"})"
                                                                              "\n"
                                                                              R"({"prompt": "B"})"
                                                                              "\n")),
      1u);
  EXPECT_EQ(n_warnings(Pronk(With({"chat", "-m", path}, more), "Hello\nHello\n")), 1u);
  EXPECT_EQ(n_warnings(Pronk(With({"run", "-m", kModel, "-p", "Hello"}, more))), 0u);
  const Finished check = Pronk({"inspect", "--check", path});
  ExpectOneLine(check, "found NaN or infinity in 1 of");
}

TEST(HostileDisk, FullUnderTheOutput) {
  const TempDir dir;
  for (const char* command : {"run -m \"$MODEL\" -p Hello -n 4", "inspect \"$MODEL\" --tensors",
                              "trace -m \"$MODEL\" -t 1", "tokenize -m \"$MODEL\" -p Hello",
                              "bench -m \"$MODEL\" -p 4 -n 0 -r 1"}) {
    SCOPED_TRACE(command);
    ExpectOneLine(
        Shell(std::string("exec \"$PRONK\" ") + command + " >/dev/full", {"D=" + dir.Path("")}),
        "cannot write to the output: No space left on device");
  }
}

TEST(HostileDisk, FullUnderAFile) {
  const TempDir dir;
  ExpectOneLine(Pronk({"logits", kModel, "--ids", "1 2 3", "/dev/full"}),
                "/dev/full: cannot be written: No space left on device");
  ExpectOneLine(Pronk({"quantize", kModel, "/dev/full", "Q8_0"}),
                "/dev/full: cannot be written: No space left on device");
  ExpectOneLine(Pronk({"bench", "-m", kModel, "-p", "4", "-n", "0", "-r", "1", "-o", "json",
                       "--plot", "/dev/full"}),
                "/dev/full: cannot be written: No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));  // a device is written, not replaced
}

// A limit on the size of files acts like a disk that becomes full.
TEST(HostileDisk, NothingHalfWrittenIsLeft) {
#ifdef __clang__
  GTEST_SKIP() << "clang's OpenMP makes a file of its own that is over the limit";
#endif
  const TempDir dir;
  dir.Write("out", "as before");
  for (const std::string command : {"logits \"$MODEL\" --ids '1 2 3 4 5 6 7 8' \"$D/out\"",
                                    "quantize \"$MODEL\" \"$D/out\" Q8_0"}) {
    SCOPED_TRACE(command);
    const Finished run = Shell("ulimit -f 1; exec \"$PRONK\" " + command, {"D=" + dir.Path("")});
    ExpectOneLine(run, "out: cannot be written: File too large");
    EXPECT_EQ(ReadText(dir.Path("out")), "as before");
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.Path("")), fs::directory_iterator()), 1);
  }
}

// A file system of two pages, the first of which is taken. Mounting it takes root.
TEST(HostileDisk, FullInTheMiddle) {
  const TempDir dir;
  HfLlama().Write(dir);
  dir.Write("text", std::string(300, 'a'));
  fs::create_directory(dir.Path("disk"));
  fs::create_symlink("disk/out", dir.Path("link"));
  std::string ids;
  for (int i = 0; i < 16; ++i) ids += "1 ";
  for (const std::string& command : {
           "logits \"$MODEL\" --ids \"" + ids + "\" out",
           "logits \"$MODEL\" --ids \"" + ids + "\" ../link",
           std::string("quantize \"$MODEL\" out Q8_0"),
           std::string("convert ../model out"),
           std::string("imatrix -m \"$MODEL\" -f ../text -c 64 out"),
           std::string("perplexity -m \"$MODEL\" -f ../text -c 64 --save-logits out"),
           std::string("trace -m \"$MODEL\" -p Hello --html out"),
           "run -m \"$MODEL\" -p " + std::string(100, 'a') + " -n 4 --prompt-cache cache",
       }) {
    SCOPED_TRACE(command);
    const Finished run = Shell(
        "unshare -m true 2>/dev/null || exit 77\n"
        "exec unshare -m /bin/sh -c '"
        "mount -t tmpfs -o size=8k none \"$D/disk\" 2>/dev/null || exit 77\n"
        "cd \"$D/disk\"; echo as before >out\n"
        "\"$PRONK\" " +
            command +
            " >/dev/null; status=$?; cat *; exit $status"
            "'",
        {"D=" + dir.Path("")});
    if (run.status == 77) GTEST_SKIP() << "needs root, to mount";
    ExpectOneLine(run, ": cannot be written: No space left on device");
    EXPECT_EQ(run.out, "as before\n");
  }
}

// A signal ends the program while it writes. "bench" has its file open from the start; if the file
// system allows it, the file has no name.
TEST(HostileDisk, NothingIsLeftBySignals) {
  for (const std::string end : {"kill -TERM $!", "kill -HUP $!", ": >model"}) {
    SCOPED_TRACE(end);
    const TempDir dir;
    const Finished run = Shell(
        "cd \"$D\" && cp \"$LARGE\" model && chmod u+w model || exit 9\n"
        "\"$PRONK\" bench -m model -p 256 -n 0 -r 1000 --plot out >text &\n"
        "until ls | grep -q out || ls -l /proc/$!/fd 2>&1 | grep -q '(deleted)'; do sleep 0.01; "
        "done\n" +
            end + "; wait $!; status=$?; ls; exit $status",
        {"D=" + dir.Path(""), "LARGE=" + kDefault});
    EXPECT_NE(run.status, 0);
    EXPECT_EQ(run.out, "model\ntext\n");
  }
}

TEST(HostileDisk, NamesThatCannotBeWritten) {
  const TempDir dir;
  ExpectOneLine(Pronk({"logits", kModel, "--ids", "1", dir.Path("")}),
                "is a folder: give the name of a file");
  // Known before anything is measured.
  ExpectOneLine(Pronk({"bench", "-m", kModel, "--plot", dir.Path("no/such")}),
                "there is no folder");
}

// The program runs in a folder where others may write: it never loads a library from there.
TEST(HostileDisk, LibrariesInTheCurrentFolder) {
  const TempDir dir;
  const Finished run = Shell(
      "cd \"$D\" || exit 9\n"
      "for name in $(ldd \"$PRONK\" | sed -n 's/^[[:space:]]*\\(lib[^ ]*\\) => .*/\\1/p'); do\n"
      "  echo 'not a library' >\"$name\"\n"
      "done\n"
      "set -- lib*; test -f \"$1\" || exit 8\n"
      "\"$PRONK\" --version",
      {"D=" + dir.Path("")});
  if (run.status == 8) GTEST_SKIP() << "no ldd, which names the program's libraries";
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("pronk ")) << run.out;
}

TEST(HostileDisk, PromptsThatCannotBeRead) {
  const TempDir dir;
  ExpectOneLine(Pronk({"run", "-m", kModel, "-f", dir.Path("")}), "cannot be read: Is a directory");
  ExpectOneLine(Pronk({"run", "-m", kModel, "-f", dir.Path("none")}), "No such file");
  // Known before any model is loaded.
  ExpectOneLine(Pronk({"run", "-m", "none.gguf", "-f", dir.Path("prompt")}), "prompt: cannot be");
}

TEST(HostilePrompt, AnyBytesAreText) {
  const std::string bytes("nul\0 \xff\xfe\xc3( \xed\xa0\x80 \xf4\x90\x80\x80 \x1b[2J", 24);
  const Finished run = Done(Pronk({"run", "-m", kModel, "-n", "2", "-c", "300"}, bytes));
  EXPECT_EQ(run.out.substr(0, bytes.size()), bytes);
}

TEST(HostilePrompt, LongerThanTheContext) {
  ExpectOneLine(Pronk({"run", "-m", kModel, "-c", "8"}, std::string(100, 'x')), "has room for 8");
}

// The tokenizer need not read all of a text to know that it cannot fit.
TEST(HostilePrompt, OfAHundredMegabytes) {
  const TempDir dir;
  fs::resize_file(dir.Write("prompt", "x"), 100'000'000);
  ExpectOneLine(Pronk({"run", "-m", kModel, "-f", dir.Path("prompt")}), "the context has room for");
}

}  // namespace
}  // namespace test
