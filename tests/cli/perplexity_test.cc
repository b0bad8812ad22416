// pronk perplexity --save-logits and --kl: figures compared with figures computed here from all
// logits, and untrusted files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/logits.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

constexpr size_t kWindow = 16, kFirst = kWindow / 2;  // the first prediction that counts

// [predictions][vocabulary]: ln(probability) of each prediction that counts.
std::vector<std::vector<double>> Predictions(const engine::Model& model,
                                             std::vector<tokenizer::TokenId> ids,
                                             size_t n_windows) {
  const size_t n_vocab = model.config.vocab_size;
  engine::SessionOptions options = {.context = kWindow};
  std::vector<std::vector<double>> predictions;
  for (size_t w = 0; w < n_windows; ++w) {
    std::vector<tokenizer::TokenId> window(ids.begin() + static_cast<long>(w * kWindow),
                                           ids.begin() + static_cast<long>((w + 1) * kWindow));
    window[0] = model.tokenizer->vocab().bos;
    const std::vector<float> logits = AllLogits(model, window, options);
    for (size_t t = kFirst; t + 1 < kWindow; ++t) {
      double sum = 0;
      std::vector<double> row(logits.begin() + static_cast<long>(t * n_vocab),
                              logits.begin() + static_cast<long>((t + 1) * n_vocab));
      for (const double logit : row) sum += std::exp(logit);
      for (double& logit : row) logit -= std::log(sum);
      predictions.push_back(row);
    }
  }
  return predictions;
}

class Divergence : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 40; ++i) text_ += "the quick brown fox " + std::to_string(i * i) + " ";
    text_path_ = dir_.Write("text", text_);
    ASSERT_EQ(Pronk({"quantize", kModel, quantized_, "Q4_0"}).status, 0);
    const Finished run = Done(Pronk({"perplexity", "-m", kModel, "-f", text_path_, "-c",
                                     std::to_string(kWindow), "--save-logits", base_, "--json"}));
    n_windows_ = Json::parse(run.out)["windows"];
  }

  const TempDir dir_;
  std::string text_, text_path_;
  const std::string quantized_ = dir_.Path("q4.gguf"), base_ = dir_.Path("base.logits");
  size_t n_windows_ = 0;
};

TEST_F(Divergence, IsWhatTheLogitsSay) {
  const engine::Model model = engine::Model::Load(kModel), other = engine::Model::Load(quantized_);
  const std::vector<tokenizer::TokenId> ids = model.tokenizer->Encode(text_);
  const auto base = Predictions(model, ids, n_windows_), rows = Predictions(other, ids, n_windows_);
  // A code is rounded by half a step of 16 / 65535 at most, and so is a logarithm. (No probability
  // here is below e^-16.)
  const double rounding = 16.0 / 65535 / 2 + 1e-6;
  double sum = 0, sum_of_squares = 0, differences = 0, squares = 0, same = 0, most = 0, least = 1e9;
  double furthest = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t t = i / (kWindow - 1 - kFirst) * kWindow + kFirst + i % (kWindow - 1 - kFirst);
    const auto next = static_cast<size_t>(ids[t + 1]);
    double divergence = 0;
    for (size_t id = 0; id < rows[i].size(); ++id) {
      divergence += std::exp(base[i][id]) * (base[i][id] - rows[i][id]);
      furthest = std::max(furthest, std::abs(base[i][id] - rows[i][id]));
    }
    sum += divergence;
    sum_of_squares += divergence * divergence;
    most = std::max(most, divergence);
    least = std::min(least, divergence);
    const double difference = std::exp(rows[i][next]) - std::exp(base[i][next]);
    differences += difference;
    squares += difference * difference;
    const auto top = [](const std::vector<double>& row) {
      return std::max_element(row.begin(), row.end()) - row.begin();
    };
    same += top(base[i]) == top(rows[i]) ? 1 : 0;
  }
  const auto n = static_cast<double>(rows.size());
  // d(p ln(p / q)) is p * (1 + ln(p / q)) * d(ln p), summed over p.
  const double tolerance = rounding * (1 + furthest);
  ASSERT_GT(sum / n, 10 * tolerance) << "too alike to test anything";

  const Finished run = Done(Pronk({"perplexity", "-m", quantized_, "--kl", base_, "--json"}));
  const Json found = Json::parse(run.out);
  EXPECT_EQ(found["tokens"], rows.size());
  EXPECT_EQ(found["windows"], n_windows_);
  const Json& divergence = found["kl_divergence"];
  EXPECT_NEAR(divergence["value"], sum / n, tolerance);
  EXPECT_NEAR(divergence["error"], std::sqrt((sum_of_squares / n - sum / n * sum / n) / (n - 1)),
              tolerance);
  EXPECT_NEAR(divergence["quantiles"]["maximum"], most, tolerance);
  EXPECT_NEAR(divergence["quantiles"]["minimum"], least, tolerance);
  const Json& difference = found["probability_difference"];
  EXPECT_NEAR(difference["value"], differences / n, rounding);
  EXPECT_NEAR(difference["root_mean_square"]["value"], std::sqrt(squares / n), rounding);
  EXPECT_NEAR(found["same_top"]["value"], same / n, 1.5 / n);  // two alike may change places
}

TEST_F(Divergence, FromItselfIsNone) {
  const Finished run = Done(Pronk({"perplexity", "-m", kModel, "--kl", base_, "--json"}));
  const Json found = Json::parse(run.out);
  // The rest is the rounding of the codes.
  EXPECT_NEAR(found["kl_divergence"]["value"], 0, 16.0 / 65535);
  EXPECT_NEAR(found["perplexity_ratio"]["value"], 1, 16.0 / 65535);
  EXPECT_GT(found["same_top"]["value"], 0.98);
  EXPECT_NEAR(found["perplexity"]["value"], found["base_perplexity"]["value"],
              16.0 / 65535 * found["perplexity"]["value"].get<double>());

  const Finished text = Pronk({"perplexity", "-m", kModel, "--kl", base_});
  EXPECT_TRUE(Has(text.out, "\nmedian "));
  for (size_t at = 0, end = 0; end = text.out.find('\n', at), end != std::string::npos;) {
    EXPECT_LE(end - at, 80u);
    at = end + 1;
  }
}

// The file as llama-perplexity writes it, and the same file by llama.cpp's name.
TEST_F(Divergence, TheFileIsAsPublished) {
  const std::string bytes = ReadText(base_);
  const size_t n_vocab = 320, row = 8 + 2 * n_vocab;
  EXPECT_EQ(bytes.substr(0, 8), "_logits_");
  EXPECT_EQ(bytes.size(), 20 + n_windows_ * (4 * kWindow + (kWindow - 1 - kFirst) * row));
  int32_t head[4] = {};
  std::memcpy(head, bytes.data() + 8, sizeof(head));
  EXPECT_EQ(head[0], static_cast<int32_t>(kWindow));
  EXPECT_EQ(head[1], static_cast<int32_t>(n_vocab));
  EXPECT_EQ(head[2], static_cast<int32_t>(n_windows_));
  const engine::Model model = engine::Model::Load(kModel);
  EXPECT_EQ(head[3], model.tokenizer->Encode(text_)[0]);
  const auto says = [&](const std::string& flag) {
    const std::string path = dir_.Path(flag.substr(2));
    EXPECT_EQ(Pronk({"perplexity", "-m", kModel, "-f", text_path_, "-c", std::to_string(kWindow),
                     flag, path})
                  .status,
              0);
    return ReadText(path);
  };
  EXPECT_EQ(says("--save-all-logits"), bytes);
}

TEST_F(Divergence, StrangersFiles) {
  const std::string good = ReadText(base_);
  const auto refused = [&](const std::string& bytes, const std::string& says) {
    ExpectError(Pronk({"perplexity", "-m", kModel, "--kl", dir_.Write("bad", bytes)}), 1, says);
  };
  const auto with = [&](size_t at, auto value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    return bytes;
  };
  refused("", "expected a file of log-probabilities, found an empty file");
  refused("_logi", "bad: byte 0: ");
  refused("_Logits_" + good.substr(8), "which begins with \"_logits_\"");
  for (const size_t length : {10u, 19u}) refused(good.substr(0, length), "bad: byte ");
  for (const size_t length : {size_t{20}, size_t{21}, good.size() - 1}) {
    refused(good.substr(0, length), "was its writing cut off?");
  }
  refused(good + "x", "was its writing cut off?");
  for (const int32_t n : {0, 1, 3, -1, INT32_MIN})
    refused(with(8, n), "expected at least 1 window, of at");
  for (const int32_t n : {4, 17, 1 << 20, INT32_MAX}) refused(with(8, n), "cut off?");
  for (const int32_t n : {0, -1, 319, 321, INT32_MAX, INT32_MIN}) {
    refused(with(12, n), "vocabulary of 320 tokens, found " + std::to_string(n));
  }
  for (const int32_t n : {0, -1, INT32_MIN}) refused(with(16, n), "of at least 4 tokens, found ");
  for (const int32_t n : {1, INT32_MAX}) refused(with(16, n), "cut off?");
  for (const int32_t id : {-1, 320, INT32_MAX, INT32_MIN}) {
    refused(with(24, id), "byte 24: expected a token's id below 320, found " + std::to_string(id));
  }
  const size_t row = 20 + 4 * kWindow * n_windows_;
  const float nan = std::nanf(""), inf = INFINITY;
  for (const float scale : {nan, inf, -1.0f, 1.0f}) refused(with(row, scale), "expected a scale");
  for (const float low : {nan, inf, -inf, 1.0f}) refused(with(row + 4, low), "expected a scale");
  // Probabilities that no program would round like that are still numbers.
  EXPECT_EQ(
      Pronk({"perplexity", "-m", kModel, "--kl", dir_.Write("odd", with(row + 4, -1e30f))}).status,
      0);
  ExpectError(Pronk({"perplexity", "-m", kModel, "--kl", dir_.Path("none")}), 1, "none");
  ExpectError(Pronk({"perplexity", "-m", kModel, "--kl", "/dev/zero"}), 1, "/dev/zero");
}

// The file holds no logit more than 16 below the largest one, so the base's perplexity may be too
// low.
TEST_F(Divergence, SaysWhatTheFileCannotHold) {
  EXPECT_EQ(Pronk({"perplexity", "-m", kModel, "--kl", base_}).err, "");
  std::string bytes = ReadText(base_);
  const float head[] = {16.0f / 65535, -16};
  const size_t row = 20 + 4 * kWindow * n_windows_;
  std::memcpy(bytes.data() + row, head, sizeof(head));
  int32_t next = 0;
  std::memcpy(&next, bytes.data() + 20 + 4 * (kFirst + 1), sizeof(next));
  bytes.replace(row + sizeof(head) + 2 * static_cast<size_t>(next), 2, 2, '\0');
  const Finished run = Done(Pronk({"perplexity", "-m", kModel, "--kl", dir_.Write("cut", bytes)}));
  EXPECT_TRUE(Has(run.err, "pronk: note: the file of --kl holds no probability below e^-16"));
  EXPECT_TRUE(Has(run.err, "which 1 of " + std::to_string(n_windows_ * 7) + " tokens have: "));
}

// Any bytes give an answer or a line that says what is wrong.
TEST_F(Divergence, DamagedFiles) {
  const std::string good = ReadText(base_);
  std::mt19937 random(1);
  size_t n_refused = 0;
  for (int i = 0; i < 60; ++i) {
    std::string bytes = good;
    // The head, the text and the first predictions matter most.
    const size_t end = i % 2 == 0 ? 64 : bytes.size();
    for (int n = 0; n <= i % 5; ++n) bytes[random() % end] = static_cast<char>(random());
    const Finished run = Pronk({"perplexity", "-m", kModel, "--kl", dir_.Write("bad", bytes)});
    if (run.status == 0) {
      EXPECT_TRUE(Has(run.out, "same token on top"));
      continue;
    }
    ++n_refused;
    ExpectError(run, 1, "bad: ");
  }
  EXPECT_GT(n_refused, 20u);
}

TEST_F(Divergence, OutputsAndInputs) {
  const auto save = [&](const std::string& out) {
    return Pronk(
        {"perplexity", "-m", quantized_, "-f", text_path_, "-c", "16", "--save-logits", out});
  };
  const std::string model = ReadText(quantized_);
  ExpectError(save(quantized_), 1, "is a file that is read");
  ExpectError(save(text_path_), 1, "is a file that is read");
  EXPECT_EQ(ReadText(quantized_), model);
  EXPECT_EQ(ReadText(text_path_), text_);
  const std::string before = ReadText(base_);
  ExpectError(Shell("exec \"$PRONK\" perplexity -m \"$MODEL\" --kl \"$BASE\" >>\"$BASE\"",
                    {"BASE=" + base_}),
              1, "the output would be written into");
  EXPECT_EQ(ReadText(base_), before);
  const std::string none = dir_.Path("none/out");
  ExpectError(save(none), 1, "none/out");
}

TEST_F(Divergence, WindowsBeyondTraining) {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 500; ++i) text += "Once upon a time, there was a cat. ";
  const std::string path = dir.Write("long.txt", text);
  const std::string note = "note: -c: windows of 1540 tokens, but this model read at most 1536";
  for (const std::string command : {"perplexity", "compare"}) {
    const Finished run =
        Pronk({command, "-m", kDefault, "-f", path, "-c", "1540", "--chunks", "1"});
    EXPECT_TRUE(Has(run.err, note)) << command << run.err;
  }
  const Finished run =
      Done(Pronk({"perplexity", "-m", kDefault, "-f", path, "-c", "1536", "--chunks", "1"}));
  EXPECT_FALSE(Has(run.err, "note")) << run.err;
}

TEST_F(Divergence, WrongUsage) {
  const auto wrong = [&](const Args& args, const std::string& says) {
    ExpectError(Pronk(With({"perplexity", "-m", kModel}, args)), 2, says);
  };
  wrong({}, "-f: expected a text");
  wrong({"--kl-divergence-base", "x"}, "--kl FILE compares with them");
  wrong({"--kl", base_, "-f", text_path_}, "-f: not together with --kl, whose file has the text");
  wrong({"--kl", base_, "-c", "8"}, "-c: not together with --kl, whose file has the windows");
  wrong({"--kl", base_, "--save-logits", "x"}, "--save-logits: not together with --kl");
  wrong({"--kl", base_, "--chunks", "1"}, "--chunks: not together with --kl");
  wrong({"-f", text_path_, "-f", text_path_}, "-f: expected once, found 2 times");
}

}  // namespace
}  // namespace test
