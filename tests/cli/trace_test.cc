// pronk trace: what it shows of a pass is what the engine computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/session/session.h"
#include "tests/cli/pronk.h"
#include "tests/support/temp_dir.h"

namespace {

using nlohmann::json;
using test::ExpectError;
using test::Finished;
using test::Pronk;

const std::string& kModel = test::kTinyModel;
const std::string kText = "It was a day like any other day";

json TraceOf(std::vector<std::string> args) {
  args.insert(args.begin(), {"trace", "--json"});
  const Finished run = Pronk(args);
  EXPECT_EQ(run.status, 0) << run.err;
  return run.status == 0 ? json::parse(run.out) : json();
}

void ExpectNarrow(const std::string& text) {
  for (size_t at = 0, end = 0; end = text.find('\n', at), end != std::string::npos; at = end + 1) {
    EXPECT_LE(end - at, 80u) << text.substr(at, end - at);
  }
}

TEST(Trace, ListsEveryOperation) {
  const Finished run = Pronk({"trace", "-m", kModel, "-t", "1"});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* word :
       {"layer 1 ", "attn_q attn_k attn_v F32     128x64 ", "ffn_down             F32     64x128 ",
        "\noutput", "attention", "Totals, 1 threads"}) {
    EXPECT_NE(run.out.find(word), std::string::npos) << word;
  }
  ExpectNarrow(run.out);
}

// Every matrix is read once, and each of its numbers is multiplied and added.
TEST(Trace, CountsBytesAndOperations) {
  const engine::Model model = engine::Model::Load(kModel);
  const json trace = TraceOf({"-m", kModel, "-p", kText, "-t", "1"});
  EXPECT_EQ(trace["tokens"], model.tokenizer->Encode(kText));
  double bytes = 0, operations = 0;
  std::set<std::string> parts, names;
  for (const json& step : trace["steps"]) {
    parts.insert(step["part"]);
    EXPECT_GE(step["seconds"], 0.0);
    if (step["operation"] == "attention") {
      const auto& plan = model.config.layers[0];
      const double seen = static_cast<double>(trace["tokens"].size() * plan.n_heads);
      EXPECT_EQ(step["operations"], 2 * seen * static_cast<double>(plan.key_length * 2));
    }
    if (step["operation"] != "matmul") continue;
    for (const json& tensor : step["tensors"]) names.insert(tensor["name"]);
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

// The last layer's lens is the model's own answer, and the weights of attention sum to
// one. In every architecture.
TEST(TraceValues, AreThoseOfThePass) {
  std::vector<std::string> paths = {kModel};
  for (const auto& path : test::SmallModels()) paths.push_back(path);
  size_t n_with_experts = 0, n_with_sinks = 0;
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const engine::Model model = engine::Model::Load(path);
    const engine::Config& config = model.config;
    std::vector<tokenizer::TokenId> ids = model.tokenizer->Encode(kText);
    const json trace = TraceOf({"-m", path, "-p", kText, "--values", "-t", "1"});
    ASSERT_EQ(trace["layers"].size(), config.n_layers());
    for (size_t i = 0; i < config.n_layers(); ++i) {
      const json& layer = trace["layers"][i];
      EXPECT_GT(layer["norm"], 0.0);
      const bool attends = config.layers[i].mixer == engine::Mixer::kAttention ||
                           config.layers[i].mixer == engine::Mixer::kLatentAttention;
      ASSERT_EQ(layer.contains("attention"), attends);
      if (attends) {
        const bool sinks = model.weights.layers[i].attn_sinks != nullptr;
        n_with_sinks += sinks ? 1 : 0;
        // Each head's weights are divided by their sum.
        const double sum = layer["attention_sum"];
        const double rounding = 1e-15 * static_cast<double>(ids.size());
        EXPECT_LE(sum, 1 + rounding);
        EXPECT_EQ(sum < 1 - rounding, sinks);
        EXPECT_EQ(layer["heads"].size(), config.layers[i].n_heads);
        for (const json& seen : layer["attention"]) {
          EXPECT_LT(seen["position"], ids.size());
          EXPECT_LE(seen["weight"], sum + rounding);
        }
      }
      ASSERT_EQ(layer.contains("experts"), config.layers[i].n_experts > 0);
      if (config.layers[i].n_experts > 0) {
        ++n_with_experts;
        EXPECT_EQ(layer["experts"].size(), config.n_experts_used);
        for (const json& one : layer["experts"]) {
          EXPECT_LT(one["expert"], config.layers[i].n_experts);
        }
      }
      EXPECT_EQ(layer.contains("next"), config.n_streams == 0);
    }
    if (config.n_streams > 0) continue;
    engine::SessionOptions options;
    options.n_threads = 1;
    options.context = ids.size();
    engine::Session session(model, options);
    session.Prefill(std::span(ids).first(ids.size() - 1));
    session.Decode(ids.back());
    const std::span<const float> logits = session.logits();
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit} - logits[0]);
    const json& next = trace["layers"].back()["next"];
    ASSERT_GT(next.size(), 0u);
    EXPECT_EQ(next[0]["id"], std::max_element(logits.begin(), logits.end()) - logits.begin());
    for (const json& token : next) {
      const double logit = logits[token["id"].get<size_t>()];
      const double expected = std::exp(logit - logits[0]) / sum;
      EXPECT_NEAR(token["probability"], expected, 1e-12 * expected);
    }
  }
  EXPECT_GT(n_with_experts, 0u);
  EXPECT_GT(n_with_sinks, 0u);
}

// Heads are shown by themselves, and their mean is what is shown of all.
TEST(TraceValues, TheMeanIsOfAllHeads) {
  const json trace = TraceOf({"-m", kModel, "-p", kText, "--token", "6", "--values"});
  const size_t n = trace["tokens"].size();
  ASSERT_LE(n, 6u) << "all positions are to be shown";
  for (const json& layer : trace["layers"]) {
    std::vector<double> mean(n);
    for (const json& head : layer["heads"]) {
      for (const json& seen : head) {
        mean[seen["position"].get<size_t>()] +=
            seen["weight"].get<double>() / static_cast<double>(layer["heads"].size());
      }
    }
    for (const json& seen : layer["attention"]) {
      EXPECT_NEAR(seen["weight"], mean[seen["position"].get<size_t>()], 1e-14);
    }
  }
}

TEST(TraceValues, OfATokenInBetween) {
  const json all = TraceOf({"-m", kModel, "-p", kText, "--values", "--token", "3"});
  EXPECT_EQ(all["tokens"].size(), 3u);
  const Finished text = Pronk({"trace", "-m", kModel, "-p", kText, "--values", "--heads"});
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* word : {"layer 1 ", "looks at", "head 0", "says next", "@1 "}) {
    EXPECT_NE(text.out.find(word), std::string::npos) << word;
  }
  ExpectNarrow(text.out);
}

TEST(TracePlot, HasEveryOperationThatReads) {
  const test::TempDir dir;
  const std::string plot = dir.Path("t.svg");
  const json trace = TraceOf({"-m", kModel, "-p", kText, "--plot", plot});
  // A prompt's tokens see those before them, and themselves.
  const engine::Model model = engine::Model::Load(kModel);
  const engine::LayerPlan& plan = model.config.layers[0];
  const size_t n_tokens = trace["tokens"].size();
  size_t n_attentions = 0;
  for (const json& step : trace["prompt_steps"]) {
    if (step["operation"] != "attention") continue;
    ++n_attentions;
    EXPECT_EQ(step["operations"], 2 * n_tokens * (n_tokens + 1) / 2 * plan.n_heads *
                                      (plan.key_length + plan.value_length));
  }
  EXPECT_EQ(n_attentions, model.config.n_layers());

  size_t n = 0;
  for (const char* steps : {"steps", "prompt_steps"}) {
    ASSERT_TRUE(trace.contains(steps));
    for (const json& step : trace[steps]) n += step["bytes"] > 0 && step["operations"] > 0 ? 1 : 0;
  }
  const std::string svg = test::ReadText(plot);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  size_t n_dots = 0;
  for (size_t at = 0; (at = svg.find("</title></circle>", at)) != std::string::npos; ++at) ++n_dots;
  EXPECT_EQ(n_dots, n);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  ExpectError(Pronk({"trace", "-m", kModel, "--plot", kModel}), 1, "is a file that is read");
}

TEST(TraceUsage, FlagsWithoutEffect) {
  const auto wrong = [](std::vector<std::string> args, const std::string& says) {
    args.insert(args.begin(), {"trace", "-m", kModel});
    ExpectError(Pronk(args), 2, says);
  };
  wrong({"--values"}, "--values: expected a text (-p)");
  wrong({"--token", "1"}, "--token: only with -p");
  wrong({"-p", "x", "--heads"}, "--heads: only with --values");
  wrong({"-p", "x", "-d", "3"}, "-d: not together with -p");
  wrong({"-p", "x", "--token", "900"}, "--token 900: the text has ");
}

}  // namespace
