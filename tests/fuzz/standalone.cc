// Runs a fuzz target without a fuzzer, on files and on every file of folders. So each build runs
// the corpora as tests, with every input that once broke a target.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

void RunFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::fprintf(stderr, "%s\n", path.c_str());  // names the input in case it ends the program
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  size_t n_files = 0;
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      RunFile(argv[i]);
      ++n_files;
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(argv[i])) {
      RunFile(entry.path());
      ++n_files;
    }
  }
  std::fprintf(stderr, "%zu inputs\n", n_files);
  return n_files == 0 ? 1 : 0;  // fails if the corpus is missing
}
