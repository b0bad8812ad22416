// Calls as each family spells them: from text to calls, back through a template, and damaged.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/session/chat.h"
#include "tests/engine/answer/split_calls.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"

namespace engine {
namespace {

using tokenizer::Message;
using tokenizer::ToolCall;

struct Sample {
  std::string name;
  std::string source;  // our template in the family's style, for each call
  std::string written;
  std::string content;
  std::vector<ToolCall> calls;
  std::vector<std::string> published = {};  // published templates that write the same text
};
void PrintTo(const Sample& sample, std::ostream* out) { *out << sample.name; }

const std::string kArguments =
    R"({"city": "Rome", "days": 2, "deep": {"a": [true, null]}, "wet": true})";
const std::string kCompact = R"({"city":"Rome","days":2,"deep":{"a":[true,null]},"wet":true})";

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
  const std::string object = R"({{ ', ' if not loop.first }}{{ '{"name": "' ~ n ~ '", )"
                             R"("arguments": ' ~ a | tojson ~ '}' }})";
  const std::string block = "\n```json\n", block_end = "\n```";
  return {
      {"Hermes",
       ShowsCalls(R"({{ '\n<tool_call>\n{"name": "' ~ n ~ '", "arguments": ' ~ a | tojson }})"
                  R"({{ '}\n</tool_call>' }})"),
       "I look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": " + kArguments +
           "}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
       look,
       {weather, now},
       {"Qwen-Qwen2.5-7B-Instruct.jinja", "Qwen-Qwen3-0.6B.jinja"}},
      {"Llama3",
       ShowsCalls(R"({{ '{"name": "' ~ n ~ '", "parameters": ' ~ a | tojson ~ '}' }})") +
           R"({# "parameters": dictionary #})",
       "{\"name\": \"weather\", \"parameters\": " + kArguments + "}",
       "",
       {weather},
       {"meta-llama-Llama-3.1-8B-Instruct.jinja", "meta-llama-Llama-3.2-3B-Instruct.jinja"}},
      {"Qwen3Coder",
       ShowsCalls(
           R"({{ '\n<tool_call>\n<function=' ~ n ~ '>\n' }}{% for k, v in a.items() %})"
           R"({{ '<parameter=' ~ k ~ '>\n' ~ (v | tojson if v is mapping else v | string) }})"
           R"({{ '\n</parameter>\n' }}{% endfor %}{{ '</function>\n</tool_call>' }})"),
       "I look.\n<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n"
       "<parameter=days>\n2\n</parameter>\n<parameter=deep>\n{\"a\": [true, null]}\n</parameter>\n"
       "<parameter=wet>\nTrue\n</parameter>\n</function>\n</tool_call>\n"
       "<tool_call>\n<function=now>\n</function>\n</tool_call>",
       look,
       {weather, now}},
      {"GLM",
       ShowsCalls(
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
           ShowsCalls("{{ '<|tool_call>call:' ~ n ~ show(a) ~ '<tool_call|>' }}"),
       R"(I look.<|tool_call>call:weather{city:<|"|>Rome<|"|>,days:2,deep:{a:[true,None]},)"
       R"(wet:true}<tool_call|><|tool_call>call:now{}<tool_call|>)",
       look,
       {weather, now}},
      {"Mistral",
       ShowsCalls("{{ '[TOOL_CALLS]' ~ n ~ '[CALL_ID]' ~ c.id ~ '[ARGS]' ~ a | tojson }}"),
       "I look.[TOOL_CALLS]weather[CALL_ID]call00001[ARGS]" + kArguments +
           "[TOOL_CALLS]now[CALL_ID]call00002[ARGS]{}",
       look,
       {with_id(weather, "call00001"), with_id(now, "call00002")}},
      {"MistralWithoutIds",
       ShowsCalls("{{ '[TOOL_CALLS]' ~ n ~ '[ARGS]' ~ a | tojson }}"),
       "[TOOL_CALLS]weather[ARGS]" + kArguments + "[TOOL_CALLS]now[ARGS]{}",
       "",
       {weather, now}},
      {"MistralsList",
       ShowsCalls(R"({{ ', ' if not loop.first }}{{ '{"name": "' ~ n ~ '", "arguments": ' }})"
                  R"({{ a | tojson ~ ', "id": "' ~ c.id ~ '"}' }})",
                  "[TOOL_CALLS][", "]"),
       "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": " + kArguments +
           ", \"id\": \"call00001\"}, {\"name\": \"now\", \"arguments\": {}, \"id\": "
           "\"call00002\"}]",
       "",
       {with_id(weather, "call00001"), with_id(now, "call00002")},
       {"mistralai-Mistral-Nemo-Instruct-2407.jinja"}},
      {"DeepSeek31",
       ShowsCalls("{{ '" + open + "' + n + '" + sep + "' + a + '" + close + "' }}", all, end),
       look + all + open + "weather" + sep + kCompact + close + open + "now" + sep + "{}" + close +
           end,
       look,
       {weather, now}},
      {"DeepSeekR1",
       ShowsCalls("{% if m.content is not none %}{{ raise_exception('x') }}{% endif %}"
                  "{{ '\\n' if not loop.first }}{{ '" +
                      open + "function" + sep + "' + n + '\\n```json\\n' + a + '\\n```" + close +
                      "' }}",
                  all, end),
       all + open + "function" + sep + "weather" + block + kCompact + block_end + close + "\n" +
           open + "function" + sep + "now" + block + "{}" + block_end + close + end,
       "",
       {weather, now},
       {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja"}},
      {"NemotronNano2",
       ShowsCalls(object, " <TOOLCALL>[", "]</TOOLCALL>"),
       "I look. <TOOLCALL>[{\"name\": \"weather\", \"arguments\": " + kArguments +
           "}, {\"name\": \"now\", \"arguments\": {}}]</TOOLCALL>",
       look,
       {weather, now}},
      {"Jamba",
       ShowsCalls(object, "<tool_calls>[", "]</tool_calls>"),
       "<tool_calls>[{\"name\": \"weather\", \"arguments\": " + kArguments +
           "}, {\"name\": \"now\", \"arguments\": {}}]</tool_calls>",
       "",
       {weather, now}},
      {"Granite3",
       ShowsCalls(R"({{ ', ' if not loop.first }}{{ '{"arguments": ' ~ a | tojson }})"
                  R"({{ ', "name": "' ~ n ~ '"}' }})",
                  "<|tool_call|>[", "]"),
       "<|tool_call|>[{\"arguments\": " + kArguments +
           ", \"name\": \"weather\"}, {\"arguments\": {}, \"name\": \"now\"}]",
       "",
       {weather, now}},
      {"Phi4Mini",
       ShowsCalls(object, "{# <|/tool|> #}<|tool_call|>[", "]<|/tool_call|>"),
       "<|tool_call|>[{\"name\": \"weather\", \"arguments\": " + kArguments +
           "}, {\"name\": \"now\", \"arguments\": {}}]<|/tool_call|>",
       "",
       {weather, now}},
      {"CommandR7B",
       ShowsCalls(R"({{ ',' if not loop.first }})"
                  R"({{ '\n    {"tool_call_id": "' ~ c.id ~ '", "tool_name": "' ~ n }})"
                  R"({{ '", "parameters": ' ~ a | tojson ~ '}' }})",
                  "<|START_ACTION|>[", "{{ '\n]' }}<|END_ACTION|>"),
       "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"weather\", "
       "\"parameters\": " +
           kArguments +
           "},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"now\", \"parameters\": "
           "{}}\n]<|END_ACTION|>",
       "",
       {with_id(weather, "0"), with_id(now, "1")}},
      {"Apertus",
       ShowsCalls(R"({{ ', ' if not loop.first }}{{ '{"' ~ n ~ '": ' ~ a | tojson ~ '}' }})",
                  "<|tools_prefix|>[", "]<|tools_suffix|>"),
       "I look.<|tools_prefix|>[{\"weather\": " + kArguments + "}, {\"now\": {}}]<|tools_suffix|>",
       look,
       {weather, now}},
      {"KimiK2",
       ShowsCalls("<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ a | tojson "
                  "}}<|tool_call_end|>",
                  "{# <|im_system|>tool_declare #}<|tool_calls_section_begin|>",
                  "<|tool_calls_section_end|>"),
       "I "
       "look.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_"
       "argument_begin|>" +
           kArguments +
           "<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|"
           "tool_call_end|>"
           "<|tool_calls_section_end|>",
       look,
       {with_id(weather, "functions.weather:0"), with_id(now, "functions.now:1")}},
      {"Functionary31",
       "{# <function=example_function_name> #}" +
           ShowsCalls("<function={{ n }}>{{ a | tojson }}</function>"),
       "<function=weather>" + kArguments + "</function><function=now>{}</function>",
       "",
       {weather, now}},
      {"MiniMaxM2",
       ShowsCalls(R"(<invoke name="{{ n }}">{{ '\n' }}{% for k, v in a.items() %})"
                  R"(<parameter name="{{ k }}">)"
                  R"({{ v if v is string else v | tojson }}</parameter>{{ '\n' }})"
                  R"({% endfor %}</invoke>{{ '\n' }})",
                  "{{ '\n<minimax:tool_call>\n' }}", "</minimax:tool_call>"),
       "I look.\n<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter "
       "name=\"city\">Rome</parameter>\n"
       "<parameter name=\"days\">2</parameter>\n<parameter name=\"deep\">{\"a\": [true, "
       "null]}</parameter>\n"
       "<parameter name=\"wet\">true</parameter>\n</invoke>\n<invoke name=\"now\">\n</invoke>\n"
       "</minimax:tool_call>",
       look,
       {weather, now}},
      {"SeedOss",
       ShowsCalls(
           R"(<seed:tool_call>{{ '\n<function=' ~ n ~ '>\n' }}{% for k, v in a.items() %})"
           R"(<parameter={{ k }}>{{ v if v is string else v | tojson }}</parameter>{{ '\n' }})"
           R"({% endfor %}{{ '</function>\n</seed:tool_call>' }})"),
       "<seed:tool_call>\n<function=weather>\n<parameter=city>Rome</parameter>\n<parameter=days>2</"
       "parameter>\n"
       "<parameter=deep>{\"a\": [true, "
       "null]}</parameter>\n<parameter=wet>true</parameter>\n</function>\n"
       "</seed:tool_call><seed:tool_call>\n<function=now>\n</function>\n</seed:tool_call>",
       "",
       {weather, now}},
      {"Hunyuan3",
       ShowsCalls(R"(<tool_call>{{ n ~ '<tool_sep>\n' }}{% for k, v in a.items() %})"
                  R"(<arg_key>{{ k }}</arg_key>{{ '\n' }}<arg_value>)"
                  R"({{ v if v is string else v | tojson }})"
                  R"(</arg_value>{{ '\n' }}{% endfor %}{{ '</tool_call>\n' }})",
                  "{{ '<tool_calls>\n' }}", "</tool_calls>"),
       "<tool_calls>\n<tool_call>weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Rome</"
       "arg_value>\n"
       "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n<arg_key>deep</"
       "arg_key>\n<arg_value>{\"a\": [true, null]}</arg_value>\n"
       "<arg_key>wet</arg_key>\n<arg_value>true</arg_value>\n</"
       "tool_call>\n<tool_call>now<tool_sep>\n</tool_call>\n"
       "</tool_calls>",
       "",
       {weather, now}},
      {"FunctionGemma",
       R"({% macro show(v) %}{% if v is string %}<escape>{{ v }}<escape>{% elif v is boolean %})"
       R"({{ 'true' if v else 'false' }}{% elif v is mapping %}{{ '{' }})"
       R"({% for k, x in v.items() %}{{ ',' if not loop.first }}{{ k }}:{{ show(x) }})"
       R"({% endfor %}{{ '}' }}{% elif v is sequence %}[{% for x in v %})"
       R"({{ ',' if not loop.first }}{{ show(x) }}{% endfor %}]{% else %}{{ v }}{% endif %})"
       R"({% endmacro %})" +
           ShowsCalls("{{ '<start_function_call>call:' ~ n ~ show(a) ~ '<end_function_call>' }}"),
       "<start_function_call>call:weather{city:<escape>Rome<escape>,days:2,deep:{a:[true,None]},"
       "wet:true}<end_function_call><start_function_call>call:now{}<end_function_call>",
       "",
       {weather, now}},
      {"Lfm2",
       ShowsCalls(R"({{ ', ' if not loop.first }}{{ n }}({% for k, v in a.items() %})"
                  R"({{ ', ' if not loop.first }}{{ k }}=)"
                  R"({{ "'" ~ v ~ "'" if v is string else v | tojson if v is mapping else v }})"
                  R"({% endfor %}))",
                  "<|tool_call_start|>[", "]<|tool_call_end|>"),
       "<|tool_call_start|>[weather(city='Rome', days=2, deep={\"a\": [true, null]}, wet=True), "
       "now()]<|tool_call_end|>",
       "",
       {weather, now}},
      {"Olmo3",
       ShowsCalls(R"({{ '\n' ~ n }}({% for k, v in a.items() %})"
                  R"({{ ', ' if not loop.first }}{{ k }}=)"
                  R"({{ "'" ~ v ~ "'" if v is string else v | tojson }})"
                  R"({% endfor %}))",
                  "<function_calls>", "{{ '\n</function_calls>' }}"),
       "<function_calls>\nweather(city='Rome', days=2, deep={\"a\": [true, null]}, "
       "wet=true)\nnow()\n</function_calls>",
       "",
       {weather, now}},
      {"GptOss",
       ShowsCalls(
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

class ToolCalls : public testing::TestWithParam<Sample> {};

TEST_P(ToolCalls, AreFoundInAnyPieces) {
  const Sample& sample = GetParam();
  for (size_t piece = 1; piece <= sample.written.size(); piece += 1 + piece / 4) {
    const Parts parts = SplitCalls(sample.source, sample.written, piece);
    EXPECT_EQ(TextOf(parts.calls), TextOf(sample.calls)) << piece;
    EXPECT_EQ(parts.text, sample.content) << piece;
  }
}

// The next turn's prompt has exactly the text that the model wrote.
TEST_P(ToolCalls, GoThroughTemplates) {
  const Sample& sample = GetParam();
  std::vector<ToolCall> calls = sample.calls;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].id.empty()) calls[i].id = "call0000" + std::to_string(i + 1);
  }
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

// Any damaged byte: text without a call is kept, and nothing crashes.
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

}  // namespace
}  // namespace engine
