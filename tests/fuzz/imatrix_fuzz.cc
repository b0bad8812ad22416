// An importance matrix: a GGUF file, or llama.cpp's older .dat.
#include <string>
#include <string_view>

#include "convert/importance.h"
#include "gguf/error.h"
#include "tests/fuzz/input.h"
#include "tests/support/temp_dir.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const test::TempDir dir;
  const std::string path = dir.Write("matrix", fuzz::Input(data, size).Rest());
  try {
    convert::Importance::Read(path);
  } catch (const gguf::Error&) {
  }
  return 0;
}
