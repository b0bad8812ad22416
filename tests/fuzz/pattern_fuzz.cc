// An untrusted regular expression of a schema's "pattern", and the automaton that it becomes.
// Input: a line with a text, then the pattern.
#include <cstdlib>
#include <string>
#include <string_view>

#include "gguf/utf8.h"
#include "grammar/dfa.h"
#include "grammar/grammar.h"
#include "grammar/pattern.h"
#include "tests/fuzz/input.h"

namespace {

// Checks the automaton's invariants (dfa.h), then follows the text through it.
void Follow(const grammar::Dfa& dfa, std::string_view text) {
  size_t at = 0;
  for (const grammar::Dfa::State& state : dfa.states) {
    for (size_t i = 0; i < state.edges.size(); ++i) {
      const grammar::Dfa::Edge& edge = state.edges[i];
      const bool ascends = i == 0 || state.edges[i - 1].high < edge.low;
      if (edge.low > edge.high || edge.to >= dfa.states.size() || !ascends) std::abort();
    }
  }
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (dfa.empty()) return;
    bool goes_on = false;
    for (const grammar::Dfa::Edge& edge : dfa.states[at].edges) {
      if (code < edge.low || code > edge.high) continue;
      at = edge.to;
      goes_on = true;
      break;
    }
    if (!goes_on) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.Line();
  try {
    grammar::Budget budget;
    Follow(grammar::PatternStrings(input.Rest(), budget), text);
  } catch (const grammar::Error&) {
  }
  return 0;
}
