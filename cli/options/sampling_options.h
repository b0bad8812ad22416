// The flags that decide how the next token is picked. Names and defaults are llama.cpp's.
#ifndef PRONK_CLI_OPTIONS_SAMPLING_OPTIONS_H_
#define PRONK_CLI_OPTIONS_SAMPLING_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/command_line.h"
#include "engine/sampling/sampler.h"
#include "tokenizer/tokenizer.h"

namespace cli {

struct SamplingOptions {
  engine::SamplerOptions sampler;
  int64_t seed = -1;  // -1: another one each time
  std::vector<std::string> logit_bias;
  std::string samplers;
  int mirostat = 0;
  std::vector<std::string> dry_breakers;
  bool ignore_eos = false;

  void AddFlags(Command& command);
  // What the flags mean for this vocabulary. Throws UsageError.
  engine::SamplerOptions For(const tokenizer::Tokenizer& tokenizer) const;

 private:
  void AddMoreSamplers(Command& command);
};

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_SAMPLING_OPTIONS_H_
