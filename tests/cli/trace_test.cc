// pronk trace: the numbers that it shows are the engine's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/session/session.h"
#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

const std::string kText = "It was a day like any other day";

Json TraceOf(const Args& args) {
  const Finished run = Done(Pronk(With({"trace", "--json"}, args)));
  return run.status == 0 ? Json::parse(run.out) : Json();
}

void ExpectNarrow(const std::string& text) {
  for (size_t at = 0, end = 0; end = text.find('\n', at), end != std::string::npos; at = end + 1) {
    EXPECT_LE(end - at, 80u) << text.substr(at, end - at);
  }
}

TEST(Trace, ListsEveryOperation) {
  const Finished run = Done(Pronk({"trace", "-m", kModel, "-t", "1", "--all"}));
  for (const char* word :
       {"layer 1 ", "attn_q attn_k attn_v F32     128x64 ", "ffn_down             F32     64x128 ",
        "\noutput", "attention", "Totals, 1 thread,"}) {
    EXPECT_TRUE(Has(run.out, word));
  }
  ExpectNarrow(run.out);
}

// The share of the time in a line of the table.
double ShareOf(const std::string& table, const std::string& line) {
  std::smatch match;
  const std::regex share("\n" + line + " +([0-9.]+)% of the time");
  EXPECT_TRUE(std::regex_search(table, match, share)) << table;
  return match.empty() ? 0 : std::stod(match[1]);
}

TEST(Trace, ShowsLayersWithTheSameOperationsOnce) {
  const Finished run = Done(Pronk({"trace", "-m", kModel, "-t", "1"}));
  EXPECT_FALSE(Has(run.out, "layer 0"));
  EXPECT_EQ(Count(run.out, "attn_q attn_k attn_v "), 1u);
  EXPECT_EQ(Count(run.out, "ffn_down "), 1u);
  const double sum =
      ShareOf(run.out, "token") + ShareOf(run.out, "2 layers") + ShareOf(run.out, "output");
  EXPECT_NEAR(sum, 100, 0.16) << "three numbers, each rounded to a tenth";
  ExpectNarrow(run.out);
  // A layer of attention, and two with a convolution and experts.
  const Finished mixed = Done(Pronk({"trace", "-m", DataPath("hybrids/lfm2moe.gguf"), "-t", "1"}));
  EXPECT_NEAR(ShareOf(mixed.out, "token") + ShareOf(mixed.out, "layer 0") +
                  ShareOf(mixed.out, "2 layers") + ShareOf(mixed.out, "output"),
              100, 0.21)
      << "four numbers, each rounded to a tenth";
  EXPECT_EQ(Count(mixed.out, "\nexperts "), 2u) << "an operation, and its total: " << mixed.out;
}

TEST(Trace, SaysTheNameOfTheFileThatItWrote) {
  const TempDir dir;
  for (const char* flag : {"--plot", "--html"}) {
    const std::string path = dir.Path("out");
    EXPECT_EQ(Done(Pronk({"trace", "-m", kModel, "-p", "Hi", flag, path})).out, path + "\n");
    const Finished piped = Done(Pronk({"trace", "-m", kModel, "-p", "Hi", flag, "/dev/stdout"}));
    EXPECT_TRUE(piped.out.ends_with(">\n")) << "only the file";
  }
}

// Every matrix is read once, and each of its numbers is multiplied and added.
TEST(Trace, CountsBytesAndOperations) {
  const engine::Model model = engine::Model::Load(kModel);
  const Json trace = TraceOf({"-m", kModel, "-p", kText, "-t", "1"});
  const std::vector<tokenizer::TokenId> ids = model.tokenizer->Encode(kText);
  ASSERT_EQ(trace["tokens"].size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(trace["tokens"][i], (Json{{"position", i + 1},
                                        {"id", ids[i]},
                                        {"text", model.tokenizer->Piece(ids[i], true)}}));
  }
  double bytes = 0, operations = 0;
  std::set<std::string> parts, names;
  for (const Json& step : trace["steps"]) {
    parts.insert(step["part"]);
    EXPECT_GE(step["seconds"], 0.0);
    if (step["operation"] == "attention") {
      const auto& plan = model.config.layers[0];
      const double seen = static_cast<double>(trace["tokens"].size() * plan.n_heads);
      EXPECT_EQ(step["operations"], 2 * seen * static_cast<double>(plan.key_length * 2));
      EXPECT_EQ(step["shape"], (Json{plan.n_heads, ids.size(), plan.key_length}));
    }
    if (step["operation"] != "matmul") continue;
    for (const Json& tensor : step["tensors"]) names.insert(tensor["name"]);
    bytes += step["bytes"].get<double>();
    operations += step["operations"].get<double>();
  }
  double all_bytes = 0, all_numbers = 0;
  for (const std::string& name : names) {
    const gguf::TensorView* tensor = model.file.FindTensor(name);
    ASSERT_NE(tensor, nullptr) << name;
    all_bytes += static_cast<double>(tensor->bytes);
    all_numbers += static_cast<double>(tensor->elements());
  }
  EXPECT_EQ(names.size(), 7 * model.config.n_layers() + 1);
  EXPECT_EQ(bytes, all_bytes);
  EXPECT_EQ(operations, 2 * all_numbers);
  EXPECT_EQ(parts, (std::set<std::string>{"token", "layer 0", "layer 1", "output"}));
}

// The sum over exp(logit - logits[0]).
double SumOfExp(std::span<const float> logits) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - logits[0]);
  return sum;
}

// exp(logit) / sum(exp(logits)).
void ExpectProbability(std::span<const float> logits, double sum, size_t id, double probability) {
  const double expected = std::exp(double{logits[id]} - logits[0]) / sum;
  EXPECT_NEAR(probability, expected, 1e-12 * expected);
}

void ExpectMostLikely(std::span<const float> logits, const Json& next) {
  ASSERT_GT(next.size(), 0u);
  EXPECT_EQ(next[0]["id"], std::max_element(logits.begin(), logits.end()) - logits.begin());
  const double sum = SumOfExp(logits);
  for (const Json& token : next) ExpectProbability(logits, sum, token["id"], token["probability"]);
}

// Every head has a row for every token, whose weights sum to one, or to less with sinks. Returns
// whether a window excluded a position.
bool ExpectHeads(const Json& layer, const engine::LayerPlan& plan, size_t n, bool sinks) {
  bool is_cut = false;
  EXPECT_EQ(layer["heads"].size(), plan.n_heads);
  for (const Json& head : layer["heads"]) {
    EXPECT_EQ(head.size(), n);
    for (size_t t = 0; t < head.size(); ++t) {
      EXPECT_EQ(head[t].size(), t + 1);
      double sum = 0;
      for (size_t p = 0; p < head[t].size(); ++p) {
        const bool is_seen = plan.window == 0 || p + plan.window > t;
        is_cut |= !is_seen;
        EXPECT_TRUE(is_seen || head[t][p] == 0);
        sum += head[t][p].get<double>();
      }
      // Each weight is divided by their sum.
      const double rounding = 1e-15 * static_cast<double>(n);
      EXPECT_LE(sum, 1 + rounding);
      EXPECT_EQ(sum < 1 - rounding, sinks);
    }
  }
  EXPECT_EQ(layer.contains("window"), plan.window > 0);
  return is_cut;
}

// The last layer's lens is the model's own answer, and the weights of attention sum to
// one. For every token, in every architecture.
TEST(TraceValues, AreThoseOfThePass) {
  std::vector<std::string> paths = {kModel};
  for (const auto& path : SmallModels()) paths.push_back(path);
  size_t n_with_experts = 0, n_with_sinks = 0, n_with_windows = 0;
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const engine::Model model = engine::Model::Load(path);
    const engine::Config& config = model.config;
    std::vector<tokenizer::TokenId> ids = model.tokenizer->Encode(kText);
    const Json trace = TraceOf({"-m", path, "-p", kText, "--values", "-t", "1"});
    ASSERT_EQ(trace["layers"].size(), config.n_layers());
    for (size_t i = 0; i < config.n_layers(); ++i) {
      const Json& layer = trace["layers"][i];
      ASSERT_EQ(layer["norm"].size(), ids.size());
      for (const Json& norm : layer["norm"]) EXPECT_GT(norm, 0.0);
      const bool attends = config.layers[i].mixer == engine::Mixer::kAttention ||
                           config.layers[i].mixer == engine::Mixer::kLatentAttention;
      ASSERT_EQ(layer.contains("heads"), attends);
      if (attends) {
        const bool sinks = model.weights.layers[i].attn_sinks != nullptr;
        n_with_sinks += sinks ? 1 : 0;
        n_with_windows += ExpectHeads(layer, config.layers[i], ids.size(), sinks) ? 1 : 0;
      }
      ASSERT_EQ(layer.contains("experts"), config.layers[i].n_experts > 0);
      if (config.layers[i].n_experts > 0) {
        ++n_with_experts;
        ASSERT_EQ(layer["experts"].size(), ids.size());
        for (const Json& of_token : layer["experts"]) {
          EXPECT_EQ(of_token.size(), config.n_experts_used);
          for (const Json& one : of_token) EXPECT_LT(one["expert"], config.layers[i].n_experts);
        }
      }
      ASSERT_EQ(layer.contains("next"), config.n_residual_streams == 0);
      EXPECT_TRUE(config.n_residual_streams > 0 || layer["next"].size() == ids.size());
    }
    engine::Session session(model, {.context = ids.size(), .n_threads = 1});
    for (size_t t = 0; t < ids.size(); ++t) {
      const Json& token = trace["tokens"][t];
      EXPECT_EQ(token["position"], t + 1);
      ASSERT_EQ(token.contains("probability"), t > 0);
      if (t > 0) {
        const std::span<const float> logits = session.logits();
        ExpectProbability(logits, SumOfExp(logits), ids[t], token["probability"]);
      }
      session.Decode(ids[t]);
      ASSERT_EQ(token["next"].size(), 8u);
      ExpectMostLikely(session.logits(), token["next"]);
      if (config.n_residual_streams == 0) {
        ExpectMostLikely(session.logits(), trace["layers"][config.n_layers() - 1]["next"][t]);
      }
    }
  }
  EXPECT_GT(n_with_experts, 0u);
  EXPECT_GT(n_with_sinks, 0u);
  EXPECT_GT(n_with_windows, 0u);
}

// The text shows the last token's mean of all heads, and counts positions as the JSON does.
TEST(TraceValues, TextAndJsonAgree) {
  const Args args = {"-m", kModel, "-p", kText, "--token", "6", "--values"};
  const Json trace = TraceOf(args);
  std::vector<std::string> words = args;
  words.insert(words.begin(), "trace");
  const std::string text = Pronk(words).out;
  size_t at = 0;
  for (const Json& layer : trace["layers"]) {
    std::vector<double> mean(6);
    for (const Json& head : layer["heads"]) {
      for (size_t p = 0; p < 6; ++p) {
        mean[p] += head[5][p].get<double>() / static_cast<double>(layer["heads"].size());
      }
    }
    const auto most =
        static_cast<size_t>(std::max_element(mean.begin(), mean.end()) - mean.begin());
    char share[16];
    std::snprintf(share, sizeof share, " %.0f%%", 100 * mean[most]);
    const Json& token = trace["tokens"][most];
    at = text.find("looks at    ", at);
    ASSERT_NE(at, std::string::npos) << text;
    const std::string line = text.substr(at + 12, text.find('\n', at) - at - 12);
    const std::string first = "@" + std::to_string(token["position"].get<size_t>()) + share;
    EXPECT_TRUE(Has(line, first));
    EXPECT_LT(line.find(first), 18u) << "the first of the line";
    ++at;
  }
}

TEST(TraceValues, OfATokenInBetween) {
  const Json all = TraceOf({"-m", kModel, "-p", kText, "--values", "--token", "3"});
  EXPECT_EQ(all["tokens"].size(), 3u);
  const Finished text = Done(Pronk({"trace", "-m", kModel, "-p", kText, "--values", "--heads"}));
  for (const char* word : {"layer 1 ", "looks at", "head 0", "says next", "@1 "}) {
    EXPECT_TRUE(Has(text.out, word));
  }
  ExpectNarrow(text.out);
}

TEST(TraceValues, OfOneHeadByHand) {
  const Finished run =
      Done(Pronk({"trace", "-m", kModel, "-p", kText, "--layer", "1", "--head", "2"}));
  ExpectNarrow(run.out);
  for (const char* word : {"layer 1", "head 2", "softmax", "k \"<s>\"@1 ", "\nout "}) {
    EXPECT_TRUE(Has(run.out, word));
  }
  const auto fails = [](const char* layer, const char* head, const char* says) {
    ExpectError(Pronk({"trace", "-m", kModel, "-p", "x", "--layer", layer, "--head", head}), 2,
                says);
  };
  fails("2", "0", "--layer: the model has 2 layers, from 0 on");
  fails("0", "4", "--head: the model has 4 heads, from 0 on");
}

// Products of this head are above a thousand.
TEST(TraceValues, LargeNumbersStayInTheirColumns) {
  const Finished run =
      Done(Pronk({"trace", "-p", "Once upon a time", "--layer", "1", "--head", "2"}));
  EXPECT_TRUE(std::regex_search(run.out, std::regex(" [0-9]{4}\\.")));
  EXPECT_FALSE(std::regex_search(run.out, std::regex("\\.[0-9]+[-.]"))) << run.out;
}

// The worked head of engine/README.md is what the program prints.
TEST(TraceValues, AreThoseOfTheReadme) {
  const Args args = {"trace", "-p", "Once upon a", "--layer", "0", "--head", "4"};
  const Finished run = Done(Pronk(args));
  std::string block = "    ";  // as code in Markdown
  for (const char c : run.out.substr(0, run.out.size() - 1)) {
    block += c;
    if (c == '\n') block += "    ";
  }
  const std::string readme = ReadText(SourceDir() + "/engine/README.md");
  EXPECT_TRUE(Has(readme, block));
}

TEST(TracePlain, ComparesEveryToken) {
  const Finished run = Done(
      Pronk({"trace", "-m", kModel, "-p", kText, "--plain", "-n", "3", "--kv", "f32", "-t", "1"}));
  ExpectNarrow(run.out.substr(0, run.out.find("\n\nThe error")));
  const engine::Model model = engine::Model::Load(kModel);
  const size_t n = model.tokenizer->Encode(kText).size();
  EXPECT_TRUE(Has(run.out, "@" + std::to_string(n + 3) + " "));
  EXPECT_FALSE(Has(run.out, "@" + std::to_string(n + 4) + " "));
  const std::string before = "over that of the logits: ";
  const size_t at = run.out.find(before);
  ASSERT_NE(at, std::string::npos) << run.out;
  EXPECT_LT(std::stod(run.out.substr(at + before.size())), 1e-9);
  EXPECT_TRUE(Has(run.out, "F32 weights"));

  const Finished packed = Pronk({"trace", "--plain", "-n", "1"});
  EXPECT_TRUE(Has(packed.out, "Both read the Q8_0 weights exactly"));
  const std::string words(600, 'z');
  for (const Args& flags : {Args{"--plain"}, {"--layer", "0", "--head", "0"}}) {
    ExpectError(Pronk(With({"trace", "-m", kModel, "-p", words}, flags)), 2,
                ": expected a text of at most 256 tokens, not of ");
  }
  ExpectError(Pronk({"trace", "-m", DataPath("families/gemma3.gguf"), "--plain"}), 1,
              "runs Llama, Qwen2 and Qwen3 without experts; this model is of the family gemma3");
}

TEST(TracePlot, HasEveryOperationThatReads) {
  const TempDir dir;
  const std::string plot = dir.Path("t.svg");
  const Json trace = TraceOf({"-m", kModel, "-p", kText, "--plot", plot});
  // A prompt's tokens see those before them, and themselves.
  const engine::Model model = engine::Model::Load(kModel);
  const engine::LayerPlan& plan = model.config.layers[0];
  const size_t n_tokens = trace["tokens"].size();
  size_t n_attentions = 0;
  for (const Json& step : trace["prompt_steps"]) {
    if (step["operation"] != "attention") continue;
    ++n_attentions;
    EXPECT_EQ(step["operations"], 2 * n_tokens * (n_tokens + 1) / 2 * plan.n_heads *
                                      (plan.key_length + plan.value_length));
  }
  EXPECT_EQ(n_attentions, model.config.n_layers());

  size_t n = 0;
  for (const char* steps : {"steps", "prompt_steps"}) {
    ASSERT_TRUE(trace.contains(steps));
    for (const Json& step : trace[steps]) n += step["bytes"] > 0 && step["operations"] > 0 ? 1 : 0;
  }
  const std::string svg = ReadText(plot);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  const auto count = [&](const std::string& word) { return Count(svg, word); };
  EXPECT_EQ(count("</title></circle>") + count("</title></rect>"), n);
  EXPECT_EQ(count(">attention</text>"), 1u);  // named, and drawn apart from products
  EXPECT_EQ(count(", product</text>"), 5u);
  EXPECT_FALSE(Has(svg, "nan"));
  ExpectError(Pronk({"trace", "-m", kModel, "--plot", kModel}), 1, "is a file that is read");
}

TEST(TraceUsage, FlagsWithoutEffect) {
  const auto wrong = [](const Args& args, const std::string& says) {
    ExpectError(Pronk(With({"trace", "-m", kModel}, args)), 2, says);
  };
  wrong({"--values"}, "--values: expected a text (-p)");
  wrong({"--token", "1"}, "--token: only with -p");
  wrong({"-p", "x", "--heads"}, "--heads: only with --values");
  wrong({"--layer", "0", "--head", "0"}, "--head: expected a text (-p)");
  wrong({"--all", "--json"}, "--all: only for the table of operations");
  wrong({"-p", "x", "--values", "--layer", "0", "--head", "0"},
        "--head: not together with --values, --json, --plot or --html");
  wrong({"-p", "x", "--values", "--layer", "0"}, "--layer: only with --head");
  wrong({"--plain", "--json"}, "--plain: not together with --values, --json, --plot or --html");
  wrong({"--plain", "-d", "3"}, "-d: not together with -p or --plain");
  wrong({"-n", "3"}, "-n: only with --plain");
  wrong({"-p", "x", "-d", "3"}, "-d: not together with -p");
  wrong({"-p", "x", "--token", "900"}, "--token 900: the text has ");
}

}  // namespace
}  // namespace test
