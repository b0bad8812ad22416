// XXH64 (Collet, https://github.com/Cyan4973/xxHash): a fast hash that tells whether bytes are the
// same. It does not withstand somebody who wants two files to look alike.
#ifndef PRONK_ENGINE_SESSION_XXH64_H_
#define PRONK_ENGINE_SESSION_XXH64_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace engine {

// Of all these bytes, with seed 0.
uint64_t Xxh64(std::span<const std::byte> bytes);

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_XXH64_H_
