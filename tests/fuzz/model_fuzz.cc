// Uses a model with valid structure and hostile values (hostile_model.h) as a user would. Input:
// each choice is one byte, or two bytes if there are more than 256 possibilities.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

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
  const auto use = [&](const auto& open, size_t model_bytes, const char* name) {
    fuzz::Add(fuzz::UseModel(open, fuzz::kContextOfFuzzers), model_bytes, name, counts,
              fuzz::kLimitsOfTemplates);
  };
  if (choose(16) == 0) {
    const test::TempDir folder;
    const std::string path = models.NextInParts(folder, choose);
    use([&] { return gguf::File::Open(path); }, 0, "parts");
  } else {
    const std::vector<std::byte> bytes = models.Next(choose);
    use([&] { return gguf::File::Parse("f.gguf", bytes); }, bytes.size(), "model");
  }
  if (counts.failed) std::abort();
  return 0;
}
