// Calls as each family spells them: from text to calls and back through a template, and damaged.
#include "engine/session/tool_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/session/chat.h"
#include "engine/session/thinking.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/scripted_model.h"

namespace engine {
namespace {

using tokenizer::ChatTemplate;
using tokenizer::Message;
using tokenizer::ToolCall;

struct Sample {
  std::string name;
  std::string source;  // a template of ours in the family's style, of each call
  std::string written;
  std::string content;
  std::vector<ToolCall> calls;
  std::vector<std::string> published = {};  // templates that write the same
};
void PrintTo(const Sample& sample, std::ostream* out) { *out << sample.name; }

const std::string kArguments =
    R"({"city": "Rome", "days": 2, "deep": {"a": [true, null]}, "wet": true})";
const std::string kCompact = R"({"city":"Rome","days":2,"deep":{"a":[true,null]},"wet":true})";

// A template that writes every call c, with its name n and its arguments a.
std::string Calls(const std::string& each, const std::string& begin = "",
                  const std::string& end = "") {
  return "{% for m in messages %}{{ m.content or '' }}{% if m.tool_calls %}" + begin +
         "{% for c in m.tool_calls %}{% set n, a = c.function.name, c.function.arguments %}" +
         each + "{% endfor %}" + end + "{% endif %}{% endfor %}";
}

std::vector<Sample> Samples() {
  const std::string look = "I look.";
  const ToolCall weather = {"", "weather", kCompact}, now = {"", "now", "{}"};
  const auto with_id = [](ToolCall call, const std::string& id) {
    call.id = id;
    return call;
  };
  const std::string sep = "<｜tool▁sep｜>", open = "<｜tool▁call▁begin｜>",
                    close = "<｜tool▁call▁end｜>", all = "<｜tool▁calls▁begin｜>",
                    end = "<｜tool▁calls▁end｜>";
  const std::string block = "\n```json\n", block_end = "\n```";
  return {
      {"Hermes",
       Calls(R"({{ '\n<tool_call>\n{"name": "' ~ n ~ '", "arguments": ' ~ a | tojson }})"
             R"({{ '}\n</tool_call>' }})"),
       "I look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": " + kArguments +
           "}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
       look,
       {weather, now},
       {"Qwen-Qwen2.5-7B-Instruct.jinja", "Qwen-Qwen3-0.6B.jinja"}},
      {"Llama3",
       Calls(R"({{ '{"name": "' ~ n ~ '", "parameters": ' ~ a | tojson ~ '}' }})") +
           R"({# "parameters": dictionary #})",
       "{\"name\": \"weather\", \"parameters\": " + kArguments + "}",
       "",
       {weather},
       {"meta-llama-Llama-3.1-8B-Instruct.jinja", "meta-llama-Llama-3.2-3B-Instruct.jinja"}},
      {"Qwen3Coder",
       Calls(R"({{ '\n<tool_call>\n<function=' ~ n ~ '>\n' }}{% for k, v in a.items() %})"
             R"({{ '<parameter=' ~ k ~ '>\n' ~ (v | tojson if v is mapping else v | string) }})"
             R"({{ '\n</parameter>\n' }}{% endfor %}{{ '</function>\n</tool_call>' }})"),
       "I look.\n<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n"
       "<parameter=days>\n2\n</parameter>\n<parameter=deep>\n{\"a\": [true, null]}\n</parameter>\n"
       "<parameter=wet>\nTrue\n</parameter>\n</function>\n</tool_call>\n"
       "<tool_call>\n<function=now>\n</function>\n</tool_call>",
       look,
       {weather, now}},
      {"GLM",
       Calls(
           R"({{ '\n<tool_call>' ~ n ~ '\n' }}{% for k, v in a.items() %})"
           R"({{ '<arg_key>' ~ k ~ '</arg_key>\n<arg_value>' ~ (v if v is string else v|tojson) }})"
           R"({{ '</arg_value>\n' }}{% endfor %}</tool_call>)"),
       "I look.\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
       "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n"
       "<arg_key>deep</arg_key>\n<arg_value>{\"a\": [true, null]}</arg_value>\n"
       "<arg_key>wet</arg_key>\n<arg_value>true</arg_value>\n</tool_call>\n"
       "<tool_call>now\n</tool_call>",
       look,
       {weather, now}},
      {"Gemma4",
       R"({% macro show(v) %}{% if v is string %}<|"|>{{ v }}<|"|>{% elif v is boolean %})"
       R"({{ 'true' if v else 'false' }}{% elif v is mapping %}{{ '{' }})"
       R"({% for k, x in v | dictsort %}{{ ',' if not loop.first }}{{ k }}:{{ show(x) }})"
       R"({% endfor %}{{ '}' }}{% elif v is sequence %}[{% for x in v %})"
       R"({{ ',' if not loop.first }}{{ show(x) }}{% endfor %}]{% else %}{{ v }}{% endif %})"
       R"({% endmacro %})" +
           Calls("{{ '<|tool_call>call:' ~ n ~ show(a) ~ '<tool_call|>' }}"),
       R"(I look.<|tool_call>call:weather{city:<|"|>Rome<|"|>,days:2,deep:{a:[true,None]},)"
       R"(wet:true}<tool_call|><|tool_call>call:now{}<tool_call|>)",
       look,
       {weather, now}},
      {"Mistral",
       Calls("{{ '[TOOL_CALLS]' ~ n ~ '[CALL_ID]' ~ c.id ~ '[ARGS]' ~ a | tojson }}"),
       "I look.[TOOL_CALLS]weather[CALL_ID]call00001[ARGS]" + kArguments +
           "[TOOL_CALLS]now[CALL_ID]call00002[ARGS]{}",
       look,
       {with_id(weather, "call00001"), with_id(now, "call00002")}},
      {"MistralWithoutIds",
       Calls("{{ '[TOOL_CALLS]' ~ n ~ '[ARGS]' ~ a | tojson }}"),
       "[TOOL_CALLS]weather[ARGS]" + kArguments + "[TOOL_CALLS]now[ARGS]{}",
       "",
       {weather, now}},
      {"MistralsList",
       Calls(R"({{ ', ' if not loop.first }}{{ '{"name": "' ~ n ~ '", "arguments": ' }})"
             R"({{ a | tojson ~ ', "id": "' ~ c.id ~ '"}' }})",
             "[TOOL_CALLS][", "]"),
       "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": " + kArguments +
           ", \"id\": \"call00001\"}, {\"name\": \"now\", \"arguments\": {}, \"id\": "
           "\"call00002\"}]",
       "",
       {with_id(weather, "call00001"), with_id(now, "call00002")},
       {"mistralai-Mistral-Nemo-Instruct-2407.jinja"}},
      {"DeepSeek31",
       Calls("{{ '" + open + "' + n + '" + sep + "' + a + '" + close + "' }}", all, end),
       look + all + open + "weather" + sep + kCompact + close + open + "now" + sep + "{}" + close +
           end,
       look,
       {weather, now}},
      {"DeepSeekR1",
       Calls("{% if m.content is not none %}{{ raise_exception('x') }}{% endif %}"
             "{{ '\\n' if not loop.first }}{{ '" +
                 open + "function" + sep + "' + n + '\\n```json\\n' + a + '\\n```" + close + "' }}",
             all, end),
       all + open + "function" + sep + "weather" + block + kCompact + block_end + close + "\n" +
           open + "function" + sep + "now" + block + "{}" + block_end + close + end,
       "",
       {weather, now},
       {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja"}},
      {"GptOss",
       Calls(
           "{{ '<|start|>assistant to=functions.' ~ n ~ '<|channel|>commentary json<|message|>' ~ "
           "a | tojson ~ '<|call|>' }}"),
       " to=functions.weather<|channel|>commentary json<|message|>" + kArguments,
       "",
       {weather}},
  };
}

std::string TextOf(const std::vector<ToolCall>& calls) {
  return tokenizer::MessagesJson({{"assistant", "", "", calls}});
}

struct Parts {
  std::string text;
  std::vector<ToolCall> calls;
  bool operator==(const Parts&) const = default;
};

Parts SplitCalls(const std::string& source, const std::string& written, size_t piece = 1000,
                 const std::string& tools = "[]") {
  ThinkingFormat thinking = FindThinkingFormat(source);
  thinking.has_calls = true;
  ThinkingSplitter splitter(thinking, "<|start|>assistant");
  CallSplitter calls(FindCallForm(source), gguf::JsonView::Parse(tools));
  Parts parts;
  const auto sink = [&](std::string_view text, ThinkingSplitter::Part part) {
    if (part == ThinkingSplitter::Part::kAnswer) parts.text += calls.Push(text);
  };
  for (size_t at = 0; at < written.size(); at += piece) {
    splitter.Push(written.substr(at, piece), sink);
  }
  splitter.Finish(sink);
  parts.text += calls.Finish(parts.calls);
  return parts;
}

class ToolCalls : public testing::TestWithParam<Sample> {};

TEST_P(ToolCalls, AreFoundInAnyPieces) {
  const Sample& sample = GetParam();
  for (size_t piece = 1; piece <= sample.written.size(); piece += 1 + piece / 4) {
    const Parts parts = SplitCalls(sample.source, sample.written, piece);
    EXPECT_EQ(TextOf(parts.calls), TextOf(sample.calls)) << piece;
    EXPECT_EQ(parts.text, sample.content) << piece;
  }
}

// What the model wrote is what the next turn's prompt has in its place.
TEST_P(ToolCalls, GoThroughTemplates) {
  const Sample& sample = GetParam();
  std::vector<ToolCall> calls = sample.calls;
  for (size_t i = 0; i < calls.size(); ++i) calls[i].id = "call0000" + std::to_string(i + 1);
  std::vector<Message> messages = {{"user", "Rome?"}, {"assistant", sample.content, "", calls}};
  for (const ToolCall& call : calls) messages.push_back({"tool", "22", call.id});
  std::vector<std::string> sources = {sample.source};
  const auto folder = test::SharedPath("golden/templates");
  for (const std::string& name : sample.published) {
    if (!folder.empty()) sources.push_back(test::ReadText(folder / name));
  }
  for (const std::string& source : sources) {
    EXPECT_EQ(FindCallForm(source), FindCallForm(sample.source));
    const ChatForm form(source);
    ASSERT_TRUE(form.call_style.has_value()) << source;
    EXPECT_TRUE(
        test::Has(form.chat_template.Render(tokenizer::ChatInput(messages, *form.call_style)).text,
                  sample.written));
  }
}

// Whatever happens to a byte: nothing is lost where there is no call, and nothing breaks.
TEST_P(ToolCalls, DamagedAreText) {
  const Sample& sample = GetParam();
  const auto check = [&](const std::string& written) {
    const Parts parts = SplitCalls(sample.source, written);
    for (const ToolCall& call : parts.calls) tokenizer::ParseArguments(call.arguments);
    const bool is_text = parts.calls.empty() && sample.name != "GptOss";
    EXPECT_EQ(is_text ? parts.text : "", is_text ? written : "");
  };
  for (size_t at = 0; at < sample.written.size(); ++at) {
    std::string damaged = sample.written;
    check(damaged.substr(0, at));
    for (const char c : {'{', '"', ',', '[', '<', '\n', '\0', '\xFF'}) {
      damaged[at] = c;
      check(damaged);
    }
    check(damaged.erase(at, 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ToolCalls, testing::ValuesIn(Samples()),
                         [](const auto& test) { return test.param.name; });

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
  // An answer in JSON, and one that comes to JSON later.
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
  // The end may be missing where the model ends its text.
  EXPECT_EQ(SplitCalls("<tool_call>", call.substr(0, call.find("</"))).calls.size(), 1u);
  const Parts tagged = SplitCalls("\"parameters\": dictionary",
                                  "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}");
  EXPECT_EQ(tagged.calls.size(), 1u);
  EXPECT_EQ(tagged.text, "");
}

// Qwen3-Coder leaves the opening mark out in a fifth of its calls.
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
  // What no tool is called is text, as is what does not end.
  const std::string other = "Write <function=h>\n</function> here";
  EXPECT_EQ(SplitCalls("<function=", other, 1, tools).text, other);
  EXPECT_EQ(SplitCalls("<function=", f.substr(0, 20), 1, tools).text, f.substr(0, 20));
}

TEST(CallForm, OfFurtherFamilies) {
  const std::string list =
      R"([{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}])";
  for (const auto& [mark, end] :
       {std::pair("<TOOLCALL>", "</TOOLCALL>"), std::pair("<tool_calls>", "</tool_calls>")}) {
    const Parts parts = SplitCalls(mark, "I look. " + (mark + list) + end, 1);
    EXPECT_EQ(parts.text, "I look.") << mark;
    EXPECT_EQ(parts.calls.size(), 2u) << mark;
  }
  const Parts seed = SplitCalls("<seed:tool_call><function=",
                                "<seed:tool_call>\n<function=f>\n<parameter=a>x</parameter>\n"
                                "</function>\n</seed:tool_call>");
  EXPECT_EQ(seed.text, "");
  ASSERT_EQ(seed.calls.size(), 1u);
  EXPECT_EQ(seed.calls[0].arguments, R"({"a":"x"})");
}

// A text that looks like a number is one, unless the function takes a text.
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

// What models write besides their family's form, if a function of the name is declared.
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
      // Others, and what only looks like one.
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
  CallForm::Calls none;
  EXPECT_EQ(calls.Finish(none), "\n{ \"name\": \"f\", ");
}

// The whole way: called, answered, and only what is new is read.
TEST(Chat, CallsAndGoesOn) {
  constexpr auto kControl = tokenizer::TokenType::kControl;
  const std::string source =
      "{{ tools | length if tools else '' }}" +
      Calls(R"({{ '<tool_call>{"name": "' ~ n ~ '", "arguments": ' ~ a | tojson }})"
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
