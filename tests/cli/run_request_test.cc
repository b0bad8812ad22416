// pronk run --messages, and the fields of --jsonl's lines: conversations, settings, log
// probabilities.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

class RunRequest : public testing::Test {
 protected:
  static Json WithoutTimes(const std::string& text) {
    Json json = Json::parse(text);
    for (const char* const key : {"timings", "draft", "seed", "id"}) json.erase(key);
    return json;
  }
  // The output of run with these flags.
  static Json Flags(const Args& args) {
    return WithoutTimes(Done(Pronk(With({"run", "-m", kModel, "--json"}, args))).out);
  }
  Finished Lines(const std::string& lines, const Args& more = {}) {
    return Pronk(With({"run", "-m", kModel, "--jsonl", "-s", "5"}, more), lines);
  }
  // The result of a single line.
  Json Line(std::string line, const Args& more = {}) {
    std::erase(line, '\n');
    return WithoutTimes(Done(Lines(line + "\n", more)).out);
  }
  const TempDir dir_;
};

// Content in parts equals its joined texts, and a conversation is rendered by its template.
TEST_F(RunRequest, AnswersAConversation) {
  const Json text = Flags(
      {"--chat", "--system", "Be kind.", "-p", "Hello\nyou", "-n", "6", "-s", "5", "--temp", "0"});
  const std::string conversation =
      R"([{"role": "system", "content": "Be kind."}, {"role": "user", "content": [)"
      R"({"type": "text", "text": "Hello"}, {"type": "text", "text": "you"}]}])";
  const Args how = {"-n", "6", "-s", "5", "--temp", "0"};
  const std::string file = dir_.Write("m.json", conversation);
  EXPECT_EQ(Flags(With({"--messages", file}, how)), text);
  const std::string object = R"({"messages": )" + conversation + R"(, "model": "gpt-4o"})";
  EXPECT_EQ(Flags(With({"--messages", dir_.Write("o.json", object)}, how)), text);
  EXPECT_EQ(Line(object, how), text);
  // The flag's system message is for conversations without one.
  const std::string question = R"([{"role": "user", "content": "Hello\nyou"}])";
  const std::string asked = dir_.Write("q.json", question);
  EXPECT_EQ(Flags(With({"--messages", asked, "--system", "Be kind."}, how)), text);
  EXPECT_EQ(Flags(With({"--messages", file, "--system", "Be rude."}, how)), text);
  // Only the answer is printed.
  const Finished run = Done(Pronk(With({"run", "-m", kModel, "--messages", file}, how)));
  EXPECT_EQ(run.out, text["text"].get<std::string>() + "\n");
}

TEST_F(RunRequest, ALineMayHaveItsOwnSettings) {
  const auto expect = [&](const std::string& fields, const Args& flags) {
    EXPECT_EQ(Line("{\"prompt\": \"Hello\", " + fields + "}"),
              Flags(With({"-p", "Hello", "-s", "5"}, flags)))
        << fields;
  };
  expect(R"("n_predict": 4, "temperature": 0)", {"-n", "4", "--temp", "0"});
  expect(R"("max_tokens": 9, "top_k": 3, "seed": 77)", {"-n", "9", "--top-k", "3", "-s", "77"});
  expect(R"("max_completion_tokens": 9, "top_p": 0.5, "min_p": 0, "repeat_last_n": 8,
            "repeat_penalty": 2, "typical_p": 0.9)",
         {"-n", "9", "--top-p", "0.5", "--min-p", "0", "--repeat-last-n", "8", "--repeat-penalty",
          "2", "--typical", "0.9"});
  expect(R"("n_predict": 30, "dry_multiplier": 5, "dry_allowed_length": 1, "xtc_probability": 0.5,
            "dynatemp_range": 0.2)",
         {"-n", "30", "--dry-multiplier", "5", "--dry-allowed-length", "1", "--xtc-probability",
          "0.5", "--dynatemp-range", "0.2"});
  expect(R"("n_predict": 60, "stop": ["e", "a"])", {"-n", "60", "-r", "e", "-r", "a"});
  expect(R"("n_predict": 60, "stop": "e", "grammar": null)", {"-n", "60", "-r", "e"});
  const std::string schema = R"({"type": "object", "properties": {"n": {"type": "integer"}},
                                 "required": ["n"], "additionalProperties": false})";
  const Args kept = {"-n", "40", "-j", schema};
  expect("\"n_predict\": 40, \"json_schema\": " + schema, kept);
  expect(
      "\"n_predict\": 40, \"response_format\": {\"type\": \"json_schema\", \"json_schema\": "
      "{\"name\": \"x\", \"strict\": true, \"schema\": " +
          schema + "}}",
      kept);
  expect(R"("n_predict": 40, "grammar": "root ::= [a-c]+")",
         {"-n", "40", "--grammar", "root ::= [a-c]+"});
  // Objects are closed and ordered, as with the flag.
  const std::string open = R"({"properties": {"n": {"type": "integer"}, "a": {"const": 1}},
                               "required": ["a"]})";
  expect("\"n_predict\": 60, \"json_schema\": " + open, {"-n", "60", "-j", open});
  // Settings that are no numbers.
  expect(R"("num_predict": 9, "logit_bias": [[5, false], [7, 1.5]], "ignore_eos": true,
            "samplers": ["top_k", "temperature"], "dry_multiplier": 2,
            "dry_sequence_breakers": ["e"])",
         {"-n", "9", "--logit-bias", "5-inf", "--logit-bias", "7+1.5", "--ignore-eos", "--samplers",
          "top_k;temperature", "--dry-multiplier", "2", "--dry-sequence-breaker", "e"});
  expect(R"("n_predict": 9, "logit_bias": {"7": -1.5}, "stream": true, "user": "me", "n": 1)",
         {"-n", "9", "--logit-bias", "7-1.5"});
}

// A field overrides the flag also where it asks for less, but no other field.
TEST_F(RunRequest, ALineMayBeFree) {
  const Json free = Line(R"({"prompt": "Hello", "n_predict": 9})");
  for (const std::string field : {R"("response_format": {"type": "text"})", R"("grammar": "")"}) {
    EXPECT_EQ(Line(R"({"prompt": "Hello", "n_predict": 9, )" + field + "}", {"-j", "{}"}), free)
        << field;
  }
  EXPECT_EQ(Line(R"({"prompt": "x", "grammar": "root ::= \"a\"", "response_format":
                    {"type": "text"}})")["text"],
            "a");
}

// Each line has its own settings, in one batch.
TEST_F(RunRequest, LinesHaveTheirOwnGrammarsAndIds) {
  const std::string lines =
      R"({"id": "a", "prompt": "x", "grammar": "root ::= \"one\"", "n_predict": 9}
{"prompt": "y", "n_predict": 3}
{"id": {"n": [1]}, "prompt": "x", "grammar": "root ::= \"two\"", "n_predict": 9}
{"id": null, "messages": [{"role": "user", "content": "hi"}], "n_predict": 2}
)";
  for (const std::string parallel : {"1", "3"}) {
    std::istringstream out(Done(Lines(lines, {"--parallel", parallel})).out);
    std::vector<Json> answers;
    for (std::string line; std::getline(out, line);) answers.push_back(Json::parse(line));
    ASSERT_EQ(answers.size(), 4u);
    EXPECT_EQ(answers[0]["text"], "one");
    EXPECT_EQ(answers[2]["text"], "two");
    EXPECT_EQ(answers[0]["id"], "a");
    EXPECT_FALSE(answers[1].contains("id"));
    EXPECT_EQ(answers[2]["id"], Json::parse(R"({"n": [1]})"));
    EXPECT_TRUE(answers[3].contains("id"));
    EXPECT_EQ(answers[3]["tokens"].size(), 2u);
  }
  // An answer is continued only after answers to the same ids.
  const std::string out = dir_.Path("out"), in = dir_.Write("in", lines);
  const Args to = {"run", "-m", kModel, "--jsonl", "-f", in, "-o", out};
  Done(Pronk(to));
  Done(Pronk(to));
  std::string other = lines;
  other.replace(other.find("\"a\""), 3, "\"b\"");
  dir_.Write("in", other);
  ExpectError(Pronk(to), 1, out + ", line 1: answers another request");
  // As many tokens, but others; and the same with another setting.
  other = lines;
  other.replace(other.find("\"x\""), 3, "\"z\"");
  dir_.Write("in", other);
  ExpectError(Pronk(to), 1, out + ", line 1: answers another request");
  other = lines;
  other.replace(other.find("\\\"one"), 5, "\\\"two");
  dir_.Write("in", other);
  ExpectError(Pronk(to), 1, out + ", line 1: answers another request");
  dir_.Write("in", lines);
  ExpectError(Pronk(With(to, {"--temp", "0.1"})), 1, out + ", line 1: answers another request");
  Done(Pronk(to));
}

TEST_F(RunRequest, NamesTheFieldThatIsWrong) {
  const auto expect = [&](const std::string& line, const std::string& says) {
    ExpectError(Lines("\"good\"\n" + line + "\n"), 1, "stdin, line 2: " + says);
  };
  const auto with = [](const std::string& field) { return R"({"prompt": "x", )" + field + "}"; };
  expect(with(R"("temprature": 1)"), "\"temprature\": there is no such field; there are prompt");
  expect(with(R"("foo": null)"), "\"foo\": there is no such field");
  expect(with(R"("temperature": "hot")"), "temperature: expected a number from 0 to ");
  expect(with(R"("top_p": 2)"), "top_p: expected a number from 0 to 1, found 2");
  expect(with(R"("top_k": 1.5)"), "top_k: expected a whole number");
  expect(with(R"("n_predict": "9")"), "n_predict: expected a whole number");
  expect(with(R"("stop": [1])"), "stop: expected a text or a list of texts");
  expect(with(R"("json_schema": {"type": "nothing"})"), "json_schema: ");
  expect(with(R"("response_format": {"type": "xml"})"), "response_format: expected {\"type\"");
  expect(with(R"("grammar": "root = x")"), "grammar: ");
  expect(with(R"("grammar": "root ::= \"a\"", "json_schema": {})"),
         "json_schema: there is another grammar in the same request");
  expect(with(R"("mirostat": 1)"), "mirostat: expected 0 or 2");
  expect(with(R"("n": 2)"), "n: expected a whole number from 1 to 1, found 2");
  expect(with(R"("logit_bias": [[5]])"), "logit_bias: expected [[ID, BIAS], ...]");
  expect(with(R"("samplers": ["top"])"), "samplers: 'top' is none of ");
  expect(with(R"("ignore_eos": 1)"), "ignore_eos: expected true or false, found 1");
  expect(with(R"("logprobs": "yes")"), "logprobs: expected a whole number");
  expect(with(R"("messages": [{"role": "user", "content": "x"}])"),
         "prompt and messages: expected one of them");
  expect(R"({"messages": []})", "messages: expected a question at the end, found nothing");
  expect(
      R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]})",
      "messages: expected a question at the end, found a message by \"assistant\"");
  expect(
      R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
      "messages: content: expected parts {\"type\": \"text\", \"text\": ...}, found \"image_url\"");
  ExpectError(Pronk({"run", "-m", kModel, "--messages", "-"}, "{\"prompt\": \"x\"}"), 1,
              "expected a list of messages");
}

TEST_F(RunRequest, FlagsThatDoNotFit) {
  const auto expect = [](const Args& more, const std::string& says) {
    ExpectError(Pronk(With({"run", "-m", kModel}, more), "x"), 2, says);
  };
  expect({"--messages", "-", "-p", "x"}, "--messages does not go with -p, -f or --jsonl");
  expect({"--messages", "-", "--jsonl"}, "--messages does not go with -p, -f or --jsonl");
  expect({"-p", "x", "--logprobs", "2"}, "--logprobs has no effect without --json or --jsonl");
  expect({"-p", "a", "-p", "b"}, "-p: expected once, found 2 times");
  ExpectError(Pronk({"run", "-m", kModel, "--jsonl", "--system", "x"}, "\"y\"\n"), 2,
              "--system has no effect without --chat");
}

// The logarithm of the softmax of `pronk logits`' output.
TEST_F(RunRequest, LogProbabilities) {
  const Json json =
      Flags({"-p", "Hello", "-n", "5", "--temp", "0.5", "-s", "5", "--logprobs", "3"});
  const Json& content = json["logprobs"]["content"];
  const auto tokens = json["tokens"].get<std::vector<int>>();
  ASSERT_EQ(content.size(), tokens.size());
  std::string ids = Pronk({"tokenize", "-m", kModel, "-p", "Hello", "--ids"}).out;
  const size_t n_prompt = Json::parse(ids).size();
  ids.resize(ids.find(']'));
  for (const int id : tokens) ids += ", " + std::to_string(id);
  Done(Pronk({"logits", kModel, dir_.Path("logits"), "--ids", ids + "]"}));
  const std::vector<float> logits = ReadFloats(dir_.Path("logits"));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const float* const row = logits.data() + (n_prompt - 1 + i) * 320;
    double sum = 0;
    for (size_t id = 0; id < 320; ++id) sum += std::exp(double{row[id]});
    const auto expect = [&](const Json& token) {
      EXPECT_NEAR(token["logprob"].get<double>(), row[token["id"].get<int>()] - std::log(sum),
                  1e-4);
      return token["logprob"].get<double>();
    };
    expect(content[i]);
    EXPECT_EQ(content[i]["id"], tokens[i]);
    const Json& top = content[i]["top_logprobs"];
    ASSERT_EQ(top.size(), 3u);
    EXPECT_EQ(top[0]["id"], std::max_element(row, row + 320) - row);
    EXPECT_GE(expect(top[0]), expect(top[1]));
    EXPECT_GE(expect(top[1]), expect(top[2]));
  }
  // The bytes of all tokens are the text.
  const Json story = Json::parse(Done(Pronk({"run", "-m", kDefault, "-p", "Once upon a time", "-n",
                                             "8", "--json", "--logprobs", "0"}))
                                     .out);
  std::string text;
  for (const Json& token : story["logprobs"]["content"]) {
    EXPECT_EQ(token["top_logprobs"].size(), 0u);
    for (const Json& byte : token["bytes"]) text += static_cast<char>(byte.get<int>());
  }
  EXPECT_EQ(story["text"], text);
}

TEST_F(RunRequest, LogProbabilitiesOfLines) {
  const Json expected = Flags({"-p", "Hello", "-n", "5", "-s", "5", "--logprobs", "2"});
  for (const char* const fields :
       {R"("n_probs": 2)", R"("logprobs": 2)", R"("logprobs": true, "top_logprobs": 2)"}) {
    const std::string line = R"({"prompt": "Hello", "n_predict": 5, )" + std::string(fields) + "}";
    EXPECT_EQ(Line(line), expected) << fields;
    const std::string beside = Done(Lines(line + "\n\"x\"\n", {"-np", "2", "-n", "9"})).out;
    EXPECT_EQ(WithoutTimes(beside.substr(0, beside.find('\n'))), expected) << fields;
  }
  const std::string plain = R"({"prompt": "Hello", "n_predict": 5, )";
  EXPECT_FALSE(Line(plain + "\"n_probs\": 0}").contains("logprobs"));
  EXPECT_FALSE(Line(plain + "\"logprobs\": false}", {"--logprobs", "2"}).contains("logprobs"));
  EXPECT_EQ(Line(plain + "\"logprobs\": true}")["logprobs"]["content"][0]["top_logprobs"],
            Json::array());
  // Tokens that a grammar forces are read together, and have none.
  const Json forced =
      Line(R"({"prompt": "x", "grammar": "root ::= [ab] \"ccccc\"", "logprobs": true})");
  EXPECT_TRUE(forced["logprobs"]["content"][0]["logprob"].is_number());
  const Json& tokens = forced["logprobs"]["content"];
  EXPECT_TRUE(tokens[tokens.size() - 1]["logprob"].is_null());
}

}  // namespace
}  // namespace test
