// The library without memory: if any allocation fails, an Error is thrown, and nothing leaks.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "engine/pronk.h"
#include "tests/engine/library.h"
#include "tests/support/allocations.h"
#include "tests/support/memory_is_ours.h"
#include "tests/support/small_model.h"
#include "tests/support/temp_dir.h"

namespace {

using test::AtMost;
using test::Greedy;

class WithoutMemory : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!test::kAllocationsAreCounted) GTEST_SKIP();
    test::SmallModel small = {.tokenizer = GetParam()};
    file_ = dir_.Write("model.gguf", small.Bytes());
    options_.sampling.temperature = 1;
    options_.sampling.dry.multiplier = 1;
  }
  // With BPE each single allocation fails in turn. sentencepiece's protobuf crashes if one of its
  // own allocations fails, so all its memory is allocated before. With SPM, as in practice,
  // allocations above a limit fail, in 200 steps up to the memory that the work needs.
  template <class Work>
  void Expect(Work work) {
    work();  // makes allocations that happen only once
    const bool is_spm = GetParam() == std::string("llama");
    test::ResetPeak();
    const size_t held = test::CountAllocations().bytes;
    work();
    const size_t peak = test::CountAllocations().peak - held;
    size_t n_failures = 0;
    constexpr size_t kStep = test::kMemoryIsOurs ? 1 : 7;  // sanitizers are slow
    for (size_t n = 1;; n += kStep) {
      bool has_thrown = false;
      if (!is_spm) test::FailAllocation(n);
      if (is_spm) test::LimitBytes(held + 1024 + n * peak / 200);  // 1024: for a message
      try {
        work();
      } catch (const pronk::Error&) {
        has_thrown = true;
      }
      const bool has_failed = test::FailAllocation(0);
      ASSERT_EQ(test::CountAllocations().bytes, held) << n;
      ASSERT_TRUE(has_failed || !has_thrown) << n;  // some allocations are optional
      if (!has_failed) break;
      ++n_failures;
    }
    EXPECT_GT(n_failures, 10u);
  }

  const test::TempDir dir_;
  std::string file_;
  pronk::Options options_ = Greedy();
};

TEST_P(WithoutMemory, Opening) {
  Expect([&] { pronk::Model model(file_); });
}

TEST_P(WithoutMemory, CompletingAndSaving) {
  const pronk::Model model(file_);
  const std::string path = dir_.Path("session");
  Expect([&] { pronk::Session(model, options_).Complete("Hello", {}, AtMost(5)); });
  Expect([&] {
    pronk::Session session(model, options_);
    session.Complete("Hello", {}, AtMost(0));
    session.Save(path);
  });
  Expect([&] { pronk::Session(model, options_).Load(path); });
}

TEST_P(WithoutMemory, TwoTogether) {
  const pronk::Model model(file_);
  Expect([&] {
    pronk::Batch batch(model, 1);
    pronk::Session one(model, options_), two(model, options_);
    batch.Add(one, "Hello", {}, AtMost(3));
    batch.Add(two, "Hi", {}, AtMost(2));
    while (batch.size() > 0) batch.Step();
  });
}

TEST_P(WithoutMemory, Conversing) {
  const pronk::Model model(file_);
  Expect([&] { pronk::Chat(model, "Be kind.", options_).Say("Hi", {}, AtMost(5)); });
}

TEST_P(WithoutMemory, FollowingASchema) {
  const pronk::Model model(file_);
  const std::string schema = R"({"properties": {"age": {"type": "integer"}}})";
  Expect([&] {
    pronk::Limits limits = AtMost(5);
    limits.grammar = pronk::Grammar::JsonSchema(schema);
    pronk::Session(model, options_).Complete("Hello", {}, limits);
  });
}

INSTANTIATE_TEST_SUITE_P(Library, WithoutMemory, testing::Values("gpt2", "llama"),
                         [](const auto& family) { return family.param; });

}  // namespace
