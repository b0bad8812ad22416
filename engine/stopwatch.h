// Measures elapsed time: for speeds and progress lines.
#pragma once

#include <chrono>

namespace engine {

class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace engine
