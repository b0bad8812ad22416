// Models whose structure is sound and whose values are not: metadata keys with odd values of every
// type, vocabularies and templates made to be slow or large, tensors missing, renamed and of other
// shapes, models in parts that do not fit together. For every architecture that the program knows,
// and every key that its sources name.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "tests/support/temp_dir.h"

namespace fuzz {

// The next of a series of choices: a number below n. From random numbers, or from a fuzzer's bytes.
using Choices = std::function<size_t(size_t n)>;

class HostileModels {
 public:
  // A small model of every architecture: those of tests/data, and for families that
  // differ from one of them in name alone, those again.
  HostileModels();

  size_t n_bases() const { return bases_.size(); }
  const std::string& NameOfBase(size_t base) const { return bases_[base].name; }
  std::vector<std::byte> Base(size_t base) const;
  // The keys that are read of this base's architecture.
  std::vector<std::string> Keys(size_t base) const;

  // The base with one key set to a value that the choices make.
  std::vector<std::byte> WithKey(size_t base, const std::string& key, const Choices& choose) const;
  // Some base with some changes.
  std::vector<std::byte> Next(const Choices& choose) const;
  // Some base in parts, some of them with false keys: writes them into the folder, and returns
  // the path of the first.
  std::string NextInParts(const test::TempDir& folder, const Choices& choose) const;

 private:
  struct Model {
    std::string name;  // general.architecture
    std::vector<std::byte> bytes;
  };
  std::vector<Model> bases_;
  std::vector<std::string> keys_;  // "ARCH." is the architecture's name
};

}  // namespace fuzz
