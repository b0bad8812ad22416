// The importance of a matrix's columns for rounding: the mean squares of its inputs over a text,
// llama.cpp's "imatrix". Reads the GGUF form and the older .dat form, and writes GGUF.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/pass/input_squares.h"
#include "gguf/output_file.h"
#include "gguf/tensor.h"

namespace convert {

// How the squares were measured.
struct ImportanceSource {
  std::string text;  // the file's name
  uint32_t n_chunks = 0;
  uint32_t chunk_tokens = 0;
};

// Writes a file in GGUF's form, NAME.in_sum2 and NAME.counts, and commits it. Throws gguf::Error.
void WriteImportance(const engine::SquaresByTensor& squares, const ImportanceSource& source,
                     gguf::OutputFile& out);

class Importance {
 public:
  // Reads either form. Throws gguf::Error for other forms, and numbers that are not mean squares.
  static Importance Read(const std::string& path);

  const std::string& path() const { return path_; }
  size_t n_tensors() const { return means_.size(); }
  // [cols] for the index-th matrix of a tensor (a stack has one per expert); null if the file does
  // not contain the tensor. Throws gguf::Error if its shape differs.
  const float* Columns(const gguf::TensorView& tensor, uint64_t index) const;

 private:
  void ReadGguf();
  void ReadDat(std::span<const std::byte> bytes);
  void Add(std::string_view name, std::vector<float> means);

  std::string path_;
  std::map<std::string, std::vector<float>, std::less<>> means_;  // [n_matrices][cols]
};

}  // namespace convert
