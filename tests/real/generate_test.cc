// Tests the texts of published models, and their predictions.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/pronk.h"
#include "kernels/threads/cpu.h"
#include "tests/real/real_model.h"
#include "tests/support/data.h"
#include "tests/support/json.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

constexpr const char* kSmol = "SmolLM2-135M-Instruct.Q4_1.gguf";

std::string Pronk(std::vector<std::string> args) {
  args.insert(args.begin(), Program());
  const Finished run = RunProgram(args);
  EXPECT_EQ(run.status, 0) << run.err;
  return run.out;
}

// The first 40 tokens repeat themselves, so drafts guess them.
TEST(RealTexts, AreTheSameWithThreadsDraftsAndCompany) {
  PRONK_REAL_MODEL(path, kSmol);
  const std::string prompt = "Once upon a time there was a";
  const auto write = [&](const std::string& threads, const std::string& draft) {
    return Pronk({"run", "-m", path, "-p", prompt, "-n", "40", "--temp", "0", "--no-display-prompt",
                  "-t", threads, "--draft", draft});
  };
  const std::string expected = write("1", "off");
  EXPECT_EQ(write("2", "off"), expected);
  EXPECT_EQ(write("1", "8"), expected);
  const pronk::Model model(path);
  const pronk::Options greedy = {.sampling = {.temperature = 0}};
  pronk::Batch batch(model, 2);
  std::vector<pronk::Session> sessions;
  const std::vector<std::string> prompts = {"The sea", prompt, "def main():", prompt};
  for (size_t i = 0; i < prompts.size(); ++i) sessions.emplace_back(model, greedy);
  for (size_t i = 0; i < prompts.size(); ++i) {
    batch.Add(sessions[i], prompts[i], {}, {.max_tokens = 40});
  }
  std::map<size_t, std::string> texts;
  while (batch.size() > 0) {
    for (const auto& [number, completion] : batch.Step()) texts[number] = completion.text;
  }
  for (const size_t i : {1, 3}) {
    const bool has_end = texts[i].ends_with('\n');  // otherwise the program adds a line feed
    EXPECT_EQ(texts[i] + (has_end ? "" : "\n"), expected);
  }
}

// Instruction sets add in different orders, so the likeliest token must be clear at each position
// of these texts. Exact arithmetic writes them, too.
TEST(RealTexts, AreTheSameOnEveryInstructionSet) {
  PRONK_REAL_MODEL(path, kSmol);
  for (const std::string& target : kernels::CpuTargets()) {
    const auto write = [&](const std::string& prompt, const std::string& n) {
      return Pronk({"run", "-m", path, "-p", prompt, "-n", n, "--temp", "0", "--no-display-prompt",
                    "-t", "1", "--cpu", target});
    };
    EXPECT_EQ(write("1, 2, 3, 4, 5, 6,", "32"), " 7, 8, 9, 10, 11, 12, 13, 14, 15\n") << target;
    EXPECT_EQ(write("The capital of France is", "3"), " Paris.\n") << target;
  }
}

// The answer to this question is clear. For France, two first words are about equally likely.
TEST(RealTexts, QuestionsAreAnswered) {
  PRONK_REAL_MODEL(path, kSmol);
  const pronk::Model model(path);
  pronk::Chat chat(model, "", {.sampling = {.temperature = 0}});
  EXPECT_EQ(chat.Say("What is the capital of Japan?", {}, {.max_tokens = 20}).text,
            "The capital of Japan is Tokyo.");
}

TEST(RealTexts, SchemasAreFilled) {
  PRONK_REAL_MODEL(path, kSmol);
  const pronk::Model model(path);
  pronk::Chat chat(model, "", {.sampling = {.temperature = 0}});
  const pronk::Grammar grammar = pronk::Grammar::JsonSchema(
      R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": false})");
  const pronk::Completion answer =
      chat.Say("Anna is 34 years old and lives in Rome. Give her name and age as JSON.", {},
               {.max_tokens = 60, .grammar = grammar});
  EXPECT_EQ(Json::parse(answer.text), Json::parse(R"({"name": "Anna", "age": 34})"));
}

// llama-perplexity -c 512 --chunks 8 gives the expected values for these files and this text. Both
// engines round. Each diverges from exact arithmetic by 0.004, so a token's log probability differs
// by about sqrt(2 * 0.004) = 0.09, and the mean of 2040 by 0.002 for each engine.
TEST(RealTexts, HaveTheirPerplexity) {
  for (const auto& [name, expected] : {std::pair<std::string, double>{kSmol, 18.4942},
                                       {"gemma-3-270m-q4_k_m.gguf", 14.9381},
                                       {"qwen-0.5b.gguf", 5.8892}}) {
    const std::string path = RealModel(name);
    if (path.empty()) continue;
    const Json found = Json::parse(Pronk({"perplexity", "-m", path, "-c", "512", "--chunks", "8",
                                          "--json", "-f", DataPath("real/licence.txt")}));
    EXPECT_NEAR(std::log(found["perplexity"]["value"].get<double>() / expected), 0, 0.01) << name;
  }
  PRONK_REAL_MODEL(path, kSmol);
}

// Quantizes a published model from F32, and measures the divergence of its predictions from F32's.
// The limits are the divergences of llama-quantize's files, measured in this way by pronk. Q8_0 is
// equal in both programs. The tolerance of a twentieth is for other instruction sets' rounding.
TEST(RealTexts, SmallerTypesKeepMoreThanElsewhere) {
  PRONK_REAL_MODEL(path, kSmol);
  const TempDir dir;
  const std::string whole = dir.Path("f32.gguf"), kept = dir.Path("kept"), out = dir.Path("q.gguf");
  Pronk({"quantize", path, whole, "F32"});
  Pronk({"perplexity", "-m", whole, "-c", "512", "--chunks", "8", "-f",
         DataPath("real/licence.txt"), "--save-logits", kept});
  for (const auto& [type, most] : {std::pair<std::string, double>{"Q8_0", 0.00339},
                                   {"Q6_K", 0.00690},
                                   {"Q4_K_M", 0.0567},
                                   {"Q3_K_M", 0.1446},
                                   {"IQ4_XS", 0.1708}}) {
    Pronk({"quantize", whole, out, type});
    const Json found = Json::parse(Pronk({"perplexity", "-m", out, "--kl", kept, "--json"}));
    EXPECT_LE(found["kl_divergence"]["value"].get<double>(), 1.05 * most) << type;
  }
}

}  // namespace
}  // namespace test
