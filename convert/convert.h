// From a folder as Hugging Face's libraries write it to a GGUF file. README.md tells the way.
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
  // The type of matrices; without it, the type of most of them. F32, F16, BF16 or one that
  // kernels::EncodeRow() knows, with its number in general.file_type.
  std::optional<gguf::DType> type;
  uint32_t file_type = 0;
  int n_threads = 1;
  // Called now and then with bytes of weights: written, and in all.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

struct Report {
  std::string architecture;
  gguf::DType type;  // of most matrices
  size_t n_tensors = 0;
  uint64_t bytes = 0;                 // of weights
  std::vector<std::string> left_out;  // tensors of the folder
  std::vector<std::string> notes;     // for the user, a sentence each
};

// Converts the model in `folder` to the file `out`, which appears when it is complete
// (gguf::OutputFile) and must not be one of those that are read. Everything but the weights' values
// is checked before anything is written, also that this program would run the file. Holds a few MB
// of weights at a time. Throws gguf::Error.
Report Convert(const std::string& folder, const std::string& out, const Options& options);

}  // namespace convert

#endif  // PRONK_CONVERT_CONVERT_H_
