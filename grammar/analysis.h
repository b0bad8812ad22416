// Analyzes a grammar: which rules may be empty, how they begin, whether each text can reach an end.
#ifndef PRONK_GRAMMAR_ANALYSIS_H_
#define PRONK_GRAMMAR_ANALYSIS_H_

#include <string>
#include <vector>

#include "grammar/grammar.h"

namespace grammar {

class Analysis {
 public:
  explicit Analysis(Grammar& grammar);
  // Computes Rule's fields besides its name and start, in time and memory linear in the grammar's
  // size. Throws grammar::Error as Builder::Finish().
  void Run();

 private:
  void SkipPlainForks();
  void FindNeeded();
  // The states from which the end of their rule can be reached, by any bytes or by none.
  std::vector<bool> Ending(bool through_bytes) const;
  void FindFirst(Rule& rule);
  void Order();
  std::string NameOfCycle(const std::vector<uint32_t>& n_before) const;

  Grammar& grammar_;
  std::vector<bool> needed_;     // by rule: reachable from the root
  std::vector<uint32_t> visit_;  // by state: the last visit that reached it
  uint32_t n_visits_ = 0;
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_ANALYSIS_H_
