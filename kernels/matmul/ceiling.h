// The machine's ceilings for memory and arithmetic, printed beside every measured speed.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/threads/thread_pool.h"

namespace kernels {

// Bytes per second at which the pool reads these bytes without arithmetic: the best of several ways
// to read (plain, prefetched, in four streams), each tried `repeats` times. Decode reads every
// weight once per token, so no engine is faster than this. Called outside ThreadPool::Run().
double ReadCeiling(ThreadPool& pool, std::span<const std::byte> bytes, int repeats = 3);

// Operations per second (a multiplication and an addition are two) of the kernels' products of
// bytes with everything in registers: the limit of prefill. (x86 without VNNI: of codes of four
// bits; signed bytes can reach half of it, NOTEBOOK.md.) Called outside ThreadPool::Run().
double DotCeiling(ThreadPool& pool);

}  // namespace kernels
