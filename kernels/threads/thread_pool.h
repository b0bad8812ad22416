// The thread pool: OpenMP threads, woken once per token instead of once per product.
//
// Starting and joining an OpenMP region costs microseconds, and a token takes hundreds of
// operations. So one region lasts as long as the pool. Run() is a whole forward pass: the caller
// runs the model like single-threaded code, and the workers wait for For() to give them chunks of
// an operation. They spin, briefly where other processes take the cores, and then sleep. A
// thread that has done its chunks steals chunks of other threads (split.h): with more threads than
// free cores the threads that have a core do all the work.
//
// But a thread that loses its core in the middle of a chunk keeps the pool at the barrier until it
// gets one again, which takes milliseconds. If a run takes less than that, as with a small model's
// token, the caller continues alone for a while (Oversubscription::kRunOnCaller). PoolSize
// (pool_size.h) chooses fewer threads instead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "kernels/threads/split.h"

namespace kernels {

// A reference to a callable, which has to outlive it: nothing is copied or allocated.
template <class Signature>
class FunctionRef;
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& f)  // NOLINT(google-explicit-constructor): stands in for the callable itself
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}
  Result operator()(Args... args) const { return call_(object_, args...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

// How a pool reacts when other processes take its cores: see ThreadPool::Run().
enum class Oversubscription { kIgnore, kRunOnCaller };

class ThreadPool {
 public:
  // Does items [begin, end), as thread number `thread` of the pool.
  using Work = FunctionRef<void(size_t begin, size_t end, size_t thread)>;

  // n_threads 0: one thread per core (default_threads.h). Threads start when first needed.
  explicit ThreadPool(int n_threads, Oversubscription policy = Oversubscription::kIgnore);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The number of threads of a Run(), and its upper limit: lower than requested if OpenMP gave
  // fewer threads.
  size_t size() const { return size_; }
  size_t max_size() const { return max_size_; }
  // Sets the number of threads of the following runs.
  void set_size(size_t n) { size_ = std::clamp<size_t>(n, 1, max_size_); }

  // Starts the threads, as the first run otherwise does. Throws std::runtime_error if they cannot
  // start.
  void Start();

  static constexpr size_t kChunks = Split::kChunks;  // chunks of each thread in For()

  // Runs `body` on the calling thread while the other threads wait for For(). An exception leaves
  // the region and is rethrown. Not reentrant. All threads take denormal floats as zeros meanwhile;
  // the caller's mode is restored. With kRunOnCaller, a short run that mostly waited for cores is
  // followed by runs that the calling thread does alone; the results are the same. Throws like
  // Start(), and in a child of fork() that needs threads if its parent had started some.
  void Run(FunctionRef<void()> body);

  // Run() for as long as `wanted` returns true: the calling thread calls it between its chunks. If
  // it returns false, or throws, `body` is abandoned at the end of the current operation, whose
  // remaining chunks are skipped. Returns whether `body` finished.
  bool RunWhile(FunctionRef<bool()> wanted, FunctionRef<void()> body);

  size_t n_runs() const { return n_runs_; }
  size_t n_runs_alone() const { return n_runs_alone_; }  // runs that the caller did alone

  // Splits [0, n) into kChunks contiguous ranges for each thread, multiples of `grain` (but the
  // last), and waits until every range is done. The split depends only on n, grain and the pool's
  // size; the thread that does a chunk varies. Serial outside Run() and for n <= grain.
  void For(size_t n, size_t grain, Work work);

  // For() in ranges of `grain` items, which threads take as they become free: for unequal items.
  void ForDynamic(size_t n, size_t grain, Work work);

 private:
  struct Shared;  // state that the threads share
  void WorkerLoop(size_t thread);
  void Dispatch(size_t n, size_t grain, bool dynamic, Work work);
  void RunTogether(FunctionRef<void()> body);
  void RunWatched(FunctionRef<void()> body);
  void DoAlone(size_t n, size_t grain, bool dynamic, Work work);

  size_t size_, max_size_;
  Oversubscription policy_;
  std::unique_ptr<Shared> shared_;
  size_t n_runs_ = 0;
  size_t n_runs_alone_ = 0;
};

}  // namespace kernels
