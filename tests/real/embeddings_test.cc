// Compares the vectors of a published model, all-MiniLM-L6-v2, with transformers' vectors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "engine/pronk.h"
#include "tests/real/real_model.h"
#include "tests/support/data.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

// The data, from data/real/minilm.py, are 500 lines in 79 languages and their vectors as bytes.
// Rounding to bytes lowers a cosine by up to 7e-5. A wrong token lowers it far more.
TEST(RealEmbeddings, LinesHaveTransformersVectors) {
  PRONK_REAL_MODEL(folder, "minilm");
  const TempDir dir;
  const std::string path = dir.Path("minilm.gguf");
  const Finished convert = RunProgram({Program(), "convert", folder, path});
  ASSERT_EQ(convert.status, 0) << convert.err;
  std::istringstream text(ReadText(DataPath("real/minilm.txt")));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const std::string codes = ReadText(DataPath("real/minilm.i8"));
  ASSERT_EQ(lines.size(), 500u);
  const std::vector<std::vector<float>> vectors = pronk::Embedder(pronk::Model(path)).Embed(lines);
  const size_t width = vectors.at(0).size();
  ASSERT_EQ(codes.size(), lines.size() * width);
  for (size_t i = 0; i < lines.size(); ++i) {
    double product = 0, ours = 0, theirs = 0;
    for (size_t k = 0; k < width; ++k) {
      const double x = vectors[i][k], y = static_cast<int8_t>(codes[i * width + k]);
      product += x * y, ours += x * x, theirs += y * y;
    }
    EXPECT_GT(product / std::sqrt(ours * theirs), 0.9999) << lines[i];
  }
}

}  // namespace
}  // namespace test
