// XXH64 (Collet, https://github.com/Cyan4973/xxHash): a fast hash to detect changed bytes. Not
// cryptographic: collisions can be made on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace engine {

// The hash of these bytes, with seed 0.
uint64_t Xxh64(std::span<const std::byte> bytes);

}  // namespace engine
