// Tests published models with tools and schemas.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/pronk.h"
#include "tests/real/real_model.h"
#include "tests/support/json.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

constexpr const char* kQwen = "qwen-0.5b.gguf";

const std::string kTools = R"([
  {"type": "function", "function": {"name": "get_weather",
    "description": "Get the current weather of a city",
    "parameters": {"type": "object", "properties": {
      "city": {"type": "string", "description": "The city's name"},
      "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, "required": ["city"]}}},
  {"type": "function", "function": {"name": "send_email", "description": "Send an email",
    "parameters": {"type": "object", "properties": {"to": {"type": "string", "format": "email"},
      "subject": {"type": "string"}, "body": {"type": "string"}},
    "required": ["to", "subject", "body"]}}}])";

pronk::Options Greedy() { return {.sampling = {.temperature = 0, .repeat_penalty = 1}}; }

// The model calls one function in a block of code, and the other in a bare object.
TEST(RealTools, TheRightFunctionIsCalled) {
  PRONK_REAL_MODEL(path, kQwen);
  const pronk::Model model(path);
  pronk::Chat chat(model, "", Greedy());
  chat.SetTools(kTools);
  for (const char* const choice : {"auto", "required"}) {
    chat.SetToolChoice(choice);
    chat.Clear();
    const pronk::Completion weather =
        chat.Say("What's the weather in Paris, in celsius?", {}, {.max_tokens = 200});
    ASSERT_EQ(weather.tool_calls.size(), 1u) << weather.text;
    EXPECT_EQ(weather.tool_calls[0].name, "get_weather");
    EXPECT_EQ(weather.tool_calls[0].arguments, R"({"city":"Paris","unit":"celsius"})");
    EXPECT_EQ(weather.text, "");
    chat.Clear();
    const pronk::Completion email =
        chat.Say("Mail bob@example.com that I am late.", {}, {.max_tokens = 200});
    ASSERT_EQ(email.tool_calls.size(), 1u) << email.text;
    EXPECT_EQ(email.tool_calls[0].name, "send_email");
    EXPECT_EQ(Json::parse(email.tool_calls[0].arguments)["to"], "bob@example.com");
  }
}

// The model answers with the result of a call.
TEST(RealTools, TheResultIsAnswered) {
  PRONK_REAL_MODEL(path, kQwen);
  const pronk::Model model(path);
  pronk::Chat chat(model, "", Greedy());
  chat.SetTools(kTools);
  const pronk::Completion call =
      chat.Say("What's the weather in Paris, in celsius?", {}, {.max_tokens = 200});
  ASSERT_EQ(call.tool_calls.size(), 1u);
  chat.SetToolChoice("none");
  const pronk::Completion answer =
      chat.Answer({{"tool", R"({"temperature": 17, "sky": "cloudy"})", call.tool_calls[0].id}}, {},
                  {.max_tokens = 60});
  EXPECT_NE(answer.text.find("17"), std::string::npos) << answer.text;
  EXPECT_TRUE(answer.tool_calls.empty());
}

// Dates have the schema's form only if the model sees the schema. Both answers are valid JSON.
TEST(RealTools, TheSchemaIsSeen) {
  PRONK_REAL_MODEL(path, kQwen);
  const TempDir dir;
  const std::string invoice = dir.Write(
      "invoice.txt",
      "Invoice 4711, issued on the third of March 2024 by Harbour Books, is due two weeks later, "
      "on the seventeenth. It comes to 84.50 euros.\n");
  const auto extract = [&](const std::string& kind, const std::string& flag) {
    const std::string date = R"({"type": "string", )" + kind + "}";
    const std::string schema =
        R"({"type": "object", "properties": {"seller": {"type": "string"}, "issued": )" + date +
        R"(, "due": )" + date +
        R"(, "total": {"type": "number"}}, "required": ["seller", "issued", "due", "total"]})";
    const Finished run =
        RunProgram({Program(), "run", "-m", path, "--chat", "--temp", "0", flag, "-j", schema, "-f",
                    invoice, "-p", "Extract the data of this invoice as JSON."});
    EXPECT_EQ(run.status, 0) << run.err;
    const Json json = Json::parse(run.out);
    EXPECT_EQ(json["seller"], "Harbour Books");
    EXPECT_EQ(json["total"].get<double>(), 84.5);
    return json["issued"].get<std::string>() + " " + json["due"].get<std::string>();
  };
  const std::string right = "2024-03-03 2024-03-17";
  for (const std::string kind : {R"("description": "YYYY-MM-DD")", R"("format": "date")"}) {
    EXPECT_EQ(extract(kind, "--schema-in-prompt"), right);
    EXPECT_NE(extract(kind, "--no-schema-in-prompt"), right);
  }
}

}  // namespace
}  // namespace test
