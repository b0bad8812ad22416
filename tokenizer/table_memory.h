// Memory for hash tables: huge pages where the system gives them. Filling a table touches all of it
// in random order, so with pages of 4 KB it pays for as many faults, and for misses of the TLB.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "gguf/mapped_file.h"

namespace tokenizer {

template <class T>
struct TableAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = TableAllocator<U>;
  };
  T* allocate(size_t n) {
    T* const slots = std::allocator<T>::allocate(n);
    gguf::UseHugePages(std::as_bytes(std::span(slots, n)));
    return slots;
  }
};

template <class Slot>
using TableOf = std::vector<Slot, TableAllocator<Slot>>;

}  // namespace tokenizer
