// The messages that a conversation keeps and drops. The text of conversations is tested with the
// templates (tests/tokenizer), their handling with the program (tests/cli).
#include "engine/session/chat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/model/model.h"
#include "tests/support/error_of.h"
#include "tests/support/scripted_model.h"
#include "tests/support/small_model.h"

namespace engine {
namespace {

using tokenizer::Message;
using tokenizer::TokenId;

constexpr tokenizer::TokenType kUser = tokenizer::TokenType::kUserDefined;

std::vector<std::byte> ModelWith(const std::string& chat_template) {
  test::SmallModel model = {.chat_template = chat_template};
  return model.Bytes();
}

struct SmallChat {
  explicit SmallChat(const std::string& chat_template) : bytes(ModelWith(chat_template)) {}

  Chat::Answer Say(const std::string& text) {
    return chat.Say(text, {.max_tokens = 1}, [](std::string_view) { return true; });
  }

  const std::vector<std::byte> bytes;
  const Model model = Model::From(gguf::File::Parse("small", bytes));
  Session session{model, SessionOptions()};  // a context of 64
  Chat chat{session, "", ChatForm(model)};
};

std::vector<Message> Pairs(size_t n) {
  std::vector<Message> messages;
  for (size_t i = 0; i < n; ++i) {
    messages.push_back({"user", "how?"});
    messages.push_back({"assistant", "so."});
  }
  return messages;
}

// As much as fits is kept, whatever the template does, and a few steps find it: going from pair to
// pair would try to drop two, at which this template fails.
TEST(Chat, DropsNoMoreThanNeededInFewSteps) {
  constexpr size_t kPairs = 100, kRoom = 64 - 64 / 4;
  SmallChat small(
      "{% if messages|length == 197 %}{{ raise_exception('two pairs less') }}{% endif %}"
      "{% for m in messages %}{{ m.content }}{% endfor %}");
  small.chat.SetMessages(Pairs(kPairs));
  const Chat::Answer answer = small.Say("why?");
  const auto size_with = [&](size_t pairs) {
    std::vector<Message> messages = Pairs(pairs);
    messages.push_back({"user", "why?"});
    return EncodeChat(small.model, ChatForm(small.model), messages, 4096).size();
  };
  ASSERT_EQ(answer.n_dropped % 2, 0u);
  const size_t kept = kPairs - answer.n_dropped / 2;
  EXPECT_LE(size_with(kept), kRoom);
  EXPECT_GT(size_with(kept + 1), kRoom);
  EXPECT_EQ(small.chat.Messages().size(), 2 * kPairs + 2);  // the whole conversation is saved
}

TEST(Chat, DropsAllWhereOnlyTheQuestionFits) {
  SmallChat small("{% for m in messages %}{{ m.content }}{% endfor %}");
  small.chat.SetMessages(Pairs(3));
  EXPECT_EQ(small.Say(std::string(55, '?')).n_dropped, 6u);
}

template <class Code>
std::string ErrorFrom(Code code) {
  return test::ErrorOf<Error>(code);
}

const Message kCalls = {"assistant", "", "", {{"call00001", "f", R"({"x": 1})"}}};
const Message kResult = {"tool", "2", "call00001"};
// A template that shows calls and results.
const std::string kShowsCalls =
    "{{ tools }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";

// Dropped messages end where a question begins: no result stays without its call.
TEST(Chat, DropsWholeTurns) {
  SmallChat small(kShowsCalls);
  const Message answer = {"assistant", "so."};
  small.chat.SetMessages({{"user", "a"},
                          kCalls,
                          kResult,
                          kResult,
                          answer,  //
                          {"user", std::string(40, '?')},
                          kCalls,
                          kResult,
                          answer});
  EXPECT_EQ(small.Say("why?").n_dropped, 9u);
  EXPECT_EQ(small.chat.n_dropped(), 9u);
  EXPECT_EQ(small.Say("why?").n_dropped, 0u);
  EXPECT_EQ(small.chat.n_dropped(), 9u);
  small.chat.SetMessages({{"user", "a"}, kCalls, kResult, kResult, answer, {"user", "b"}, answer});
  EXPECT_EQ(small.Say(std::string(30, '?')).n_dropped, 5u);
  EXPECT_EQ(small.chat.Messages().size(), 9u);
}

TEST(Chat, AnswersTheLastMessage) {
  SmallChat small(kShowsCalls);
  const auto reply = [&](const std::vector<Message>& more) {
    return small.chat.Reply(more, {.max_tokens = 1}, [](std::string_view) { return true; });
  };
  small.chat.SetMessages({{"user", "a"}, kCalls});
  reply({kResult, kResult});
  const size_t n_read = small.session.position();
  ASSERT_EQ(small.chat.Messages().size(), 5u);
  EXPECT_EQ(small.chat.Messages()[2], kResult);
  // The whole conversation, from a program that keeps it itself: only new tokens are read.
  const std::vector<Message> more = {{"user", "a"},      kCalls,       kResult, kResult,
                                     {"assistant", "b"}, {"user", "c"}};
  small.chat.SetMessages(more);
  EXPECT_GE(reply({}).n_reused, n_read - 1);
  small.chat.SetMessages(more);
  EXPECT_EQ(small.chat.Undo(), "c");
  EXPECT_EQ(small.chat.Undo(), "a");  // with calls and results
  EXPECT_TRUE(small.chat.Messages().empty());
}

TEST(Chat, KnowsWhoseTurnItIs) {
  SmallChat small(kShowsCalls);
  const auto error = [&](const std::vector<Message>& history, const std::vector<Message>& more) {
    return ErrorFrom([&] {
      small.chat.SetMessages(history);
      small.chat.Reply(more, {}, nullptr);
    });
  };
  const Message user = {"user", "a"}, answer = {"assistant", "b"};
  EXPECT_EQ(error({}, {}), "there is no message to answer");
  EXPECT_EQ(error({user}, {answer}), "there is no message to answer");
  EXPECT_EQ(error({user}, {user}), "message 2: expected one by 'assistant', found one by 'user'");
  EXPECT_EQ(error({user, answer, kResult}, {}),
            "message 3: expected one by 'user', found one by 'tool'");
  EXPECT_EQ(error({user, {"assistant", "", "", {{"1", "f", "[1]"}}}}, {}),
            "message 2: the arguments of a call must be a JSON object");
  // A question that cannot fit is not read.
  const Message long_call = {"assistant", "", "", {{"1", "f", std::string(100'000, '[')}}};
  EXPECT_TRUE(error({user}, {long_call, kResult}).starts_with("the text needs at least "));
}

TEST(Chat, TakesTools) {
  SmallChat small(kShowsCalls);
  const std::string tools = R"([{"type": "function", "function": {"name": "f"}}])";
  const size_t without = small.chat.Count("a");
  small.chat.SetTools(tools);
  EXPECT_GT(small.chat.Count("a"), without);
  small.chat.SetTools("");
  EXPECT_EQ(small.chat.Count("a"), without);
  const auto error = [](SmallChat& chat, const std::string& json) {
    return ErrorFrom([&] { chat.chat.SetTools(json); });
  };
  EXPECT_EQ(error(small, "{"), "tools: is not JSON from byte 2 on");
  EXPECT_EQ(error(small, "{}"), "tools: expected a list");
  EXPECT_EQ(error(small, "[1]"),
            R"(tools: number 1: expected {"type": "function", "function": {"name": ..., ...}})");
  EXPECT_EQ(error(small, R"([{"function": {"name": "f"}}, {"function": {"name": "f"}}])"),
            "tools: number 2: expected each function once, found 'f' again");
  EXPECT_EQ(error(small, R"([{"function": {"name": "f", "parameters": [1]}}])"),
            "tools: number 1: parameters: expected a schema, found array");
  EXPECT_TRUE(error(small, R"([{"function": {"name": "f", "parameters": {"type": "objekt"}}}])")
                  .starts_with("tools: f: parameters: #/type"));
  // A choice must name one of the current tools.
  const auto choose = [&](const char* choice) {
    return ErrorFrom([&] { small.chat.SetToolChoice(choice); });
  };
  EXPECT_EQ(choose("required"),
            "tool choice 'required': expected auto, none, required or the name of a tool; there "
            "are no tools");
  small.chat.SetTools(tools);
  EXPECT_EQ(choose("g"), "tool choice 'g': expected auto, none, required or the name of a tool, f");
  const size_t with = small.chat.Count("a");
  EXPECT_EQ(choose("none"), "");
  EXPECT_LT(small.chat.Count("a"), with);
  EXPECT_EQ(choose("f"), "");
  EXPECT_EQ(small.chat.Count("a"), with);
}

// A template without tools and calls: the system message explains the tools, and user messages have
// the results.
TEST(Chat, ExplainsToolsThatItsTemplateDoesNotRead) {
  const std::vector<std::byte> bytes = test::ScriptedModel(
      {{"x"}}, "{% for m in messages %}{{ m.role }}: {{ m.content }}|{% endfor %}");
  const Model model = Model::From(gguf::File::Parse("scripted", bytes));
  const std::vector<Message> messages = {
      {"user", "Warm?"},
      {"assistant", "", "", {{"1", "f", R"({"x":1})"}, {"2", "g", "{}"}}},
      {"tool", "22", "1"},
      {.role = "tool", .content = "23", .tool_call_id = "2"},
      {"assistant", "Yes."}};
  const std::string conversation =
      "user: Warm?|assistant: {\"name\": \"f\", \"arguments\": {\"x\":1}}\n"
      "{\"name\": \"g\", \"arguments\": {}}|user: Result of f:\n22\n\nResult of g:\n23|"
      "assistant: Yes.|";
  ChatForm form(model);
  EXPECT_EQ(RenderChat(model.tokenizer.get(), form, messages).text, conversation);
  const std::vector<Message> no_calls = {{"user", "Warm?"}, {"tool", "22"}};
  EXPECT_EQ(RenderChat(model.tokenizer.get(), form, no_calls).text, "user: Warm?|tool: 22|");
  form.SetTools(R"([{"type": "function", "function": {"name": "f"}}])");
  form.instructions = "Be short.";
  EXPECT_EQ(RenderChat(model.tokenizer.get(), form, messages).text,
            "system: You can call these functions:\n{\"name\":\"f\"}\nTo call a function, answer "
            "with nothing but a JSON object: {\"name\": FUNCTION, \"arguments\": {NAME: VALUE, "
            "...}}. When you have the result, answer the question in words.\n\nBe short.|" +
                conversation);
  form.tool_choice = ReadToolChoice("none", form.tools);
  EXPECT_EQ(RenderChat(model.tokenizer.get(), form, messages).text,
            "system: Be short.|" + conversation);
}

// Files may have a second template, for tools.
TEST(ChatForm, TakesTheTemplateForTools) {
  const std::string tools = R"([{"type": "function", "function": {"name": "f"}}])";
  ChatForm form("{% for m in messages %}{{ m.content }}{% endfor %}");
  form.variables = {{"kept", tokenizer::Value("Kept")}};
  form.template_with_tools = "{{ kept }} <tool_call> {{ tools[0].function.name }} </think>";
  form.SetTools("");
  EXPECT_EQ(form.calls, nullptr);
  form.SetTools(tools);
  ASSERT_NE(form.calls, nullptr);
  EXPECT_EQ(form.thinking.kind, ThinkingFormat::Kind::kTags);
  tokenizer::ChatInput input(std::vector<Message>{{"user", "Hi"}});
  EXPECT_EQ(form.Render(input, nullptr).text, "Kept <tool_call> f </think>");
  ChatForm base(tokenizer::kTranscriptTemplate);
  base.template_with_tools = form.template_with_tools;
  EXPECT_TRUE(base.is_transcript);
  base.SetTools(tools);
  EXPECT_FALSE(base.is_transcript);
}

// A template that shows no calls: they are spelt as the model wrote them, and their marks may be
// control tokens, unlike the user's marks.
TEST(Chat, SpellsCallsThatItsTemplateDoesNotShow) {
  constexpr auto kControl = tokenizer::TokenType::kControl;
  const std::string phi =
      "{% for m in messages %}{{ m.content }}{% if m.tools %}<|/tool|>{% endif %}{% endfor %}";
  const std::string lfm =
      "{{ tools or '' }}{# <|tool_list_start|> #}{% for m in messages %}{{ m.content }}{% endfor "
      "%}";
  const std::string kimi =
      "{{ tools or '' }}{# <|im_system|>tool_declare #}"
      "{% for m in messages %}{{ m.content }}{% endfor %}";
  const std::string arguments = R"({"x":[true],"y":true,"z":null})";
  const auto rendered = [&](const std::string& source, const std::vector<std::string>& controls) {
    std::vector<test::ScriptedToken> script;
    for (const std::string& text : controls) script.push_back({text, kControl});
    const std::vector<std::byte> bytes = test::ScriptedModel(script, source);
    const Model model = Model::From(gguf::File::Parse("scripted", bytes));
    const std::vector<Message> messages = {
        {"user", controls[0]},
        {"assistant", "So.", "", {{"functions.f:0", "f", arguments}, {"functions.g:1", "g", "{}"}}},
        {"tool", controls[0]}};
    const std::vector<TokenId> ids = EncodeChat(model, ChatForm(model), messages, 1000);
    for (const std::string& text : controls)
      EXPECT_EQ(std::ranges::count(ids, model.tokenizer->Find(text)), 1) << text;
    return RenderChat(model.tokenizer.get(), ChatForm(model), messages).text;
  };
  // This text must remain text in another message.
  const std::vector<std::byte> bytes = test::ScriptedModel({{"<|tool_call_end|>", kControl}}, lfm);
  const Model model = Model::From(gguf::File::Parse("scripted", bytes));
  const std::vector<Message> same = {{"user", "<|tool_call_start|>[g()]<|tool_call_end|>"},
                                     {"assistant", "", "", {{"1", "g", "{}"}}},
                                     {"tool", "So."}};
  const std::vector<TokenId> ids = EncodeChat(model, ChatForm(model), same, 1000);
  EXPECT_EQ(std::ranges::count(ids, model.tokenizer->Find("<|tool_call_end|>")), 0);
  EXPECT_EQ(rendered(phi, {"<|tool_call|>", "<|/tool_call|>"}),
            R"(<|tool_call|>So.<|tool_call|>[{"name": "f", "arguments": )" + arguments +
                R"(}, {"name": "g", "arguments": {}}]<|/tool_call|><|tool_call|>)");
  EXPECT_EQ(rendered(lfm, {"<|tool_call_start|>", "<|tool_call_end|>"}),
            "<|tool_call_start|>So.<|tool_call_start|>[f(x=[true], y=True, z=None), g()]"
            "<|tool_call_end|><|tool_call_start|>");
  EXPECT_EQ(rendered(kimi, {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}),
            "<|tool_calls_section_begin|>So.<|tool_calls_section_begin|>"
            "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>" +
                arguments +
                "<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}"
                "<|tool_call_end|><|tool_calls_section_end|><|tool_calls_section_begin|>");
}

// Thinking is not part of the answer and goes into the conversation separately: the template makes
// the next turn's text of both.
TEST(Chat, ThinkingIsKeptApart) {
  const std::string source =
      "{% for m in messages %}{{ m.reasoning_content }}|{{ m.content }}|{% endfor %}"
      "{# <think></think> #}{{ enable_thinking }}";
  const std::vector<std::byte> bytes = test::ScriptedModel(
      {{"<think>", kUser}, {"hm"}, {"</think>", kUser}, {"\n"}, {"Yes"}}, source);
  const Model model = Model::From(gguf::File::Parse("scripted", bytes));
  Session session(model, {.sampling = {.temperature = 0}});
  Chat chat(session, "", ChatForm(model));
  std::string thinking, text;
  GenerateOptions options;
  options.on_thinking = [&](std::string_view piece) {
    thinking += piece;
    return true;
  };
  const auto say = [&] {
    return chat.Say("why?", options, [&](std::string_view piece) {
      text += piece;
      return true;
    });
  };
  const Chat::Answer first = say();
  EXPECT_EQ(thinking, "hm");
  EXPECT_EQ(text, "Yes");
  EXPECT_EQ(first.generated.text, "Yes");
  EXPECT_EQ(first.generated.thinking, "hm");
  EXPECT_EQ(first.generated.tokens.size(), 5u);
  ASSERT_EQ(chat.Messages().size(), 2u);
  EXPECT_EQ(chat.Messages()[1].content, "Yes");
  EXPECT_EQ(chat.Messages()[1].thinking, "hm");
  chat.SetThinking("off");
  say();
  const std::vector<TokenId> read(session.tokens().begin(), session.tokens().end());
  EXPECT_EQ(model.tokenizer->Decode(read).rfind("|why?|hm|Yes||why?|False", 0), 0u)
      << model.tokenizer->Decode(read);
  // Stopped during the thinking: the message is kept.
  options.on_thinking = [](std::string_view) { return false; };
  EXPECT_EQ(say().generated.stop_reason, StopReason::kInterrupted);
  EXPECT_EQ(chat.Messages().size(), 6u);
}

// A file with an empty template counts as a file without one.
TEST(Chat, AnEmptyTemplateIsNone) {
  const SmallChat small("");
  EXPECT_EQ(ChatTemplateSource(small.model.file, *small.model.tokenizer),
            tokenizer::kTranscriptTemplate);
  EXPECT_TRUE(ChatForm(small.model).is_transcript);
}

}  // namespace
}  // namespace engine
