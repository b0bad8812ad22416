// Models with valid structure and hostile values, for every architecture that the program knows and
// every key that its sources name: metadata keys with odd values of every type, vocabularies and
// templates made to be slow or large, tensors missing, renamed and of other shapes, models in parts
// that do not fit together.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "tests/support/temp_dir.h"

namespace fuzz {

// Makes the next choice: a number below n, from random numbers or from a fuzzer's bytes.
using Choices = std::function<size_t(size_t n)>;

class HostileModels {
 public:
  // Starts from a small model of every architecture: the models of tests/data, and renamed copies
  // for families that differ from one of these only in name.
  HostileModels();

  size_t n_bases() const { return bases_.size(); }
  const std::string& NameOfBase(size_t base) const { return bases_[base].name; }
  std::vector<std::byte> Base(size_t base) const;
  // The keys that the sources read for this base's architecture.
  std::vector<std::string> Keys(size_t base) const;

  // The base with one key set to a value made from the choices.
  std::vector<std::byte> WithKey(size_t base, const std::string& key, const Choices& choose) const;
  // A chosen base with chosen changes.
  std::vector<std::byte> Next(const Choices& choose) const;
  // Writes a chosen base in parts, some with false keys, into the folder. Returns the first part's
  // path.
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
