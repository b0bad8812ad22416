// Chat templates as a whole: golden conversations, the default templates, and the origin of each
// byte of a rendered conversation.
#include "tokenizer/chat_template.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/data.h"
#include "tests/support/template_values.h"
#include "tests/tokenizer/vocab_file.h"

namespace tokenizer {
namespace {

using test::Json;

std::chrono::local_seconds ParseDate(const std::string& text) {
  return std::chrono::local_days(std::chrono::year(std::stoi(text.substr(0, 4))) /
                                 std::stoi(text.substr(5, 2)) / std::stoi(text.substr(8, 2)));
}

// Templates of known models, from the golden data beside the checkout. Without this data only
// jinja_test's cases remain, which are our own templates in a similar style.
TEST(ChatTemplate, GoldenCases) {
  const std::filesystem::path path = test::SharedPath("golden/templates");
  if (path.empty()) GTEST_SKIP() << "no golden data beside the checkout";
  const Json cases = Json::parse(test::ReadText(path / "cases.json"));
  ASSERT_GT(cases.size(), 0u);
  for (const Json& one : cases) {
    const auto name = one["template"].get<std::string>();
    SCOPED_TRACE(name + ", " + one["case"].get<std::string>());
    ChatInput input;
    input.messages = test::ToValue(one["messages"]);
    input.add_generation_prompt = one["add_generation_prompt"].get<bool>();
    input.bos_token = one["bos_token"].get<std::string>();
    input.eos_token = one["eos_token"].get<std::string>();
    input.now = ParseDate(one["now"].get<std::string>());
    const ChatTemplate chat = ChatTemplate::Parse(test::ReadText(path / name));
    if (one.contains("expected")) {
      EXPECT_EQ(chat.Render(input).text, one["expected"].get<std::string>());
      continue;
    }
    try {
      chat.Render(input);
      ADD_FAILURE() << "no error";
    } catch (const TemplateError& error) {
      EXPECT_EQ(error.message(), one["error"].get<std::string>());
    }
  }
}

const std::vector<Message> kConversation = {
    {"system", "Be kind."}, {"user", "Hi <|im_end|>"}, {"assistant", "Hello."}, {"user", "Bye"}};

std::string Rendered(std::string_view source, const ChatInput& input) {
  return ChatTemplate::Parse(source).Render(input).text;
}

TEST(ChatTemplate, ChatMl) {
  EXPECT_EQ(Rendered(kChatMlTemplate, ChatInput(kConversation)),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi <|im_end|><|im_end|>\n"
            "<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ChatTemplate, Transcript) {
  ChatInput input(kConversation);
  input.bos_token = "<s>";
  EXPECT_EQ(Rendered(kTranscriptTemplate, input),
            "<s>Be kind.\n\nUser: Hi <|im_end|>\nAssistant: Hello.\nUser: Bye\nAssistant:");
  input.add_generation_prompt = false;
  EXPECT_EQ(Rendered(kTranscriptTemplate, input),
            "<s>Be kind.\n\nUser: Hi <|im_end|>\nAssistant: Hello.\nUser: Bye\n");
}

TEST(ChatTemplate, DefaultFollowsTheVocabulary) {
  test::VocabSpec spec = {.model = "llama"};
  spec.Add("<unk>", 0, TokenType::kUnknown);
  spec.Add("a");
  EXPECT_EQ(DefaultChatTemplate(*test::VocabFile(spec)), kTranscriptTemplate);
  spec.Add("<|im_start|>", 0, TokenType::kControl);
  EXPECT_EQ(DefaultChatTemplate(*test::VocabFile(spec)), kTranscriptTemplate);
  spec.Add("<|im_end|>", 0, TokenType::kControl);
  EXPECT_EQ(DefaultChatTemplate(*test::VocabFile(spec)), kChatMlTemplate);
}

TEST(ChatTemplate, ToolsAndMoreVariables) {
  ChatInput input(kConversation);
  EXPECT_EQ(Rendered("{{ tools is none }}{{ documents is none }}{{ thinking is defined }}", input),
            "TrueTrueFalse");
  input.tools = Value::ListOf({Value::DictOf({{"name", "add"}})});
  input.extra.emplace_back("thinking", Value(false));
  EXPECT_EQ(Rendered("{{ tools | tojson }}{{ thinking }}{{ eos_token }}.", input),
            "[{\"name\": \"add\"}]False.");
}

// Some templates, like Hermes 3's, loop over tools that may be absent; other templates test first.
TEST(ChatTemplate, NoToolsCanBeLoopedOver) {
  const ChatInput input(kConversation);
  EXPECT_EQ(Rendered("<tools>{% for tool in tools %}{{ tool | tojson }}{% else %}none{% endfor %}"
                     "</tools>{{ tools is none }}{{ tools is defined }}{% if tools %}x{% endif %}",
                     input),
            "<tools>none</tools>TrueTrue");
  EXPECT_THROW(Rendered("{% for x in nothing %}{% endfor %}{% set n = none %}{% for x in n %}"
                        "{% endfor %}",
                        input),
               TemplateError);
}

TEST(ChatTemplate, ReasoningIsPassedOn) {
  const ChatInput input({{"user", "a"}, {.role = "assistant", .content = "b", .thinking = "hm"}});
  EXPECT_EQ(Rendered("{% for m in messages %}{{ m.reasoning_content is defined }}"
                     "{{ m.reasoning_content }}{% endfor %}",
                     input),
            "FalseTruehm");
}

TEST(ChatTemplate, TimeOfNow) {
  const std::chrono::local_seconds before = LocalNow();
  const std::string year = Rendered("{{ strftime_now('%Y') }}", ChatInput());
  EXPECT_GE(year, "2025");
  EXPECT_LE(before, LocalNow());
}

TEST(ChatTemplate, TooLong) {
  EXPECT_THROW(ChatTemplate::Parse(std::string((1 << 20) + 1, 'a')), TemplateError);
  EXPECT_EQ(Rendered(std::string(1 << 20, 'a'), ChatInput()).size(), 1u << 20);
}

// Returns the text with brackets around each foreign span.
std::string Marked(std::string_view source, const ChatInput& input) {
  const RenderedChat chat = ChatTemplate::Parse(source).Render(input);
  std::string out;
  size_t at = 0;
  for (const ByteSpan& span : chat.foreign) {
    EXPECT_LT(span.begin, span.end);
    EXPECT_TRUE(span.begin > at || at == 0) << "spans that touch";
    out += chat.text.substr(at, span.begin - at) + "[" +
           chat.text.substr(span.begin, span.end - span.begin) + "]";
    at = span.end;
  }
  return out + chat.text.substr(at);
}

TEST(ForeignText, MessagesAndTools) {
  EXPECT_EQ(Marked(kChatMlTemplate, test::Conversation({{"user", "<|im_end|>"}})),
            "<|im_start|>user\n[<|im_end|>]<|im_end|>\n<|im_start|>assistant\n");
  ChatInput input = test::Conversation({{"user", "b"}});
  input.tools = Value::ListOf({Value::DictOf({{"key", "a\"<eos>"}})});
  input.bos_token = "<s>";
  input.extra.emplace_back("more", Value("own"));
  EXPECT_EQ(Marked("{{ bos_token }}{{ tools | tojson }}{{ more }}{{ tools[0] }}", input),
            "<s>[{\"[key]\": \"[a\\\"<eos>]\"}]own{'[key]': '[a\"<eos>]'}");
}

// In many templates, a role becomes part of a control token. It must be a plain word.
TEST(ForeignText, Roles) {
  const std::string_view source = "{% for m in messages %}<|{{ m.role }}|>{% endfor %}";
  EXPECT_EQ(
      Marked(source, test::Conversation({{"user", ""}, {"tool_results", ""}, {"x|><|y", ""}})),
      "<|user|><|tool_results|><|[x|><|y]|>");
}

TEST(ForeignText, ThroughEveryOperation) {
  const auto marked = [](const std::string& expression) {
    return Marked("{% set c = messages[0].content %}{{ " + expression + " }}",
                  test::Conversation({{"user", " fOo,BaR "}}));
  };
  EXPECT_EQ(marked("'<' + c ~ '>'"), "<[ fOo,BaR ]>");
  EXPECT_EQ(marked("('<' + c.strip() + '>')[2:-2]"), "[Oo,Ba]");
  EXPECT_EQ(marked("('<' + c | trim + '>')[::-1]"), ">[RaB,oOf]<");
  EXPECT_EQ(marked("('Ab' + c) | upper"), "AB[ FOO,BAR ]");
  EXPECT_EQ(marked("('ab ' + c) | title"), "Ab [ Foo,bar ]");
  EXPECT_EQ(marked("(c | trim ~ 'X') | capitalize"), "[Foo,bar]x");
  EXPECT_EQ(marked("('[' + c.strip()).replace('O', '-')"), "[[f]-[o,BaR]");
  EXPECT_EQ(marked("'a-b'.replace('-', c.strip())"), "a[fOo,BaR]b");
  EXPECT_EQ(marked("('x,' + c.strip()).split(',') | join('+')"), "x+[fOo]+[BaR]");
  EXPECT_EQ(marked("c.split(',')[-1].rsplit('a', 1)[0]"), "[B]");
  EXPECT_EQ(marked("[c, 'own'] | map('trim') | list"), "['[fOo,BaR]', 'own']");
  EXPECT_EQ(marked("{'k': c.strip()} | tojson(indent=1)"), "{\n \"k\": \"[fOo,BaR]\"\n}");
  EXPECT_EQ(marked("'%s=%s' | format('a', c[1:3])"), "a=[fO]");
  EXPECT_EQ(marked("('a\n' + c.strip()) | indent(2)"), "a\n  [fOo,BaR]");
  EXPECT_EQ(marked("('<' + c[1:4] + '>') | e"), "&lt;[fOo]&gt;");
  EXPECT_EQ(marked("c[1:4] * 2 + 'x' * 2"), "[fOofOo]xx");
  EXPECT_EQ(marked("c | list | first ~ c[1] | string | lower"), "[ f]");
  EXPECT_EQ(marked("c | trim | length ~ c.find('o')"), "73");
}

TEST(ForeignText, ThroughBlocksAndMacros) {
  const ChatInput input = test::Conversation({{"user", "hi"}});
  EXPECT_EQ(Marked("{% set x %}<{{ messages[0].content }}>{% endset %}{{ x }}", input), "<[hi]>");
  EXPECT_EQ(Marked("{% macro m(x) %}({{ x }}){% endmacro %}{{ m(messages[0].content) }}", input),
            "([hi])");
  EXPECT_EQ(Marked("{% filter upper %}a{{ messages[0].content }}{% endfilter %}", input), "A[HI]");
  EXPECT_EQ(Marked("{% for k, v in messages[0].items() %}{{ k }}={{ v }} {% endfor %}", input),
            "[role]=user [content]=[hi] ");
}

// The spans have one purpose: only the template's control tokens become tokens, not the user's.
TEST(ForeignText, ControlTokensOfTheUserAreText) {
  test::VocabSpec spec = {.model = "llama"};
  spec.Add("<unk>", 0, TokenType::kUnknown);
  for (const char c : std::string("<|endu>\n")) spec.Add(std::string(1, c));
  const TokenId end = spec.Add("<|end|>", 0, TokenType::kControl);
  spec.more.Add("tokenizer.ggml.add_space_prefix", false);
  const test::VocabFile vocab(spec);
  const RenderedChat chat = ChatTemplate::Parse("<|end|>{{ messages[0].content }}<|end|>")
                                .Render(test::Conversation({{"user", "<|end|>|"}}));
  ASSERT_EQ(chat.text, "<|end|><|end|>|<|end|>");
  const std::vector<TokenId> ids = vocab->Encode(
      chat.text, {.add_special = false, .parse_special = true, .plain = chat.foreign});
  EXPECT_EQ(ids.front(), end);
  EXPECT_EQ(ids.back(), end);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 2);
}

}  // namespace
}  // namespace tokenizer
