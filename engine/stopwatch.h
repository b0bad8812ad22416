// How long something takes: for speeds, and for lines that show progress.
#ifndef PRONK_ENGINE_STOPWATCH_H_
#define PRONK_ENGINE_STOPWATCH_H_

#include <chrono>

namespace engine {

// Runs from its construction.
class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace engine

#endif  // PRONK_ENGINE_STOPWATCH_H_
