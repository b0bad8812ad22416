// A saved chat belongs to its model: the data it records, the model that continues it, and refused
// files.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/cli/pronk.h"
#include "tests/support/data.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

namespace fs = std::filesystem;

const std::string kOther = DataPath("tiny/qwen2.gguf");

class ChatFileTest : public testing::Test {
 protected:
  // A chat with a copy of the tiny model, saved to talk.json.
  Finished Begin(const Args& more = {}, const std::string& input = "") {
    fs::copy_file(kModel, model_, fs::copy_options::overwrite_existing);
    fs::remove(file_);
    fs::remove(file_ + ".session");
    return Done(Pronk(With({"chat", "-m", model_, "--ignore-eos"}, more),
                      "Hello\n" + input + "/save " + file_ + "\n"));
  }
  Finished GoOn(const std::string& input, const Args& more = {}) {
    return Pronk(With({"chat", "--load", file_}, more), input);
  }
  Json Saved() const { return Json::parse(ReadText(file_)); }
  // The saved file with a change.
  void Change(const std::string& what, const std::string& by) {
    std::string text = ReadText(file_);
    const size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << text;
    dir_.Write("talk.json", text.replace(at, what.size(), by));
  }

  const TempDir dir_;
  const std::string model_ = dir_.Path("tiny.gguf"), file_ = dir_.Path("talk.json");
};

TEST_F(ChatFileTest, GoesOnAsItWas) {
  const std::string grammar = dir_.Write("digits.gbnf", "root ::= [0-9]+");
  const std::string form =
      dir_.Write("form", "{% for m in messages %}[{{ m.content }}]{% endfor %}");
  Begin({"-n", "4", "-c", "200", "--grammar", grammar, "--template", form, "--kv", "f32"},
        "/set temperature 0\n/system Count.\n");
  const Json saved = Saved();
  EXPECT_EQ(saved["model"]["name"], "tiny");
  EXPECT_EQ(saved["model"]["path"], model_);
  EXPECT_EQ(saved["model"]["bytes"], fs::file_size(kModel));
  EXPECT_EQ(saved["flags"]["--ctx-size"][0], "200");
  EXPECT_EQ(saved["template"], ReadText(form));
  EXPECT_EQ(saved["messages"][0]["content"], "Count.");

  // By name and without the flags' files: the same bits as with all flags given.
  fs::remove(grammar);
  fs::remove(form);
  const Finished run = Done(GoOn("Why?\n/stats\n/set\n"));
  EXPECT_EQ(run.out.find_first_not_of("0123456789\n"), std::string::npos) << run.out;
  EXPECT_TRUE(Has(run.err, "(the answer was cut after 4 tokens"));
  EXPECT_TRUE(Has(run.err, " of 200 tokens; of the last question "));
  EXPECT_TRUE(Has(run.err, "temperature 0 (saved)"));
  const Finished with_flags = Done(GoOn("Why?\n", {"-m", model_, "--temp", "0", "-n", "4"}));
  EXPECT_EQ(with_flags.out, run.out);
  // A flag on the command line wins, also over a saved flag that excludes it.
  const Finished changed =
      Done(GoOn("Why?\n/set\n", {"-n", "2", "--grammar", "root ::= \"ab\"", "--temp", "1"}));
  EXPECT_EQ(changed.out, "ab\n");
  EXPECT_TRUE(Has(changed.err, "temperature 1 (flag)"));
  EXPECT_EQ(GoOn("Why?\n", {"--json-object", "-n", "1"}).out, "{\n");
}

TEST_F(ChatFileTest, AModelThatIsGoneOrChangedIsRefused) {
  Begin({"-n", "3"});
  const std::string moved = dir_.Path("moved.gguf"), before = ReadText(file_);
  fs::rename(model_, moved);
  ExpectError(GoOn("Why?\n"), 1,
              file_ + ": its model tiny is gone (" + model_ + "): -m names a model");
  // -m may give the model's new path: it is the same model.
  EXPECT_FALSE(Has(Done(GoOn("Why?\n", {"-m", moved})).err, "goes on"));
  fs::copy_file(kOther, model_);
  ExpectError(GoOn("Why?\n"), 1, "its model tiny has changed (" + model_ + "): -m " + model_);
  // A model of the same size, with one letter changed.
  std::string bytes = ReadText(moved);
  bytes[bytes.find("random weights")] = 'R';
  dir_.Write("tiny.gguf", bytes);
  ExpectError(GoOn("Why?\n"), 1, "its model tiny has changed");
  dir_.Write("tiny.gguf", "GGUF");
  ExpectError(GoOn("Why?\n"), 1, "its model tiny cannot be opened: ");
  EXPECT_EQ(ReadText(file_), before);

  // A single changed weight is found only by the saved state, whose hash covers all weights.
  bytes = ReadText(moved);
  bytes[bytes.size() - 1000] = static_cast<char>(bytes[bytes.size() - 1000] ^ 64);
  dir_.Write("tiny.gguf", bytes);
  const Finished run = Done(GoOn("Why?\n", {"--save", file_}));
  EXPECT_TRUE(Has(run.err, "talk.json.session belongs to another model"));
  EXPECT_TRUE(Has(run.err, "(what follows is saved as " + dir_.Path("talk-2.json") + ")"));
  EXPECT_EQ(ReadText(file_), before);
}

TEST_F(ChatFileTest, AnotherModelWritesElsewhere) {
  Begin({"-n", "3"});
  const std::string before = ReadText(file_), state = ReadText(file_ + ".session");
  const Finished run = Done(GoOn("Why?\n", {"-m", kOther, "--save", file_}));
  EXPECT_TRUE(Has(run.err, "talk-2.json"));
  EXPECT_TRUE(Has(run.err, "(qwen2 goes on with it, as a new chat)"));
  EXPECT_EQ(ReadText(file_), before);
  EXPECT_EQ(ReadText(file_ + ".session"), state);
  const auto saved = Json::parse(ReadText(dir_.Path("talk-2.json")));
  EXPECT_EQ(saved["model"]["name"], "qwen2");
  EXPECT_EQ(saved["messages"].size(), 4u);
  EXPECT_TRUE(Has(GoOn("/save\n", {"-m", kOther}).err, "/save needs the name of a file"));

  // In the chat, too: /model continues the chat under a new name, and /load comes back.
  const std::string own = dir_.Path("own.json");
  const Finished both = Done(Pronk({"chat", "-m", kModel, "-n", "3", "--save", own},
                                   "Hello\n/model " + kOther + "\n/model\nWhy?\n/model " + kOther +
                                       "\n/load " + own + "\n/model\n"));
  EXPECT_TRUE(Has(both.err,
                  "(qwen2 continues the conversation as a new chat)\n(what follows "
                  "is saved as " +
                      dir_.Path("own-2.json") + ")"));
  EXPECT_TRUE(Has(both.err, "(qwen2 is already answering)"));
  EXPECT_TRUE(Has(both.err, "(llama answers from here on)\n(what follows is saved as " +
                                dir_.Path("own-3.json") + ")\n(2 messages loaded"));
  EXPECT_EQ(Json::parse(ReadText(own))["model"]["name"], "llama");
  EXPECT_EQ(Json::parse(ReadText(own))["messages"].size(), 2u);
  const auto second = Json::parse(ReadText(dir_.Path("own-2.json")));
  EXPECT_EQ(second["model"]["name"], "qwen2");
  EXPECT_EQ(second["messages"].size(), 4u);
  // If a model cannot be opened, the other stays.
  const Finished none = Pronk({"chat", "-m", kModel, "-n", "3"}, "Hello\n/model nowhere\n");
  EXPECT_EQ(none.status, 1);
  EXPECT_TRUE(Has(none.err, "no file and no model called nowhere"));
}

// Templates belong to models: another chat uses neither a flag's template nor an earlier chat's.
TEST_F(ChatFileTest, ATemplateStaysWithItsChat) {
  Begin({"-n", "3"});
  const std::string form = dir_.Write("form", "{{ raise_exception('mine') }}");
  const Args chat = {"chat", "-m", kModel, "--template", form};
  EXPECT_TRUE(Has(Pronk(chat, "Hello\n").err, "mine"));
  Done(Pronk(chat, "/load " + file_ + "\nHello\n"));
  Done(Pronk(chat, "/model " + kOther + "\n/set num_predict 2\nHello\n"));
}

// A chat as other programs write it.
TEST_F(ChatFileTest, AListOfMessagesNeedsAModel) {
  const std::string list =
      R"([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}])";
  for (const std::string& text : {list, "{\"messages\": " + list + "}"}) {
    dir_.Write("talk.json", text);
    ExpectError(GoOn("Why?\n"), 1, file_ + ": does not say which model it is by: give -m");
    EXPECT_EQ(ReadText(file_), text);
    Done(GoOn("Why?\n", {"-m", kModel, "-n", "3", "--save", file_}));
    EXPECT_EQ(Saved()["model"]["name"], "llama");
    EXPECT_EQ(Saved()["messages"].size(), 4u);
    // In a chat the current model continues, but does not overwrite the file.
    dir_.Write("talk.json", text);
    const Args chat = {"chat", "-m", kModel, "-n", "3"};
    EXPECT_TRUE(Has(Pronk(chat, "/load " + file_ + "\n/save\n").err, "/save needs the name"));
  }
  // The saved state identifies the chat's model.
  Begin({"-n", "3"});
  dir_.Write("talk.json", Saved()["messages"].dump());
  const std::string before = ReadText(file_);
  const Finished run = Done(GoOn("Why?\n", {"-m", kOther, "-n", "3", "--save", file_}));
  EXPECT_TRUE(Has(run.err, "belongs to another model"));
  EXPECT_EQ(ReadText(file_), before);
  EXPECT_EQ(Json::parse(ReadText(dir_.Path("talk-2.json")))["model"]["name"], "qwen2");
}

TEST_F(ChatFileTest, WhatIsWrongIsNamed) {
  const auto refused = [&](const std::string& what, const std::string& by,
                           const std::string& says) {
    Begin({"-n", "3"});
    Change(what, by);
    ExpectError(GoOn("Why?\n"), 1, file_ + ": " + says);
    ExpectError(Pronk({"chat", "-m", kModel}, "/load " + file_ + "\n"), 1, file_ + ": " + says);
    ExpectError(Pronk({"chat", "-m", kModel, "--load", file_}), 1, file_ + ": " + says);
  };
  refused("\"pronk_chat\": 1", "\"pronk_chat\": 2", "pronk_chat: expected 1");
  refused("\"model\": {", "\"model\": 7, \"x\": {", "model: expected an object, found 7");
  refused("\"name\":", "\"nom\":", "model.name: expected a text, found nothing");
  refused("\"path\":\"/", "\"path\":\"", "model.path: expected an absolute path");
  refused("\"bytes\":", "\"bytes\":-", "model.bytes: expected a whole number");
  refused("\"fingerprint\":\"", "\"fingerprint\":\"x",
          "model.fingerprint: expected 16 hexadecimal");
  refused("\"flags\": {", "\"template\": {}, \"flags\": {", "template: expected a text");
  refused("\"flags\": {", "\"flags\": [], \"x\": {", "flags: expected an object");
  refused("[\"3\"]", "\"3\"", "flags: --n-predict: expected a list of texts, found \"3\"");
  refused("[\"3\"]", "[]", "flags: --n-predict: expected a list of texts");
  refused("[\"3\"]", "[\"x\"]", "--n-predict: expected a whole number, found x");
  refused("--n-predict", "--save", "flags: a chat keeps no \"--save\"");
  refused("\"messages\":", "\"message\":", "expected a list of");
  // An untrusted chat cannot make the program read files.
  refused("\"--n-predict\":[\"3\"]", "\"--grammar\":[\"/etc/passwd\"]",
          "flags: --grammar: expected the text itself, found \"/etc/passwd\"");
  refused("\"--n-predict\":[\"3\"]", "\"--json-schema\":[\"-\"]",
          "flags: --json-schema: expected the text itself");
  // A file cut anywhere is not a chat, and stays unchanged.
  Begin({"-n", "3"});
  const std::string whole = ReadText(file_);
  for (size_t n = 0; n + 2 < whole.size(); n += 31) {
    dir_.Write("talk.json", whole.substr(0, n));
    EXPECT_EQ(GoOn("Why?\n").status, 1) << n;
    EXPECT_EQ(ReadText(file_), whole.substr(0, n));
  }
}

// Another chat's state beside the file is neither used nor harmful.
TEST_F(ChatFileTest, SwappedStatesChangeNoAnswer) {
  Begin({"-n", "3", "--temp", "0"}, "And then, and why?\n");
  fs::copy_file(file_ + ".session", dir_.Path("swapped"));
  fs::remove(file_);
  fs::remove(file_ + ".session");
  Begin({"-n", "3", "--temp", "0"});
  fs::remove(file_ + ".session");
  const std::string expected = Done(GoOn("Why?\n")).out;
  fs::copy_file(dir_.Path("swapped"), file_ + ".session");
  EXPECT_EQ(Done(GoOn("Why?\n")).out, expected);
}

// A limit on file sizes acts like a full disk.
TEST_F(ChatFileTest, AFullDiskLosesNothing) {
  const std::vector<std::string> environment = {"D=" + dir_.Path("")};
  const std::string chat =
      "\"$PRONK\" chat -m \"$MODEL\" -n 3 --ignore-eos --save \"$D/talk.json\" ";
  // 2 KB are enough for the chat, not for the state.
  const Finished small = Done(Shell("ulimit -f 4; echo Hello | " + chat, environment));
  EXPECT_TRUE(Has(small.err, "what the model remembers is not saved"));
  EXPECT_FALSE(fs::exists(file_ + ".session"));
  EXPECT_EQ(Saved()["messages"].size(), 2u);
  const std::string before = ReadText(file_);
  const Finished large = Shell("ulimit -f 4; head -c 3000 /dev/zero | tr '\\0' x | " + chat +
                                   "-c 4000 --load \"$D/talk.json\"",
                               environment);
  EXPECT_EQ(large.status, 1);
  EXPECT_TRUE(Has(large.err, "talk.json: cannot be written: File too large"));
  EXPECT_EQ(ReadText(file_), before);
}

// The second writer takes another name: no question is lost. A program that starts late reads the
// file that another one has saved, so a question may be in several files.
TEST_F(ChatFileTest, SeveralProgramsSaveToOneFile) {
  Begin({"-n", "3"});
  Done(
      Shell("for i in 1 2 3 4 5 6; do\n"
            "echo \"Question $i\" | \"$PRONK\" chat -t 1 --load \"$D/talk.json\" "
            "--save \"$D/talk.json\" & done; wait",
            {"D=" + dir_.Path("")}));
  std::string all;
  for (const auto& entry : fs::directory_iterator(dir_.Path(""))) {
    if (entry.path().extension() == ".json") all += ReadText(entry.path());
  }
  for (int i = 1; i <= 6; ++i)
    EXPECT_TRUE(Has(all, "\"Question " + std::to_string(i) + "\"")) << all;
}

}  // namespace
}  // namespace test
