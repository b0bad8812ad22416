// Text from a file, wherever it is printed: it sends no terminal commands, ends no line of ours,
// and does not fill the screen. (On a terminal: terminal_test.cc.)
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

namespace fs = std::filesystem;

// A line feed, escape codes in both spellings, DEL, a C1 control, ways to reverse the direction
// of writing and to end a line, and a byte that is not UTF-8.
const std::string kEvil = "evil\nforged  1 KB\x1b[2J\x7f\xc2\x9b\u202e\u2028\x9b";

// Printable UTF-8, except line feeds.
void ExpectHarmless(std::string_view text) {
  const Json valid = text;
  ASSERT_NO_THROW(valid.dump()) << "is no UTF-8";
  for (const std::string_view bad :
       {"\x1b", "\x7f", "\r", "\xc2\x9b", "\u202e", "\u2028", "\nforged"}) {
    EXPECT_FALSE(test::Has(text, bad));
  }
}

class UntrustedText : public testing::Test {
 protected:
  // A file whose metadata and tensor have such names and values.
  std::string EvilFile() const {
    gguf::Writer writer;
    writer.Add("general.architecture", kEvil);
    writer.Add("general.name", kEvil);
    writer.Add(kEvil, kEvil);
    const std::vector<std::string_view> texts = {kEvil, kEvil};
    writer.AddStrings("general.tags", texts);
    writer.AddTensor(kEvil, gguf::DType::kF32, {2}, weights_);
    writer.WriteFile(dir_.Path("evil.gguf"));
    return dir_.Path("evil.gguf");
  }

  // The small model with another name.
  std::string Named(const std::string& name) const {
    const gguf::File file = gguf::File::Open(kModel);
    gguf::Writer writer(static_cast<uint32_t>(file.alignment()));
    for (const gguf::Metadata::Entry& entry : file.metadata().entries()) {
      if (entry.key != "general.name" && entry.key != "general.alignment") writer.Add(entry);
    }
    writer.Add("general.name", name);
    for (const gguf::TensorView& t : file.tensors()) writer.AddTensor(t);
    writer.WriteFile(dir_.Path("named.gguf"));
    return dir_.Path("named.gguf");
  }

  const std::vector<std::byte> weights_ = std::vector<std::byte>(8);
  const TempDir dir_;
};

TEST_F(UntrustedText, Inspect) {
  const std::string path = EvilFile();
  for (const char* form : {"--tensors", "--json"}) {
    SCOPED_TRACE(form);
    const Finished run = Done(Pronk({"inspect", path, form}));
    ExpectHarmless(run.out);
    EXPECT_TRUE(Has(run.out, "forged"));  // shown, not left out
  }
  // JSON still has the whole text, except the byte that it cannot express.
  const auto json = Json::parse(Pronk({"inspect", path, "--json"}).out);
  const std::string said = json["metadata"]["general.name"];
  EXPECT_EQ(said, kEvil.substr(0, kEvil.size() - 1) + "\ufffd");
}

TEST_F(UntrustedText, List) {
  const std::string folder = dir_.Path(".lmstudio/models/a/" + kEvil);
  fs::create_directories(folder);
  fs::rename(EvilFile(), folder + "/m.gguf");
  const std::vector<std::string> environment = {"HOME=" + dir_.Path("")};
  for (const Args& args : {Args{"list"}, {"list", "--names"}, {"list", "--json"}}) {
    const Finished run = Done(Pronk(args, "", environment));
    ExpectHarmless(run.out);
    ExpectHarmless(run.err);
    EXPECT_TRUE(Has(run.out, "forged"));
  }
  // The file's row is the last of the table, and a row of its own.
  const Finished table = Pronk({"list"}, "", environment);
  const size_t rows = static_cast<size_t>(std::count(table.out.begin(), table.out.end(), '\n'));
  const Finished names = Pronk({"list", "--names"}, "", environment);
  EXPECT_EQ(rows, static_cast<size_t>(std::count(names.out.begin(), names.out.end(), '\n')) + 1);
}

TEST_F(UntrustedText, Refusals) {
  const Finished run = Pronk({"run", "-m", EvilFile(), "-p", "x"});
  EXPECT_EQ(run.status, 1);
  ExpectHarmless(run.err);
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

TEST_F(UntrustedText, Verbose) {
  const Finished evil = Done(Pronk({"run", "-m", Named(kEvil), "-p", "x", "-n", "1", "--verbose"}));
  ExpectHarmless(evil.err);
  const Finished plain = Pronk({"run", "-m", kModel, "-p", "x", "-n", "1", "--verbose"});
  EXPECT_EQ(std::count(evil.err.begin(), evil.err.end(), '\n'),
            std::count(plain.err.begin(), plain.err.end(), '\n'));
  const Finished endless = Done(
      Pronk({"run", "-m", Named(std::string(1'000'000, 'x')), "-p", "x", "-n", "1", "--verbose"}));
  EXPECT_LT(endless.err.size(), 4000u);
}

TEST_F(UntrustedText, Tokenize) {
  const Finished run = Done(Pronk({"tokenize", "-m", kModel}, "a\x1b[2J\x7f\xc2\x9b\u202e\u2028"));
  ExpectHarmless(run.out);
}

// An error message that a template makes, of any length.
TEST_F(UntrustedText, Templates) {
  const std::string path =
      dir_.Write("t", "{{ raise_exception('" + std::string(100'000, 'x') + "\x1b[2J\xc2\x9b') }}");
  const Finished run = Pronk({"template", "--template", path, "--messages", "-"}, "[]");
  EXPECT_EQ(run.status, 1);
  ExpectHarmless(run.err);
  EXPECT_LT(run.err.size(), 4000u);
}

TEST_F(UntrustedText, Arguments) {
  const Finished run = Pronk({kEvil});
  EXPECT_EQ(run.status, 2);
  ExpectHarmless(run.err);
  ExpectHarmless(Pronk({"run", "--" + kEvil}).err);
  ExpectHarmless(Pronk({"run", "-m", kEvil, "-p", "x"}).err);
}

}  // namespace
}  // namespace test
