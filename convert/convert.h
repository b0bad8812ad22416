// Converts a folder written by Hugging Face's libraries to a GGUF file. README.md has the overview.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gguf/dtype.h"

namespace convert {

struct Options {
  // The type of matrices; if unset, the type of most matrices. F32, F16, BF16 or a type that
  // kernels::EncodeRow() supports, with its number in general.file_type.
  std::optional<gguf::DType> type;
  uint32_t file_type = 0;
  int n_threads = 1;
  // Progress: bytes of weights written, and their total.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

struct Report {
  std::string architecture;
  gguf::DType type;  // the type of most matrices
  size_t n_tensors = 0;
  std::vector<std::string> left_out;  // tensors of the folder that were not converted
  std::vector<std::string> notes;     // notes to the user, a sentence each
};

// Converts the model in `folder` to the file `out`, which appears when complete (gguf::OutputFile)
// and must not be an input. Everything but the weights' values is checked first, including that
// this program would run the file. Keeps a few MB of weights in memory. Throws gguf::Error.
Report Convert(const std::string& folder, const std::string& out, const Options& options);

}  // namespace convert
