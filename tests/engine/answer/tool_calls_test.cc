// Calls in an answer: marked, bare, and text that only looks like a call.
#include "engine/answer/tool_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/session/chat.h"
#include "tests/engine/answer/split_calls.h"
#include "tests/support/scripted_model.h"

namespace engine {
namespace {

using tokenizer::Message;
using tokenizer::ToolCall;

TEST(CallForm, OfOtherTemplatesIsNone) {
  EXPECT_EQ(FindCallForm(tokenizer::kChatMlTemplate), nullptr);
  EXPECT_EQ(SplitCalls("", "<tool_call>\n{}").text, "<tool_call>\n{}");
}

TEST(CallForm, WhatIsNoCallIsText) {
  const std::string hermes = "<tool_call>", llama = "\"parameters\": dictionary";
  const auto text = [](const std::string& source, const std::string& written) {
    const Parts parts = SplitCalls(source, written, 1);
    EXPECT_TRUE(parts.calls.empty()) << written;
    return parts.text;
  };
  for (const char* const inside :
       {"", "1", "[]", "{}", R"({"name": 1, "arguments": {}})", R"({"name": "", "arguments": {}})",
        R"({"name": "f"})", R"({"name": "f", "arguments": "x"})", R"([{"name": "f"}])"}) {
    const std::string written = std::string("a\n<tool_call>") + inside + "</tool_call> \n";
    EXPECT_EQ(text(hermes, written), written);
    EXPECT_EQ(text(llama, inside), inside);
  }
  // An answer in JSON, and an answer that contains JSON later.
  for (const char* const written : {R"({"name": "Nora", "age": 7})", R"( Yes: {"name": "f",
           "parameters": {}})"}) {
    EXPECT_EQ(text(llama, written), written);
  }
  const std::string deep(100'000, '[');
  EXPECT_EQ(text(hermes, "<tool_call>" + deep), "<tool_call>" + deep);
  EXPECT_EQ(text("<|tool_call>", "<|tool_call>call:f{a:" + deep), "<|tool_call>call:f{a:" + deep);
}

TEST(CallForm, AroundACall) {
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)";
  const Parts around = SplitCalls("<tool_call>", "A " + call + "\nB <tool_call>x</tool_call> ");
  EXPECT_EQ(around.text, "A \nB <tool_call>x</tool_call>");
  EXPECT_EQ(around.calls.size(), 1u);
  // The closing mark may be missing at the end of the text.
  EXPECT_EQ(SplitCalls("<tool_call>", call.substr(0, call.find("</"))).calls.size(), 1u);
  const Parts tagged = SplitCalls("\"parameters\": dictionary",
                                  "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}");
  EXPECT_EQ(tagged.calls.size(), 1u);
  EXPECT_EQ(tagged.text, "");
}

// An argument may contain the mark that closes a call.
TEST(CallForm, ClosingMarksInArguments) {
  const std::string call =
      R"(<tool_call>{"name": "f", "arguments": {"x": "a</tool_call>b"}}</tool_call>)";
  const Parts parts = SplitCalls("<tool_call>", call + call, 3);
  ASSERT_EQ(parts.calls.size(), 2u);
  EXPECT_EQ(parts.calls[1].arguments, R"({"x":"a</tool_call>b"})");
  EXPECT_EQ(parts.text, "");
  const Parts xml = SplitCalls("<function=",
                               "<tool_call><function=f><parameter=x>a</tool_call>b</parameter>"
                               "</function></tool_call>");
  ASSERT_EQ(xml.calls.size(), 1u);
  EXPECT_EQ(xml.calls[0].arguments, R"({"x":"a</tool_call>b"})");
  // An incomplete call does not affect the next one.
  const Parts after = SplitCalls("<tool_call>", "<tool_call>{</tool_call>" + call);
  EXPECT_EQ(after.calls.size(), 1u);
  EXPECT_EQ(after.text, "<tool_call>{</tool_call>");
  const std::string many = [] {
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += "<tool_call>";
    return text;
  }();
  EXPECT_EQ(SplitCalls("<tool_call>", many, 100'000).text, many);
}

// Llama 3 may write text before <|python_tag|>.
TEST(CallForm, TextBeforeAWholeCall) {
  const std::string source = "\"parameters\": dictionary";
  const std::string call = R"({"name": "f", "parameters": {"x": 1}})";
  for (const size_t piece : {1, 4, 1000}) {
    const Parts parts = SplitCalls(source, "I look. <|python_tag|>" + call, piece);
    EXPECT_EQ(parts.text, "I look.");
    ASSERT_EQ(parts.calls.size(), 1u);
    EXPECT_EQ(parts.calls[0].arguments, R"({"x":1})");
    const std::string code = "I look. <|python_tag|>print(1)";
    EXPECT_EQ(SplitCalls(source, code, piece).text, code);
  }
}

TEST(CallForm, ValuesOfPython) {
  const auto arguments = [](const std::string& inside) -> std::string {
    const Parts parts =
        SplitCalls("<function_calls>", "<function_calls>f(" + inside + ")</function_calls>");
    return parts.calls.size() == 1 ? parts.calls[0].arguments : "";
  };
  EXPECT_EQ(arguments(R"(a='It\'s "x"', b = "y\n\u00e9\x41\q",)"), R"({"a":"It's \"x\"","b":"y\n)"
                                                                   "\xC3\xA9"
                                                                   R"(A\\q"})");
  EXPECT_EQ(arguments("a=(1, -2.5), b={'k': None, 3: [False,]}"),
            R"({"a":[1,-2.5],"b":{"k":null,"3":[false]}})");
  EXPECT_EQ(arguments("a='x=1, y(2)]'"), R"({"a":"x=1, y(2)]"})");
  for (const char* const wrong :
       {"1", "'x'", "a=", "a=x", "a='", "a=1 b=2", "a=[1", "a=1)", "a==1"})
    EXPECT_EQ(arguments(wrong), "") << wrong;
  // LFM2's first template shows objects.
  const Parts objects = SplitCalls("<|tool_list_start|>",
                                   R"(<|tool_call_start|>[{"name": "f", "arguments": {"a": 1}}])"
                                   "<|tool_call_end|> Done.");
  EXPECT_EQ(objects.calls.size(), 1u);
  EXPECT_EQ(objects.text, " Done.");
}

// Qwen3-Coder omits the opening mark in a fifth of its calls.
TEST(CallForm, QwenCallsWithoutAnOpening) {
  const std::string tools = R"([{"function": {"name": "f"}}, {"function": {"name": "g"}}])";
  const std::string f = "<function=f>\n<parameter=a>\nRome\n</parameter>\n</function>";
  for (const size_t piece : {1, 3, 1000}) {
    const Parts one = SplitCalls("<function=", "I look.\n\n" + f + "\n</tool_call>", piece, tools);
    EXPECT_EQ(one.text, "I look.");
    ASSERT_EQ(one.calls.size(), 1u);
    EXPECT_EQ(one.calls[0].arguments, R"({"a":"Rome"})");
    const Parts two = SplitCalls(
        "<function=", f + "<tool_call>\n<function=g>\n</function>\n</tool_call>", piece, tools);
    EXPECT_EQ(two.text, "");
    EXPECT_EQ(two.calls.size(), 2u);
  }
  // An object with an unknown name is text, and so is an object without an end.
  const std::string other = "Write <function=h>\n</function> here";
  EXPECT_EQ(SplitCalls("<function=", other, 1, tools).text, other);
  EXPECT_EQ(SplitCalls("<function=", f.substr(0, 20), 1, tools).text, f.substr(0, 20));
}

// A text that looks like a number is a number, unless the function takes a text.
TEST(CallForm, TypesAreTheTools) {
  const std::string written =
      "<tool_call>f<arg_key>a</arg_key><arg_value>7</arg_value></tool_call>";
  const auto arguments = [&](const std::string& type) {
    return SplitCalls("<arg_key>", written, 1,
                      R"([{"function": {"name": "f", "parameters": {"properties": {"a": )" + type +
                          "}}}}]")
        .calls.at(0)
        .arguments;
  };
  EXPECT_EQ(arguments(R"({"type": "string"})"), R"({"a":"7"})");
  EXPECT_EQ(arguments(R"({"type": "integer"})"), R"({"a":7})");
  EXPECT_EQ(arguments("1"), R"({"a":7})");
  // A text or null.
  for (const std::string schema :
       {R"({"type": ["string", "null"]})", R"({"anyOf": [{"type": "string"}, {"type": "null"}]})",
        R"({"oneOf": [{"type": "null"}, {"type": "string", "title": "A"}], "default": null})"}) {
    EXPECT_EQ(arguments(schema), R"({"a":"7"})");
  }
  EXPECT_EQ(arguments(R"({"anyOf": [{"type": "string"}, {"type": "integer"}]})"), R"({"a":7})");
  EXPECT_EQ(arguments(R"({"type": ["integer", "null"]})"), R"({"a":7})");
}

TEST(CallForm, TextsThatMayBeNull) {
  const auto value = [](const std::string& written) {
    return SplitCalls(
               "<arg_key>",
               "<tool_call>f<arg_key>a</arg_key><arg_value>" + written + "</arg_value></tool_call>",
               1, R"([{"function": {"name": "f", "parameters": {"properties": {"a":
                          {"anyOf": [{"type": "string"}, {"type": "null"}]}}}}}])")
        .calls.at(0)
        .arguments;
  };
  EXPECT_EQ(value("null"), R"({"a":null})");
  EXPECT_EQ(value("None"), R"({"a":null})");
  EXPECT_EQ(value("nil"), R"({"a":"nil"})");
  // An enum, or an anyOf beside one, decides.
  const auto may_be_null = [](const std::string& schema) -> int {
    const auto plain = FindPlainText(gguf::JsonView::Parse(schema));
    return plain ? plain->may_be_null : -1;
  };
  EXPECT_EQ(may_be_null(R"({"type": ["string", "null"]})"), 1);
  EXPECT_EQ(may_be_null(R"({"type": ["string", "null"], "enum": ["a"]})"), 0);
  EXPECT_EQ(may_be_null(R"({"type": ["string", "null"], "enum": ["a", null]})"), -1);
  EXPECT_EQ(may_be_null(R"({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]})"), 1);
  EXPECT_EQ(may_be_null(R"({"anyOf": [{"type": "string"}, {"type": "null"}], "enum": ["a"]})"), -1);
}

TEST(CallForm, GptOssCallsFromItsChannels) {
  const std::string source = "<|start|><|channel|><|message|><|call|>";
  const std::string turn = "<|start|>assistant";
  const Parts parts =
      SplitCalls(source, "<|channel|>analysis<|message|>hm<|end|>" + turn +
                             "<|channel|>commentary<|message|>I look.<|end|>" + turn +
                             "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}");
  EXPECT_EQ(parts.text, "I look.");
  EXPECT_EQ(parts.calls, (std::vector<ToolCall>{{"", "f", "{}"}}));
  EXPECT_EQ(SplitCalls(source, " to go", 1).text, " to go");
  EXPECT_EQ(SplitCalls(source, "<|channel|>commentary to=functions.f<|message|>{").text,
            "<|channel|>to=functions.f<|message|>{");
}

// Other forms that models write, if a function of the name is declared.
TEST(CallForm, BareObjectsAreCalls) {
  const std::string tools =
      R"([{"function": {"name": "f"}}, {"function": {"name": "get the time"}}])";
  const std::string call = R"({"name": "f", "arguments": {"x": {"y": "}\""}}})";
  struct Case {
    std::string written, text;
    size_t n_calls;
  };
  const std::vector<Case> cases = {
      {call, "", 1},
      {"I look.\n\n" + call, "I look.", 1},
      {"```json\n" + call + "\n```", "", 1},
      {"I look.\n```\n{\n  \"name\":\"f\",\n  \"arguments\" : {}\n}\n```\n", "I look.", 1},
      {"{" + call + "}", "", 1},
      {"{" + call, "", 1},
      {"<tool_call>\n{" + call + "}\n</tool_call>", "", 1},
      {"<tool_call>\n{" + call + "\n</tool_call>", "", 1},
      {"[" + call + ", " + call + "]", "", 2},
      {call + "\n" + call, "", 2},
      {call + "\nThat is all.", "\nThat is all.", 1},
      {R"({"type": "function", "name": "f", "parameters": {}})", "", 1},
      {R"({"name": "get the time", "arguments": {}})", "", 1},
      // Other calls, and text that only looks like a call.
      {R"({"name": "g", "arguments": {}})", R"({"name": "g", "arguments": {}})", 0},
      {"Write " + call, "Write " + call, 0},
      {R"({"name": "f", "age": 7})", R"({"name": "f", "age": 7})", 0},
      {R"({"name": "f", "arguments": {)", R"({"name": "f", "arguments": {)", 0},
      {"```json\n{\"city\": 1}\n```\n", "```json\n{\"city\": 1}\n```\n", 0},
      {"```json\n" + call, "", 1},
  };
  for (const auto& [written, text, n_calls] : cases) {
    for (const std::string source : {"<tool_call>", "{# no form #}"}) {
      if (source[0] == '{' && written[0] == '<') continue;
      for (size_t piece = 1; piece <= written.size(); piece += 1 + piece / 3) {
        const Parts parts = SplitCalls(source, written, piece, tools);
        EXPECT_EQ(parts.calls.size(), n_calls) << written << piece;
        EXPECT_EQ(parts.text, text) << source << piece;
      }
    }
  }
}

// A text is held back only as long as it could be a call.
TEST(CallForm, TextIsReleasedEarly) {
  CallSplitter calls(nullptr, gguf::JsonView::Parse(R"([{"function": {"name": "f"}}])"));
  EXPECT_EQ(calls.Push("Yes:\n"), "Yes:");
  EXPECT_EQ(calls.Push("```json\n{"), "");
  EXPECT_EQ(calls.Push("\"a\""), "\n```json\n{\"a\"");
  EXPECT_EQ(calls.Push("\n{ \"name\": \"f"), "");
  EXPECT_FALSE(calls.has_begun());
  EXPECT_EQ(calls.Push("\", "), "");
  EXPECT_TRUE(calls.has_begun());
  Calls none;
  EXPECT_EQ(calls.Finish(none), "\n{ \"name\": \"f\", ");
}

// The complete sequence: a call, its result, the answer; only new tokens are read.
TEST(Chat, CallsAndGoesOn) {
  constexpr auto kControl = tokenizer::TokenType::kControl;
  const std::string source =
      "{{ tools | length if tools else '' }}" +
      ShowsCalls(R"({{ '<tool_call>{"name": "' ~ n ~ '", "arguments": ' ~ a | tojson }})"
                 R"({{ '}</tool_call>' }})");
  const std::vector<std::byte> bytes =
      test::ScriptedModel({{"So"},
                           {" "},
                           {"<tool_call>", kControl},
                           {R"({"name": "f", "arguments": {"x": 1}})"},
                           {"</tool_call>", kControl}},
                          source);
  const Model model = Model::From(gguf::File::Parse("scripted", bytes));
  Session session(model, {.sampling = {.temperature = 0}});
  Chat chat(session, "", ChatForm(model));
  std::string heard;
  const auto reply = [&](const std::vector<Message>& more) {
    heard.clear();
    return chat.Reply(more, {}, [&](std::string_view piece) {
      heard += piece;
      return true;
    });
  };
  const auto is_text = [](const Chat::Answer& answer) {
    return answer.generated.tool_calls.empty();
  };
  EXPECT_TRUE(is_text(reply({{"user", "a"}})));  // it has no tools
  EXPECT_EQ(heard, R"(So {"name": "f", "arguments": {"x": 1}})");
  chat.SetMessages({});
  chat.SetTools(R"([{"function": {"name": "f", "parameters": {"properties": {"x": {}}}}}])");
  const Chat::Answer first = reply({{"user", "a"}});
  EXPECT_EQ(heard, "So");
  EXPECT_EQ(first.generated.text, "So");
  const std::vector<ToolCall> calls = {{"call00001", "f", R"({"x":1})"}};
  EXPECT_EQ(first.generated.tool_calls, calls);
  EXPECT_EQ(chat.Messages().back(), (Message{"assistant", "So", "", calls}));
  const Chat::Answer second = reply({{"tool", "2", "call00001"}});
  EXPECT_EQ(second.generated.tool_calls.at(0).id, "call00002");
  EXPECT_EQ(second.n_reused, 3u);  // tools, the question, "So": then it wrote a space
  EXPECT_EQ(chat.Messages().size(), 4u);
}

}  // namespace
}  // namespace engine
