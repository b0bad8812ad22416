// Rounds over stripes of 32 bytes, the rest, and the final mixing.
#include "engine/session/xxh64.h"

#include <array>

#include "gguf/load.h"

namespace engine {
namespace {

using gguf::Load;

// The published definition's multipliers.
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                   kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                   kPrime5 = 0x27D4EB2F165667C5;

// One lane takes eight bytes.
uint64_t Round(uint64_t lane, uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

uint64_t Merged(uint64_t hash, uint64_t lane) {
  return (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
}

// Lets every bit of the input change every bit of the output.
uint64_t Avalanche(uint64_t hash) {
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace

uint64_t Xxh64(std::span<const std::byte> bytes) {
  const std::byte *at = bytes.data(), *const end = at + bytes.size();
  uint64_t hash = kPrime5;
  if (bytes.size() >= 32) {
    std::array<uint64_t, 4> lanes = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
    for (; end - at >= 32; at += 32) {
      for (size_t i = 0; i < 4; ++i) lanes[i] = Round(lanes[i], Load<uint64_t>(at + 8 * i));
    }
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
    for (const uint64_t lane : lanes) hash = Merged(hash, lane);
  }
  hash += bytes.size();
  for (; end - at >= 8; at += 8) {
    hash = std::rotl(hash ^ Round(0, Load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  for (; end - at >= 4; at += 4) {
    hash = std::rotl(hash ^ Load<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
  }
  for (; at != end; ++at) {
    hash = std::rotl(hash ^ std::to_integer<uint64_t>(*at) * kPrime5, 11) * kPrime1;
  }
  return Avalanche(hash);
}

}  // namespace engine
