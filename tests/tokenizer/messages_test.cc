// Conversations as JSON, and as templates read them.
#include "tokenizer/messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gguf/error.h"
#include "tests/support/error_of.h"
#include "tokenizer/chat_template.h"

namespace tokenizer {
namespace {

std::vector<Message> Read(const std::string& json) {
  return ReadMessages(gguf::JsonView::Parse(json));
}

TEST(Messages, GoThroughJson) {
  const std::vector<Message> messages = {
      {"system", "Be \"kind\".\n"},
      {"user", "Rome?"},
      {"assistant", "", "I look.", {{"1", "f", R"({"in": "Rome"})"}, {"", "g", "{}"}}},
      {"tool", "22", "", {}, "1"}};
  EXPECT_EQ(Read(MessagesJson(messages)), messages) << MessagesJson(messages);
  EXPECT_EQ(Read(MessagesJson({})), std::vector<Message>());
  // What is no UTF-8 would be no JSON.
  EXPECT_EQ(Read(MessagesJson({{"user", "a\xff"}}))[0].content, "a\uFFFD");
  EXPECT_THROW(MessagesJson({{"assistant", "", "", {{"1", "f", "x"}}}}), gguf::Error);
  // As others write it.
  EXPECT_EQ(Read(R"([{"role": "assistant", "content": null, "tool_calls": [{"id": "1",
                "function": {"name": "f", "arguments": "{\"a\":1}"}}]}])"),
            (std::vector<Message>{{"assistant", "", "", {{"1", "f", R"({"a":1})"}}}}));
}

TEST(Messages, WhatIsNone) {
  const auto error = [](const std::string& json) { return test::ErrorOf([&] { Read(json); }); };
  EXPECT_EQ(error("{}"), R"(expected a list of {"role": "...", "content": "..."})");
  EXPECT_EQ(error(R"([{"role": "user", "content": null}])"), error("{}"));
  EXPECT_EQ(error(R"([{"content": "a"}])"), error("{}"));
  EXPECT_EQ(error(R"([{"role": "a", "content": "", "tool_call_id": 1}])"),
            "tool_call_id: expected a text");
  EXPECT_EQ(error(R"([{"role": "a", "content": "", "tool_calls": {}}])"),
            "tool_calls: expected a list");
  const std::string large = R"({"a": ")" + std::string(2'000'000, 'a') + "\"}";
  EXPECT_EQ(error(MessagesJson({{"a", "", "", {{"1", "f", large}}}})),
            "tool_calls: have too many arguments");
  const auto call = [&](const std::string& json) {
    return error(R"([{"role": "a", "content": "", "tool_calls": [)" + json + "]}]");
  };
  EXPECT_EQ(call("1"), "tool_calls: expected a function with a name");
  EXPECT_EQ(call(R"({"function": {"name": "f", "arguments": "x"}})"), "is not JSON from byte 1 on");
  EXPECT_EQ(call(R"({"function": {"name": "f", "arguments": [1]}})"),
            "the arguments of a call are no object");
}

// Each in the only style that it takes.
TEST(CallStyle, IsWhatATemplateTakes) {
  const auto find = [](const std::string& content, const std::string& arguments) {
    const auto style = FindCallStyle(ChatTemplate::Parse(
        "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ " + content +
        " }}{{ c.function.name + " + arguments + " }}{% endfor %}{% endfor %}"));
    return !style ? "none" : std::to_string(style->as_text) + std::to_string(style->no_content);
  };
  const std::string none = "raise_exception('x') if m.content is not none else ''";
  EXPECT_EQ(find("m.content + ''", "c.function.arguments | tojson"), "00");
  EXPECT_EQ(find(none, "c.function.arguments | items | first | join"), "01");
  EXPECT_EQ(find("m.content + ''", "c.function.arguments"), "10");
  EXPECT_EQ(find(none, "c.function.arguments"), "11");
  EXPECT_EQ(find("''", "c.arguments.x"), "none");
}

}  // namespace
}  // namespace tokenizer
