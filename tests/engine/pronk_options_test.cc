// The library's options: ranges, names, effects.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/pronk.h"
#include "engine/sampling/sampler.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/engine/library.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace {

using test::AtMost;
using test::Greedy;
using test::kDefault;
using test::kTiny;

// Every setting that the file has.
void AddTiny(gguf::Writer& writer) {
  static const gguf::File file = gguf::File::Open(kTiny);
  for (const auto& entry : file.metadata().entries()) writer.Add(entry);
  for (const gguf::TensorView& t : file.tensors()) writer.AddTensor(t);
}

// Options have the ranges of the program's flags, and the names of the fields.
TEST(Library, NumbersOutOfRange) {
  const pronk::Model model(kTiny);
  const auto expect = [&](const std::string& says, auto change) {
    pronk::Options options = Greedy();
    change(options);
    EXPECT_EQ(test::ErrorOf<pronk::Error>([&] { pronk::Session(model, options); }), says);
  };
  using O = pronk::Options;
  const std::string number = ": expected a number from ";
  expect("temperature" + number + "0 to 1000000, found -1",
         [](O& o) { o.sampling.temperature = -1; });
  expect("temperature" + number + "0 to 1000000, found nan",
         [](O& o) { o.sampling.temperature = std::nanf(""); });
  expect("top_p" + number + "0 to 1, found -3", [](O& o) { o.sampling.top_p = -3; });
  expect("min_p" + number + "0 to 1, found 2", [](O& o) { o.sampling.min_p = 2; });
  expect("typical_p" + number + "0 to 1, found 1.5", [](O& o) { o.sampling.typical_p = 1.5f; });
  expect("top_k" + number + "-1 to 1073741824, found -2", [](O& o) { o.sampling.top_k = -2; });
  expect("repeat_penalty" + number + "0.001 to 1000, found 0",
         [](O& o) { o.sampling.repeat_penalty = 0; });
  expect("repeat_last_n" + number + "-1 to 1073741824, found -2",
         [](O& o) { o.sampling.repeat_last_n = -2; });
  expect("xtc_probability" + number + "0 to 1, found 7",
         [](O& o) { o.sampling.xtc_probability = 7; });
  expect("dry.base" + number + "1 to 1000000, found 0.5", [](O& o) { o.sampling.dry.base = 0.5f; });
  expect("mirostat.tau" + number + "0 to 1000000, found -1",
         [](O& o) { o.sampling.mirostat.tau = -1; });
  expect("threads" + number + "0 to 1024, found -7", [](O& o) { o.threads = -7; });
  expect("threads" + number + "0 to 1024, found 1000000", [](O& o) { o.threads = 1'000'000; });
  expect("context" + number + "0 to 1073741824, found 1.1529215e+18",
         [](O& o) { o.context = size_t{1} << 60; });
  expect("seed" + number + "-1 to 9.00719925474099e+15, found -2",
         [](O& o) { o.sampling.seed = -2; });
  expect("mirostat" + number + "0 to 2, found 3", [](O& o) { o.sampling.mirostat.version = 3; });
  const int last = static_cast<int>(pronk::SamplerStep::kCount) - 1;
  expect("steps" + number + "0 to " + std::to_string(last) + ", found 77",
         [](O& o) { o.sampling.steps = {static_cast<pronk::SamplerStep>(77)}; });
  expect("logit_bias: the bias of token 5 is not a number", [](O& o) {
    o.sampling.logit_bias = {{5, NAN}};
  });
  EXPECT_EQ(test::ErrorOf<pronk::Error>(
                [&] { pronk::Embedder(model, static_cast<pronk::Pooling>(77), Greedy()); }),
            "pooling" + number + "0 to 3, found 77");
  pronk::Session session(model, Greedy());
  EXPECT_THROW(session.Complete("a", {}, AtMost(-2)), pronk::Error);
  // Messages name limits by their fields, not by the program's flags.
  std::string error =
      test::ErrorOf<pronk::Error>([&] { session.Complete(std::string(10'000, 'x')); });
  EXPECT_FALSE(error.empty());
  EXPECT_FALSE(test::Has(error, "-c"));
  const test::TempDir dir;
  gguf::Writer writer;
  AddTiny(writer);
  writer.Add("llama.attention.new_idea", 1);
  writer.WriteFile(dir.Path("new.gguf"));
  error = test::ErrorOf<pronk::Error>([&] { pronk::Model(dir.Path("new.gguf")); });
  EXPECT_TRUE(test::Has(error, "new_idea"));
  EXPECT_FALSE(test::Has(error, "--"));
}

// Sets options by the names of the fields; unset options keep the model file's values.
TEST(Library, SetsOptionsByName) {
  pronk::Options options;
  for (const auto& [name, number] : std::vector<std::pair<std::string, double>>{{"context", 99},
                                                                                {"threads", 3},
                                                                                {"cache_bits", 8},
                                                                                {"seed", 1e10},
                                                                                {"top_k", 5},
                                                                                {"dry.base", 2},
                                                                                {"mirostat", 2},
                                                                                {"typical", 0.5}}) {
    pronk::Set(options, name, number);
  }
  EXPECT_EQ(options.context, 99u);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.cache_bits, 8);
  EXPECT_EQ(options.sampling.seed, 10'000'000'000u);
  EXPECT_EQ(options.sampling.top_k, 5);
  EXPECT_EQ(options.sampling.dry.base, 2);
  EXPECT_EQ(options.sampling.mirostat.version, 2);
  EXPECT_EQ(options.sampling.typical_p, 0.5f);
  EXPECT_FALSE(options.sampling.top_p.is_set());
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"--top-k", "6"},
                                                        {"dry_base", "3"},
                                                        {"steps", "top_k;temp"},
                                                        {"ignore_end", "true"},
                                                        {"logit_bias", "5+1.5"},
                                                        {"logit_bias", "7-inf"},
                                                        {"dry.breakers", "x"}}) {
    pronk::Set(options, name, text);
  }
  EXPECT_EQ(options.sampling.top_k, 6);
  EXPECT_EQ(options.sampling.dry.base, 3);
  EXPECT_EQ(options.sampling.steps.value,
            (std::vector{pronk::SamplerStep::kTopK, pronk::SamplerStep::kTemperature}));
  EXPECT_TRUE(options.sampling.ignore_end);
  EXPECT_EQ(options.sampling.logit_bias,
            (std::vector<std::pair<std::int32_t, float>>{{5, 1.5f}, {7, -INFINITY}}));
  EXPECT_EQ(options.sampling.dry.breakers.value, std::vector<std::string>{"x"});
  EXPECT_EQ(test::ErrorOf<pronk::Error>([&] { pronk::Set(options, "steps", "top_q"); }),
            "steps: 'top_q' is none of " + engine::SamplerStepNames());
  EXPECT_THROW(pronk::Set(options, "logit_bias", "x"), pronk::Error);
  EXPECT_THROW(pronk::Set(options, "ignore_end", "perhaps"), pronk::Error);
  EXPECT_THROW(pronk::Set(options, "top_k", "1.5"), pronk::Error);
  EXPECT_THROW(pronk::Set(options, "draft", "no/such.gguf"), pronk::Error);
  EXPECT_THROW(pronk::Set(options, "top_k", -2), pronk::Error);
  EXPECT_THROW(pronk::Set(options, "top_k", std::nan("")), pronk::Error);
  EXPECT_THROW(pronk::Set(options, "top_q", 1), pronk::Error);
  options = Greedy();
  const pronk::Model model(kDefault);
  std::vector<std::vector<float>> logits;
  for (const int bits : {32, 16, 8, 4}) {
    options.cache_bits = bits;
    pronk::Session session(model, options);
    session.Complete("Once upon a time", {}, AtMost(0));
    logits.push_back(session.logits());
  }
  EXPECT_NE(logits[0], logits[1]);
  EXPECT_NE(logits[1], logits[2]);
  EXPECT_NE(logits[2], logits[3]);
}

// The file's recommendations, which the caller's options override.
TEST(Library, TakesTheFilesSampling) {
  const test::TempDir dir;
  gguf::Writer writer;
  AddTiny(writer);
  writer.Add("general.sampling.temp", 0.0f);
  writer.WriteFile(dir.Path("cold.gguf"));
  const auto text = [](const std::string& path, const pronk::Options& options) {
    return pronk::Session(pronk::Model(path), options).Complete("Hello", {}, AtMost(30)).text;
  };
  pronk::Options warm = {.sampling = {.temperature = 1}};
  EXPECT_EQ(text(dir.Path("cold.gguf"), {}), text(kTiny, Greedy()));
  EXPECT_NE(text(kTiny, {}), text(kTiny, Greedy()));
  EXPECT_EQ(text(dir.Path("cold.gguf"), warm), text(kTiny, warm));
}

// Each option has an effect: it changes the text, or makes it the most likely one.
TEST(Library, HasAllSamplers) {
  const pronk::Model model(kDefault);
  const auto text = [&](const auto& change) {
    pronk::Options options = {
        .threads = 1,
        .sampling = {.seed = 3, .temperature = 3, .top_k = 0, .top_p = 1, .min_p = 0}};
    options.sampling.repeat_penalty = 1;  // the file has one
    change(options.sampling);
    return pronk::Session(model, options).Complete("Once upon a time", {}, AtMost(60)).text;
  };
  const std::string usual = text([](pronk::Sampling&) {});
  const std::string likely = text([](pronk::Sampling& s) { s.temperature = 0; });
  EXPECT_EQ(usual, text([](pronk::Sampling&) {}));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.top_k = 1; }));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.top_p = 1e-6f; }));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.min_p = 1; }));
  EXPECT_EQ(likely, text([](pronk::Sampling& s) { s.top_n_sigma = 1e-6f; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.typical_p = 0.1f; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.xtc_probability = 1, s.xtc_threshold = 0; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.temperature_range = 2; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.mirostat = {2, 1, 0.1f}; }));
  EXPECT_NE(usual, text([](pronk::Sampling& s) { s.steps = {pronk::SamplerStep::kTopK}; }));
  const auto greedy = [&](const auto& change) {
    return text([&](pronk::Sampling& s) {
      s.temperature = 0;
      change(s);
    });
  };
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) { s.repeat_penalty = 3; }));
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) { s.frequency_penalty = 90; }));
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) { s.presence_penalty = 90; }));
  EXPECT_NE(likely, greedy([](pronk::Sampling& s) {
              s.dry.multiplier = 50;
              s.dry.allowed_length = 0;
              s.dry.breakers = std::vector<std::string>();
            }));
  const std::int32_t first =
      model.Tokenize("Once upon a time" + likely)[model.Tokenize("Once upon a time").size()];
  EXPECT_NE(likely, greedy([&](pronk::Sampling& s) { s.logit_bias = {{first, -1e9f}}; }));
  EXPECT_THROW(text([](pronk::Sampling& s) { s.logit_bias = {{-1, 1.0f}}; }), pronk::Error);
  EXPECT_THROW(text([](pronk::Sampling& s) {
                 s.dry = {1, 2, 2, -1, std::vector<std::string>{"no token has this"}};
               }),
               pronk::Error);
}

}  // namespace
