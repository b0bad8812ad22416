// A session that is written and read again continues with the same bits; a file that does not
// belong to it is refused.
#include "engine/session/session_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/model/model.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace engine {
namespace {

using tokenizer::TokenId;

std::vector<TokenId> Text(const Model& model, size_t n) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < n; ++i) {
    ids.push_back(static_cast<TokenId>(i * i * 7 % model.tokenizer->vocab().size()));
  }
  return ids;
}

SessionOptions Options(size_t context, size_t batch, kernels::KvTypes kv = kernels::KvType::kF16) {
  return {.context = context,
          .batch = batch,
          .n_threads = 1,
          .kv_type = kv,
          .sampling = {.temperature = 0}};
}

std::vector<float> Continue(Session& session, size_t n) {
  std::vector<float> logits;
  for (size_t i = 0; i < n; ++i) {
    logits.insert(logits.end(), session.logits().begin(), session.logits().end());
    session.Decode(session.Sample());
  }
  return logits;
}

class SessionFileTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(SessionFileTest, GoesOnWithTheSameBits) {
  const test::TempDir dir;
  const std::string path = dir.Path("session");
  const Model model = Model::Load(GetParam());
  // 300 tokens exceed the windows, and rings have wrapped.
  const std::vector<TokenId> text = Text(model, 300);
  const bool is_latent = std::ranges::any_of(
      model.config.layers, [](const LayerPlan& plan) { return plan.values_in_keys; });
  const kernels::KvTypes two = {kernels::KvType::kQ8_0, kernels::KvType::kQ4_0};
  for (const kernels::KvTypes kv : {kernels::KvTypes(), is_latent ? kernels::KvType::kQ4_0 : two}) {
    Session session(model, Options(400, 40, kv));
    session.Prefill(text);
    SaveSession(session, path);
    const std::vector<float> expected = Continue(session, 20);
    // Other sizes of context and batches, and a session that has read another text.
    Session other(model, Options(512, 200, kv));
    other.Prefill(std::span(text).subspan(100, 50));
    LoadSession(other, path);
    EXPECT_TRUE(std::ranges::equal(other.tokens(), text));
    EXPECT_EQ(Continue(other, 20), expected);
    // Goes back to the position at loading, and as far as possible before it.
    EXPECT_EQ(other.Rewind(300), 300u);
    const size_t reached = other.Rewind(290);
    other.Prefill(std::span(text).subspan(reached));
    Session fresh(model, Options(512, 200, kv));
    fresh.Prefill(std::span(text).first(reached));
    fresh.Prefill(std::span(text).subspan(reached));
    if (reached == 0) {
      EXPECT_TRUE(std::ranges::equal(other.logits(), fresh.logits()));
    } else {  // equal up to rounding: the batches differ
      EXPECT_EQ(other.Sample(), fresh.Sample());
    }
  }
}

// Models with windows: sessions have rings of different lengths, which wrap at other positions.
TEST_P(SessionFileTest, IsReadWithOtherBatches) {
  const test::TempDir dir;
  const Model model = Model::Load(GetParam());
  for (const size_t n : {129, 258, 300}) {
    const std::vector<TokenId> text = Text(model, n);
    for (const auto& [first, second] : {std::pair(8, 300), std::pair(300, 8)}) {
      Session session(model, Options(400, static_cast<size_t>(first)));
      session.Prefill(text);
      SaveSession(session, dir.Path("session"));
      Session other(model, Options(400, static_cast<size_t>(second)));
      LoadSession(other, dir.Path("session"));
      EXPECT_EQ(Continue(other, 3), Continue(session, 3)) << n << " " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SessionFileTest, testing::ValuesIn(test::SmallModels()),
                         [](const auto& tested) { return test::TestName(tested.param.stem()); });

class SessionFile : public testing::Test {
 protected:
  SessionFile() {
    Session session(model_, Options(64, 64));
    session.Prefill(Text(model_, 30));
    SaveSession(session, path_);
  }

  const test::TempDir dir_;
  const std::string path_ = dir_.Path("session");
  const Model model_ = Model::Load(test::DataPath("hybrids") / "qwen35.gguf");
};

TEST_F(SessionFile, IsRefusedWhereItDoesNotBelong) {
  const auto error_of = [&](const Model& model, const SessionOptions& options) {
    Session session(model, options);
    return test::ErrorOf<std::exception>([&] { LoadSession(session, path_); });
  };
  const Model other = Model::Load(test::DataPath("hybrids") / "qwen35moe.gguf");
  EXPECT_TRUE(test::Has(error_of(other, Options(64, 64)), "belongs to another model"));
  EXPECT_TRUE(
      test::Has(error_of(model_, Options(64, 64, kernels::KvType::kF32)), "another type of cache"));
  EXPECT_TRUE(
      test::Has(error_of(model_, Options(64, 64, {kernels::KvType::kF16, kernels::KvType::kQ8_0})),
                "another type of cache"));
  EXPECT_TRUE(test::Has(error_of(model_, Options(29, 64)),
                        "holds 30 tokens, and the context has room for 29"));
  EXPECT_EQ(error_of(model_, Options(30, 64)), "");
}

// Contexts longer than in training rotate keys by other angles.
TEST_F(SessionFile, IsRefusedWhereKeysAreRotatedOtherwise) {
  const Model model = Model::Load(test::DataPath("families") / "phi3-long.gguf");
  const size_t trained = model.config.ropes[0].original_context;
  Session session(model, Options(trained, 8));
  session.Prefill(Text(model, 5));
  SaveSession(session, path_);
  Session same(model, Options(trained - 1, 8)), longer(model, Options(trained + 1, 8));
  EXPECT_EQ(test::ErrorOf<std::exception>([&] { LoadSession(same, path_); }), "");
  EXPECT_TRUE(test::Has(test::ErrorOf<std::exception>([&] { LoadSession(longer, path_); }),
                        "context of another kind"));
}

TEST_F(SessionFile, IsRefusedWhereItIsDamagedAndLeavesTheSessionAlone) {
  const std::string bytes = test::ReadText(path_);
  Session session(model_, Options(64, 64));
  session.Prefill(Text(model_, 10));
  const std::vector<float> logits(session.logits().begin(), session.logits().end());
  const auto expect_refused = [&](const std::string& damaged) {
    std::ofstream(path_, std::ios::binary) << damaged;
    ASSERT_NE(test::ErrorOf<std::exception>([&] { LoadSession(session, path_); }), "");
    ASSERT_EQ(session.position(), 10u);
    ASSERT_TRUE(std::ranges::equal(session.logits(), logits));
  };
  for (size_t at = 0; at < bytes.size(); at += at < 300 ? 1 : 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    expect_refused(damaged);
  }
  for (size_t n = 1; n < bytes.size(); n += n < 100 ? 9 : 1009) expect_refused(bytes.substr(0, n));
  expect_refused(bytes + "x");
}

// The last writer's file stays; no reader sees half a file.
TEST_F(SessionFile, SeveralSaveToOneFile) {
  std::atomic<int> n_saving = 2;
  std::vector<std::thread> threads;
  for (const size_t n : {10, 20}) {
    threads.emplace_back([&, n] {
      Session session(model_, Options(64, 64));
      session.Prefill(Text(model_, n));
      for (int i = 0; i < 20; ++i) SaveSession(session, path_);
      --n_saving;
    });
  }
  Session session(model_, Options(64, 64));
  while (n_saving > 0) {
    EXPECT_EQ(test::ErrorOf<std::exception>([&] { LoadSession(session, path_); }), "");
    EXPECT_TRUE(session.position() == 10 || session.position() == 20 || session.position() == 30);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.Path("")), {}), 1);
}

// A limit on the size of files acts like a disk that fills up.
TEST_F(SessionFile, AFullDiskLeavesTheOldOne) {
  Session session(model_, Options(64, 64));
  session.Prefill(Text(model_, 10));
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {1024, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = test::ErrorOf<std::exception>([&] { SaveSession(session, path_); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_TRUE(test::Has(error, "session: cannot be written: File too large"));
  LoadSession(session, path_);
  EXPECT_EQ(session.position(), 30u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.Path("")), {}), 1);
}

TEST_F(SessionFile, IsNoModel) {
  Session session(model_, Options(64, 64));
  const std::string model = test::DataPath("hybrids") / "qwen35.gguf";
  EXPECT_TRUE(test::Has(test::ErrorOf<std::exception>([&] { LoadSession(session, model); }),
                        "qwen35.gguf is a GGUF file, not a session of pronk"));
}

TEST_F(SessionFile, IsNotWrittenIntoTheModel) {
  const std::filesystem::path copy = dir_.Path("model.gguf");
  std::filesystem::copy_file(test::DataPath("hybrids") / "qwen35.gguf", copy);
  const Model model = Model::Load(copy.string());
  Session session(model, Options(64, 64));
  session.Prefill(Text(model, 5));
  EXPECT_NE(test::ErrorOf<std::exception>([&] { SaveSession(session, copy.string()); }), "");
  EXPECT_EQ(test::ReadText(copy), test::ReadText(test::DataPath("hybrids") / "qwen35.gguf"));
}

// Every weight counts: a byte of each tensor, at the quarter, which no sample of ends and middle
// has.
TEST_F(SessionFile, TellsModelsApartByTheirWeights) {
  const std::string original = test::ReadText(test::DataPath("hybrids") / "qwen35.gguf");
  const auto expect_refused = [&](const std::string& bytes) {
    const std::string copy = dir_.Write("model.gguf", bytes);
    const Model model = Model::Load(copy);
    Session session(model, Options(64, 64));
    EXPECT_TRUE(test::Has(test::ErrorOf<std::exception>([&] { LoadSession(session, path_); }),
                          "belongs to another model"));
  };
  const std::byte* const begin = model_.file.tensors()[0].data;
  const size_t data =
      original.size() - static_cast<size_t>(model_.file.tensors().back().data +
                                            model_.file.tensors().back().bytes - begin);
  for (const gguf::TensorView& tensor : model_.file.tensors()) {
    SCOPED_TRACE(tensor.name);
    const size_t at = data + static_cast<size_t>(tensor.data - begin) + tensor.bytes / 4;
    std::string bytes = original;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    expect_refused(bytes);
  }
}

// Also refused for a file with the same inode, size and name that was changed meanwhile.
TEST_F(SessionFile, TellsModelsApartByTheTimeOfTheirChange) {
  const std::string path =
      dir_.Write("model.gguf", test::ReadText(test::DataPath("hybrids") / "qwen35.gguf"));
  const auto stamp = [&] {
    uint64_t number = 0;
    std::memcpy(&number, test::ReadText(path_).data() + 32, sizeof(number));
    return number;
  };
  const auto save = [&] {
    const Model model = Model::Load(path);
    Session session(model, Options(64, 64));
    session.Prefill(Text(model, 5));
    SaveSession(session, path_);
  };
  const auto load = [&] {
    const Model model = Model::Load(path);
    Session session(model, Options(64, 64));
    return test::ErrorOf<std::exception>([&] { LoadSession(session, path_); });
  };
  const auto change = [&] {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(-3, std::ios::end);
    const int last = file.get();
    file.seekp(-3, std::ios::end);
    file.put(static_cast<char>(last ^ 1));
  };
  save();
  EXPECT_EQ(stamp(), 0u) << "a file that has just changed could change again at the same time";
  EXPECT_EQ(load(), "");
  change();
  EXPECT_TRUE(test::Has(load(), "belongs to another model"));
  usleep(2'100'000);
  save();
  EXPECT_NE(stamp(), 0u);
  EXPECT_EQ(load(), "");
  gguf::File file = gguf::File::Open(path);
  file.metadata().SetFloat("qwen35.rope.freq_base", 5e6);  // as by --override-kv
  const Model other = Model::From(std::move(file));
  Session session(other, Options(64, 64));
  EXPECT_TRUE(test::Has(test::ErrorOf<std::exception>([&] { LoadSession(session, path_); }),
                        "belongs to another model"));
  change();
  EXPECT_TRUE(test::Has(load(), "belongs to another model"));
}

TEST_F(SessionFile, OfAnotherVersion) {
  std::string bytes = test::ReadText(path_);
  bytes[14] = '1';
  dir_.Write("session", bytes);
  Session session(model_, Options(64, 64));
  EXPECT_EQ(test::ErrorOf<std::exception>([&] { LoadSession(session, path_); }),
            path_ + " was written by another version of pronk: remove it");
}

TEST_F(SessionFile, IsARegularFile) {
  Session session(model_, Options(64, 64));
  const auto error = [&](const std::string& path) {
    return test::ErrorOf<std::exception>([&] { LoadSession(session, path); });
  };
  ASSERT_EQ(mkfifo(dir_.Path("pipe").c_str(), 0600), 0);
  const std::string expected = ": expected a session of pronk, found ";
  EXPECT_EQ(error(dir_.Path("pipe")), dir_.Path("pipe") + expected + "a pipe (FIFO)");
  EXPECT_EQ(error("/dev/zero"), "/dev/zero" + expected + "a device");
  EXPECT_EQ(error("/tmp"), "/tmp" + expected + "a directory");
}

// A change in the metadata or at the beginning of any tensor.
TEST(Fingerprint, TellsModelsApart) {
  std::ifstream in(test::DataPath("tiny/llama.gguf"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::vector<uint64_t> aligned(bytes.size() / 8 + 1);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  const auto all = std::as_writable_bytes(std::span(aligned)).first(bytes.size());
  const gguf::File file = gguf::File::Parse("model", all);
  const uint64_t before = FingerprintOf(file);
  EXPECT_EQ(FingerprintOf(gguf::File::Open(test::DataPath("tiny/llama.gguf"))), before);
  const auto expect_change = [&](size_t at) {
    all[at] ^= std::byte{1};
    EXPECT_NE(FingerprintOf(gguf::File::Parse("model", all)), before) << at;
    all[at] ^= std::byte{1};
  };
  expect_change(bytes.find("random weights"));
  for (const gguf::TensorView& tensor : file.tensors())
    expect_change(static_cast<size_t>(tensor.data - all.data()));
  EXPECT_EQ(FingerprintOf(gguf::File::Parse("model", all)), before);
}

}  // namespace
}  // namespace engine
