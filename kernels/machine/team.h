// The thread team: OpenMP's threads, woken once per token and not once per product.
//
// Starting and joining an OpenMP region costs microseconds, and a token passes through hundreds of
// operations. So Run() opens one region for a whole forward pass: the calling thread walks through
// the model like single-threaded code, and the others wait inside the region for For() to hand them
// their share of an operation. They wait by spinning briefly and then yielding, and whoever is done
// takes what nobody has begun of the others' shares: with more threads than free cores the threads
// that have a core do all the work.
//
// But a thread that loses its core in the middle of a piece keeps all others waiting until it gets
// one again, which takes milliseconds. Where a run takes less than that, as a token of a small
// model does, the caller goes on alone for a while (Oversubscription).
#ifndef PRONK_KERNELS_MACHINE_TEAM_H_
#define PRONK_KERNELS_MACHINE_TEAM_H_

#include <cstddef>
#include <memory>
#include <type_traits>

namespace kernels {

// A callable by reference: nothing is copied or allocated. Valid only as long as the callable
// lives.
template <class Signature>
class FunctionRef;
template <class... Args>
class FunctionRef<void(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& f)  // NOLINT(google-explicit-constructor): stands in for the callable itself
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) {
          (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}
  void operator()(Args... args) const { call_(object_, args...); }

 private:
  void* object_;
  void (*call_)(void*, Args...);
};

// What a team does where other processes take its cores: see Team::Run().
enum class Oversubscription { kIgnore, kGoAlone };

class Team {
 public:
  // What a worker does: items [begin, end), as thread number `thread` of the team.
  using Work = FunctionRef<void(size_t begin, size_t end, size_t thread)>;

  // n_threads: at least 1. Throws std::runtime_error where the system does not let so many start,
  // as far as that can be known before they do.
  explicit Team(int n_threads, Oversubscription policy = Oversubscription::kIgnore);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  size_t size() const { return size_; }

  // In how many portions For() cuts the share of a thread, so that one that is done early can help.
  // Measured (README.md): with 16 the streams of memory become too short.
  static constexpr size_t kChunks = 8;

  // Runs `body` on the calling thread with the team at hand. An exception leaves the region and is
  // thrown on. Not reentrant. Under Oversubscription::kGoAlone, a short run that mostly waited for
  // cores is followed by some that the calling thread does alone; what is computed is the same.
  void Run(FunctionRef<void()> body);

  size_t n_runs() const { return n_runs_; }
  size_t n_runs_alone() const { return n_runs_alone_; }  // of these, because cores were taken

  // Splits [0, n) into a contiguous share for each thread, cuts that into kChunks ranges, each a
  // multiple of `grain` (but the last), and waits for all. The split depends on n, grain and the
  // team's size alone; who gets which range does not. Outside Run() it is serial.
  void For(size_t n, size_t grain, Work work);

  // The same by chunks of `grain` items taken as threads become free: for unequal items or cores.
  void ForDynamic(size_t n, size_t grain, Work work);

 private:
  struct Shared;  // what the threads meet at
  void WorkerLoop(size_t thread);
  void Dispatch(size_t n, size_t grain, bool dynamic, Work work);
  void RunTogether(FunctionRef<void()> body);
  void RunWatched(FunctionRef<void()> body);

  size_t size_;
  Oversubscription policy_;
  std::unique_ptr<Shared> shared_;
  size_t n_runs_ = 0;
  size_t n_runs_alone_ = 0;
};

}  // namespace kernels

#endif  // PRONK_KERNELS_MACHINE_TEAM_H_
