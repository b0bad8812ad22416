// Memory that is paid for where it is allocated.
//
// Whatever a template makes is in containers with the allocator Counted. Each allocation is charged
// to the rendering that runs on this thread (runtime.h), so no function can forget to pay. Outside
// of a rendering nothing is charged: a template's tree and the caller's conversation are bounded by
// their sources.
#ifndef PRONK_TOKENIZER_JINJA_VALUES_BUDGET_H_
#define PRONK_TOKENIZER_JINJA_VALUES_BUDGET_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tokenizer::jinja {

// Throws TemplateError if the rendering may not take that many bytes.
void ChargeBytes(size_t n);
void ReturnBytes(size_t n) noexcept;

template <typename T>
struct Counted {
  using value_type = T;
  Counted() = default;
  template <typename U>
  Counted(const Counted<U>&) noexcept {}

  T* allocate(size_t n) {
    ChargeBytes(n * sizeof(T));  // cannot wrap: containers limit n
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* at, size_t n) noexcept {
    std::allocator<T>().deallocate(at, n);
    ReturnBytes(n * sizeof(T));
  }
  template <typename U>
  bool operator==(const Counted<U>&) const noexcept {
    return true;
  }
};

using String = std::basic_string<char, std::char_traits<char>, Counted<char>>;
template <typename T>
using Vector = std::vector<T, Counted<T>>;
template <typename T>
using NameMap = std::map<String, T, std::less<>, Counted<std::pair<const String, T>>>;

template <typename T, typename... Args>
std::shared_ptr<T> MakeShared(Args&&... args) {
  return std::allocate_shared<T>(Counted<T>(), std::forward<Args>(args)...);
}

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_VALUES_BUDGET_H_
