// Cuts small valid models at every byte and damages them at random. Models of tests/data whose
// layers are not all plain attention are damaged, too. Each result is used as a user would use it:
// open it, tokenize a prompt, render the chat template, generate four tokens.
//
//   damaged_model [COUNT [SEED]]     COUNT damaged small models (default 300), COUNT of tests/data
//
// Any bytes must give one error line or an answer, within the limits of use_model.h. Otherwise the
// exit status is 1, or a signal ends the program. Sanitizers find most faults.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "tests/fuzz/use_model.h"
#include "tests/support/data.h"
#include "tests/support/small_model.h"

namespace {

using Bytes = std::vector<std::byte>;

fuzz::Outcome Try(const Bytes& damaged) {
  const Bytes exact = damaged;  // a block of exactly this size, whose ends sanitizers watch
  return fuzz::UseModel([&] { return gguf::File::Parse("f.gguf", exact); });
}

class Damage {
 public:
  Damage(const Bytes& good, uint32_t seed) : good_(good), random_(seed) {}

  Bytes Next() {
    Bytes bytes = good_;
    for (size_t i = 1 + Below(4); i > 0 && !bytes.empty(); --i) Once(bytes);
    return bytes;
  }

 private:
  size_t Below(size_t n) { return static_cast<size_t>(random_() % n); }

  // Mostly at small bytes, where the numbers are: lengths, counts, types, offsets.
  size_t Place(const Bytes& bytes) {
    size_t at = Below(bytes.size());
    for (int i = 0; i < 4 && std::to_integer<int>(bytes[at]) >= ' '; ++i) at = Below(bytes.size());
    return Below(3) == 0 ? at : at % std::min<size_t>(bytes.size(), 2048);
  }

  void WriteEdge(Bytes& bytes) {
    // A small number, or a number near a power of two; 1 - 2 wraps to the largest number.
    const uint64_t power = uint64_t{1} << Below(64);
    const uint64_t edge = Below(3) == 0 ? Below(16) : power - static_cast<uint64_t>(Below(3));
    const size_t at = Place(bytes);
    std::memcpy(bytes.data() + at, &edge, std::min(bytes.size() - at, Below(2) == 0 ? 4ul : 8ul));
  }

  void SwapSections(Bytes& bytes) {
    const size_t n = 1 + Below(std::min<size_t>(bytes.size() / 2, 512));
    const size_t a = Below(bytes.size() - 2 * n + 1);
    const size_t b = a + n + Below(bytes.size() - a - 2 * n + 1);
    const auto at = [&](size_t i) { return bytes.begin() + static_cast<std::ptrdiff_t>(i); };
    std::swap_ranges(at(a), at(a + n), at(b));
  }

  void Once(Bytes& bytes) {
    const auto at = [&](size_t i) { return bytes.begin() + static_cast<std::ptrdiff_t>(i); };
    switch (Below(8)) {
      case 0:
      case 1:
        bytes[Place(bytes)] = static_cast<std::byte>(random_());
        break;
      case 2:
        bytes[Place(bytes)] ^= static_cast<std::byte>(1u << Below(8));
        break;
      case 3:
      case 4:
        WriteEdge(bytes);
        break;
      case 5:
        if (bytes.size() >= 4) SwapSections(bytes);
        break;
      case 6: {  // removes or doubles some bytes
        const size_t from = Place(bytes);
        const size_t n = std::min(bytes.size() - from, 1 + Below(64));
        const Bytes piece(at(from), at(from + n));
        Below(2) == 0 ? void(bytes.erase(at(from), at(from + n)))
                      : void(bytes.insert(at(from), piece.begin(), piece.end()));
        break;
      }
      default:
        if (Below(4) == 0) bytes.resize(Below(bytes.size() + 1));
    }
  }

  const Bytes& good_;
  std::mt19937 random_;
};

// Returns whether any model failed.
bool DamageHybrids(size_t n, uint32_t seed) {
  std::vector<std::filesystem::path> paths = test::SmallModels();
  std::erase_if(paths, [](const auto& path) { return path.parent_path().filename() != "hybrids"; });
  fuzz::Counts counts;
  for (const std::filesystem::path& path : paths) {
    const std::string text = test::ReadText(path);
    const auto good = std::as_bytes(std::span(text));
    const Bytes bytes(good.begin(), good.end());
    Damage damage(bytes, seed);
    for (size_t i = 0; i < n / paths.size() + 1; ++i) {
      const Bytes damaged = damage.Next();
      fuzz::Add(Try(damaged), damaged.size(), path.stem().string() + "-" + std::to_string(i),
                counts);
    }
  }
  fuzz::Print("hybrids damaged", counts);
  return counts.failed || counts.refused == 0 || counts.refused == counts.n;
}

int Main(int argc, char** argv) {
  const size_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 300;
  const auto seed = static_cast<uint32_t>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 20241121);
  bool failed = false;
  for (const char* family : {"llama", "gpt2"}) {
    test::SmallModel model = {.tokenizer = family};
    const Bytes good = model.Bytes();
    if (const fuzz::Outcome sound = Try(good); !sound.error.empty()) {
      std::fprintf(stderr, "%s: the sound model is refused: %s\n", family, sound.error.c_str());
      return 1;
    }
    fuzz::Counts cut;
    for (size_t size = 0; size < good.size(); ++size) {
      const Bytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
      fuzz::Add(Try(bytes), bytes.size(), std::string(family) + " cut at " + std::to_string(size),
                cut);
    }
    fuzz::Counts random;
    Damage damage(good, seed);
    for (size_t i = 0; i < n / 2; ++i) {
      const Bytes bytes = damage.Next();
      fuzz::Add(Try(bytes), bytes.size(), std::string(family) + "-" + std::to_string(i), random);
    }
    fuzz::Print(std::string(family) + " cut at every byte", cut);
    fuzz::Print(std::string(family) + " damaged", random);
    // Every cut model must be refused, and some of the damaged models, but not every one.
    failed |= cut.failed || random.failed || cut.refused != cut.n;
    failed |= random.refused == 0 || random.refused == random.n;
  }
  return failed || DamageHybrids(n, seed) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }
