// Automata of strings must be minimal. The expected numbers of states are textbook results.
#include "grammar/dfa.h"

#include <gtest/gtest.h>

#include "grammar/pattern.h"

namespace grammar {
namespace {

TEST(Dfa, HasAsFewStatesAsItCan) {
  Budget budget;
  // The n-th letter from the end is an a: 2^n states remember the last n letters.
  EXPECT_EQ(PatternStrings("^[ab]*a[ab]{2}$", budget).states.size(), 8u);
  EXPECT_EQ(PatternStrings("^[ab]*a[ab]{7}$", budget).states.size(), 256u);
  // The words have common prefixes and suffixes (Daciuk et al. 2000).
  EXPECT_EQ(Listed({"tops", "tap", "top", "taps", "tap"}, budget).states.size(), 5u);
  // There is one state for each length.
  EXPECT_EQ(PatternStrings("^[a-z]{0,300}$", budget).states.size(), 301u);
  EXPECT_EQ(PatternStrings("^(a|ab?b?|b{3}b*c)*$", budget).states.size(),
            PatternStrings("^(bbbb*c|abb|ab|a)*$", budget).states.size());
  EXPECT_TRUE(PatternStrings("[^\\s\\S]", budget).empty());
}

TEST(Dfa, Combines) {
  Budget budget;
  const Dfa even = PatternStrings("^(aa)*$", budget), third = PatternStrings("^(aaa)*$", budget);
  EXPECT_EQ(Combine(even, third, Both::kAnd, budget).states.size(), 6u);  // multiples of 6
  const Dfa all = Combine(even, PatternStrings("^a(aa)*$", budget), Both::kOr, budget);
  EXPECT_EQ(all.states.size(), 1u);  // any number
  EXPECT_TRUE(Combine(all, AllBut(PatternStrings("^a*$", budget)), Both::kAnd, budget).empty());
  const Dfa not_listed = AllBut(Listed({"ab", "", "é"}, budget));
  EXPECT_EQ(not_listed.states.size(), 4u);  // start, after a, after ab or é, any other text
  EXPECT_EQ(AllBut(not_listed), Listed({"ab", "", "é"}, budget));
  EXPECT_EQ(AllBut({}), Everything());
  EXPECT_TRUE(AllBut(Everything()).empty());
  // The complement of all texts but the empty text is the empty text.
  EXPECT_EQ(AllBut(OfLength(1, kNone, budget)), Listed({""}, budget));
  for (const char* const text : {"a", "abc", "e", "éé"}) EXPECT_TRUE(not_listed.Has(text)) << text;
  for (const char* const text : {"", "ab", "é"}) EXPECT_FALSE(not_listed.Has(text)) << text;
}

}  // namespace
}  // namespace grammar
