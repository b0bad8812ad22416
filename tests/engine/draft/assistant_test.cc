// Gemma 4's assistants: small ones of tests/data/assistants, each beside the model of its name in
// hybrids/, against the drafts of an independent model (reference.py).
#include "engine/draft/assistant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/session/embedder.h"
#include "engine/session/session.h"
#include "gguf/writer.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/guesses.h"
#include "tests/support/logits.h"

namespace engine {
namespace {

using tokenizer::TokenId;

constexpr size_t kDrafts = 3;  // of the reference, for each beginning of the text

Model Load(const std::string& name) { return Model::Load(test::DataPath(name + ".gguf")); }

std::vector<TokenId> Ids() {
  std::ifstream in(test::DataPath("hybrids/ids.txt"));
  return {std::istream_iterator<TokenId>(in), {}};
}

class AssistantTest : public testing::TestWithParam<const char*> {
 protected:
  const Model model_ = Load("hybrids/" + std::string(GetParam()));
  const Model assistant_ = Load("assistants/" + std::string(GetParam()));
};

TEST_P(AssistantTest, GuessesAsTheReferenceDoes) {
  const std::vector<float> expected =
      test::ReadFloats(test::DataPath("assistants/" + std::string(GetParam()) + ".f32"));
  const std::vector<TokenId> ids = Ids();
  const size_t width = assistant_.config.vocab_size;
  ASSERT_EQ(expected.size(), (ids.size() - 1) * kDrafts * width);
  for (const int n_threads : {1, 2}) {
    auto row = expected.begin();
    for (size_t n = 2; n <= ids.size(); ++n) {
      for (size_t count = 1; count <= kDrafts; ++count, row += static_cast<ptrdiff_t>(width)) {
        const std::vector<float> of_draft(row, row + static_cast<ptrdiff_t>(width));
        const test::Guesses found =
            test::Guess(model_, assistant_, std::span(ids).first(n), count, n_threads);
        ASSERT_EQ(found.ids.size(), count);
        EXPECT_EQ(found.ids.back(), std::ranges::max_element(of_draft) - of_draft.begin());
        EXPECT_LT(test::Nmse(found.logits, of_draft), 1e-9) << n << " " << count;
      }
    }
  }
}

// It drafts only if it knows the model's hidden state for the last token but one.
TEST_P(AssistantTest, KnowsTheEndOfTheText) {
  const std::vector<TokenId> ids(40, 5);
  const auto text = [&](size_t n) { return std::span(ids).first(n); };
  kernels::ThreadPool pool(1, kernels::Oversubscription::kRunOnCaller);
  SequenceState state(model_.config, {.capacity = 64, .batch = 32});
  const std::vector<float> x(32 * model_.config.embedding_length, 1.0f);
  AssistantDrafter drafter(model_, assistant_, state, pool);
  EXPECT_FALSE(drafter.FindDrafts(text(0)));
  EXPECT_FALSE(drafter.FindDrafts(text(1)));
  drafter.Observe(text(30), 0, x.data());
  EXPECT_FALSE(drafter.FindDrafts(text(15)));
  EXPECT_TRUE(drafter.FindDrafts(text(16)));
  EXPECT_TRUE(drafter.FindDrafts(text(31)));
  EXPECT_FALSE(drafter.FindDrafts(text(32)));
  drafter.Truncate(20);
  EXPECT_TRUE(drafter.FindDrafts(text(21)));
  EXPECT_FALSE(drafter.FindDrafts(text(22)));
  drafter.Truncate(0);
  EXPECT_FALSE(drafter.FindDrafts(text(16)));
}

// A session's text, with a text that is cut and continues differently.
std::vector<TokenId> Write(const Model& model, const SessionOptions& options, DraftCounts* counts) {
  Session session(model, options);
  session.Prefill(Ids());
  std::vector<TokenId> all;
  for (const size_t cut : {0u, 30u, 12u, 20u}) {
    if (cut > 0) {
      session.Rewind(cut);
      session.Prefill(std::vector<TokenId>{5, 6});
    }
    for (int i = 0; i < 40; ++i) session.Decode(session.Sample());
    all.insert(all.end(), session.tokens().begin(), session.tokens().end());
  }
  if (counts != nullptr) *counts = session.speculation()->counts();
  return all;
}

TEST_P(AssistantTest, ChangesNoText) {
  for (const auto kv : {kernels::KvType::kF16, kernels::KvType::kQ8_0}) {
    SessionOptions options = {
        .context = 256, .n_threads = 2, .kv_type = kv, .sampling = {.seed = 7}};
    const std::vector<TokenId> expected = Write(model_, options, nullptr);
    for (const size_t n : {1u, 4u, 15u}) {
      DraftCounts counts;
      options.draft = {.on = true, .fixed = n, .lookup = false, .model = &assistant_};
      EXPECT_EQ(Write(model_, options, &counts), expected) << n;
      EXPECT_GE(counts.drafted, 100 * n);
    }
    options.draft = {};
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AssistantTest, testing::Values("gemma4", "gemma4-dense"),
                         [](const auto& param) {
                           return param.param == std::string("gemma4") ? "gemma4" : "dense";
                         });

TEST(Assistant, WritesNoTextAlone) {
  const Model assistant = Load("assistants/gemma4");
  EXPECT_EQ(test::ErrorOf<Error>([&] { Session(assistant, {}); }),
            "this model only drafts for a larger one: open that with -m, and this one with -md");
  EXPECT_EQ(test::ErrorOf<Error>([&] { Embedder(assistant, {}, Pooling::kLast); }),
            "this model only drafts for a larger one, and makes no vectors of texts");
}

TEST(Assistant, FitsOneModel) {
  const Model assistant = Load("assistants/gemma4"), other = Load("assistants/gemma4-dense");
  for (const auto& [draft, name, expected] :
       {std::tuple{&assistant, "hybrids/gemma4-dense", "attention with a window of 4, found 3"},
        {&other, "hybrids/gemma4", "a key_length of 6, found 10"},
        {&other, "hybrids/gemma4-moe", "a key_length of 6, found 8"},
        {&other, "hybrids/gemma3n-25", "an embedding_length of 8, found 3"},
        {&assistant, "hybrids/lfm2moe", "attention with a window of 4, found none"},
        {&assistant, "families/gemma2", "an embedding_length of 8, found"}}) {
    const Model model = Load(name);
    kernels::ThreadPool pool(1, kernels::Oversubscription::kRunOnCaller);
    SequenceState state(model.config, {.capacity = 64, .batch = 8});
    EXPECT_TRUE(test::Has(
        test::ErrorOf<Error>([&, draft = draft] { AssistantDrafter(model, *draft, state, pool); }),
        "the draft model is an assistant of another model: expected " + std::string(expected)))
        << name;
  }
  const Model llama = Load("tiny/llama");  // has other tokens
  SessionOptions options = {.draft = {.on = true, .model = &assistant}};
  EXPECT_TRUE(
      test::Has(test::ErrorOf<Error>([&] { Session(llama, options); }), "another vocabulary"));
}

// The file with another number for a key, or without a tensor; with clusters of tokens, as E2B's.
std::string ErrorWith(const std::string& key, std::optional<uint32_t> value,
                      const std::string& without = "") {
  const gguf::File good = gguf::File::Open(test::DataPath("assistants/gemma4.gguf").string());
  gguf::Writer writer;
  const std::string full = "gemma4-assistant." + key;
  for (const auto& entry : good.metadata().entries()) {
    if (entry.key != full) writer.Add(entry);
  }
  if (value) writer.Add(full, *value);
  for (const gguf::TensorView& t : good.tensors()) {
    if (t.name == without) continue;
    writer.AddTensor(t);
  }
  const std::vector<std::byte> zeros(64);
  writer.AddTensor("masked_embd_centroids.weight", gguf::DType::kF32, {8, 2}, zeros);
  writer.AddTensor("masked_embd_ordering", gguf::DType::kI32, {16}, zeros);
  const std::vector<std::byte> bytes = writer.ToBytes();
  return test::ErrorOf([&] { Model::From(gguf::File::Parse("f.gguf", bytes)); });
}

TEST(Assistant, ChecksItsFile) {
  EXPECT_EQ(ErrorWith("none", {}), "");
  for (const auto& [key, value, expected] :
       {std::tuple{"embedding_length_out", std::optional(0u), "must not be 0"},
        {"embedding_length_out", {}, "embedding_length_out"},
        {"embedding_length_out", std::optional(9u), "tensor nextn.pre_projection.weight"},
        {"nextn_predict_layers", std::optional(2u), "expected 3, found 2"},
        {"attention.shared_kv_layers", std::optional(2u), "expected 3, found 2"},
        {"embedding_length_per_layer_input", std::optional(4u), "expected 0, found 4"},
        {"attention.head_count_kv", std::optional(3u), "expected a divisor of head_count 4"},
        {"attention.sliding_window", std::optional(0u), "must not be 0"},
        {"num_centroids", std::optional(8u), "may change what this model computes"}}) {
    EXPECT_TRUE(test::Has(ErrorWith(key, value), expected)) << key;
  }
  for (const char* const tensor :
       {"nextn.pre_projection.weight", "nextn.post_projection.weight", "blk.1.attn_q.weight"}) {
    EXPECT_TRUE(test::Has(ErrorWith("none", {}, tensor), std::string(tensor) + ": is missing"));
  }
}

}  // namespace
}  // namespace engine
