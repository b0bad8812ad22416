// Model: a file opened, checked and understood. Immutable after loading; sessions share it.
#ifndef PRONK_ENGINE_MODEL_MODEL_H_
#define PRONK_ENGINE_MODEL_MODEL_H_

#include <memory>
#include <span>
#include <string>

#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "gguf/file.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// The type that most of a file's bytes are of; F32 where there are none.
gguf::DType MainType(const gguf::File& file);

struct Model {
  gguf::File file;
  Config config;
  Weights weights;                                  // views into file
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;  // views into file

  // Throws gguf::Error. Reads only the head of the file: weights come from the disk when first
  // used.
  static Model Load(const std::string& path);
  // The same of a file that is open already.
  static Model From(gguf::File file);

  // Weights that generating one token reads: all tensors, but of tables that are no output only
  // a row, and of experts only those that a token uses.
  uint64_t BytesPerToken() const;
  // Multiplications and additions in the products of one token of a prompt, whose logits nobody
  // asks for.
  double OperationsPerToken() const;
  // The longest stretch of memory that is nothing but weights (at most 1 GiB of it): to measure on
  // how fast this machine reads them.
  std::span<const std::byte> LargestStretch() const;
};

}  // namespace engine

#endif  // PRONK_ENGINE_MODEL_MODEL_H_
