// What can be known of a grammar before any text is there: which rules may be empty, with what a
// rule begins, and that every text that was begun can be ended.
#ifndef PRONK_GRAMMAR_ANALYSIS_H_
#define PRONK_GRAMMAR_ANALYSIS_H_

#include <string>
#include <vector>

#include "grammar/grammar.h"

namespace grammar {

class Analysis {
 public:
  explicit Analysis(Grammar& grammar);
  // Fills in what Rule has besides its name and start. Takes time and memory in proportion to the
  // grammar. Throws grammar::Error as Builder::Finish().
  void Run();

 private:
  void SkipPlainForks();
  void FindNeeded();
  // The states from which the end of their rule can be reached: through anything, or without a
  // single byte.
  std::vector<bool> Ending(bool through_bytes) const;
  void FindFirst(Rule& rule);
  void Order();
  std::string NameOfCircle(const std::vector<uint32_t>& n_before) const;

  Grammar& grammar_;
  std::vector<bool> needed_;     // by rule: the root leads to it
  std::vector<uint32_t> visit_;  // by state: the last visit that came by
  uint32_t n_visits_ = 0;
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_ANALYSIS_H_
