// The checks before memory is allocated: the machine, the control groups, and sums that agree with
// the real allocations.
#include "engine/session/memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "tests/support/allocations.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/small_model.h"
#include "tests/support/temp_dir.h"

namespace engine {
namespace {

using tokenizer::TokenId;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A made-up file system with /proc and /sys.
class FakeRoot {
 public:
  FakeRoot() { Write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable:    8388608 kB\n"); }
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(dir_.Path(path)).parent_path());
    dir_.Write(path, text);
  }
  uint64_t Available() const { return MachineMemory(dir_.Path("")).available; }

 private:
  test::TempDir dir_;
};

TEST(MachineMemory, OfTheMachine) {
  EXPECT_EQ(FakeRoot().Available(), 8 * kGiB);
  const test::TempDir nothing;
  EXPECT_EQ(MachineMemory(nothing.Path("")).available, uint64_t{1} << 62);
  EXPECT_GT(MachineMemory().available, 0u);
  EXPECT_GE(MachineMemory().total, MachineMemory().available);
}

TEST(MachineMemory, OfAControlGroup) {
  const FakeRoot root;
  root.Write("proc/self/cgroup", "0::/user/job\n");
  root.Write("sys/fs/cgroup/user/job/memory.max", "max\n");
  EXPECT_EQ(root.Available(), 8 * kGiB);
  root.Write("sys/fs/cgroup/user/memory.max", std::to_string(4 * kGiB));  // the parent group
  EXPECT_EQ(root.Available(), 4 * kGiB);
  root.Write("sys/fs/cgroup/user/job/memory.max", std::to_string(3 * kGiB));
  root.Write("sys/fs/cgroup/user/job/memory.current", std::to_string(2 * kGiB));
  EXPECT_EQ(root.Available(), kGiB);
  // A gigabyte of the used memory is cached files.
  root.Write("sys/fs/cgroup/user/job/memory.stat",
             "active_anon 99\nactive_file 536870912\ninactive_file 536870912\n");
  EXPECT_EQ(root.Available(), 2 * kGiB);
  root.Write("sys/fs/cgroup/user/job/memory.current", std::to_string(9 * kGiB));  // over the limit
  EXPECT_EQ(root.Available(), 0u);
}

TEST(MachineMemory, OfAControlGroupOfVersion1) {
  const FakeRoot root;
  root.Write("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\nnonsense\n");
  const std::string job = "sys/fs/cgroup/memory/job/";
  root.Write(job + "memory.limit_in_bytes", std::to_string(3 * kGiB));
  root.Write(job + "memory.usage_in_bytes", std::to_string(2 * kGiB));
  root.Write(job + "memory.stat",
             "active_file 7\ntotal_active_file 0\ntotal_inactive_file 1073741824\n");
  EXPECT_EQ(root.Available(), 2 * kGiB);
}

TEST(MachineMemory, OfALimitOfAddresses) {
  const FakeRoot root;
  root.Write("proc/self/status", "Name: pronk\nVmSize:   1048576 kB\n");
  root.Write("proc/self/limits",
             "Limit   Soft  Hard  Units\nMax address space  unlimited  unlimited  bytes\n");
  EXPECT_EQ(root.Available(), 8 * kGiB);
  root.Write("proc/self/limits", "Max address space   3221225472   unlimited   bytes   \n");
  EXPECT_EQ(root.Available(), 2 * kGiB);
  root.Write("proc/self/limits", "Max address space   4096   unlimited   bytes   \n");
  EXPECT_EQ(root.Available(), 0u);
}

TEST(MachineMemory, WhereAContainerDoesNotSeeItsPath) {
  const FakeRoot root;
  root.Write("proc/self/cgroup", "0::/../elsewhere\n");
  root.Write("sys/fs/cgroup/memory.max", std::to_string(kGiB));
  EXPECT_EQ(root.Available(), kGiB);
}

Config SomeConfig() { return Model::Load(test::DataPath("tiny/llama.gguf")).config; }

std::string PlanError(size_t context, uint64_t available) {
  return test::ErrorOf<Error>(
      [&] { PlanMemory(SomeConfig(), 0, {.context = context, .batch = 512}, available); });
}

TEST(PlanMemory, RefusesWhatDoesNotFitAndSaysWhatWould) {
  const uint64_t scratch = Scratch::BytesFor(SomeConfig(), 512, 1);
  const auto per_position = static_cast<uint64_t>(
      SequenceState::BytesFor(SomeConfig(), {.capacity = 1, .batch = 1}) + sizeof(TokenId));
  EXPECT_EQ(PlanError(1000, scratch + 1000 * per_position), "");
  const std::string error = PlanError(1'000'000, scratch + 1000 * per_position);
  EXPECT_TRUE(test::Has(error, "a context of 1000000 tokens needs"));
  EXPECT_TRUE(test::Has(error, "one of at most 1000 fits"));
  EXPECT_TRUE(test::Has(PlanError(1, 1), "not even a context of one token fits"));
}

TEST(PlanMemory, NoNumberOverflows) {
  for (const size_t context : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 60}) {
    EXPECT_TRUE(test::Has(PlanError(context, UINT64_MAX), "one of at most "));
  }
}

// A file with a wide hidden layer gets smaller batches, not gigabytes.
TEST(PlanMemory, ScratchIsInProportionToTheFile) {
  Config config = SomeConfig();
  config.layers[0].ffn_length = size_t{1} << 24;
  const auto batch = [&](uint64_t file_bytes) {
    return PlanMemory(config, file_bytes, {.context = 4096, .batch = 512}, UINT64_MAX).batch;
  };
  EXPECT_EQ(batch(0), 1u);
  const uint64_t file_bytes = 1'000'000'000;
  EXPECT_GT(batch(file_bytes), 1u);
  EXPECT_LE(Scratch::BytesFor(config, batch(file_bytes), 1), file_bytes + 64'000'000);
  EXPECT_EQ(batch(uint64_t{1} << 60), 512u);
}

TEST(PlanMemory, ScratchIsAsLargeAsItSays) {
  if (!test::kAllocationsAreCounted) GTEST_SKIP() << "this build does not count allocations";
  const Config config = SomeConfig();
  constexpr size_t kTokens = 1000;
  const size_t before = test::CountAllocations().bytes;
  const Scratch scratch(config, kTokens, 2);
  const size_t bytes = test::CountAllocations().bytes - before;
  const size_t sum = Scratch::BytesFor(config, kTokens, 2);
  EXPECT_GE(bytes, sum);
  EXPECT_LE(bytes, sum + sum / 50);  // the heap rounds each of 13 buffers up, by a page or two
}

TEST(Session, RefusesAContextForWhichThereIsNoMemory) {
  const Model model = Model::Load(test::DataPath("tiny/llama.gguf"));
  const std::string error = test::ErrorOf<Error>([&] {
    Session(model, {.context = 100'000}, Memory{10'000'000, 10'000'000});
  });
  EXPECT_TRUE(test::Has(error, "10 MB are free here"));
}

// Every sampling step, penalties and biases included, in memory of its own.
TEST(Session, AllocatesNothingWhileGenerating) {
  const Model model = Model::Load(test::DataPath("tiny/llama.gguf"));
  SessionOptions options = {.n_threads = 1,
                            .sampling = {.typical_p = 0.9f,
                                         .repeat_penalty = 1.1f,
                                         .frequency_penalty = 0.1f,
                                         .presence_penalty = 0.1f,
                                         .logit_bias = {{5, 0.5f}}}};
  Session session(model, options);
  session.Prefill(std::vector<TokenId>{1, 300, 12});
  for (int i = 0; i < 2; ++i) session.Decode(session.Sample());  // buffers reach their sizes
  const size_t before = test::CountAllocations().count;
  while (session.position() < session.capacity()) session.Decode(session.Sample());
  EXPECT_EQ(test::CountAllocations().count, before);
  EXPECT_GT(session.position(), 64u);  // further than the penalties look back
}

// A full context is read again from its last half on, as chat does with its last turns.
TEST(Session, AHundredThousandTokensTakeNoMoreMemoryThanTheFirst) {
  const std::vector<std::byte> bytes = test::SmallModel().Bytes();
  const Model model = Model::From(gguf::File::Parse("f.gguf", bytes));
  Session session(model, {.n_threads = 1});
  session.Prefill(std::vector<TokenId>{1, 5});
  std::vector<TokenId> half(session.capacity() / 2);
  const auto generate = [&](int n) {
    for (int i = 0; i < n; ++i) {
      if (session.position() == session.capacity()) {
        const auto last = session.tokens().last(half.size());
        std::copy(last.begin(), last.end(), half.begin());
        session.Rewind(0);
        session.Prefill(half);
      }
      session.Decode(session.Sample());
    }
  };
  generate(200);  // the context becomes full
  const test::Allocations before = test::CountAllocations();
  generate(100'000);
  EXPECT_EQ(test::CountAllocations().count, before.count);
  EXPECT_EQ(test::CountAllocations().bytes, before.bytes);
}

// A thousand sessions one after the other take no more than one.
TEST(Session, AThousandLeaveNothingBehind) {
  const Model model = Model::Load(test::DataPath("tiny/llama.gguf"));
  const auto use_one = [&] {
    Session session(model, {.n_threads = 1});
    session.Prefill(std::vector<TokenId>{1, 300});
    session.Decode(session.Sample());
  };
  use_one();
  const size_t before = test::CountAllocations().bytes;
  test::ResetPeak();
  use_one();
  const size_t peak_of_one = test::CountAllocations().peak;
  for (int i = 0; i < 1000; ++i) use_one();
  EXPECT_EQ(test::CountAllocations().bytes, before);
  // The heap may return a block that is a few bytes larger than requested.
  EXPECT_LE(test::CountAllocations().peak, peak_of_one + 4096);
}

}  // namespace
}  // namespace engine
