// The smallest complete models: one layer, a vocabulary of bytes, about 20 KB. For tests that
// damage models, or fill their weights with odd values.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gguf/dtype.h"
#include "tests/support/vocab_spec.h"

namespace test {

struct SmallModel {
  std::string tokenizer = "llama";         // or "gpt2"
  gguf::DType dtype = gguf::DType::kQ8_0;  // the type of all matrices
  // Fills the data of each matrix. Absent: small pseudo-random weights, for F32 and Q8_0 only.
  std::function<void(std::span<std::byte>)> fill;

  // Changes the model's vocabulary.
  std::function<void(VocabSpec&)> change_vocabulary = nullptr;

  std::string chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";

  // The model as a GGUF file.
  std::vector<std::byte> Bytes() const;
};

}  // namespace test
