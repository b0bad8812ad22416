// Thinking separated from answers, and the switches of templates.
#include "engine/answer/thinking.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "engine/session/generate.h"
#include "grammar/gbnf.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/scripted_model.h"

namespace engine {
namespace {

using tokenizer::ChatTemplate;
using tokenizer::Value;

const ThinkingFormat kTags = FindThinkingFormat("{{ '</think>' }}");
const ThinkingFormat kChannels = FindThinkingFormat("<|start|>assistant<|channel|>x<|message|>");
const ThinkingFormat kGemma = FindThinkingFormat("<channel|>");

// The message of SetThinking; "" without an error.
std::string Refusal(const ChatTemplate& chat_template, std::string_view level) {
  std::vector<std::pair<std::string, Value>> variables;
  return test::ErrorOf<Error>([&] { SetThinking(chat_template, level, variables); });
}

struct Split {
  std::string thinking, answer;
  bool operator==(const Split&) const = default;
};
void PrintTo(const Split& split, std::ostream* out) {
  *out << "[" << split.thinking << "] [" << split.answer << "]";
}

// A text's parts are the same, in whatever pieces it comes.
Split Through(const ThinkingFormat& format, const std::string& text,
              const std::string& prompt_end = "") {
  std::vector<Split> splits;
  for (size_t piece = 1; piece <= text.size() + 1; ++piece) {
    Split split;
    const auto sink = [&](std::string_view out, ThinkingSplitter::Part part) {
      EXPECT_FALSE(out.empty());
      (part == ThinkingSplitter::Part::kThinking ? split.thinking : split.answer) += out;
    };
    ThinkingSplitter splitter(format, prompt_end);
    for (size_t at = 0; at < text.size(); at += piece) splitter.Push(text.substr(at, piece), sink);
    splitter.Finish(sink);
    splits.push_back(split);
    EXPECT_EQ(split, splits.front()) << "in pieces of " << piece;
  }
  return splits.front();
}

TEST(ThinkingSplitter, Tags) {
  EXPECT_EQ(Through(kTags, "<think>\nhm, 2 < 3\n</think>\n\nYes.\n"),
            (Split{"hm, 2 < 3", "Yes.\n"}));
  EXPECT_EQ(Through(kTags, "\n <think>a</think>b"), (Split{"a", "b"}));
  EXPECT_EQ(Through(kTags, "<think>\n\n</think>\n\nYes"), (Split{"", "Yes"}));
  EXPECT_EQ(Through(kTags, "<think>a </thin </think>b</think>"), (Split{"a </thin", "b</think>"}));
  // Cut off.
  EXPECT_EQ(Through(kTags, "<think>a </thi"), (Split{"a </thi", ""}));
  EXPECT_EQ(Through(kTags, "<thi"), (Split{"", "<thi"}));
  EXPECT_EQ(Through(kTags, ""), (Split{"", ""}));
}

TEST(ThinkingSplitter, OnlyTheBeginningIsThinking) {
  EXPECT_EQ(Through(kTags, "Write <think>x</think>."), (Split{"", "Write <think>x</think>."}));
  EXPECT_EQ(Through(kTags, "  indented"), (Split{"", "  indented"}));
  EXPECT_EQ(Through(kTags, "<b>x</b>"), (Split{"", "<b>x</b>"}));
  EXPECT_EQ(Through(ThinkingFormat(), "<think>x</think>y"), (Split{"", "<think>x</think>y"}));
}

TEST(ThinkingSplitter, TheTemplateMayHaveBegunIt) {
  EXPECT_EQ(Through(kTags, "\nhm</think>Yes", "<|im_start|>assistant\n<think>\n"),
            (Split{"hm", "Yes"}));
  EXPECT_EQ(Through(kTags, "Yes</think>", "<think>\n\n</think>\n\n"), (Split{"", "Yes</think>"}));
}

TEST(ThinkingSplitter, Gemma) {
  EXPECT_EQ(Through(kGemma, "<|channel>thought\nhm\n<channel|>Yes"), (Split{"hm", "Yes"}));
  EXPECT_EQ(Through(kGemma, "Yes", "<|turn>model\n<|channel>thought\n<channel|>"),
            (Split{"", "Yes"}));
}

// Granite's and Hunyuan's answers have marks, too.
TEST(ThinkingSplitter, MarksAroundTheAnswer) {
  const ThinkingFormat format = FindThinkingFormat("<think></think><answer></answer>");
  EXPECT_EQ(Through(format, "<think>hm</think>\n<answer>\nYes, a < b.\n\nSo.\n</answer>\n"),
            (Split{"hm", "Yes, a < b.\n\nSo."}));
  EXPECT_EQ(Through(format, "<think>hm</think>Yes </answer>"), (Split{"hm", "Yes </answer>"}));
  EXPECT_EQ(Through(format, "<answer>Yes", "<think>\n\n</think>\n"), (Split{"", "Yes"}));
  EXPECT_EQ(Through(format, "<answer>Yes</ans"), (Split{"", "Yes</ans"}));
  EXPECT_EQ(Through(format, "<ans"), (Split{"", "<ans"}));
  EXPECT_EQ(Through(format, "<answer>A</answer> B"), (Split{"", "AB"}));
  EXPECT_EQ(Through(FindThinkingFormat("</think><response> of a tool"), "<response>"),
            (Split{"", "<response>"}));
  const ThinkingFormat apriel =
      FindThinkingFormat("Here are my reasoning steps: [BEGIN FINAL RESPONSE]");
  EXPECT_EQ(Through(apriel, "hm\n[BEGIN FINAL RESPONSE]\nYes\n[END FINAL RESPONSE]",
                    "<|begin_assistant|>\nHere are my reasoning steps:\n"),
            (Split{"hm", "Yes"}));
}

TEST(ThinkingSplitter, Channels) {
  const std::string turn = "<|start|>assistant";
  EXPECT_EQ(Through(kChannels, "<|channel|>analysis<|message|>hm<|end|>" + turn +
                                   "<|channel|>final<|message|>Yes, a < b"),
            (Split{"hm", "Yes, a < b"}));
  // Messages of one kind are paragraphs; a message to a tool is not the answer.
  EXPECT_EQ(
      Through(kChannels,
              "<|channel|>analysis<|message|>a<|end|>" + turn +
                  "<|channel|>commentary<|message|>I look.<|end|>" + turn +
                  "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|end|>" +
                  turn + "<|channel|>final<|message|>Yes"),
      (Split{"a\n\n{}", "I look.\n\nYes"}));
  EXPECT_EQ(Through(kChannels, "no channels at all"), (Split{"", "no channels at all"}));
  EXPECT_EQ(Through(kChannels, "hm<|end|>" + turn + "<|channel|>final<|message|>Yes",
                    turn + "<|channel|>analysis<|message|>"),
            (Split{"hm", "Yes"}));
}

TEST(ThinkingFormat, IsWhatTemplatesSpell) {
  EXPECT_EQ(FindThinkingFormat("{{ messages }}").kind, ThinkingFormat::Kind::kNone);
  EXPECT_EQ(FindThinkingFormat("[THINK]x[/THINK]").open, "[THINK]");
  EXPECT_EQ(kGemma.open, "<|channel>thought");
  for (const auto& [open, close] :
       {std::pair("<|START_THINKING|>", "<|END_THINKING|>"),
        std::pair("<|inner_prefix|>", "<|inner_suffix|>"), std::pair("<thought>", "</thought>"),
        std::pair("<reasoning>", "</reasoning>"),
        std::pair("Here is my thought process:", "Here is my response:")}) {
    const std::string text = std::string(open) + " hm " + close + " Yes";
    EXPECT_EQ(Through(FindThinkingFormat(text), text), (Split{"hm", "Yes"}));
  }
  EXPECT_EQ(kChannels.kind, ThinkingFormat::Kind::kChannels);
}

TEST(ThinkingSwitch, IsWhatChangesTheText) {
  const auto find = [](const char* source) {
    return FindThinkingSwitch(ChatTemplate::Parse(source));
  };
  EXPECT_EQ(
      find("{% if enable_thinking is defined and enable_thinking is false %}x{% endif %}").variable,
      "enable_thinking");
  EXPECT_EQ(find("{% if thinking %}<think>{% endif %}").variable, "thinking");
  const ThinkingSwitch effort = find(
      "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'medium' %}{% endif %}"
      "Reasoning: {{ reasoning_effort }}");
  EXPECT_EQ(effort.variable, "reasoning_effort");
  EXPECT_TRUE(effort.has_levels);
  // A template that only mentions the variable has no switch.
  EXPECT_EQ(find("{{ messages[0].thinking }}{# enable_thinking #}").variable, "");
}

TEST(SetThinking, SetsTheVariableOrSaysWhyNot) {
  std::vector<std::pair<std::string, Value>> variables = {{"enable_thinking", Value(true)},
                                                          {"n", Value(1)}};
  const ChatTemplate on_off = ChatTemplate::Parse("{{ enable_thinking }}");
  SetThinking(on_off, "off", variables);
  ASSERT_EQ(variables.size(), 2u);
  EXPECT_EQ(variables[1].first, "enable_thinking");
  EXPECT_FALSE(variables[1].second.Truth());
  EXPECT_TRUE(test::Has(Refusal(on_off, "low"), "no levels"));

  variables.clear();
  const ChatTemplate effort = ChatTemplate::Parse("{{ reasoning_effort }}");
  SetThinking(effort, "high", variables);
  ASSERT_EQ(variables.size(), 1u);
  EXPECT_EQ(variables[0].second.view(), "high");
  SetThinking(effort, "on", variables);  // the template's own level
  EXPECT_TRUE(variables.empty());
  EXPECT_TRUE(test::Has(Refusal(effort, "off"), "cannot turn"));
  EXPECT_TRUE(test::Has(Refusal(ChatTemplate::Parse("x"), "on"), "no switch"));
}

// Every known form: the forced end of the thinking is the end that the model's family writes.
TEST(ThinkingBudget, EndsEveryFormOfThinking) {
  constexpr auto kControl = tokenizer::TokenType::kControl;
  struct Form {
    const char* source;                      // of a template
    std::vector<std::string> before, after;  // the script around the thinking
    const char* prompt = "Q";
  };
  const std::vector<Form> forms = {
      {"</think>", {"<think>"}, {"</think>"}},
      {"</think>", {}, {"</think>"}, "Q<think>\n"},
      {"[/THINK]", {"[THINK]"}, {"[/THINK]"}},
      {"</seed:think>", {"<seed:think>"}, {"</seed:think>"}},
      {"<channel|>", {"<|channel>", "thought"}, {"<channel|>"}},
      {"<|message|>",
       {},
       {"<|end|>", "<|start|>", "assistant", "<|channel|>", "final", "<|message|>"},
       "<|start|>assistant<|channel|>analysis<|message|>Q"}};
  for (const Form& form : forms) {
    const auto is_mark = [](const std::string& text) {
      return text.find_first_of("<[") != std::string::npos;
    };
    std::vector<test::ScriptedToken> script;
    const auto add = [&](const std::string& text) {
      script.push_back({text, is_mark(text) ? kControl : tokenizer::TokenType::kNormal});
    };
    for (const std::string& text : form.before) add(text);
    for (const char* const text : {"so", " it", " is"}) add(text);
    for (const std::string& text : form.after) add(text);
    add("Yes");
    add("<|return|>");  // if the vocabulary has it, <|end|> only ends a message
    const std::vector<std::byte> bytes = test::ScriptedModel(script, "");
    const Model model = Model::From(gguf::File::Parse("scripted", bytes));
    const auto run = [&](int64_t budget, const std::string& message) {
      Session session(model, {.n_threads = 1, .sampling = {.temperature = 0}});
      const GenerateOptions options = {.max_tokens = 40,
                                       .thinking = FindThinkingFormat(form.source),
                                       .thinking_budget = budget,
                                       .thinking_message = message};
      const auto prompt = model.tokenizer->Encode(form.prompt, {.parse_special = true});
      const GenerateResult result =
          Generate(session, prompt, options, [](std::string_view) { return true; });
      EXPECT_EQ(result.text, "Yes") << form.source << budget;
      return result.thinking;
    };
    EXPECT_EQ(run(-1, "x"), "so it is") << form.source;
    EXPECT_EQ(run(3, "x"), "so it isx") << form.source;
    EXPECT_EQ(run(4, "x"), "so it is") << form.source;  // the mark is one of these tokens
    EXPECT_EQ(run(2, ""), "so it") << form.source;
    EXPECT_EQ(run(1, "\nEnough."), "so\nEnough.") << form.source;
    EXPECT_EQ(run(0, ""), "") << form.source;
  }
}

// With calls in channels the model chooses once more, then it must answer.
TEST(ThinkingBudget, LeavesCallsOpenOnce) {
  ThinkingFormat format = kChannels;
  const std::string turn = "<|end|><|start|>assistant";
  EXPECT_EQ(EndOfThinking(format, false), turn + "<|channel|>final<|message|>");
  format.has_calls = true;
  EXPECT_EQ(EndOfThinking(format, false), turn);
  EXPECT_EQ(EndOfThinking(format, true), turn + "<|channel|>final<|message|>");
}

// A grammar applies from the answer on, however the thinking ends.
TEST(ThinkingBudget, BesideAGrammar) {
  constexpr auto kControl = tokenizer::TokenType::kControl;
  const std::vector<std::byte> bytes = test::ScriptedModel(
      {{"<think>", kControl}, {"so"}, {" it"}, {"</think>", kControl}, {"Yes"}}, "");
  const Model model = Model::From(gguf::File::Parse("scripted", bytes));
  Session session(model, {.n_threads = 1, .sampling = {.temperature = 0}});
  grammar::Constraint constraint(
      std::make_shared<const grammar::Grammar>(grammar::ParseGbnf(R"(root ::= "no" | "No")")),
      *model.tokenizer);
  const GenerateResult result =
      Generate(session, model.tokenizer->Encode("Q"),
               {.thinking = kTags, .thinking_budget = 1, .constraint = &constraint},
               [](std::string_view) { return true; });
  EXPECT_EQ(result.thinking, "so");
  EXPECT_TRUE(result.text == "no" || result.text == "No") << result.text;
}

// Templates of real models, if the golden data exists.
TEST(ThinkingSwitch, OfRealTemplates) {
  const auto folder = test::SharedPath("golden/templates");
  if (folder.empty()) GTEST_SKIP() << "the templates are not here";
  const auto source = [&](const char* name) { return test::ReadText(folder / name); };
  for (const char* const name : {"Qwen-Qwen3-0.6B.jinja", "HuggingFaceTB-SmolLM3-3B.jinja"}) {
    EXPECT_EQ(FindThinkingFormat(source(name)).open, "<think>") << name;
    EXPECT_EQ(FindThinkingSwitch(ChatTemplate::Parse(source(name))).variable, "enable_thinking")
        << name;
  }
  const std::string r1 = source("deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja");
  EXPECT_EQ(FindThinkingFormat(r1).open, "<think>");
  EXPECT_EQ(FindThinkingSwitch(ChatTemplate::Parse(r1)).variable, "");
  EXPECT_EQ(FindThinkingFormat(source("meta-llama-Llama-3.1-8B-Instruct.jinja")).kind,
            ThinkingFormat::Kind::kNone);
}

}  // namespace
}  // namespace engine
