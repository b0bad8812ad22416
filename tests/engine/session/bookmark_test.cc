// The positions to which a text can go back. Models whose recurrent states every token changes need
// snapshots, and any model can keep logits. The tests count the tokens read again.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/session/chat.h"
#include "engine/session/session.h"
#include "tests/support/data.h"

namespace engine {
namespace {

using tokenizer::TokenId;

std::vector<TokenId> SomeIds(size_t n) {
  std::vector<TokenId> ids(n);
  for (size_t i = 0; i < n; ++i) ids[i] = static_cast<TokenId>(5 + i * 7 % 30);
  return ids;
}

std::vector<float> Logits(const Session& session) {
  return {session.logits().begin(), session.logits().end()};
}

SessionOptions Options() { return {.context = 512, .n_threads = 1}; }

class BookmarkTest : public testing::TestWithParam<const char*> {
 protected:
  const Model model_ = Model::Load(test::DataPath("hybrids/" + std::string(GetParam()) + ".gguf"));
  const std::vector<TokenId> ids_ = SomeIds(100);

  std::span<const TokenId> Ids(size_t begin, size_t end) const {
    return std::span(ids_).subspan(begin, end - begin);
  }
};

TEST_P(BookmarkTest, ARecurrentTextGoesBackToTheLastBookmark) {
  Session session(model_, Options());
  session.BookmarkAt(30);
  session.Prefill(Ids(0, 60));
  EXPECT_EQ(session.Rewind(45), 30u);
  EXPECT_FALSE(session.has_logits());
  session.Prefill(Ids(30, 100));
  // The result is the same as if the removed tokens had never been read.
  Session fresh(model_, Options());
  fresh.Prefill(Ids(0, 30));
  fresh.Prefill(Ids(30, 100));
  EXPECT_EQ(Logits(session), Logits(fresh));
  EXPECT_EQ(session.Rewind(29), 0u);
  session.Prefill(Ids(0, 30));
  session.Prefill(Ids(30, 100));
  EXPECT_EQ(Logits(session), Logits(fresh));
}

TEST_P(BookmarkTest, LogitsComeBack) {
  Session session(model_, Options());
  session.Prefill(Ids(0, 40));
  session.Bookmark();
  const std::vector<float> then = Logits(session);
  session.Prefill(Ids(40, 50));
  EXPECT_NE(then, Logits(session));
  EXPECT_EQ(session.Rewind(40), 40u);
  EXPECT_TRUE(session.has_logits());
  EXPECT_EQ(then, Logits(session));
  session.Prefill(Ids(40, 50));  // twice
  EXPECT_EQ(session.Rewind(40), 40u);
  EXPECT_EQ(then, Logits(session));
}

TEST_P(BookmarkTest, TheEarliestMakesWay) {
  Session session(model_, Options());
  for (size_t i = 0; i <= SequenceState::kSnapshots; ++i) {
    session.Prefill(Ids(10 * i, 10 * (i + 1)));
    session.Bookmark();
  }
  EXPECT_EQ(session.Rewind(25), 20u);
  EXPECT_EQ(session.Rewind(15), 0u);  // 10 was the fifth last
}

// The prompt's beginning of an answer is missing when the answer is rendered later.
constexpr const char* kThinkingTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}"
    "{% if add_generation_prompt %}<assistant><think>{% endif %}";

TEST_P(BookmarkTest, ATurnReadsOnlyWhatIsNew) {
  Session session(model_, Options());
  Chat chat(session, "", ChatForm(kThinkingTemplate));
  const auto say = [&](const std::string& text) {
    return chat.Say(text, {.max_tokens = 6}, [](std::string_view) { return true; });
  };
  const auto rendered = [&](std::vector<tokenizer::Message> messages) {
    return EncodeChat(model_, ChatForm(kThinkingTemplate), messages, 4096);
  };
  const Chat::Answer first = say("How are you?");
  EXPECT_EQ(first.n_reused, 0u);
  const std::vector<TokenId> one = rendered({{"user", "How are you?"}});
  const std::vector<TokenId> two =
      rendered({{"user", "How are you?"}, {"assistant", first.generated.text}, {"user", "Why?"}});
  size_t common = 0;
  while (one[common] == two[common]) ++common;
  const Chat::Answer second = say("Why?");
  EXPECT_EQ(second.n_reused, common);
  EXPECT_EQ(second.generated.n_prompt, two.size() - common);
  // The question is asked again: all its tokens are known.
  EXPECT_EQ(chat.Undo(), "Why?");
  const Chat::Answer again = say("Why?");
  EXPECT_EQ(again.generated.n_prompt, 0u);
  EXPECT_EQ(again.n_reused, two.size());
  EXPECT_EQ(chat.Undo(), "Why?");
}

// A batch that is stopped at any chunk leaves no trace, and the text before it stays.
TEST_P(BookmarkTest, AStoppedPassIsUndone) {
  SessionOptions options = Options();
  options.batch = 24;
  Session fresh(model_, options);
  fresh.Prefill(Ids(0, 24));
  fresh.Prefill(Ids(24, 100));
  for (const size_t stop_at : {0u, 1u, 30u, 60u}) {
    for (const int n_threads : {1, 2}) {
      options.n_threads = n_threads;
      Session session(model_, options);
      session.Prefill(Ids(0, 24));
      ASSERT_FALSE(session.Prefill(Ids(24, 100), [&](size_t done) { return done < stop_at; }));
      EXPECT_EQ(session.position(), 24 + stop_at / 24 * 24);
      EXPECT_FALSE(session.has_logits());
      const size_t reached = session.position();
      session.Prefill(Ids(reached, 100));
      EXPECT_EQ(Logits(session), Logits(fresh)) << stop_at << ", " << n_threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Hybrids, BookmarkTest,
                         testing::Values("qwen35", "lfm2", "falcon-h1", "jamba", "kimi-linear",
                                         "minimax-01"));

// Layers with attention go back to any position; their logits are kept, too.
TEST(Bookmarks, AttentionAloneGoesBackAnywhere) {
  const Model model = Model::Load(test::DataPath("hybrids/gemma3n.gguf"));
  const std::vector<TokenId> ids = SomeIds(60);
  Session session(model, Options());
  session.Prefill(ids);
  session.Bookmark();
  EXPECT_EQ(session.Rewind(59), 59u);
  EXPECT_FALSE(session.has_logits());
}

}  // namespace
}  // namespace engine
