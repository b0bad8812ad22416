// pronk run --chat with tools, and with a schema that the model sees.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

const std::string kTools = R"([{"type": "function", "function": {"name": "f", "parameters":
    {"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"]}}},
    {"type": "function", "function": {"name": "g"}}])";

// No tokens for a single tab, line feed or space, of which a call may have many.
const Args kNoBlanks = {"--logit-bias", "12-inf",       "--logit-bias",
                        "13-inf",       "--logit-bias", "35-inf"};

class ToolsTest : public testing::Test {
 protected:
  // The model writes "I look.", and calls f wrongly.
  std::string Caller() const {
    return dir_.Write("model.gguf",
                      ScriptedModel({{"I look."},
                                     {"\n<tool_call>"},
                                     {"{\"name\": \"f\", "},
                                     {"\"arguments\": "},
                                     {"{\"x\": "},
                                     {"2"},
                                     {"3}}"}},
                                    "{% for m in messages %}{{ m.content }}{% endfor %}"
                                    "{% if tools %}T{% endif %}{# <tool_call> #}"));
  }
  static Finished Run(const std::string& model, const Args& more) {
    return Pronk(With(
        With({"run", "-m", model, "--chat", "-p", "Why?", "--temp", "0", "-n", "90"}, kNoBlanks),
        more));
  }

  const TempDir dir_;
};

TEST_F(ToolsTest, CallsAreTheToolsCalls) {
  const std::string model = Caller();
  const auto json = Json::parse(Run(model, {"--json", "--tools", kTools}).out);
  EXPECT_EQ(json["text"], "I look.");
  ASSERT_GE(json["tool_calls"].size(), 1u);
  const Json call = json["tool_calls"][0];
  EXPECT_EQ(call["id"], "call00001");
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"]["name"], "f");
  EXPECT_EQ(call["function"]["arguments"], "{\"x\":2}");  // a text, as in OpenAI's API
  const auto plain = Run(model, {"--tools", dir_.Write("tools.json", kTools)});
  EXPECT_EQ(plain.out.substr(0, plain.out.find('\n', 9)), "I look.\n" + call.dump());
  // Without tools a call is text.
  EXPECT_TRUE(Has(Run(model, {}).out, "<tool_call>"));
}

TEST_F(ToolsTest, TheChoice) {
  const std::string model = Caller();
  const auto run = [&](const std::string& choice) {
    return Json::parse(Run(model, {"--json", "--tools", kTools, "--tool-choice", choice}).out);
  };
  const Json g = run("g");
  ASSERT_EQ(g["tool_calls"].size(), 1u);
  EXPECT_EQ(g["tool_calls"][0]["function"]["name"], "g");
  EXPECT_EQ(g["tool_calls"][0]["function"]["arguments"], "{}");
  EXPECT_EQ(g["text"], "");
  EXPECT_EQ(g["stop_reason"], "eos");
  EXPECT_GE(run("required")["tool_calls"].size(), 1u);
  const Json none = run("none");
  EXPECT_FALSE(none.contains("tool_calls"));
  EXPECT_EQ(none["prompt_tokens"].get<int>() + 1, g["prompt_tokens"].get<int>());
  // A grammar applies to answers without calls.
  const auto beside = [&](const std::string& grammar) {
    return Json::parse(Run(model, {"--json", "--tools", kTools, "--grammar", grammar}).out);
  };
  EXPECT_EQ(beside("root ::= \"I look.\"")["text"], "I look.");
  const Json either = beside("root ::= \"z\"");
  EXPECT_NE(either["text"] == "z", either.contains("tool_calls")) << either.dump();
}

TEST_F(ToolsTest, LinesHaveThem) {
  const std::string lines = dir_.Write("lines", "\"a\"\n\"b\"\n");
  const Finished run =
      Done(Pronk(With({"run", "-m", Caller(), "--chat", "--temp", "0", "-n", "90", "--jsonl", "-f",
                       lines, "--parallel", "2", "--tools", kTools, "--tool-choice", "g"},
                      kNoBlanks)));
  EXPECT_EQ(Count(run.out, "\"tool_calls\":[{\"id\":\"call00001\""), 2u) << run.out;
}

TEST_F(ToolsTest, SaysWhatIsWrong) {
  const std::string model = Caller();
  const auto file = [&](const std::string& text) { return dir_.Write("bad.json", text); };
  ExpectError(Run(model, {"--tools", file("{}")}), 1, "bad.json: tools: expected a list");
  ExpectError(Run(model, {"--tools", file("[]")}), 1, "bad.json: tools: expected at least one");
  ExpectError(Run(model, {"--tools", file("[{\"name\": \"f\"}]")}), 1,
              "bad.json: tools: number 1: expected {\"type\": \"function\"");
  ExpectError(Run(model, {"--tools", R"([{"function": {"name": "f", "parameters":
              {"properties": {"a": {"type": "text"}}}}}])"}),
              1, "tools: f: parameters: #/properties/a/type");
  ExpectError(
      Run(model, {"--tools", kTools, "--tool-choice", "h"}), 2,
      "--tool-choice: tool choice 'h': expected auto, none, required or the name of a tool, "
      "f, g");
  ExpectError(Run(model, {"--tool-choice", "none"}), 2, "no effect without --tools");
  ExpectError(Pronk({"run", "-m", model, "-p", "x", "--tools", kTools}), 2,
              "--tools has no effect without --chat");
}

// The schema is in the system message, unless that is switched off.
TEST_F(ToolsTest, TheSchemaIsInThePrompt) {
  const std::string model = Caller(), schema = R"({ "const":  1 })";
  const auto n_prompt = [&](const Args& more) {
    const Finished run = Done(Run(model, With({"--json", "-j", schema}, more)));
    EXPECT_EQ(Json::parse(run.out)["text"], "1");
    return Json::parse(run.out)["prompt_tokens"].get<size_t>();
  };
  const std::string text = "Answer with JSON that is valid under this JSON Schema:\n{\"const\":1}";
  const size_t without = n_prompt({"--no-schema-in-prompt"});
  const auto spaces = static_cast<size_t>(std::count(text.begin(), text.end(), ' '));
  EXPECT_EQ(n_prompt({}), without + text.size() + 2 * spaces);  // a token for each byte
  EXPECT_EQ(n_prompt({"--schema-in-prompt"}), n_prompt({}));
  // After the model's other instructions.
  EXPECT_EQ(n_prompt({"--system", "Hi"}), n_prompt({}) + 4);
  ExpectError(Run(model, {"--schema-in-prompt"}), 2, "no effect without --json-schema");
  ExpectError(Run(model, {"-j", schema, "--schema-in-prompt", "--no-schema-in-prompt"}), 2,
              "give one of them");
  ExpectError(Pronk({"run", "-m", model, "-p", "x", "-j", schema, "--no-schema-in-prompt"}), 2,
              "no effect without --chat");
  const Finished chat = Done(Pronk({"chat", "-m", model, "-j", schema, "-v"}, "Why?\n"));
  EXPECT_TRUE(Has(chat.err, "prompt " + std::to_string(n_prompt({})) + " tokens")) << chat.err;
}

}  // namespace
}  // namespace test
