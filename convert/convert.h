// From a folder of Hugging Face's to a GGUF file: the whole way. README.md tells it.
#ifndef PRONK_CONVERT_CONVERT_H_
#define PRONK_CONVERT_CONVERT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gguf/dtype.h"

namespace convert {

struct Options {
  // What matrices become; without it, what most of them are. F32, F16, BF16 or one that
  // kernels::EncodeRow() knows, with the number that general.file_type has for it.
  std::optional<gguf::DType> type;
  uint32_t file_type = 0;
  int n_threads = 1;
  // Called now and then with bytes of weights: written, and of all.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

struct Report {
  std::string architecture;
  gguf::DType type;  // of most matrices
  size_t n_tensors = 0;
  uint64_t bytes = 0;                 // of weights
  std::vector<std::string> left_out;  // tensors of the folder
  std::vector<std::string> notes;     // what the user should know, a sentence each
};

// Converts the model in `folder` to the file `out`, which appears when it is whole
// (gguf::OutputFile) and is none of those that are read. Before anything is written, everything is
// checked but the weights' values: also that this program would run the file. Holds a few MB of
// weights at a time. Throws gguf::Error.
Report Convert(const std::string& folder, const std::string& out, const Options& options);

}  // namespace convert

#endif  // PRONK_CONVERT_CONVERT_H_
