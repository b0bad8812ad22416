// Model: a file, opened, checked and interpreted. Immutable after loading; sessions share it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "gguf/file.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// The type of most of a file's bytes; F32 if it has no tensors.
gguf::DType MainType(const gguf::File& file);

struct Model {
  gguf::File file;
  Config config;
  Weights weights;                                  // views into file
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;  // views into file
  std::vector<std::string> notes = {};  // a line for each part of the file that is ignored
  bool exact = false;                   // products round no activations

  // Throws gguf::Error. Reads only the file's head: weights are paged in when first used.
  static Model Load(const std::string& path, bool exact = false);
  // Interprets an open file.
  static Model From(gguf::File file, bool exact = false);

  // The bytes of weights read to generate one token: all tensors, but only one row of an embedding
  // table and only the experts that a token uses. (The output matrix is read whole.)
  uint64_t BytesPerToken() const;
  // Multiplications and additions in the matrix products of one token of a prompt, without logits.
  double OperationsPerToken() const;
  // The longest range of weights, at most 1 GiB, to measure how fast this machine reads them.
  std::span<const std::byte> LargestStretch() const;
};

}  // namespace engine
