// Architectures without a published file's keys in data/published. Their small models are Hugging
// Face folders (data/transformers), which convert/transformers_test.cc converts while it runs.
#pragma once

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/support/data.h"

namespace test {

inline std::set<std::string, std::less<>> MadeWhileTesting() {
  std::ifstream in(DataPath("transformers/architectures.txt"));
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace test
