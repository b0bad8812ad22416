// Files whose form is right and whose numbers are not: NaN, infinities, numbers that overflow or
// are too small, in blocks of every type. There must be an answer that is the same every time, or
// one line that says that the logits are not numbers; never an index made of a NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "gguf/dtype.h"
#include "kernels/matmul/reference.h"
#include "kernels/threads/cpu.h"
#include "tests/support/small_model.h"

namespace engine {
namespace {

using gguf::DType;
using tokenizer::TokenId;

// Two bytes repeated: most types keep scales as f16 at an even offset, bf16 is cut off an f32, and
// an f32 of the same two bytes twice is of the same kind.
struct Pattern {
  const char* name;
  uint16_t bits;
};
constexpr std::array kPatterns = {
    Pattern{"NaN", 0x7E00},       Pattern{"NaN of bf16", 0x7FC0},   Pattern{"infinity", 0x7C00},
    Pattern{"-infinity", 0xFC00}, Pattern{"bf16 infinity", 0x7F80}, Pattern{"largest", 0x7BFF},
    Pattern{"denormal", 0x0001},  Pattern{"all ones", 0xFFFF},      Pattern{"zero", 0x0000},
};

// Those that all of a model's matrices may have: I2_S has a scale for a matrix, and none for a row.
std::vector<DType> WeightTypes() {
  std::vector<DType> types;
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    if (kernels::IsWeightType(info.type) && info.tail_bytes == 0) types.push_back(info.type);
  }
  return types;
}

// The ids of four tokens, or the message.
std::string Generated(const Model& model, float temperature, size_t n_prompt) {
  SessionOptions options;
  options.n_threads = 1;
  options.context = 16;
  options.sampling.temperature = temperature;
  options.sampling.repeat_penalty = 1.3f;
  options.sampling.typical_p = 0.9f;
  Session session(model, options);
  std::string ids;
  try {
    session.Prefill(std::vector<TokenId>(n_prompt, 5));
    for (int i = 0; i < 4; ++i) {
      const TokenId id = session.Sample();
      EXPECT_TRUE(model.tokenizer->vocab().Has(id));
      ids += std::to_string(id) + " ";
      session.Decode(id);
    }
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the model's logits are not numbers: its weights are broken");
    return error.what();
  }
  return ids;
}

void ExpectDefined(const test::SmallModel& small, const std::string& name) {
  SCOPED_TRACE(name);
  const std::vector<std::byte> bytes = small.Bytes();
  const Model model = Model::From(gguf::File::Parse("f.gguf", bytes));
  for (const float temperature : {0.0f, 0.8f}) {
    for (const size_t n_prompt : {1, 5}) {
      EXPECT_EQ(Generated(model, temperature, n_prompt), Generated(model, temperature, n_prompt));
    }
  }
}

class Values : public testing::TestWithParam<DType> {};

TEST_P(Values, OddOnesGiveDefinedResults) {
  for (const std::string& target : kernels::CpuTargets()) {
    ASSERT_TRUE(kernels::LimitCpu(target));
    for (const Pattern& pattern : kPatterns) {
      const auto fill = [&](std::span<std::byte> bytes) {
        for (size_t i = 0; i + 2 <= bytes.size(); i += 2) {
          std::memcpy(bytes.data() + i, &pattern.bits, 2);
        }
      };
      ExpectDefined({.dtype = GetParam(), .fill = fill}, target + ": " + pattern.name);
    }
    std::mt19937 random(3);
    const auto fill = [&](std::span<std::byte> bytes) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    };
    ExpectDefined({.dtype = GetParam(), .fill = fill}, target + ": random bytes");
  }
  kernels::LimitCpu("");
}

INSTANTIATE_TEST_SUITE_P(EveryType, Values, testing::ValuesIn(WeightTypes()),
                         [](const auto& tested) {
                           return std::string(gguf::Info(tested.param).name);
                         });

// A model whose logits are all NaN must not pass for one that works.
TEST(ValuesOfLogits, NotNumbersAreSaid) {
  const auto fill = [](std::span<std::byte> bytes) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0xFF});
  };
  const std::vector<std::byte> bytes = test::SmallModel{.dtype = DType::kF32, .fill = fill}.Bytes();
  const Model model = Model::From(gguf::File::Parse("f.gguf", bytes));
  EXPECT_EQ(Generated(model, 0, 1), "the model's logits are not numbers: its weights are broken");
}

}  // namespace
}  // namespace engine
