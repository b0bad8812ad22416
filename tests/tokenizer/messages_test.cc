// Tests conversations as JSON, and in the form that templates read.
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
      {.role = "assistant",
       .content = "",
       .tool_calls = {{"1", "f", R"({"in": "Rome"})"}, {"", "g", "{}"}},
       .thinking = "I look."},
      {.role = "tool", .content = "22", .tool_call_id = "1", .name = "f"}};
  EXPECT_EQ(Read(MessagesJson(messages)), messages) << MessagesJson(messages);
  EXPECT_EQ(Read(MessagesJson({})), std::vector<Message>());
  // JSON must be UTF-8, so invalid bytes are replaced.
  EXPECT_EQ(Read(MessagesJson({{"user", "a\xff"}}))[0].content, "a\uFFFD");
  EXPECT_THROW(MessagesJson({{"assistant", "", "", {{"1", "f", "x"}}}}), gguf::Error);
  // Other programs write messages in this form.
  EXPECT_EQ(Read(R"([{"role": "assistant", "content": null, "tool_calls": [{"id": "1",
                "function": {"name": "f", "arguments": "{\"a\":1}"}}]}])"),
            (std::vector<Message>{{"assistant", "", "", {{"1", "f", R"({"a":1})"}}}}));
  EXPECT_EQ(Read(R"([{"role": "user", "content": [{"type": "text", "text": "a"},
                {"type": "text", "text": "b"}]}, {"role": "user", "content": []}])"),
            (std::vector<Message>{{"user", "a\nb"}, {"user", ""}}));
  // A function may have no arguments, and an answer no content.
  for (const char* const arguments :
       {"", R"(, "arguments": "")", R"(, "arguments": " ")", R"(, "arguments": null)"}) {
    EXPECT_EQ(Read(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f")" +
                   std::string(arguments) + "}}]}]"),
              (std::vector<Message>{{"assistant", "", "", {{"", "f", "{}"}}}}));
  }
  EXPECT_EQ(Read(R"([{"role": "assistant", "content": null, "reasoning_content": "hm"}])"),
            (std::vector<Message>{{.role = "assistant", .content = "", .thinking = "hm"}}));
}

TEST(Messages, WhatIsNone) {
  const auto error = [](const std::string& json) { return test::ErrorOf([&] { Read(json); }); };
  EXPECT_EQ(error("{}"), R"(expected a list of {"role": "...", "content": "..."})");
  const std::string expected = R"(: expected {"role": "...", "content": a text or parts})";
  EXPECT_EQ(error(R"([{"role": "user", "content": null}])"), "message 1" + expected);
  EXPECT_EQ(error(R"([{"role": "user", "content": ""}, {"content": "a"}])"),
            "message 2" + expected);
  EXPECT_EQ(error(R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])"),
            R"(content: expected parts {"type": "text", "text": ...}, found "image_url")");
  EXPECT_EQ(error(R"([{"role": "user", "content": ["a"]}])"),
            R"(content: expected parts {"type": "text", "text": ...}, found string)");
  EXPECT_EQ(error(R"([{"role": "user", "content": "", "images": ["iVBOR"]}])"),
            "message 1: images: only texts can be read");
  EXPECT_EQ(error(R"([{"role": "user", "content": "", "images": [], "audio": null}])"), "");
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
  EXPECT_EQ(call(R"({"function": {"name": "f", "arguments": "x"}})"),
            "tool_calls: f: arguments: is not JSON from byte 1 on");
  EXPECT_EQ(call(R"({"function": {"name": "f", "arguments": [1]}})"),
            "tool_calls: f: arguments: the arguments of a call must be a JSON object");
}

// Each template gets the only style that it accepts.
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

TEST(ToolPlace, IsWhatChangesTheText) {
  const auto find = [](const std::string& source) {
    return FindToolPlace(ChatTemplate::Parse(source));
  };
  EXPECT_EQ(find("{{ tools }}"), ToolPlace::kVariable);
  EXPECT_EQ(find("{% if messages[0].role != 'system' %}{{ raise_exception('x') }}{% endif %}"
                 "{{ tools[0].function.name if tools else 'tools' }}"),
            ToolPlace::kVariable);
  EXPECT_EQ(find("{% for m in messages %}{{ m.content }}"
                 "{% if 'tools' in m and m['tools'] is not none %}{{ m['tools'] }}{% endif %}"
                 "{% endfor %}"),
            ToolPlace::kSystem);
  EXPECT_EQ(find("{% for m in messages %}{{ m.content }}{% endfor %}{# tools #}"),
            ToolPlace::kNone);
  EXPECT_EQ(find("{{ raise_exception('tools') }}"), ToolPlace::kNone);
}

TEST(ToolPlace, TheSystemMessageTakesTools) {
  const auto tools = gguf::JsonView::Parse(R"([{"type": "function", "function": {"name": "f"}}])");
  const ChatTemplate source = ChatTemplate::Parse(
      "{% for m in messages %}{{ m.role }}:{{ m.content }}:{{ m.tools }};{% endfor %}");
  const auto rendered = [&](const std::vector<Message>& messages) {
    ChatInput input(messages);
    input.messages = WithTools(input.messages, tools);
    return source.Render(input).text;
  };
  EXPECT_EQ(rendered({{"system", "So."}, {"user", "Hi"}}),
            R"(system:So.:[{"name":"f"}];user:Hi:;)");
  EXPECT_EQ(rendered({{"user", "Hi"}}),
            R"(system:You are a helpful assistant with some tools.:[{"name":"f"}];user:Hi:;)");
}

// OpenAI's clients send the role developer instead of system. A template without this role would
// drop the message.
TEST(TextStyle, ADeveloperIsASystem) {
  const std::string json = R"([{"role": "developer", "content": "Be kind."},
                               {"role": "user", "content": "Hi"}])";
  const ChatTemplate roles =
      ChatTemplate::Parse("{% for m in messages %}{{ m.role }},{% endfor %}");
  for (const bool no_developer : {false, true}) {
    const TextStyle style = {.no_developer = no_developer};
    const std::string expected = no_developer ? "system,user," : "developer,user,";
    EXPECT_EQ(roles.Render(ChatInput(Read(json), {}, style)).text, expected);
    ChatInput raw;
    raw.messages = Styled(ToTemplateValue(gguf::JsonView::Parse(json)), style);
    EXPECT_EQ(roles.Render(raw).text, expected);
  }
}

// Templates may read content as a text, as parts, or as both. Gemma 2's refuses a system message.
// The results equal those of transformers.
TEST(TextStyle, IsWhatATemplateShows) {
  const std::vector<Message> messages = {
      {"system", "Be kind."}, {"user", "Hi"}, {"assistant", "Ho"}, {"user", "Bye"}};
  const auto render = [&](const std::string& content, const std::string& first = "") {
    const ChatTemplate chat_template = ChatTemplate::Parse(
        first + "{% for m in messages %}{{ m.role + ':' }}" + content + "{{ ';' }}{% endfor %}");
    const ChatInput input(messages, {}, FindTextStyle(chat_template));
    const gguf::JsonView json = gguf::JsonView::Parse(
        R"([{"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": "Ho"}, {"role": "user", "content": "Bye"}])");
    ChatInput parts;
    parts.messages = Styled(ToTemplateValue(json), FindTextStyle(chat_template));
    const std::string text = chat_template.Render(input).text;
    EXPECT_EQ(chat_template.Render(parts).text, text);
    return text;
  };
  const std::string all = "system:Be kind.;user:Hi;assistant:Ho;user:Bye;";
  const std::string in_parts = "{% for p in m.content %}{{ p.text }}{% endfor %}";
  EXPECT_EQ(render("{{ m.content }}"), all);
  EXPECT_EQ(render("{{ m['content'][0]['text'] }}"), all);
  EXPECT_EQ(render(in_parts), all);
  EXPECT_EQ(
      render("{% if m.content is string %}{{ m.content }}{% else %}" + in_parts + "{% endif %}"),
      all);
  const std::string refuses =
      "{% if messages[0]['role'] == 'system' %}"
      "{{ raise_exception('System role not supported') }}{% endif %}";
  const std::string merged = "user:Be kind.\n\nHi;assistant:Ho;user:Bye;";
  EXPECT_EQ(render("{{ m.content }}", refuses), merged);
  EXPECT_EQ(render(in_parts, refuses), merged);
  EXPECT_EQ(render("{% if m.role != 'system' %}{{ m.content }}{% endif %}"), merged);  // drops it
}

// A system message after the last question becomes a question; a message without text stays.
TEST(TextStyle, SystemMessagesGoBeforeTheNextQuestion) {
  const ChatTemplate shows = ChatTemplate::Parse(
      "{% for m in messages %}{{ m.role ~ ':' ~ m.content ~ ';' }}{% endfor %}");
  const auto render = [&](const std::vector<Message>& messages) {
    return shows.Render(ChatInput(messages, {}, {.no_system = true})).text;
  };
  EXPECT_EQ(render({{"system", "a"}, {"system", "b"}, {"user", "c"}, {"system", "d"}}),
            "user:a\n\nb\n\nc;user:d;");
  EXPECT_EQ(render({{"user", "a"}, {"system", "b"}, {"assistant", "c"}}),
            "user:a;user:b;assistant:c;");
  const gguf::JsonView image =
      gguf::JsonView::Parse(R"([{"role": "user", "name": "n", "content": [{"type": "image"}]}])");
  EXPECT_EQ(Styled(ToTemplateValue(image), {}).list().items[0].dict().entries.size(), 3u);
}

}  // namespace
}  // namespace tokenizer
