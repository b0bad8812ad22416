// The only file with OpenMP. See thread_pool.h for the idea.
#include "kernels/threads/thread_pool.h"

#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "kernels/threads/default_threads.h"
#include "kernels/threads/waiting.h"

namespace kernels {
namespace {

// If the caller waits for this many seconds, a thread lacks a core: then spins are short for a
// while.
constexpr double kLongWait = 1e-3;

// While it lives, this thread reads and writes denormal floats as zeros. States of recurrent layers
// that fade become denormal, and some CPUs take a hundred cycles for each such operation: on an
// Intel server with AVX-512, 70% of a prompt's time of a hybrid model with random weights. Results
// differ by less than 2^-126.
class FlushDenormals {
 public:
  FlushDenormals() : before_(Mode()) { SetMode(before_ | kFlush); }
  ~FlushDenormals() { SetMode(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__) || defined(__i386__)
  using Bits = uint32_t;
  static constexpr Bits kFlush = 0x8040;  // MXCSR: flush to zero, denormals are zeros
  static Bits Mode() { return __builtin_ia32_stmxcsr(); }
  static void SetMode(Bits bits) { __builtin_ia32_ldmxcsr(bits); }
#elif defined(__aarch64__)
  using Bits = uint64_t;
  static constexpr Bits kFlush = Bits{1} << 24;  // FPCR.FZ: both
  static Bits Mode() {
    Bits bits;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
  }
  static void SetMode(Bits bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#else
  using Bits = int;
  static constexpr Bits kFlush = 0;
  static Bits Mode() { return 0; }
  static void SetMode(Bits) {}
#endif

  Bits before_;
};

// Seconds for which this thread has had a core.
double OnCore() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Detects oversubscription: decides when a pool that lacks cores is faster as one thread. A run
// counts if it lost more time than it worked, more than threads with a core ever wait, and if the
// work was shorter than a time slice (in longer runs, threads with a core do most of it).
//
// With 5.3 MB of weights, two threads, two cores and another busy process, the pool generates 4100
// tokens/s with a spread of 1400, one thread alone 6800.
class OversubscriptionWatch {
 public:
  // True if the caller does the next run alone.
  bool GoAlone() const { return alone_ > 0 && Now() < until_; }

  void RanAlone(double seconds) { alone_ -= seconds; }

  // Takes into account a run of the whole pool: its seconds, and how many of them it lost.
  void Add(double lost, double all) {
    constexpr double kLost = 1e-3, kTimeSlice = 2e-3;
    constexpr double kFirst = 0.04, kMax = 0.32;  // seconds of work alone, before the next try
    constexpr double kForget = 2;                 // seconds of any kind, since load changes
    together_ += all;
    if (lost < kLost || 2 * lost < all || all - lost > kTimeSlice) return;
    // If cores are taken again soon after a try, they will probably be for longer.
    pause_ = together_ < 4 * pause_ ? std::min(2 * pause_, kMax) : kFirst;
    alone_ = pause_;
    until_ = Now() + kForget;
    together_ = 0;
  }

 private:
  double alone_ = 0;     // seconds of work that one thread is still to do
  double until_ = 0;     // the end of it in any case
  double pause_ = 0;     // the last value that alone_ began with
  double together_ = 0;  // seconds of work by the whole pool since then
};

// Thrown in the body to leave it when `wanted` of RunWhile() returns false.
struct Stopped {};

// Operations need at least this much stack.
constexpr size_t kMinStack = size_t{512} << 10;

// The stack size of each thread in bytes that the environment sets for OpenMP, as "512", "512K" or
// "1 G"; 0, the system's default, if it is unset or invalid.
size_t StackFromEnvironment() {
  const char* const text = std::getenv("OMP_STACKSIZE");
  if (text == nullptr) return 0;
  char* unit = nullptr;
  const unsigned long long number = std::strtoull(text, &unit, 10);
  if (unit == text) return 0;
  while (*unit == ' ') ++unit;
  constexpr std::string_view kUnits = "BKMG";
  const size_t power = *unit == '\0' ? 1 : kUnits.find(static_cast<char>(*unit & ~0x20));
  if (power == std::string_view::npos || number > SIZE_MAX >> (10 * power)) return 0;
  return static_cast<size_t>(number) << (10 * power);
}

// Idle threads, to test whether so many threads can start. OpenMP ends the program if it cannot
// start one.
class IdleThreads {
 public:
  // Starts n threads; returns an error number, or 0.
  int Start(size_t n, size_t stack) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack > 0) pthread_attr_setstacksize(&attributes, stack);
    int error = 0;
    for (threads_.reserve(n); threads_.size() < n && error == 0;) {
      pthread_t thread;
      error = pthread_create(&thread, &attributes, Wait, this);
      if (error == 0) threads_.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
    return error;
  }
  ~IdleThreads() {
    over_ = true;
    over_.notify_all();
    for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
  }

 private:
  static void* Wait(void* all) {
    static_cast<IdleThreads*>(all)->over_.wait(false);
    return nullptr;
  }

  std::vector<pthread_t> threads_;
  std::atomic<bool> over_ = false;
};

// A child of fork() lacks its parent's threads and would wait for them forever.
void CheckFork() {
  static const pid_t starter = getpid();  // the process that started the first threads
  if (starter == getpid()) return;
  throw std::runtime_error(
      "this process was forked after its parent had started threads, and can use only one");
}

void CheckThreads(size_t n_threads) {
  const size_t stack = StackFromEnvironment();
  if (stack > 0 && stack < kMinStack) {
    throw std::runtime_error("OMP_STACKSIZE: expected at least " + std::to_string(kMinStack >> 10) +
                             "K for the stack of a thread");
  }
  const int error = IdleThreads().Start(n_threads - 1, stack);  // the caller is running already
  if (error == 0) return;
  throw std::runtime_error(std::to_string(n_threads) +
                           " threads cannot be started: " + std::generic_category().message(error) +
                           " (their number, OMP_STACKSIZE and ulimit -v and -u decide)");
}

}  // namespace

// One operation at a time. The caller writes the job, then raises `epoch`; threads claim chunks, do
// them and lower `pending`, and the caller touches the job again only when that is 0.
struct ThreadPool::Shared {
  explicit Shared(size_t max_threads)
      : split(max_threads),
        yields(max_threads > std::thread::hardware_concurrency()),
        starts(max_threads - 1) {}

  const Work* work = nullptr;
  Split split;
  double waited = 0;  // seconds that the caller waited in this Run(), beyond kSpins each time
  OversubscriptionWatch watch;
  bool running = false;
  uint64_t first_epoch = 0;  // the first job of this Run(), which a late worker must not miss
  const FunctionRef<bool()>* wanted = nullptr;  // RunWhile()'s; only the caller uses it
  std::exception_ptr thrown;                    // the exception that then leaves the body
  alignas(kCacheLine) std::atomic<uint64_t> epoch{0};
  std::atomic<bool> done{false};     // workers leave the run
  std::atomic<bool> stopped{false};  // chunks are claimed, but not done
  alignas(kCacheLine) std::atomic<size_t> pending{0};
  std::atomic<size_t> n_left{0};  // workers that have left
  std::atomic<int> spins{kMaxSpins};
  const bool yields;
  Bell workers, caller;
  std::vector<StartSignal> starts;  // [worker]
  std::atomic<size_t> n_workers{0};
  std::atomic<bool> over{false};
  std::thread starter;  // the first worker, which starts the other workers
  pid_t pid = 0;        // the process in which it runs

  // The caller waits; returns for how long.
  template <class Condition>
  double Wait(Condition condition) {
    const double seconds = WaitUntil(condition, caller, spins, yields);
    if (seconds > kLongWait && !yields) spins.store(kSpins);
    return seconds;
  }

  void DoJob(uint64_t job, size_t thread);
  void Ask();
};

// Nothing may be thrown before the other threads have finished the operation.
void ThreadPool::Shared::Ask() {
  if (wanted == nullptr || stopped.load(std::memory_order_relaxed)) return;
  try {
    if ((*wanted)()) return;
    thrown = std::make_exception_ptr(Stopped());
  } catch (...) {
    thrown = std::current_exception();
  }
  stopped.store(true, std::memory_order_relaxed);
}

void ThreadPool::Shared::DoJob(uint64_t job, size_t thread) {
  Split::Cursor place{thread};
  for (Split::Range range; split.Take(job, place, range);) {
    if (thread == 0) Ask();
    if (!stopped.load(std::memory_order_relaxed)) (*work)(range.begin, range.end, thread);
  }
  if (pending.fetch_sub(place.n_claimed) == place.n_claimed) caller.Ring();
}

ThreadPool::ThreadPool(int n_threads, Oversubscription policy)
    : size_(static_cast<size_t>(n_threads > 0 ? n_threads : DefaultThreads().prompt)),
      max_size_(size_),
      policy_(policy),
      shared_(std::make_unique<Shared>(size_)) {}

ThreadPool::~ThreadPool() {
  Shared& s = *shared_;
  if (!s.starter.joinable()) return;
  if (getpid() != s.pid) {  // a child of fork() has no such thread to join
    static_cast<void>(shared_.release());
    return;
  }
  s.over = true;
  for (StartSignal& start : s.starts) start.Give();
  s.starter.join();
}

void ThreadPool::Run(FunctionRef<void()> body) {
  ++n_runs_;
  const FlushDenormals flush;
  if (size_ == 1) return body();
  CheckFork();
  if (policy_ == Oversubscription::kIgnore) return RunTogether(body);
  if (!shared_->watch.GoAlone()) return RunWatched(body);
  ++n_runs_alone_;
  const double start = Now();
  body();  // outside RunTogether(), For() is serial
  shared_->watch.RanAlone(Now() - start);
}

bool ThreadPool::RunWhile(FunctionRef<bool()> wanted, FunctionRef<void()> body) {
  Shared& s = *shared_;
  s.wanted = &wanted;
  s.stopped.store(false);
  bool whole = true;
  std::exception_ptr error;
  try {
    Run(body);
  } catch (const Stopped&) {
    whole = false;
  } catch (...) {
    error = std::current_exception();
  }
  s.wanted = nullptr;
  s.stopped.store(false);
  if (error) std::rethrow_exception(error);
  return whole;
}

// Waking the workers and waiting for them to leave takes microseconds if every thread has a core;
// any more is lost time.
void ThreadPool::RunWatched(FunctionRef<void()> body) {
  double worked = 0, on_core = 0;
  shared_->waited = 0;
  const double start = Now();
  RunTogether([&] {
    const double work_start = Now(), core_start = OnCore();
    body();
    worked = Now() - work_start;
    on_core = OnCore() - core_start;
  });
  const double all = Now() - start;
  const double lost_working = std::max(worked - on_core, shared_->waited);
  shared_->watch.Add(all - worked + lost_working, all);
}

// The workers are one OpenMP region that lasts as long as the pool. Between runs they wait as they
// do within a run: OpenMP's own barriers, at both ends of a region, spin for milliseconds where a
// thread has no core, which took a quarter of the time of two processes on two cores.
void ThreadPool::Start() {
  Shared& s = *shared_;
  if (max_size_ == 1 || s.starter.joinable()) return;
  CheckThreads(max_size_);
  s.pid = getpid();
  s.starter = std::thread([this, &s] {
#pragma omp parallel num_threads(static_cast <int>(s.starts.size()))
    {
      const auto i = static_cast<size_t>(omp_get_thread_num());
      if (i == 0) {
        s.n_workers = static_cast<size_t>(omp_get_num_threads());
        s.n_workers.notify_all();
      }
      const FlushDenormals flush;
      WorkerLoop(i + 1);
    }
  });
  s.n_workers.wait(0);
  max_size_ = s.n_workers + 1;
  set_size(size_);
}

void ThreadPool::RunTogether(FunctionRef<void()> body) {
  Shared& s = *shared_;
  Start();
  s.first_epoch = s.epoch.load(std::memory_order_relaxed);
  s.split.Start(size_, s.first_epoch);
  s.done.store(false);
  s.n_left.store(0);
  s.spins.store(
      std::min(s.spins.load() + kSpins / 2, kMaxSpins));  // longer if no thread lacks a core
  for (size_t i = 0; i + 1 < size_; ++i) s.starts[i].Give();
  s.running = true;
  std::exception_ptr error;
  try {
    body();
  } catch (...) {
    error = std::current_exception();
  }
  s.running = false;
  s.done.store(true, std::memory_order_relaxed);
  s.epoch.fetch_add(1);
  s.workers.Ring();
  s.Wait([&] { return s.n_left.load() == size_ - 1; });
  if (error) std::rethrow_exception(error);
}

void ThreadPool::WorkerLoop(size_t thread) {
  Shared& s = *shared_;
  StartSignal& start = s.starts[thread - 1];
  for (uint64_t run = 1;; ++run) {
    WaitUntil([&] { return start.n_given.load() >= run; }, start.bell, s.spins, s.yields);
    if (s.over) return;
    for (uint64_t seen = s.first_epoch;;) {
      WaitUntil([&] { return s.epoch.load() != seen; }, s.workers, s.spins, s.yields);
      seen = s.epoch.load();
      if (s.done.load(std::memory_order_relaxed)) break;
      s.DoJob(seen, thread);
    }
    s.n_left.fetch_add(1);
    s.caller.Ring();
  }
}

// Does all items on one thread, which calls `wanted` as often as it would in a pool.
void ThreadPool::DoAlone(size_t n, size_t grain, bool dynamic, Work work) {
  Shared& s = *shared_;
  if (s.wanted == nullptr) return work(0, n, 0);
  const size_t step = dynamic ? grain : ((n - 1) / (grain * kChunks) + 1) * grain;
  for (size_t begin = 0; begin < n; begin += step) {
    work(begin, std::min(begin + step, n), 0);
    s.Ask();
    if (s.stopped.load(std::memory_order_relaxed)) std::rethrow_exception(s.thrown);
  }
}

void ThreadPool::Dispatch(size_t n, size_t grain, bool dynamic, Work work) {
  if (n == 0) return;
  Shared& s = *shared_;
  s.Ask();
  if (s.stopped.load(std::memory_order_relaxed)) std::rethrow_exception(s.thrown);
  if (!s.running || n <= grain) return DoAlone(n, grain, dynamic, work);
  s.work = &work;
  s.split.Set(n, grain, dynamic);
  s.pending.store(s.split.n_chunks(), std::memory_order_relaxed);
  const uint64_t job = s.epoch.fetch_add(1) + 1;
  s.workers.Ring();
  s.DoJob(job, 0);
  s.waited += s.Wait([&] { return s.pending.load() == 0; });
  if (s.stopped.load(std::memory_order_relaxed)) std::rethrow_exception(s.thrown);
}

void ThreadPool::For(size_t n, size_t grain, Work work) { Dispatch(n, grain, false, work); }

void ThreadPool::ForDynamic(size_t n, size_t grain, Work work) { Dispatch(n, grain, true, work); }

}  // namespace kernels
