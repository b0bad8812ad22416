// Compares the template interpreter with Jinja2's output for the templates of data/jinja_cases.json
// (made by make_jinja_cases.py). Also tests extensions to Jinja2, and limits on hostile templates.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gguf/json.h"
#include "tests/support/allocations.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/template_values.h"
#include "tests/support/texts.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/jinja/interpreter/interpreter.h"
#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/messages.h"

namespace tokenizer {
namespace {

using test::Json;

std::string Render(const std::string& source, ChatInput input = {}) {
  input.now = std::chrono::local_days(std::chrono::year(2026) / 11 / 5) + std::chrono::hours(16) +
              std::chrono::minutes(4) + std::chrono::seconds(9);
  return ChatTemplate::Parse(source).Render(input).text;
}

// Returns the error's message, or "" if there is no error.
std::string ErrorOf(const std::string& source) {
  try {
    Render(source);
  } catch (const TemplateError& error) {
    return error.message();
  }
  return "";
}

int ErrorLine(const std::string& source) {
  try {
    Render(source);
  } catch (const TemplateError& error) {
    return error.line();
  }
  return -1;
}

std::string Times(const std::string& text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text;
  return out;
}

TEST(Jinja, AllCasesOfJinja2) {
  const std::string text = test::ReadText(test::DataPath("jinja_cases.json"));
  const Json data = Json::parse(text);
  ChatInput input;
  // Our own reader keeps the digits of large numbers.
  const auto variables = gguf::JsonView::Parse(text)["variables"];
  for (const auto& [name, value] : variables.Members()) {
    input.extra.emplace_back(name, ToTemplateValue(value));
  }
  ASSERT_GT(data["cases"].size(), 480u);
  for (const Json& one : data["cases"]) {
    const auto source = one["template"].get<std::string>();
    SCOPED_TRACE(source);
    try {
      const std::string rendered = Render(source, input);
      ASSERT_TRUE(one.contains("expected")) << "no error, but: " << rendered;
      EXPECT_EQ(rendered, one["expected"].get<std::string>());
    } catch (const TemplateError& error) {
      EXPECT_FALSE(one.contains("expected")) << error.what();
      EXPECT_GT(error.line(), 0) << error.what();
      // A message from raise_exception is passed on unchanged; other messages are our own.
      if (one.contains("raised")) {
        EXPECT_EQ(error.message(), one["raised"].get<std::string>());
      }
    }
  }
}

TEST(Jinja, ErrorsNameTheLine) {
  EXPECT_EQ(ErrorLine("a\nb\n{{ 1 / 0 }}\n"), 3);
  EXPECT_EQ(ErrorLine("a\n{% if true %}\n{{ nothing.x }}{% endif %}"), 3);
  EXPECT_EQ(ErrorLine("{# \n\n #}\n{{ 1 + }}"), 4);
  EXPECT_EQ(ErrorLine("\n{% for x in [1] %}\n"), 2);
  EXPECT_EQ(ErrorLine("a\r\nb\r\n{{ @ }}"), 3);
  EXPECT_EQ(ErrorLine("{% macro m() %}\n{{ 1 / 0 }}\n{% endmacro %}\n\n{{ m() }}"), 2);
  EXPECT_EQ(ErrorLine("{% macro m() %}\n\n{% endmacro %}\n{{ m() + 1 }}"), 4);
  EXPECT_EQ(ErrorLine("{%- raw -%}\n\n{% endraw %}\n{{ 1 / 0 }}"), 4);
}

TEST(Jinja, ErrorsAreOneLine) {
  try {
    Render("{{ raise_exception('a\\nb\\x1b[2J' ~ 'x' * 1000) }}");
    FAIL();
  } catch (const TemplateError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find("chat template, line 1: a\\nb\\x1b[2Jxxx"), 0u) << what;
    EXPECT_LT(what.size(), 600u);
    EXPECT_EQ(error.message().size(), 7 + 1000u);
  }
}

// Features that no model's template uses are refused by name.
TEST(Jinja, WhatIsLeftOut) {
  EXPECT_EQ(ErrorOf("{{ 'a' | wordwrap }}"), "No filter named 'wordwrap'.");
  EXPECT_EQ(ErrorOf("{{ 'a' is nope }}"), "No test named 'nope'.");
  EXPECT_EQ(ErrorOf("{{ 'a'.encode() }}"), "'str object' has no attribute 'encode'");
  EXPECT_EQ(ErrorOf("{{ 2 ** 64 }}"), "a whole number does not fit 64 bits");
  EXPECT_EQ(ErrorOf("{{ '%.2000f' % 1.5 }}"), "a format's precision is too large");
}

// Jinja2's sandbox refuses these methods, but templates for other engines use them.
TEST(Jinja, ListsAndDictionariesCanBeChanged) {
  EXPECT_EQ(Render("{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}"), "[1, 2]");
  EXPECT_EQ(Render("{% set l = [3] %}{{ l.insert(0, 1) }}{{ l }}"), "None[1, 3]");
  EXPECT_EQ(Render("{% set l = [1, 2, 3] %}{{ l.pop() }}{{ l.pop(0) }}{{ l }}"), "31[2]");
  EXPECT_EQ(Render("{% set d = {'a': 1} %}{{ d.update({'b': 2}, c=3) or '' }}{{ d }}"),
            "{'a': 1, 'b': 2, 'c': 3}");
  EXPECT_EQ(Render("{% set l = [1, 2] %}{% for x in l %}{{ l.append(x) or x }}{% endfor %}{{ l }}"),
            "12[1, 2, 1, 2]");
  EXPECT_EQ(ErrorOf("{{ [].pop() }}"), "pop index out of range");
}

TEST(Jinja, TheCallersValuesDoNotChange) {
  ChatInput input = test::Conversation({{"user", "a"}});
  input.extra.emplace_back("list", Value::ListOf({Value(1)}));
  const std::string source =
      "{{ messages.append(1) or '' }}{{ messages[0].update(role='b') or '' }}"
      "{{ list.append(2) or '' }}{{ messages | length }}{{ messages[0].role }}{{ list }}";
  EXPECT_EQ(Render(source, input), "2b[1, 2]");
  EXPECT_EQ(Render(source, input), "2b[1, 2]");
}

TEST(Jinja, InvalidUtf8PassesThrough) {
  const ChatInput input = test::Conversation({{"user", "a\xff\xe4\xbd z\xf0\x9f"}});
  EXPECT_EQ(Render("{{ messages[0].content | trim }}", input), "a\xff\xe4\xbd z\xf0\x9f");
  EXPECT_EQ(Render("{{ messages[0].content | upper | length }}", input), "6");
  EXPECT_EQ(Render("{{ messages[0].content[::-1] }}", input),
            "\xf0\x9fz \xe4\xbd\xff"
            "a");
  EXPECT_EQ(Render(std::string("a\0b{{ 'c' }}", 12)), std::string("a\0bc", 4));
}

TEST(Jinja, OneTemplateManyThreads) {
  const ChatTemplate chat = ChatTemplate::Parse(
      "{% set ns = namespace(n=0) %}{% for i in range(1000) %}{% set ns.n = ns.n + i %}{% endfor %}"
      "{{ ns.n }}");
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] { text = chat.Render(ChatInput()).text; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, "499500");
}

// Each of the following templates must end soon, in little memory, with a message that says why.

constexpr char kTooDeep[] = "levels deep";
constexpr char kTooLong[] = "an expression of more than 300 parts";
constexpr char kTooSlow[] = "does not come to an end";
constexpr char kTooMuch[] = "uses too much memory";

void ExpectRefused(const std::string& source, const std::string& reason) {
  EXPECT_TRUE(test::Has(ErrorOf(source), reason)) << source.substr(0, 200);
}

TEST(JinjaLimits, NestedSource) {
  const std::vector<std::pair<std::string, std::string>> brackets = {
      {"(", ")"},        {"[", "]"},   {"{1:", "}"}, {"not ", ""},         {"-", ""},
      {"1 is eq(", ")"}, {"x[", "]"},  {"f(", ")"},  {"1 if 1 else ", ""}, {"1|d(", ")"},
      {"{'a':[", "]}"},  {"[1][", "]"}};
  for (const auto& [open, close] : brackets) {
    ExpectRefused("{{ " + Times(open, 20'000) + "1" + Times(close, 20'000) + " }}", kTooDeep);
  }
  for (const std::string open : {"{% if 1 %}", "{% for a in b %}", "{% set x %}", "{% macro m() %}",
                                 "{% filter upper %}", "{% with %}", "{% call m() %}"}) {
    ExpectRefused(Times(open, 2'000), kTooDeep);
  }
  ExpectRefused("{% for " + Times("(", 20'000) + "a" + Times(")", 20'000) + " in b %}", kTooDeep);
}

TEST(JinjaLimits, LongChains) {
  for (const std::string link :
       {" + 1", " and 1", " or 1", " * 1", ".a", "[0]", "()", "|d", " if 1", " is odd()"}) {
    ExpectRefused("{{ 1" + Times(link, 20'000) + " }}", kTooLong);
  }
  // These are flat lists, not trees.
  EXPECT_EQ(Render("{{ 1" + Times(" < 2 > 1", 1'000) + " }}"), "True");
  EXPECT_EQ(Render("{{ 1" + Times(" ~ 1", 1'000) + " }}"), Times("1", 1'001));
  EXPECT_EQ(Render("{% if 0 %}" + Times("{% elif 0 %}", 1'000) + "{% else %}a{% endif %}"), "a");
  EXPECT_EQ(Render("{{ 'a'" + Times(" + 'a'", 290) + " }}"), Times("a", 291));
}

TEST(JinjaLimits, Recursion) {
  ExpectRefused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", kTooDeep);
  ExpectRefused("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
                kTooDeep);
}

TEST(JinjaLimits, EndlessWork) {
  ExpectRefused(
      "{% macro m(n) %}{% if n %}{{ m(n - 1) ~ m(n - 1) }}{% endif %}{% endmacro %}{{ m(30) }}",
      kTooSlow);
  EXPECT_EQ(Render("{{ ('a' * 1000000).strip('b' * 1000000 ~ 'a') }}"), "");  // in linear time
  ExpectRefused(
      "{% set x = range(100000) | list %}{% for i in x %}{% if i in x %}{% endif %}"
      "{% endfor %}",
      kTooSlow);
  // Shared values are exponentially large when they are printed or compared.
  const std::string doubled =
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}"
      "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}";
  ExpectRefused(doubled + "{{ ns.a }}", kTooSlow);
  ExpectRefused(doubled + "{{ ns.a | tojson }}", kTooSlow);
  ExpectRefused(doubled + "{{ ns.a == ns.b }}", kTooSlow);
}

// Each character that a filter, test or method reads costs steps, in any script.
TEST(JinjaLimits, EndlessReading) {
  const std::string wide = "\xE4\xB8\xAD";  // a character of three bytes
  for (const std::string call :
       {".strip(' a')", " | wordcount", " | title", " is lower", "[99999]", ".rfind('ab')"}) {
    ExpectRefused("{% set s = '" + wide + "' * 100000 %}{% for i in range(100000) %}{% if s" +
                      call + " %}{% endif %}{% endfor %}",
                  "the template ");
  }
}

TEST(JinjaLimits, Memory) {
  test::ResetPeak();
  const size_t before = test::CountAllocations().bytes;
  const std::string big = "('a' * 1000000)";
  for (const std::string& expression : std::vector<std::string>{
           "'a' * 1000000000", big + " * 9223372036854775807", "'a' | indent(1000000000, true)",
           "[1] | tojson(indent=1000000000)", big + " | replace('a', 'b' * 1000000)",
           big + " | replace('', 'b' * 1000000)", "range(100000) | join('b' * 100000)",
           big + ".split('a')", "('a' * 50000000).split('a')", "('a ' * 25000000).split()",
           "('\\n' * 50000000).splitlines()", "'a' | batch(9223372036854775807, 1) | list",
           "('a' * 2000000) | list"}) {
    ExpectRefused("{{ " + expression + " }}", "the template ");  // kTooMuch or kTooSlow
  }
  ExpectRefused("{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
                kTooSlow);
  ExpectRefused(
      "{% set ns = namespace(x='ab') %}{% for i in range(64) %}"
      "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
      kTooMuch);
  ExpectRefused("{{ range(100001) }}", "range too big");
  // Memory is counted when it is allocated. But a growing list briefly keeps its old memory beside
  // the new memory, which is twice as large.
  EXPECT_LT(test::CountAllocations().peak - before, size_t{3 * 128} << 20);
}

// A repeated text of any size is in memory only once. Its content must also be right beyond the
// 64 KB that are copied at once.
TEST(JinjaLimits, RepeatedText) {
  EXPECT_EQ(Render("{% set s = 'abc' * 50001 %}{{ s | length }} {{ s | replace('abc', '') }}."),
            "150003 .");
  test::ResetPeak();
  const size_t before = test::CountAllocations().bytes;
  ExpectRefused("{{ 'longrope' * 16700000 }}", kTooMuch);  // made, then refused
  const size_t bytes = test::CountAllocations().peak - before;
  EXPECT_GT(bytes, size_t{128'000'000});
  EXPECT_LT(bytes, size_t{140'000'000});
}

// An operation on a long string costs steps even if its result is short. Each operation runs 100
// times on 100 KB, with enough steps for 80 copies.
TEST(JinjaLimits, LongStringsArePaidFor) {
  const std::string setup =
      "{% set s = 'a' * 100000 %}{% set t = s ~ '' %}{% set d = {s: 1} %}{% set e = {t: 1} %}"
      "{% set ns = namespace(d) %}{% for i in range(100) %}{% if ";
  const auto error_of = [&](const std::string& expression) -> std::string {
    jinja::Runtime rt({.steps = 130'000});
    jinja::Interpreter in(rt, std::chrono::local_seconds());
    try {
      in.Render(jinja::ParseTemplate(setup + expression + " %}{% endif %}{% endfor %}"));
    } catch (const TemplateError& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(error_of("s is string and 'a'|int and {}['a'] and 'a'.startswith('b')"), "");
  const std::string expressions =
      "d[t] | ns[t] | t in d | d.get(t) | d == e | d.update(e) | {}[t] | [t]|unique|list"
      " | s|int | s|float | s|string|length | s is sameas(t) | s.startswith(t)"
      " | s.endswith(t) | s.startswith((t, t)) | s.removeprefix(t) | s.removesuffix(t)"
      " | s.strip('a') | s.find('b') | 'x'.split(t) | 'x'.rsplit(t) | 'x'|replace(t, '')"
      " | '%s'|format(s) | [1, 2]|tojson(separators=(t, ':'))"
      " | {1: 2}|tojson(separators=(',', t)) | s == t | s < t | s[::-1]";
  for (const std::string& expression : test::Texts(expressions)) {
    EXPECT_TRUE(test::Has(error_of(expression), kTooSlow)) << expression;
  }
}

TEST(JinjaLimits, PaidBeforeItIsMade) {
  ExpectRefused("{{ strftime_now('%c' * 501) }}", "a date's format of more than 1000 bytes");
  ExpectRefused("{{ ('\x01' * 10000000) | tojson | length }}", "the template ");
  ExpectRefused("{{ ['\x01' * 13000000] | string | length }}", "the template ");
  ExpectRefused("{{ " + std::string(1'001, 'a') + " }}", "longer than 1000 bytes");
}

// Each template does quadratic work on data of moderate size.
TEST(JinjaLimits, NestedLoopsArePaidFor) {
  std::string names, parameters;
  for (int i = 0; i < 20'000; ++i) {
    names += "a" + std::to_string(i) + "=1,";
    parameters += "b" + std::to_string(i) + ",";
  }
  // Keyword arguments are compared with each other, and with parameters.
  ExpectRefused("{% set d = dict(" + names + ") %}{{ dict(**d) }}", kTooSlow);
  ExpectRefused("{% macro m(" + parameters + ") %}{{ kwargs }}{% endmacro %}{{ m(" + names + ") }}",
                kTooSlow);
  ExpectRefused("{{ ('{a0}' * 100000).format(" + names + ") }}", kTooSlow);
  // Each of 1000 items has a path of 100,000 steps.
  ExpectRefused(
      "{% set l = [] %}{{ l.append(l) }}{{ ([l] * 1000) | map(attribute='0' ~ '.0' * 100000)"
      " | list | length }}",
      kTooSlow);
  // A long text is compared with many long texts.
  ExpectRefused("{% set s = 'a' * 1000000 %}{% set t = (s ~ 'b',) * 100000 %}{{ s.startswith(t) }}",
                kTooSlow);
  // A key is a tuple of shared tuples.
  ExpectRefused(
      "{% set ns = namespace(t=(1,)) %}{% for i in range(11) %}{% set ns.t = (ns.t, ns.t) %}"
      "{% endfor %}{% for i in range(100000) %}{% if ns.t in {} %}{% endif %}{% endfor %}",
      kTooSlow);
  // The text nearly matches the search at every position.
  ExpectRefused(
      "{% set s = 'a' * 1000000 %}{% for i in range(1000) %}"
      "{% if 'aaaaaaaaaaaaaaab' in s %}{% endif %}{% endfor %}",
      kTooSlow);
}

TEST(JinjaLimits, ScopesArePaidFor) {
  // 500,000 names are looked up in 100 scopes, which do not have them.
  const std::string names =
      "{% for i in range(100000) %}" + Times("{% if nothing %}{% endif %}", 5);
  EXPECT_EQ(Render(names + "{% endfor %}"), "");
  ExpectRefused(Times("{% with %}", 100) + names + "{% endfor %}" + Times("{% endwith %}", 100),
                kTooSlow);
}

TEST(JinjaLimits, SearchesAreLinear) {
  // A plain search would take 10^12 steps for each of these.
  EXPECT_EQ(Render("{{ ('a' * 2000000).find('a' * 1000000 ~ 'b') }}"), "-1");
  EXPECT_EQ(Render("{{ ('a' * 1000000 ~ 'b') in ('a' * 2000000) }}"), "False");
  EXPECT_EQ(Render("{{ ('a' * 2000000).count('a' * 500000 ~ 'b') }}"), "0");
  EXPECT_EQ(Render("{{ ('a' * 2000000).rsplit('a' * 1000000) | length }}"), "3");
}

TEST(JinjaLimits, ValuesInValues) {
  const std::string deep =
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(100000) %}"
      "{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}";
  EXPECT_EQ(Render(deep + "made and unmade"), "made and unmade");
  ExpectRefused(deep + "{{ ns.x }}", kTooDeep);
  ExpectRefused(deep + "{{ ns.x | tojson }}", kTooDeep);
  ExpectRefused(deep + "{{ ns.x == ns.y }}", kTooDeep);
  ExpectRefused("{% set l = [] %}{{ l.append(l) }}{{ l }}", kTooDeep);
  ExpectRefused("{% set d = {} %}{{ d.update(d=d) }}{{ d | tojson }}", kTooDeep);
  EXPECT_EQ(Render("{% set ns = namespace() %}{% set ns.ns = [ns] %}a"), "a");
}

TEST(JinjaLimits, WholeNumbers) {
  const std::string kOverflow = "does not fit 64 bits";
  const std::string least = "(-9223372036854775807 - 1)";
  for (const std::string& expression : std::vector<std::string>{
           "9223372036854775807 + 1", "-9223372036854775807 - 2", "4294967296 * 4294967296",
           "-" + least, least + " // -1", least + " | abs", least + " * -1"}) {
    ExpectRefused("{{ " + expression + " }}", kOverflow);
  }
  EXPECT_EQ(Render("{{ " + least + " % -1 }}"), "0");
  EXPECT_EQ(Render("{{ 'abc'[" + least + ":9223372036854775807] }}"), "abc");
  EXPECT_EQ(Render("{{ 'abc'[::" + least + "] }}{{ 'abc'[::9223372036854775807] }}"), "ca");
  EXPECT_EQ(Render("{{ range(" + least + ", 9223372036854775807, 9223372036854775807) | list }}"),
            "[-9223372036854775808, -1, 9223372036854775806]");
  EXPECT_EQ(Render("{{ 1e300 | int }}"), "0");
  ExpectRefused("{{ 99999999999999999999 }}", "is not a 64-bit integer");
}

TEST(JinjaLimits, LongConversationsAreNoAttack) {
  // This input exceeds the fixed limit, but input raises the limit by its own size.
  const ChatInput input = test::Conversation({{"user", std::string(size_t{100} << 20, 'a')}});
  const ChatTemplate chat = ChatTemplate::Parse("{{ '<' + messages[0].content | trim + '>' }}");
  EXPECT_EQ(chat.Render(input).text.size(), (size_t{100} << 20) + 2);
  std::vector<Message> many(5'000, {"user", "What is the answer?"});
  const std::string source =
      "{% for m in messages %}{% if m.role == 'user' and m.content is string %}"
      "{{ '<|' + m.role + '|>' + m.content | trim + '\n' }}{% endif %}{% endfor %}";
  EXPECT_EQ(Render(source, ChatInput(many)).size(), 5'000 * 28u);
}

}  // namespace
}  // namespace tokenizer
