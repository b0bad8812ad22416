// The library's chat: the answers are the same whether the program or the library keeps the
// conversation. Calls and thinking are not in the text.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "engine/pronk.h"
#include "tests/engine/library.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_dir.h"

namespace {

using test::AtMost;
using test::Greedy;
using test::kDefault;

// Counts a text before it is said, also a text longer than the context.
TEST(LibraryChat, CountsAConversation) {
  const pronk::Model model(kDefault);
  pronk::Options options = Greedy();
  options.context = 64;
  pronk::Chat chat(model, "You are kind.", options);
  const std::size_t n = chat.Count("What is a goat?");
  EXPECT_EQ(chat.Say("What is a goat?", {}, AtMost(3)).n_prompt, n);
  const std::size_t both = chat.Count("What is a goat?");
  std::string book;
  for (int i = 0; i < 200; ++i) book += " goat";
  EXPECT_EQ(chat.Count(book), chat.Count(" goat") + 199);  // a token each
  EXPECT_THROW(chat.Say(book), pronk::Error);
  EXPECT_EQ(chat.Say("What is a goat?", {}, AtMost(3)).n_prompt, both - n - 3);
}

// Only new tokens are read, until the conversation starts anew.
TEST(LibraryChat, RemembersAConversation) {
  const pronk::Model model(kDefault);
  pronk::Chat chat(model, "You are kind.", Greedy());
  const pronk::Completion first = chat.Say("What is a goat?", {}, AtMost(8));
  const std::size_t all = chat.Count("What is a goat?");
  const pronk::Completion second = chat.Say("What is a goat?", {}, AtMost(8));
  EXPECT_EQ(second.n_prompt, all - first.n_prompt - first.n_generated);
  chat.Clear();
  EXPECT_EQ(chat.Say("What is a goat?", {}, AtMost(8)).text, first.text);
}

TEST(LibraryChat, TakesAConversationAsMessages) {
  const pronk::Model model(kDefault);
  pronk::Chat kept(model, "You are kind.", Greedy());
  pronk::Chat given(model, "", Greedy());
  kept.Say("What is a goat?", {}, AtMost(8));
  const pronk::Completion second = kept.Say("Why?", {}, AtMost(8));
  std::vector<pronk::Message> history = kept.History();
  ASSERT_EQ(history.size(), 5u);
  EXPECT_EQ(history[0].content, "You are kind.");
  EXPECT_EQ(history.back().content, second.text);
  history.pop_back();
  const std::string json = pronk::MessagesJson(history);
  for (int i = 0; i < 2; ++i) {
    given.SetHistory(pronk::ParseMessages(json));
    const pronk::Completion answer = given.Answer({}, {}, AtMost(8));
    EXPECT_EQ(answer.text, second.text);
    EXPECT_EQ(answer.n_dropped, 0u);
    EXPECT_EQ(answer.n_prompt == 0, i == 1);  // all of it was read before
  }
  EXPECT_THROW(given.SetHistory({{"assistant", "Me first."}}), pronk::Error);
  EXPECT_EQ(pronk::MessagesJson(given.History()), pronk::MessagesJson(kept.History()));
  EXPECT_THROW(pronk::ParseMessages("[1]"), pronk::Error);
  EXPECT_THROW(given.SetTools("[1]"), pronk::Error);
  // Every answer reports the dropped messages.
  pronk::Options small = Greedy();
  small.context = 128;
  pronk::Chat forgets(model, "", small);
  forgets.SetHistory({{"user", std::string(300, '.')}, {"assistant", "Yes."}});
  EXPECT_EQ(forgets.Say("Why?", {}, AtMost(2)).n_dropped, 2u);
  EXPECT_EQ(forgets.Say("Why?", {}, AtMost(2)).n_dropped, 2u);
}

// Calls are separated from the text, and go into the history.
TEST(LibraryChat, TellsWhatTheModelCalls) {
  const test::TempDir dir;
  const auto control = tokenizer::TokenType::kControl;
  const pronk::Model model(dir.Write(
      "model.gguf",
      test::ScriptedModel(
          {{"So"}, {"[TOOL_CALLS]", control}, {"f"}, {"[ARGS]", control}, {R"({"x": "1"})"}},
          "{% for m in messages %}{{ m.content }}{% if m.tool_calls "
          "%}[TOOL_CALLS]{{ m.tool_calls[0].function.name }}[ARGS]"
          "{{ m.tool_calls[0].function.arguments | tojson }}"
          "{% endif %}{% endfor %}{{ tools }}")));
  pronk::Chat chat(model, "", Greedy());
  EXPECT_TRUE(chat.Say("a").tool_calls.empty());
  chat.SetTools(R"([{"type": "function", "function": {"name": "f", "parameters":
      {"type": "object", "properties": {"x": {"enum": ["1", "2"]}}, "required": ["x"]}}}])");
  std::string heard;
  const pronk::Completion answer = chat.Say("a", [&](std::string_view text) { heard += text; });
  EXPECT_EQ(heard, "So");
  EXPECT_EQ(answer.text, "So");
  ASSERT_EQ(answer.tool_calls.size(), 1u);
  EXPECT_EQ(answer.tool_calls[0].name, "f");
  EXPECT_EQ(answer.tool_calls[0].arguments, R"({"x":"1"})");
  chat.Answer({{"tool", "2", answer.tool_calls[0].id}});
  const std::vector<pronk::Message> history = chat.History();
  ASSERT_EQ(history.size(), 6u);
  EXPECT_EQ(history[3].tool_calls[0].id, history[4].tool_call_id);
  pronk::Limits limits = AtMost(3);  // applies to the whole answer
  limits.grammar = pronk::Grammar::Gbnf(R"(root ::= "So")");
  EXPECT_EQ(chat.Say("a", {}, limits).text, "So");
  // Calls that the model must make, and must not make.
  chat.SetToolChoice("f");
  const pronk::Completion must = chat.Say("a", {}, AtMost(100));
  ASSERT_EQ(must.tool_calls.size(), 1u);
  EXPECT_EQ(must.text, "");
  chat.SetToolChoice("none");
  EXPECT_TRUE(chat.Say("a").tool_calls.empty());
  EXPECT_THROW(chat.SetToolChoice("g"), pronk::Error);
}

TEST(LibraryChat, TellsThinkingFromTheAnswer) {
  const test::TempDir dir;
  const std::vector<test::ScriptedToken> script = {{"<think>", tokenizer::TokenType::kUserDefined},
                                                   {"hm"},
                                                   {"</think>", tokenizer::TokenType::kUserDefined},
                                                   {"Yes"}};
  const pronk::Model model(dir.Write(
      "model.gguf",
      test::ScriptedModel(script,
                          "{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking "
                          "is defined and enable_thinking is false %}<think></think>{% endif %}")));
  pronk::Chat chat(model, "", Greedy());
  std::string heard;
  chat.OnThinking([&](std::string_view text) { heard += text; });
  const pronk::Completion answer = chat.Say("Why?");
  EXPECT_EQ(answer.text, "Yes");
  EXPECT_EQ(answer.thinking, "hm");
  EXPECT_EQ(heard, "hm");
  chat.SetThinkingBudget(0, "Enough.");
  EXPECT_EQ(chat.Say("Why?").thinking, "Enough.");
  EXPECT_THROW(chat.SetThinkingBudget(-2), pronk::Error);
  chat.SetThinking("off");
  EXPECT_THROW(chat.SetThinking("low"), pronk::Error);
  EXPECT_THROW(pronk::Chat(pronk::Model(kDefault)).SetThinking("on"), pronk::Error);
}

}  // namespace
