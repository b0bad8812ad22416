// Returns whether a grammar allows a text, including its rules for unique keys and items.
#pragma once

#include <string_view>

#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "grammar/written_parts.h"

namespace test {

inline bool Matches(const grammar::Grammar& grammar, std::string_view text) {
  grammar::Matcher matcher(grammar);
  if (!matcher.MayEnd(matcher.Steps(matcher.Start(), text))) return false;
  if (!grammar.has_unique_keys()) return true;
  grammar::WrittenParts written;
  return written.Write(text, matcher, matcher.Start());
}

}  // namespace test
