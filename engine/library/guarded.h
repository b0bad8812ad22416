// Guards calls into the engine: exceptions become pronk::Error, and only one caller at a time uses
// an object.
#pragma once

#include <atomic>
#include <exception>
#include <memory>

#include "engine/pronk.h"

// This is not in namespace pronk, since the shared library exports all symbols of that namespace.
namespace library {

// An exception from a host callback, on its way through the engine.
struct HostError {
  std::exception_ptr thrown;
};

// The Error for an exception of the engine.
pronk::Error ErrorFor(const std::exception& error);

// Calls a function and turns any exception into an Error, except exceptions from host callbacks.
template <class Function>
auto Guarded(Function function) {
  try {
    return function();
  } catch (const HostError& error) {
    std::rethrow_exception(error.thrown);
  } catch (const pronk::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw ErrorFor(error);
  }
}

// Marks an object as in use. Throws if its own callback or another thread uses it already.
class InUse {
 public:
  explicit InUse(std::atomic<bool>& flag) : flag_(flag) {
    if (flag.exchange(true))
      throw pronk::Error("it is in use, by another thread or by its own callback");
  }
  ~InUse() { flag_ = false; }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  std::atomic<bool>& flag_;
};

// Calls a function on an object that nothing else uses meanwhile.
template <class Impl, class Function>
auto Use(const std::shared_ptr<Impl>& impl, Function function) {
  return Guarded([&] {
    if (impl == nullptr) throw pronk::Error("this object was moved from");
    const InUse in_use(impl->in_use);
    return function(*impl);
  });
}

template <class... Args>
pronk::Callback<Args...> Marked(const pronk::Callback<Args...>& function) {
  return [function](Args... args) {
    try {
      return function(args...);
    } catch (...) {
      throw HostError{std::current_exception()};
    }
  };
}

}  // namespace library
