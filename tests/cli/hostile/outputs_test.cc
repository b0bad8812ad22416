// Outputs and their places: never into an input, never into a file that merely received the number
// of a closed stream, and under a temporary name that is free.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gguf/writer.h"
#include "tests/cli/pronk.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

namespace fs = std::filesystem;

class Outputs : public testing::Test {
 protected:
  // A copy of the small model, by two names.
  void SetUp() override {
    fs::copy_file(kModel, model_);
    fs::permissions(model_, fs::perms::owner_write, fs::perm_options::add);
    fs::create_symlink(model_, dir_.Path("link"));
    fs::create_hard_link(model_, dir_.Path("hard"));
  }
  void TearDown() override { EXPECT_EQ(ReadText(model_), ReadText(kModel)); }

  const TempDir dir_;
  const std::string model_ = dir_.Path("model.gguf");
};

TEST_F(Outputs, ThatAreTheModel) {
  for (const std::string& out : {model_, dir_.Path("link"), dir_.Path("hard")}) {
    SCOPED_TRACE(out);
    const std::string says = out + ": is a file that is read: give another name";
    ExpectError(Pronk({"logits", model_, "--ids", "1 2", out}), 1, says);
    ExpectError(Pronk({"bench", "-m", model_, "-p", "4", "-n", "0", "-r", "1", "--plot", out}), 1,
                says);
    ExpectError(Pronk({"quantize", model_, out, "F16"}), 1, "");  // or it is quantized already
  }
}

// Another model, meant as an input but placed last, where the output is named.
TEST_F(Outputs, ThatAreAnotherModel) {
  const std::string says = model_ + ": is a GGUF file, perhaps a model, that would be lost";
  const std::string text = dir_.Path("text"), out = dir_.Path("out");
  dir_.Write("text", std::string(3000, 'a'));
  const std::vector<std::string> logits = {"logits", kModel, "--ids", "1 2"};
  const std::vector<std::string> imatrix = {"imatrix", "-m", kModel, "-f", text, "-c", "8"};
  for (std::vector<std::string> line : {logits, imatrix}) {
    SCOPED_TRACE(line[0]);
    line.push_back(model_);
    ExpectError(Pronk(line), 1, says);
    line.back() = out;
    EXPECT_EQ(Pronk(line).status, 0);
    EXPECT_EQ(Pronk(line).status, 0) << "its own output may be written again";
  }
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"perplexity", "-m", kModel, "-f", text, "-c", "8",
                                 "--save-logits"},
        {"trace", "-m", kModel, "-p", "a", "--html"},
        {"trace", "-m", kModel, "-p", "a", "--plot"},
        {"bench", "-m", kModel, "-p", "4", "-n", "0", "-r", "1", "--plot"},
        {"compare", kModel, "-f", text, "-c", "8", "--plot"}}) {
    std::vector<std::string> over = line;
    over.push_back(model_);
    ExpectError(Pronk(over), 1, says);
    over.back() = "-";
    ExpectError(Pronk(over), 2, "- stands for the standard input");
  }
}

TEST_F(Outputs, ThatAreWherePrintedTextGoes) {
  for (const char* command :
       {"inspect \"$M\" >>\"$M\"", "run -m \"$M\" -p x -n 1 >>\"$M\"",
        "tokenize -m \"$M\" -p x >>\"$M\"", "bench -m \"$M\" -p 4 -n 0 -r 1 >>\"$M\"",
        "trace -m \"$M\" >>\"$M\"", "perplexity -m \"$M\" -f \"$M\" >>\"$M\""}) {
    SCOPED_TRACE(command);
    ExpectError(Shell(std::string("exec \"$PRONK\" ") + command, {"M=" + model_}), 1,
                model_ + ", which is being read");
  }
}

TEST(OutputsOfParts, QuantizeOntoPartTwo) {
  const TempDir dir;
  const std::vector<std::byte> weights(32 * 4);
  for (uint32_t no : {0u, 1u}) {
    gguf::Writer writer;
    if (no == 0) writer.Add("general.architecture", "llama");
    writer.Add("split.no", no);
    writer.Add("split.count", uint32_t{2});
    writer.Add("split.tensors.count", uint32_t{2});
    writer.AddTensor(no == 0 ? "a" : "b", gguf::DType::kF32, {32, 1}, weights);
    writer.WriteFile(dir.Path(no == 0 ? "m-00001-of-00002.gguf" : "m-00002-of-00002.gguf"));
  }
  const std::string first = dir.Path("m-00001-of-00002.gguf");
  const std::string second = dir.Path("m-00002-of-00002.gguf");
  const std::string before = ReadText(second);
  ExpectError(Pronk({"quantize", first, second, "Q8_0"}), 1,
              second + ": is a file that is read: give another name");
  EXPECT_EQ(ReadText(second), before);
  EXPECT_EQ(Pronk({"quantize", first, dir.Path("out"), "Q8_0"}).status, 0);
}

// The writer stays within the reader's limits.
TEST(OutputsOfQuantize, CanBeRead) {
  const TempDir dir;
  const std::vector<std::byte> weights(32 * 4);
  gguf::Writer writer;
  for (uint64_t i = 0; i + 1 < gguf::kMaxItems; ++i) writer.Add("k" + std::to_string(i), true);
  writer.Add("general.alignment", uint32_t{32});
  writer.AddTensor("a", gguf::DType::kF32, {32, 1}, weights);
  writer.WriteFile(dir.Path("in"));
  EXPECT_EQ(Pronk({"inspect", dir.Path("in")}).status, 0);
  ExpectError(Pronk({"quantize", dir.Path("in"), dir.Path("out"), "Q8_0"}), 1,
              "expected at most 131072 keys");
  EXPECT_FALSE(fs::exists(dir.Path("out")));
}

// The first file that is opened would get the number of stdout.
TEST(OutputsWithClosedStreams, GoNowhere) {
  const TempDir dir;
  const std::string plot = dir.Path("plot.svg");
  const Finished run = Shell(
      "exec \"$PRONK\" bench -m \"$MODEL\" -p 4 -n 0 -r 1 --plot \"$PLOT\" >&-", {"PLOT=" + plot});
  ExpectError(run, 1, "cannot write to the output: Bad file descriptor");
  EXPECT_FALSE(fs::exists(plot));
  ExpectError(Shell("exec \"$PRONK\" run -m \"$MODEL\" <&-"), 1, "stdin: cannot be read");
  const std::string logits = dir.Path("logits");
  EXPECT_EQ(Shell("exec \"$PRONK\" logits \"$MODEL\" --ids '1 2' \"$OUT\" 2>&- >&- <&-",
                  {"OUT=" + logits})
                .status,
            0);
  EXPECT_EQ(fs::file_size(logits) % sizeof(float), 0u);
}

// An open file, given by its number, is written from its position, as by printing.
TEST(OutputsToOpenFiles, GoWhereTheyAre) {
  const TempDir dir;
  const std::string expected = "before\n" + ReadText([&] {
                                 Done(Pronk({"logits", kModel, "--ids", "1 2", dir.Path("alone")}));
                                 return dir.Path("alone");
                               }());
  fs::create_symlink("/dev/stdout", dir.Path("link"));
  const std::vector<std::string> here = {"OUT=" + dir.Path("out"), "LINK=" + dir.Path("link")};
  const std::string command = "\"$PRONK\" logits \"$MODEL\" --ids '1 2' ";
  for (const std::string to :
       {"/dev/stdout >>\"$OUT\"", "\"$LINK\" >>\"$OUT\"", "/dev/fd/3 3>>\"$OUT\"",
        "/dev/stdout | cat >>\"$OUT\"", "/proc/self/fd/4 4>>\"$OUT\""}) {
    Done(Shell("echo before >\"$OUT\"; " + command + to, here));
    EXPECT_EQ(ReadText(dir.Path("out")), expected) << to;
  }
  Done(Shell("{ echo before; " + command + "/dev/stdout; } >\"$OUT\"", here));
  EXPECT_EQ(ReadText(dir.Path("out")), expected);
  // A pipe without a reader is refused: "5>" waits for the reader.
  Done(Shell("mkfifo \"$OUT\".pipe; cat \"$OUT\".pipe >\"$OUT\" & { " + command +
                 "\"$OUT\".pipe; } 5>\"$OUT\".pipe; wait",
             here));
  EXPECT_EQ("before\n" + ReadText(dir.Path("out")), expected);
  ExpectError(Shell(command + "/dev/fd/77"), 1, "/dev/fd/77: cannot be written: Bad file desc");
  ExpectError(Shell(command + "/tmp"), 1, "/tmp: is a folder: give the name of a file");
}

// If process ids repeat, as in containers, a killed program's file may have the name.
TEST(OutputsNextToOthers, TakeANameThatIsFree) {
  const TempDir dir;
  const Finished run = Done(
      Shell("echo mine >\"$OUT.tmp$$\" && exec \"$PRONK\" logits \"$MODEL\" --ids '1 2' \"$OUT\"",
            {"OUT=" + dir.Path("out")}));
  EXPECT_TRUE(fs::exists(dir.Path("out")));
  size_t n_files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir.Path(""))) {
    ++n_files;
    if (entry.path() == dir.Path("out")) continue;
    EXPECT_EQ(ReadText(entry.path()), "mine\n");
  }
  EXPECT_EQ(n_files, 2u);
}

// The message names the file in the way, not the requested one.
TEST(OutputsNextToOthers, NameWhatIsInTheWay) {
  const TempDir dir;
  const std::string out =
      dir.Path(std::string(250, 'x'));  // with the end of a temporary name, too long
  ExpectError(Pronk({"logits", kModel, "--ids", "1", out}), 1, "x.tmp");
}

// --- Signals ----------------------------------------------------------------------------------

// Lets open(O_TMPFILE) fail in this process and what it starts, as on file systems without it.
void ForbidNamelessFiles() {
#if defined(__linux__)
  constexpr auto kFlags = offsetof(seccomp_data, args) + 2 * sizeof(uint64_t);
  const uint32_t bit = O_TMPFILE & ~O_DIRECTORY;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlags),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bit, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
  };
  const sock_fprog program = {std::size(filter), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(126);
  }
#endif
}

// Every signal that ends a program and can be caught, while an output is open: nothing is left. The
// others, too, where files have no names.
TEST(OutputsAndSignals, LeaveNothing) {
  const std::vector<int> caught = {SIGINT,  SIGTERM,   SIGHUP,  SIGQUIT, SIGXCPU,
                                   SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2};
  for (const bool is_nameless : {true, false}) {
    std::vector<int> signals = caught;
    if (is_nameless) signals.insert(signals.end(), {SIGKILL, SIGSEGV, SIGABRT});
    for (const int signal : signals) {
      SCOPED_TRACE(strsignal(signal) + std::string(is_nameless ? "" : ", with names"));
      const TempDir dir;
      const std::string out = dir.Path("out"), program = Program();
      const pid_t child = fork();
      if (child == 0) {
        const int null = open("/dev/null", O_RDWR);
        for (const int fd : {0, 1, 2}) dup2(null, fd);
        const rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        if (!is_nameless) ForbidNamelessFiles();
        execl(program.c_str(), "pronk", "bench", "-m", kModel.c_str(), "-p", "4", "-n", "0", "-r",
              "1000", "-d", "400", "--plot", out.c_str(), nullptr);
        _exit(127);
      }
      // It has opened the output once one of its files is in the folder.
      const auto is_open = [&] {
        std::error_code error;
        for (const auto& link :
             fs::directory_iterator("/proc/" + std::to_string(child) + "/fd", error)) {
          if (fs::read_symlink(link.path(), error).string().starts_with(dir.Path(""))) return true;
        }
        return false;
      };
      for (int i = 0; i < 1000 && !is_open(); ++i) usleep(10'000);
      EXPECT_TRUE(is_open());
      EXPECT_TRUE(is_nameless || fs::exists(out + ".tmp" + std::to_string(child)));
      kill(child, signal);
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(fs::is_empty(dir.Path("")));
    }
  }
}

}  // namespace
}  // namespace test
