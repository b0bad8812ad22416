// The library's batch: sessions write the same text together as alone.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/pronk.h"
#include "tests/engine/library.h"
#include "tests/support/error_of.h"

namespace {

using test::AtMost;
using test::kDefault;

pronk::Options Options(std::uint64_t seed) {
  pronk::Options options = {.context = 128, .threads = 1, .sampling = {.seed = seed}};
  if (seed == 2) options.sampling.temperature = 0;
  return options;
}

TEST(LibraryBatch, WritesWhatEachWritesAlone) {
  const pronk::Model model(kDefault);
  const std::vector<std::string> prompts = {"Once upon a time", "Tom saw a", "The dog", "A goat"};
  const auto limits = [](std::size_t i) {
    pronk::Limits result = AtMost(static_cast<int>(20 - 3 * i));
    if (i == 1) result.stops = {"the"};
    if (i == 3) result.grammar = pronk::Grammar::JsonObject();
    return result;
  };
  std::vector<pronk::Completion> alone;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    alone.push_back(pronk::Session(model, Options(i)).Complete(prompts[i], {}, limits(i)));
  }
  pronk::Batch batch(model, 2);
  std::map<std::size_t, std::string> heard;
  std::map<std::size_t, std::vector<std::int32_t>> ids;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    pronk::Session session(model, Options(i));  // the batch keeps it
    const auto hear = [&heard, i](std::string_view text) { heard[i] += text; };
    pronk::Limits own = limits(i);  // not needed after Add()
    own.on_token = [&ids, i](const pronk::Token& token) { ids[i].push_back(token.id); };
    EXPECT_EQ(batch.Add(session, prompts[i], hear, own), i);
    batch.Step();
  }
  EXPECT_EQ(batch.size(), prompts.size());
  std::size_t n_ended = 0;
  while (batch.size() > 0) {
    for (const auto& [i, completion] : batch.Step()) {
      EXPECT_EQ(completion.text, alone[i].text);
      EXPECT_EQ(completion.stop_reason, alone[i].stop_reason);
      EXPECT_EQ(completion.n_generated, alone[i].n_generated);
      EXPECT_EQ(heard[i], alone[i].text);
      EXPECT_EQ(ids[i].size(), alone[i].n_generated);
      ++n_ended;
    }
  }
  EXPECT_EQ(n_ended, prompts.size());
}

TEST(LibraryBatch, SaysWhatIsWrong) {
  const pronk::Model model(kDefault), other(kDefault);
  const auto says = [](const auto& does) { return test::ErrorOf<pronk::Error>(does); };
  pronk::Batch batch(model);
  pronk::Session session(model, Options(1)), stranger(other, Options(1));
  EXPECT_EQ(says([&] { batch.Add(stranger, "A"); }),
            "the session is of another model than the batch");
  EXPECT_TRUE(
      test::Has(says([&] { batch.Add(session, std::string(10'000, 'x')); }), "room for 127"));
  EXPECT_EQ(batch.size(), 0u);
  batch.Add(session, "A", {}, AtMost(5));
  const std::string busy = "the session has a text in a batch";
  EXPECT_EQ(says([&] { batch.Add(session, "A"); }), busy);
  EXPECT_EQ(says([&] { pronk::Batch(model).Add(session, "A"); }), busy);
  EXPECT_EQ(says([&] { session.Complete("A"); }), busy);
  EXPECT_EQ(says([&] { session.Clear(); }), busy);
  while (batch.size() > 0) batch.Step();
  session.Clear();
  EXPECT_EQ(session.Complete("A", {}, AtMost(3)).n_generated, 3u);
  {
    pronk::Batch left(model);
    left.Add(session, "A");
  }
  session.Clear();  // the batch is gone
  EXPECT_EQ(says([&] { pronk::Batch(model, -1); }),
            "threads: expected a number from 0 to 1024, found -1");
}

// A full context ends only its own text, and so does an exception from the caller's function.
TEST(LibraryBatch, EndsATextAndNotTheOthers) {
  const pronk::Model model(kDefault);
  const std::string alone = pronk::Session(model, Options(1)).Complete("A", {}, AtMost(20)).text;
  pronk::Batch batch(model, 1);
  pronk::Session good(model, Options(1)), bad(model, Options(3)), stopped(model, Options(4));
  pronk::Options small = Options(5);
  small.context = 8;
  pronk::Session full(model, small);
  batch.Add(bad, "Once upon", [n = 0](std::string_view) mutable {
    if (++n == 3) throw 7;
  });
  EXPECT_EQ(batch.Add(good, "A", {}, AtMost(20)), 1u);
  EXPECT_EQ(batch.Add(full, "Once upon a time"), 2u);
  EXPECT_EQ(batch.Add(stopped, "Once", [n = 0](std::string_view) mutable { return ++n < 4; }), 3u);
  pronk::Limits unread = {.on_prompt = [](std::size_t, std::size_t) -> bool { throw 8; }};
  pronk::Session never(model, Options(6));
  EXPECT_THROW(batch.Add(never, "Once", {}, unread), int);
  std::map<std::size_t, pronk::Completion> ended;
  int n_thrown = 0;
  while (batch.size() > 0) {
    try {
      for (auto& [i, completion] : batch.Step()) ended.emplace(i, std::move(completion));
    } catch (int) {
      ++n_thrown;
    }
  }
  EXPECT_EQ(n_thrown, 1);
  ASSERT_EQ(ended.size(), 3u);
  EXPECT_EQ(ended[1].text, alone);
  EXPECT_EQ(ended[2].stop_reason, pronk::StopReason::kContext);
  EXPECT_EQ(ended[3].stop_reason, pronk::StopReason::kInterrupted);
  bad.Clear();
  EXPECT_EQ(bad.Complete("A", {}, AtMost(3)).n_generated, 3u);
}

// Two sessions, a batch and a cancelled text share a model, each in its own thread. Each text is
// the same as alone. Sanitizers watch the shared memory.
TEST(LibraryBatch, ThreadsShareAModel) {
  const pronk::Model model(kDefault);
  const auto options = test::Greedy();
  const auto write = [&](pronk::Session& session, const char* prompt) {
    session.Clear();
    return session.Complete(prompt, {}, AtMost(16)).text;
  };
  const auto alone = [&](const char* prompt) {
    pronk::Session session(model, options);
    return write(session, prompt);
  };
  const std::string once = alone("Once upon a time"), dog = alone("The dog");
  std::atomic<bool> is_cancelled = false;
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    pronk::Session session(model, options);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(write(session, "Once upon a time"), once);
  });
  threads.emplace_back([&] {
    pronk::Session session(model, options);
    std::string heard;
    session.Complete("The dog", [&](std::string_view text) {
      heard += text;
      while (!is_cancelled) std::this_thread::yield();
      return false;
    });
    EXPECT_FALSE(heard.empty());
    EXPECT_TRUE(dog.starts_with(heard)) << heard;
    EXPECT_EQ(write(session, "The dog"), dog);
  });
  threads.emplace_back([&] {
    pronk::Batch batch(model, 2);
    pronk::Session first(model, options), second(model, options);
    batch.Add(first, "Once upon a time", {}, AtMost(16));
    batch.Add(second, "The dog", {}, AtMost(16));
    while (batch.size() > 0) {
      for (const auto& [i, completion] : batch.Step()) {
        EXPECT_EQ(completion.text, i == 0 ? once : dog);
      }
      is_cancelled = true;
    }
  });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
