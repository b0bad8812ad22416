// The library's errors: one type with kinds, also after fork(), for objects in use, and from
// callbacks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/pronk.h"
#include "tests/engine/library.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace {

using test::AtMost;
using test::Greedy;
using test::kDefault;
using test::kTiny;

// Runs a function in a child of fork(). Returns the child's status: 0 if all is well.
template <class Work>
int InAChild(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(work());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

pronk::Options TwoThreads() {
  pronk::Options options = Greedy();
  options.threads = 2;
  return options;
}

// It would otherwise wait for threads that only the parent has.
TEST(Library, AChildOfForkGetsAnError) {
  const pronk::Model model(kTiny);
  pronk::Session session(model, TwoThreads());
  session.Complete("Hello", {}, AtMost(1));
  EXPECT_EQ(InAChild([&] {
              const std::string error =
                  test::ErrorOf<pronk::Error>([&] { session.Complete(" you", {}, AtMost(1)); });
              if (error.find("forked") == std::string::npos) return 2;
              pronk::Session alone(model, Greedy());  // one thread works
              return alone.Complete("a", {}, AtMost(1)).n_prompt > 0 ? 0 : 3;
            }),
            0);
}

// A server that forks before its first text. (If other tests run in this process, the parent has
// had threads, and the child is told so.)
TEST(Library, AChildOfForkMayBeTheFirst) {
  const pronk::Model model(kTiny);
  auto session = std::make_unique<pronk::Session>(model, TwoThreads());
  EXPECT_EQ(InAChild([&] {
              const std::string error = test::ErrorOf<pronk::Error>([&] {
                session->Complete("Hello", {}, AtMost(1));
                session.reset();
              });
              return error.empty() || error.find("forked") != std::string::npos ? 0 : 2;
            }),
            0);
}

TEST(Library, ThrowsOneType) {
  EXPECT_THROW(pronk::Model("no/such.gguf"), pronk::Error);
  EXPECT_THROW(pronk::Model(test::SourceDir() + "/README.md"), pronk::Error);
  const pronk::Model model(kTiny);
  pronk::Options options = Greedy();
  options.context = 4;
  pronk::Session session(model, options);
  EXPECT_THROW(session.Complete("a b c d e f g h i j k l m n o p"), pronk::Error);
  options.context = size_t{1} << 60;
  EXPECT_THROW(pronk::Session(model, options), pronk::Error);
}

// Programs can react to an error by its kind, without its text.
TEST(Library, ErrorsHaveKinds) {
  const auto kind = [](const auto& act) {
    try {
      act();
    } catch (const pronk::Error& error) {
      return error.kind();
    }
    ADD_FAILURE() << "nothing was thrown";
    return pronk::ErrorKind::kOther;
  };
  using Kind = pronk::ErrorKind;
  const test::TempDir dir;
  EXPECT_EQ(kind([] { pronk::Model("no/such.gguf"); }), Kind::kNotFound);
  EXPECT_EQ(kind([] { pronk::Model(test::SourceDir() + "/README.md"); }), Kind::kNotAModel);
  EXPECT_EQ(kind([&] { pronk::Model(dir.Write("cut.gguf", "GGUF\x03")); }), Kind::kRefused);
  const pronk::Model model(kTiny);
  pronk::Options options = Greedy();
  options.sampling.top_p = 2;
  EXPECT_EQ(kind([&] { pronk::Session(model, options); }), Kind::kWrongUse);
  options = Greedy();
  options.context = 4;
  pronk::Session session(model, options);
  EXPECT_EQ(kind([&] { session.Complete("a b c d e f g h i j k l m n o p"); }), Kind::kContextFull);
  pronk::Chat chat(model, "", options);
  EXPECT_EQ(kind([&] { chat.Say("a b c d e f g h i j k l m n o p"); }), Kind::kContextFull);
  options.context = std::size_t{1} << 30;
  EXPECT_EQ(kind([&] { pronk::Session(model, options); }), Kind::kNoMemory);
  EXPECT_EQ(kind([] { pronk::Grammar::Gbnf("root ::= other"); }), Kind::kBadGrammar);
  EXPECT_EQ(kind([] { pronk::Grammar::JsonSchema("{"); }), Kind::kBadGrammar);
  EXPECT_EQ(kind([&] { session.Load(dir.Write("state", "x")); }), Kind::kRefused);
  // If writing fails, the message does not blame the file.
  pronk::Session ready(model, Greedy());
  ready.Complete("a", {}, AtMost(1));
  EXPECT_EQ(kind([&] { ready.Save(dir.Path("missing/state")); }), Kind::kOther);
  EXPECT_EQ(kind([&] { ready.Save(dir.Path("")); }), Kind::kOther);
}

// An error is better than a wrong text.
TEST(Library, WhatIsInUseIsRefused) {
  const pronk::Model model(kTiny);
  pronk::Session session(model, Greedy());
  pronk::Chat chat(model, "", Greedy());
  std::vector<std::string> errors;
  const auto note = [&](const auto& act) {
    return [&errors, act](std::string_view) {
      errors.push_back(test::ErrorOf<pronk::Error>([&] { act(); }));
    };
  };
  session.Complete("Hello", note([&] { session.Complete("you", {}, AtMost(1)); }), AtMost(1));
  session.Complete("Hello", note([&] { session.Clear(); }), AtMost(1));
  chat.Say("Hello", note([&] { chat.Say("you"); }), AtMost(1));
  std::string error;
  session.Complete(
      "Hello",
      [&](std::string_view) {
        std::thread([&] {
          error = test::ErrorOf<pronk::Error>([&] { session.Complete("you", {}, AtMost(1)); });
        }).join();
      },
      AtMost(1));
  errors.push_back(error);
  ASSERT_GE(errors.size(), 3u);
  for (const std::string& says : errors)
    EXPECT_EQ(says, "it is in use, by another thread or by its own callback");
  EXPECT_EQ(session.Complete("Hello", {}, AtMost(1)).n_generated, 1u);  // free again
  const pronk::Session other = std::move(session);
  EXPECT_EQ(test::ErrorOf<pronk::Error>([&] { session.Clear(); }), "this object was moved from");
  pronk::Batch batch(model, 1);
  const pronk::Batch other_batch = std::move(batch);
  EXPECT_EQ(test::ErrorOf<pronk::Error>([&] { batch.size(); }), "this object was moved from");
  pronk::Model first(kTiny);
  const pronk::Model second = std::move(first);  // a copy: both can be used
  EXPECT_EQ(first.vocabulary_size(), second.vocabulary_size());
}

// An exception of the caller's function passes through, whatever its type.
TEST(Library, ExceptionsOfTheCaller) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  const pronk::Model model(kTiny);
  pronk::Session session(model, Greedy());
  pronk::Chat chat(model, "", Greedy());
  const auto throws = [](std::string_view) { throw Mine("mine"); };
  EXPECT_THROW(session.Complete("Hello", throws), Mine);
  EXPECT_THROW(chat.Say("Hello", throws), Mine);
  EXPECT_THROW(session.Complete("Hello", [](std::string_view) { throw 7; }), int);
  EXPECT_THROW(session.Complete("Hello", [](std::string_view) { throw std::bad_alloc(); }),
               std::bad_alloc);
  EXPECT_THROW(session.Complete("Hello", [](std::string_view) { throw pronk::Error("mine"); }),
               pronk::Error);
  // After a callback, a fault of the engine is still an Error, and the object remains usable.
  EXPECT_THROW(session.Complete(std::string(10'000, 'x'), [](std::string_view) {}), pronk::Error);
  session.Clear();
  EXPECT_EQ(session.Complete("Hello", {}, AtMost(3)).n_generated, 3u);
}

}  // namespace
