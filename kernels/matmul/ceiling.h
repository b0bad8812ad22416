// What this machine can do at most: the two limits that every measured speed is held against.
#ifndef PRONK_KERNELS_MATMUL_CEILING_H_
#define PRONK_KERNELS_MATMUL_CEILING_H_

#include <cstddef>
#include <span>

#include "kernels/machine/team.h"

namespace kernels {

// Bytes per second at which the team reads these bytes and does nothing with them: the best of
// several ways to walk through them (plain, prefetched, in four streams) and of `repeats` tries
// each. Generating a token reads every weight once, so no engine is faster than this. Outside
// Team::Run().
double ReadCeiling(Team& team, std::span<const std::byte> bytes, int repeats = 3);

// Operations per second (a multiplication and an addition are two) of the products of bytes that
// the kernels are made of, with everything in registers. Reading a prompt is limited by this.
// Outside Team::Run().
double DotCeiling(Team& team);

}  // namespace kernels

#endif  // PRONK_KERNELS_MATMUL_CEILING_H_
