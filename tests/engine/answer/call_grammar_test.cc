// Calls that follow the tools' schemas: every text of every family's grammar is read as a call with
// valid arguments, and models that would write something else still write such a call.
#include "engine/answer/call_grammar.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/answer/thinking.h"
#include "engine/error.h"
#include "engine/session/chat.h"
#include "grammar/matcher.h"
#include "tests/support/error_of.h"
#include "tests/support/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/scripted_model.h"

namespace engine {
namespace {

using grammar::ItemSets;
using grammar::Matcher;
using grammar::SetId;
using Kind = ToolChoice::Kind;

constexpr auto kControl = tokenizer::TokenType::kControl;

const std::string kTools = R"([
  {"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["C", "F"]},
      "days": {"type": "integer", "minimum": 1, "maximum": 20},
      "day": {"type": "string", "pattern": "^(mon|tues)day$"}, "wet": {"type": "boolean"},
      "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
      "deep": {"$ref": "#/$defs/deep"}},
    "required": ["city", "days", "day"], "additionalProperties": false,
    "$defs": {"deep": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}}}}},
  {"type": "function", "function": {"name": "now"}},
  {"type": "function", "function": {"name": "pick", "parameters": {
    "anyOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
              {"type": "object", "properties": {"b": {"const": 2}}, "required": ["b"]}]}}}])";

const std::map<std::string, std::string>& Sources() {
  static const std::map<std::string, std::string> sources = {
      {"Hermes", "<tool_call>"},
      {"Llama3", "\"parameters\": dictionary"},
      {"Qwen3Coder", "<function="},
      {"Seed", "<seed:tool_call><function="},
      {"Nemotron", "<TOOLCALL>"},
      {"Jamba", "<tool_calls>"},
      {"GLM", "<arg_key>"},
      {"Gemma4", "<|tool_call>"},
      {"Mistral", "[TOOL_CALLS]"},
      {"DeepSeek", "<｜tool▁call▁begin｜>"},
      {"Granite3", "<|tool_call|>"},
      {"Phi4Mini", "<|/tool|>"},
      {"CommandR7B", "<|START_ACTION|>"},
      {"Apertus", "<|tools_prefix|>"},
      {"KimiK2", "<|im_system|>tool_declare"},
      {"Functionary31", "<function=example_function_name>"},
      {"MiniMaxM2", "<minimax:tool_call>"},
      {"Hunyuan3", "<tool_sep>"},
      {"FunctionGemma", "<start_function_call>"},
      {"Lfm2", "<|tool_call_start|>"},
      {"Olmo3", "<function_calls>"},
      {"GptOss", "<|start|><|channel|><|message|><|call|>"},
      {"None", "tools"},
  };
  return sources;
}

const Model& AnyModel() {
  static const std::vector<std::byte> bytes = test::ScriptedModel({{"x"}}, "");
  static const Model model = Model::From(gguf::File::Parse("scripted", bytes));
  return model;
}

// A random text of a grammar. After many bytes it takes the shortest way to an end.
std::string RandomText(Matcher& matcher, std::mt19937& random) {
  std::string text;
  SetId at = matcher.Start();
  const auto next = [&](SetId from) {
    std::vector<std::pair<char, SetId>> moves;
    for (const char c : std::string("\n\t") + std::string("`\"'{}[]()<>/|\\=,:;_-+. ") +
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "\xEF\xBD\x9C\xE2\x96\x81") {
      const SetId to = matcher.Step(from, static_cast<uint8_t>(c));
      if (to != ItemSets::kNothing) moves.emplace_back(c, to);
    }
    return moves;
  };
  for (size_t i = 0; i < 60; ++i) {
    const auto moves = next(at);
    if (moves.empty()) break;
    const auto& [c, to] = moves[random() % moves.size()];
    text += c;
    at = to;
  }
  std::map<SetId, std::string> found = {{at, ""}};
  for (std::deque<SetId> todo = {at}; !todo.empty(); todo.pop_front()) {
    const SetId from = todo.front();
    if (matcher.MayEnd(from)) return text + found[from];
    for (const auto& [c, to] : next(from)) {
      if (found.try_emplace(to, found[from] + c).second) todo.push_back(to);
    }
  }
  ADD_FAILURE() << "no end after " << text;
  return text;
}

// The calls in a model's text after its prompt.
Calls CallsIn(const std::string& source, const std::string& written, std::string& text) {
  ThinkingFormat thinking = FindThinkingFormat(source);
  thinking.has_calls = true;
  ThinkingSplitter splitter(thinking, "<|start|>assistant");
  CallSplitter splits(FindCallForm(source), gguf::JsonView::Parse(kTools));
  const auto sink = [&](std::string_view piece, ThinkingSplitter::Part part) {
    if (part == ThinkingSplitter::Part::kAnswer) text += splits.Push(piece);
  };
  Calls calls;
  splitter.Push(written, sink);
  splitter.Finish(sink);
  text += splits.Finish(calls);
  return calls;
}

void ExpectValid(const Calls& calls) {
  for (const tokenizer::ToolCall& call : calls) {
    const test::Json arguments = test::Json::parse(call.arguments);
    bool is_known = false;
    for (const test::Json& tool : test::Json::parse(kTools)) {
      const test::Json& function = tool["function"];
      if (function["name"] != call.name) continue;
      is_known = true;
      if (!function.contains("parameters")) {
        EXPECT_EQ(call.arguments, "{}");
        continue;
      }
      EXPECT_EQ(test::SchemaFaults(arguments, function["parameters"]), std::vector<std::string>())
          << call.arguments;
    }
    EXPECT_TRUE(is_known) << call.name;
  }
}

TEST(CallGrammar, HasValidCallsOnly) {
  const auto tools = gguf::JsonView::Parse(kTools);
  std::mt19937 random(7);
  for (const auto& [name, source] : Sources()) {
    for (const ToolChoice& choice :
         {ToolChoice{Kind::kRequired}, ToolChoice{Kind::kRequired, "weather"},
          ToolChoice{Kind::kRequired, "pick"}, ToolChoice{Kind::kAuto}}) {
      const grammar::Grammar grammar =
          CallGrammar(FindCallForm(source), tools, choice, nullptr, *AnyModel().tokenizer);
      Matcher matcher(grammar);
      // In channels the grammar sees the splitter's output, unless a call is required.
      const bool is_seen = name != "GptOss" || choice.kind == Kind::kRequired;
      for (size_t i = 0; i < 40; ++i) {
        const std::string written = RandomText(matcher, random);
        if (!is_seen) continue;
        std::string text;
        const Calls calls = CallsIn(source, written, text);
        EXPECT_FALSE(calls.empty()) << name << ": " << written;
        EXPECT_EQ(text.find_first_not_of(" \t\r\n"), text.npos) << name << ": " << written;
        ExpectValid(calls);
        if (choice.name.empty()) continue;
        EXPECT_EQ(calls.size(), 1u) << written;
        for (const auto& call : calls) EXPECT_EQ(call.name, choice.name);
      }
      if (HasFailure()) return;
    }
  }
}

// Names that are invalid in Python are spelt in JSON, and so is a text that has both quotes.
TEST(CallGrammar, NamesOfPython) {
  const auto takes = [](const std::string& tool, const std::string& inside) {
    const auto tools = gguf::JsonView::Parse("[{\"function\": " + tool + "}]");
    const grammar::Grammar grammar = CallGrammar(FindCallForm("<|tool_call_start|>"), tools,
                                                 {Kind::kRequired}, nullptr, *AnyModel().tokenizer);
    Matcher matcher(grammar);
    SetId at = matcher.Start();
    for (const char c : "<|tool_call_start|>[" + inside + "]<|tool_call_end|>")
      at = matcher.Step(at, static_cast<uint8_t>(c));
    return at != ItemSets::kNothing && matcher.MayEnd(at);
  };
  const std::string plain = R"({"name": "a.b", "parameters": {"properties": {"x": {}}}})";
  EXPECT_TRUE(takes(plain, "a.b(x=1), a.b()"));
  EXPECT_FALSE(takes(plain, R"({"name": "a.b", "arguments": {}})"));
  for (const std::string odd : {R"({"name": "a(b"})", R"({"name": "a(b", "parameters":
                                 {"properties": {"x=y": {}}}})"}) {
    EXPECT_TRUE(takes(odd, R"({"name": "a(b", "arguments": {}})")) << odd;
    EXPECT_FALSE(takes(odd, "a(b()")) << odd;
  }
  const std::string quoted = R"({"name": "f", "parameters": {"properties": {"x":
                                 {"type": "string", "enum": ["it's"]}}}})";
  EXPECT_TRUE(takes(quoted, R"(f(x="it's"))"));
  EXPECT_FALSE(takes(quoted, "f(x='it')"));
}

TEST(CallGrammar, NamesTheToolWhoseSchemaIsRefused) {
  const auto tools = gguf::JsonView::Parse(
      R"([{"function": {"name": "f", "parameters": {"properties": {"a": {"type": "x"}}}}}])");
  EXPECT_EQ(test::ErrorOf<Error>([&] {
              CallGrammar(nullptr, tools, {}, nullptr, *AnyModel().tokenizer);
            }).find("tools: f: parameters: #/properties/a/type: "),
            0u);
}

// A chat with a model that writes its script unless the grammar forbids it.
struct Scripted {
  Scripted(const std::vector<test::ScriptedToken>& script, const std::string& source)
      : bytes(test::ScriptedModel(script, source)) {
    chat.SetTools(R"([{"function": {"name": "f", "parameters": {"type": "object",
        "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["x"],
        "additionalProperties": false}}}, {"function": {"name": "g"}}])");
  }
  GenerateResult Say(GenerateOptions options = {}) {
    options.max_tokens = 400;
    chat.SetMessages({});
    return chat.Say("a", options, [](std::string_view) { return true; }).generated;
  }
  const std::vector<std::byte> bytes;
  const Model model = Model::From(gguf::File::Parse("scripted", bytes));
  // Compares without white space, since a grammar allows much.
  SessionOptions Options() const {
    SessionOptions options = {.n_threads = 1, .sampling = {.temperature = 0}};
    for (const char* const blank : {"<0x09>", "<0x0A>", "<0x20>"})
      options.sampling.logit_bias.emplace_back(model.tokenizer->Find(blank), -50.0f);
    return options;
  }
  Session session{model, Options()};
  Chat chat{session, "", ChatForm(model)};
};

const std::string kHermes =
    "{{ tools | length if tools else 0 }}{# <tool_call> </think> #}{{ messages[-1].content }}";

void ExpectF(const GenerateResult& result) {
  ASSERT_FALSE(result.tool_calls.empty()) << result.text;
  for (const tokenizer::ToolCall& call : result.tool_calls) {
    EXPECT_EQ(call.name, "f");
    const test::Json arguments = test::Json::parse(call.arguments);
    EXPECT_EQ(arguments.size(), 1u);
    EXPECT_TRUE(arguments["x"].is_number_integer());
  }
}

void ExpectOnlyF(const GenerateResult& result) {
  ExpectF(result);
  EXPECT_EQ(result.tool_calls.size(), 1u);
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(result.stop_reason, StopReason::kEos);
}

// A call follows the schema from its beginning on: with marks, and bare. (The model then calls
// again and again.)
TEST(CallGrammar, BeginsWithACall) {
  const std::vector<std::vector<test::ScriptedToken>> scripts = {
      {{"<tool_call>", kControl}, {"{\"name\": \"f\", \"arguments\": {\"x\": \"one\"}}"}},
      {{"<tool_call>"}, {"{\"name\": \"f\", "}, {"\"arguments\": {\"x\": \"one\"}}"}},
      {{"{\"name\": "}, {"\"f\""}, {", \"arguments\": {\"x\": \"one\"}}"}},
      {{"```json\n{\"name\":"}, {" \"f\","}, {" \"arguments\": 1}\n```"}},
      {{"<think>", kControl},
       {"hm"},
       {"</think>", kControl},
       {"<tool_call>"},
       {"{\"name\": \"f\","},
       {" \"arguments\": []}"}},
  };
  for (const auto& script : scripts) {
    Scripted scripted(script, kHermes);
    ExpectF(scripted.Say());
  }
  // Text is free, also text that only looks like a call.
  Scripted text({{"{\"name\": \"Nora\""}, {", \"arguments\": 1}"}}, kHermes);
  const GenerateResult result = text.Say();
  EXPECT_EQ(result.text, "{\"name\": \"Nora\", \"arguments\": 1}");
  EXPECT_TRUE(result.is_unconstrained);
}

TEST(CallGrammar, RequiredIsCalled) {
  for (const auto& [name, source] : Sources()) {
    SCOPED_TRACE(name);
    Scripted scripted({{"Hello"},
                       {"[TOOL_CALLS]", kControl},
                       {"<|end|>", kControl},
                       {"<|channel|>", kControl},
                       {"<|message|>", kControl},
                       {"<|start|>", kControl},
                       {"<|tool_call>", kControl},
                       {"<|return|>", kControl}},
                      "{{ tools | length if tools else 0 }}{# " + source +
                          " #}{{ messages[-1].content }}" +
                          (name == "GptOss" ? "<|start|>assistant" : ""));
    scripted.chat.SetToolChoice("f");
    const GenerateResult result = scripted.Say();
    ExpectOnlyF(result);
    scripted.chat.SetToolChoice("none");
    EXPECT_TRUE(scripted.Say().tool_calls.empty());
  }
}

// After free thinking, which the budget ends as well.
TEST(CallGrammar, WaitsForTheThinking) {
  Scripted scripted({{"<think>", kControl}, {"so"}, {" it"}, {"</think>", kControl}, {"Hello"}},
                    kHermes);
  scripted.chat.SetToolChoice("f");
  const GenerateResult result = scripted.Say();
  EXPECT_EQ(result.thinking, "so it");
  ExpectOnlyF(result);
  scripted.chat.SetThinkingBudget(1, "!");
  const GenerateResult ended = scripted.Say();
  EXPECT_EQ(ended.thinking, "so!");
  ExpectOnlyF(ended);
}

}  // namespace
}  // namespace engine
