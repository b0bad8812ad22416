// A model of sound structure and hostile values (hostile_model.h), through all that a user would
// do. Input: each byte, or two where there are more than 256 possibilities, is a choice.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>

#include "tests/fuzz/hostile_model.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/use_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::HostileModels models;
  fuzz::Input input(data, size);
  const fuzz::Choices choose = [&](size_t n) {
    const size_t low = input.Byte();
    return (n <= 256 ? low : low << 8 | input.Byte()) % n;
  };
  fuzz::Counts counts;
  if (choose(16) == 0) {
    const test::TempDir folder;
    const std::string path = models.NextInParts(folder, choose);
    fuzz::Add(fuzz::UseModel([&] { return gguf::File::Open(path); }, fuzz::kContextOfFuzzers), 0,
              "parts", counts);
  } else {
    const std::vector<std::byte> bytes = models.Next(choose);
    fuzz::Add(
        fuzz::UseModel([&] { return gguf::File::Parse("f.gguf", bytes); }, fuzz::kContextOfFuzzers),
        bytes.size(), "model", counts, fuzz::kMostBytesOfTemplates);
  }
  if (counts.failed) std::abort();
  return 0;
}
