// Chats that save themselves: their place, their permissions, and how to continue them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/data.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tmux.h"

namespace test {
namespace {

namespace fs = std::filesystem;

class SavedChatsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Tmux::IsThere()) GTEST_SKIP() << "tmux is not installed";
  }

  // Types these lines on a terminal, then leaves. Returns the screen.
  std::string Say(const std::vector<std::string>& keys, const std::string& args = "") {
    Tmux tmux("XDG_STATE_HOME=" + state_ + " " + Program() + " chat -m " + kModel +
              " -s 1 --ignore-eos -n 3 " + args);
    EXPECT_TRUE(tmux.WaitFor("/help lists the commands.")) << tmux.Screen();
    EXPECT_TRUE(tmux.WaitFor("\n>")) << tmux.Screen();
    for (size_t i = 0; i < keys.size(); ++i) {
      tmux.Keys({keys[i], "Enter"});
      EXPECT_TRUE(tmux.WaitFor("as -n says", static_cast<int>(i) + 1)) << tmux.Screen();
    }
    tmux.Keys({"C-d"});
    EXPECT_EQ(tmux.WaitForEnd(), 0) << tmux.Screen();
    return tmux.Screen();
  }
  std::vector<fs::path> Files(const std::string& extension) const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(state_ + "/pronk/chats")) {
      if (entry.path().extension() == extension) paths.push_back(entry.path());
    }
    return paths;
  }
  Finished List() const { return Pronk({"chat", "--list"}, "", {"XDG_STATE_HOME=" + state_}); }

  const TempDir dir_;
  const std::string state_ = dir_.Path("state");
};

TEST_F(SavedChatsTest, GoOnAsTheyWere) {
  EXPECT_EQ(List().out, "");
  Say({"Hello there", "Why?"});
  ASSERT_EQ(Files(".json").size(), 1u);
  ASSERT_EQ(Files(".session").size(), 1u);
  for (const fs::path& path :
       {Files(".json")[0], Files(".session")[0], fs::path(state_ + "/pronk/typed")}) {
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write)
        << path;
  }
  EXPECT_EQ(fs::status(state_ + "/pronk").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(Has(List().out,
                  "1  " + Files(".json")[0].stem().string() + "    now  llama  \"Hello there\"\n"));

  // --continue opens the chat again; the arrow brings back a line of the last session.
  const std::string screen = Say({"Up"}, "--continue");
  EXPECT_TRUE(Has(screen, "(4 messages loaded from"));
  EXPECT_TRUE(Has(screen, "> Why?"));
  EXPECT_EQ(Files(".json").size(), 1u);
  EXPECT_EQ(Json::parse(ReadText(Files(".json")[0]))["messages"].size(), 6u);
  // Another chat leaves it unchanged, except for the state, which only the last chat keeps.
  Say({"Something else"});
  EXPECT_EQ(Files(".json").size(), 2u);
  EXPECT_EQ(Files(".session").size(), 1u);
}

// Chats of different ages, the newest first; all except the last are made by hand.
TEST_F(SavedChatsTest, AreNamedByNumberOrBeginning) {
  const auto chat = [&](const Args& args, const std::string& input = "") {
    return Pronk(With({"chat", "-n", "3"}, args), input, {"XDG_STATE_HOME=" + state_});
  };
  Say({"Newest"});
  const std::string text = ReadText(Files(".json")[0]);
  const fs::path folder = state_ + "/pronk/chats";
  const auto older = [&](const std::string& name, const std::string& hello, int hours) {
    std::string changed = text;
    changed.replace(changed.find("Newest"), 6, hello);
    std::ofstream(folder / (name + ".json")) << changed;
    fs::last_write_time(folder / (name + ".json"),
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  older("2001-01-01-100000-1", "Yesterday", 30);
  older("2001-01-02-100000-1", "Today", 3);
  std::ofstream(folder / "2001-01-03-100000-1.json") << "[]{";
  fs::last_write_time(folder / "2001-01-03-100000-1.json",
                      fs::file_time_type::clock::now() - std::chrono::hours(9));
  const Finished list = Done(List());
  EXPECT_TRUE(Has(list.out, "    now  llama  \"Newest\"\n2  2001-01-02-100000-1"));
  EXPECT_TRUE(Has(list.out, "    3 h  llama  \"Today\"\n4  2001-01-01-100000-1"));
  EXPECT_TRUE(Has(list.out, "  1 day  llama  \"Yesterday\"\n"));
  EXPECT_FALSE(Has(list.out, "/"));
  EXPECT_TRUE(Has(list.err, "2001-01-03-100000-1.json: is not JSON"));

  // /undo shows which chat is loaded.
  for (const Args& args : {Args{"--continue", "2"},
                           {"--continue=2001-01-02"},
                           {"--load", "2"},
                           {"--continue", "2001-01-02-100000-1"}}) {
    EXPECT_TRUE(Has(Done(chat(args, "/undo\n/regen\n")).err, "(taken back: Today)"));
    older("2001-01-02-100000-1", "Today", 3);
  }
  const Finished inside = Done(chat({"-m", kModel}, "/chats\n/load 4\n/undo\n/load 2001-01-02\n"));
  EXPECT_TRUE(Has(inside.err, "\"Yesterday\"\n(2 messages loaded from 2001-01-01-100000-1)\n"));
  EXPECT_TRUE(Has(inside.err, "(taken back: Yesterday)\n(2 messages loaded from 2001-01-02"));
  ExpectError(chat({"--continue", "2001"}), 1,
              "2001 could be 2001-01-02-100000-1, 2001-01-03-100000-1, 2001-01-01-100000-1; 'pronk "
              "chat --list' lists 4 chats");
  ExpectError(chat({"--continue", "5"}), 1,
              "there is no saved chat 5; 'pronk chat --list' lists 4");
  ExpectError(chat({"--load", "0"}), 1, "there is no saved chat 0; ");
  ExpectError(chat({"--continue", "3"}), 1, "2001-01-03-100000-1.json: is not JSON");
}

// The model that -m names, and not the chat's own, continues under a new name.
TEST_F(SavedChatsTest, GoOnWithAnotherModelAsAnother) {
  Say({"Hello"});
  const fs::path first = Files(".json")[0];
  const std::string before = ReadText(first);
  const std::string other = DataPath("tiny/qwen2.gguf");
  // $PRONK_MODEL does not count as -m.
  Tmux tmux("XDG_STATE_HOME=" + state_ + " PRONK_MODEL=" + other + " " + Program() +
            " chat --continue -n 2");
  ASSERT_TRUE(tmux.WaitFor("\n>")) << tmux.Screen();
  tmux.Keys({"/model", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("(llama, ")) << tmux.Screen();
  tmux.Keys({"C-d"});
  EXPECT_EQ(tmux.WaitForEnd(), 0);
  EXPECT_EQ(ReadText(first), before);
  EXPECT_TRUE(
      Has(Say({"Why?"}, "--continue -m " + other), "(qwen2 goes on with it, as a new chat)"));
  EXPECT_EQ(ReadText(first), before);
  EXPECT_EQ(Files(".json").size(), 2u);
  EXPECT_TRUE(Has(List().out, "1  "));
  EXPECT_TRUE(Has(List().out, "  qwen2  \"Hello\"\n2  "));
}

// A chat without a model: the user is asked for it.
TEST_F(SavedChatsTest, AskWhichModelTheyAreBy) {
  Say({"Hello"});
  const fs::path path = Files(".json")[0];
  const std::string messages = Json::parse(ReadText(path))["messages"].dump();
  std::ofstream(path) << messages;
  const auto begin = [&] {
    return "XDG_STATE_HOME=" + state_ + " " + Program() + " chat -n 2 --ignore-eos --continue";
  };
  Tmux none(begin());
  ASSERT_TRUE(none.WaitFor("\nmodel:")) << none.Screen();
  none.Keys({"Enter"});
  EXPECT_EQ(none.WaitForEnd(), 1) << none.Screen();
  EXPECT_EQ(ReadText(path), messages);
  Tmux tmux(begin());
  ASSERT_TRUE(tmux.WaitFor("\nmodel:")) << tmux.Screen();
  tmux.Keys({"nowhere", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("called nowhere")) << tmux.Screen();
  tmux.Keys({kModel, "Enter"});
  ASSERT_TRUE(tmux.WaitFor("(2 messages loaded")) << tmux.Screen();
  tmux.Keys({"Why?", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("as -n says")) << tmux.Screen();
  tmux.Keys({"C-d"});
  EXPECT_EQ(tmux.WaitForEnd(), 0) << tmux.Screen();
  EXPECT_EQ(Json::parse(ReadText(path))["model"]["path"], kModel);
  EXPECT_EQ(Files(".json").size(), 1u);
}

TEST_F(SavedChatsTest, KeepNothingThatIsTakenBack) {
  Tmux tmux("XDG_STATE_HOME=" + state_ + " " + Program() + " chat -m " + kModel +
            " -s 1 --ignore-eos -n 3");
  ASSERT_TRUE(tmux.WaitFor("\n>")) << tmux.Screen();
  tmux.Keys({"Hello", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("as -n says")) << tmux.Screen();
  EXPECT_EQ(Files(".json").size(), 1u);
  tmux.Keys({"/undo", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("taken back")) << tmux.Screen();
  EXPECT_EQ(Files(".json").size(), 0u);
  // The next question does not count as another chat's.
  tmux.Keys({"Why?", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("as -n says", 2)) << tmux.Screen();
  EXPECT_FALSE(Has(tmux.Screen(), "another chat"));
  EXPECT_EQ(Files(".json").size(), 1u);
  tmux.Keys({"/undo", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("taken back", 2)) << tmux.Screen();
  tmux.Keys({"C-d"});
  EXPECT_EQ(tmux.WaitForEnd(), 0) << tmux.Screen();
  EXPECT_EQ(Files(".session").size(), 0u);
}

TEST_F(SavedChatsTest, NowhereToSaveIsSaidOnce) {
  dir_.Write("state", "a file, no folder");
  const std::string screen = Say({"Hello"});
  const size_t said = screen.find("cannot be made");
  EXPECT_NE(said, std::string::npos) << screen;
  EXPECT_EQ(screen.find("cannot be made", said + 1), std::string::npos) << screen;
}

TEST_F(SavedChatsTest, AFolderThatCannotBeReadIsNotEmpty) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read all";
  EXPECT_EQ(Done(List()).out, "");
  const fs::path folder = state_ + "/pronk/chats";
  fs::permissions(folder, fs::perms::none);
  ExpectError(List(), 1, folder.string() + ": cannot be made or read: Permission denied");
  fs::permissions(folder, fs::perms::owner_all);
}

TEST_F(SavedChatsTest, SaveNothingOrElsewhere) {
  Say({"Hello"}, "--no-save");
  EXPECT_EQ(List().out, "");
  EXPECT_FALSE(fs::exists(state_ + "/pronk/typed"));
  const std::string path = dir_.Path("talk.json");
  Say({"Hello"}, "--save " + path);
  EXPECT_TRUE(fs::exists(path + ".session"));
  EXPECT_EQ(List().out, "");
  const auto with = [&](const Args& args) {
    return Pronk(With({"chat", "-m", kModel, "-n", "3"}, args), "Why?\n",
                 {"XDG_STATE_HOME=" + state_});
  };
  EXPECT_EQ(with({"--save", path}).status, 1);  // the file exists
  EXPECT_EQ(with({"--load", path, "--save", path}).status, 0);
  EXPECT_TRUE(Has(with({"--load", path}).err, "(4 messages loaded"));
  EXPECT_EQ(List().out, "");  // a script's chats are not saved unasked
  EXPECT_EQ(with({"--continue"}).status, 1);
  EXPECT_EQ(with({"--continue", "--load", path}).status, 2);
}

// The second writer says so, and takes a new name.
TEST(SavedChats, OfTwoThatGoOnWithOneFile) {
  const TempDir dir;
  const Finished run = Done(Shell(
      "mkfifo \"$D/fifo\"\n"
      "chat() { \"$PRONK\" chat -m \"$MODEL\" -n 3 -s 1 --save \"$D/a.json\" \"$@\"; }\n"
      "echo Hi | chat\n"
      "chat --load \"$D/a.json\" <\"$D/fifo\" 2>\"$D/err\" &\n"
      "exec 3>\"$D/fifo\"; until grep -q loaded \"$D/err\"; do sleep 0.02; done\n"
      "echo One | chat --load \"$D/a.json\"; echo Two >&3; exec 3>&-; wait $!; cat \"$D/err\" >&2",
      {"D=" + dir.Path("")}));
  EXPECT_TRUE(Has(run.err, "a.json was written by another chat)\n(what follows is saved as "));
  const std::string first = ReadText(dir.Path("a.json"));
  const std::string second = ReadText(dir.Path("a-2.json"));
  for (const auto& [word, n_first, n_second] :
       {std::tuple("Hi", 1, 1), {"One", 1, 0}, {"Two", 0, 1}}) {
    EXPECT_EQ(Count(first, word), n_first) << first;
    EXPECT_EQ(Count(second, word), n_second) << second;
  }
}

TEST(SavedChats, BeginAnewElsewhere) {
  const TempDir dir;
  const std::string other =
      dir.Write("other.json",
                R"([{"role": "user", "content": "Old"}, {"role": "assistant", "content": "Yes"}])");
  const Finished run = Done(Pronk({"chat", "-m", kModel, "-n", "3", "--save", dir.Path("a.json")},
                                  "/clear\nOne\n/clear\nTwo\n/load " + other + "\nThree\n"));
  EXPECT_TRUE(Has(run.err, "(what follows is saved as " + dir.Path("a-2.json")));
  for (const auto& [name, word] :
       {std::pair("a.json", "One"), {"a-2.json", "Two"}, {"a-3.json", "Three"}}) {
    EXPECT_EQ(Count(ReadText(dir.Path(name)), word), 1u) << name;
  }
}

}  // namespace
}  // namespace test
