// AMX in software: a handler of SIGILL carries out the instructions of
// kernels/matmul/gemm_bf16_amx.cc. It decodes their bytes (Intel's manual, volume 2: all are
// VEX.128 in the opcode map 0F38), so the test runs what the compiler emitted.
#include "tests/kernels/matmul/amx_emulator.h"

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace kernels::test {
namespace {

// A register: 16 rows of 64 bytes at most.
struct Tile {
  uint8_t bytes[16][64] = {};
  size_t rows = 0, row_bytes = 0;
};
thread_local std::array<Tile, 8> tiles;

// Registers by the numbers that instructions use.
uint64_t Register(const ucontext_t& context, unsigned number) {
  static constexpr int kNames[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                     REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                     REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(context.uc_mcontext.gregs[kNames[number]]);
}

struct Instruction {
  unsigned prefix;  // 0: none, 1: 66, 2: F3, 3: F2
  unsigned opcode;
  unsigned reg, rm, vvvv;  // operands
  bool in_memory;          // rm names memory
  uint8_t* address;        // where it begins
  uint64_t stride;         // the index register's value: the distance of rows
  size_t length;
};

// The operand in memory: base + displacement, and an index register with the stride.
void DecodeMemory(const ucontext_t& context, const uint8_t* p, unsigned mod, bool x, bool b,
                  Instruction& out) {
  size_t at = 0;
  unsigned base = out.rm | (b ? 8u : 0u);
  if (out.rm == 4) {  // a SIB byte
    const uint8_t sib = p[at++];
    base = (sib & 7u) | (b ? 8u : 0u);
    const unsigned index = (sib >> 3 & 7u) | (x ? 8u : 0u);
    if (index != 4) out.stride = Register(context, index) << (sib >> 6);
  }
  int64_t displacement = 0;
  uint64_t start = 0;
  if (mod == 0 && (base & 7) == 5) {  // no base; without a SIB byte the next instruction
    int32_t wide;
    std::memcpy(&wide, p + at, 4);
    at += 4;
    displacement = wide;
    if (out.rm == 5) start = reinterpret_cast<uint64_t>(p) + at;
  } else {
    start = Register(context, base);
    if (mod == 1) displacement = static_cast<int8_t>(p[at++]);
    if (mod == 2) {
      int32_t wide;
      std::memcpy(&wide, p + at, 4);
      at += 4;
      displacement = wide;
    }
  }
  out.address = reinterpret_cast<uint8_t*>(start + static_cast<uint64_t>(displacement));
  out.length += at;
}

// Returns false if p is not at a VEX instruction of the map 0F38 with 128 bits.
bool Decode(const ucontext_t& context, const uint8_t* p, Instruction& out) {
  if (p[0] != 0xC4 || (p[1] & 0x1F) != 2 || (p[2] & 0x84) != 0) return false;
  const bool r = (p[1] & 0x80) == 0, x = (p[1] & 0x40) == 0, b = (p[1] & 0x20) == 0;
  const unsigned mod = p[4] >> 6u;
  out = {};
  out.prefix = p[2] & 3u;
  out.vvvv = ~(p[2] >> 3u) & 15u;
  out.opcode = p[3];
  out.reg = (p[4] >> 3u & 7u) | (r ? 8u : 0u);
  out.rm = p[4] & 7u;
  out.in_memory = mod != 3;
  out.length = 5;
  if (out.in_memory) DecodeMemory(context, p + 5, mod, x, b, out);
  return true;
}

void LoadConfig(const uint8_t* config) {
  if (config[0] != 1) std::abort();  // the only palette
  for (size_t t = 0; t < tiles.size(); ++t) {
    tiles[t] = {};
    tiles[t].row_bytes = config[16 + 2 * t] | static_cast<size_t>(config[17 + 2 * t]) << 8;
    tiles[t].rows = config[48 + t];
  }
}

float FromBf16(const uint8_t* p) {
  const uint32_t bits = static_cast<uint32_t>(p[0]) << 16 | static_cast<uint32_t>(p[1]) << 24;
  const float value = std::bit_cast<float>(bits);
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

// sums[m][n] += a[m][2 k] * b[k][2 n] + a[m][2 k + 1] * b[k][2 n + 1] over all k, even and odd
// products added up separately.
void MultiplyBf16(Tile& sums, const Tile& a, const Tile& b) {
  for (size_t m = 0; m < sums.rows; ++m) {
    for (size_t n = 0; n < sums.row_bytes / 4; ++n) {
      float even = 0, odd = 0;
      for (size_t k = 0; k < a.row_bytes / 4; ++k) {
        even = std::fma(FromBf16(&a.bytes[m][4 * k]), FromBf16(&b.bytes[k][4 * n]), even);
        odd = std::fma(FromBf16(&a.bytes[m][4 * k + 2]), FromBf16(&b.bytes[k][4 * n + 2]), odd);
      }
      float sum;
      std::memcpy(&sum, &sums.bytes[m][4 * n], 4);
      sum += even + odd;
      std::memcpy(&sums.bytes[m][4 * n], &sum, 4);
    }
  }
}

// Returns false if the instruction is not AMX.
bool Execute(const Instruction& i) {
  constexpr unsigned kNone = 0, kF3 = 2, kF2 = 3;
  if (i.reg > 7) return false;
  Tile& tile = tiles[i.reg];
  if (i.opcode == 0x49 && i.prefix == kNone) {  // LDTILECFG, TILERELEASE
    if (i.in_memory) {
      LoadConfig(i.address);
    } else {
      tiles.fill(Tile());
    }
    return true;
  }
  if (i.opcode == 0x49 && i.prefix == kF2 && !i.in_memory) {  // TILEZERO
    std::memset(tile.bytes, 0, sizeof(tile.bytes));
    return tile.rows > 0;
  }
  if (i.opcode == 0x4B && i.in_memory) {  // TILELOADD, TILESTORED
    for (size_t row = 0; row < tile.rows; ++row) {
      uint8_t* const memory = i.address + row * i.stride;
      if (i.prefix == kF2) std::memcpy(tile.bytes[row], memory, tile.row_bytes);
      if (i.prefix == kF3) std::memcpy(memory, tile.bytes[row], tile.row_bytes);
    }
    return tile.rows > 0;
  }
  if (i.opcode == 0x5C && i.prefix == kF3 && !i.in_memory && i.vvvv < 8) {  // TDPBF16PS
    MultiplyBf16(tile, tiles[i.rm], tiles[i.vvvv]);
    return tile.rows > 0;
  }
  return false;
}

void OnIllegalInstruction(int signal, siginfo_t* /*info*/, void* context_pointer) {
  ucontext_t& context = *static_cast<ucontext_t*>(context_pointer);
  greg_t& next = context.uc_mcontext.gregs[REG_RIP];
  Instruction instruction;
  if (Decode(context, reinterpret_cast<const uint8_t*>(next), instruction) &&
      Execute(instruction)) {
    next += static_cast<greg_t>(instruction.length);
    return;
  }
  ::signal(signal, SIG_DFL);  // not ours: it happens again, and ends the program
}

}  // namespace

void EmulateAmx() {
  struct sigaction action = {};
  action.sa_sigaction = OnIllegalInstruction;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, nullptr);
}

}  // namespace kernels::test
