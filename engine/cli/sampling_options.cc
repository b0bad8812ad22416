#include "engine/cli/sampling_options.h"

#include <charconv>
#include <cmath>
#include <random>
#include <sstream>

#include "engine/cli/command.h"
#include "engine/cli/model_options.h"

namespace cli {
namespace {

// "ID+BIAS" or "ID-BIAS", as llama.cpp writes it: "15043+1.5", "2-inf".
std::pair<tokenizer::TokenId, float> ParseLogitBias(const std::string& text,
                                                    const tokenizer::Vocabulary& vocab) {
  tokenizer::TokenId id = -1;
  float bias = 0;
  const char* end = text.data() + text.size();
  const auto [sign, id_error] = std::from_chars(text.data(), end, id);
  const bool has_sign = id_error == std::errc() && sign != end && (*sign == '+' || *sign == '-');
  const auto [rest, bias_error] = has_sign
                                      ? std::from_chars(sign + 1, end, bias)
                                      : std::from_chars_result{end, std::errc::invalid_argument};
  if (!has_sign || bias_error != std::errc() || rest != end || std::isnan(bias)) {
    throw UsageError("--logit-bias " + text + ": expected ID+BIAS or ID-BIAS, for example 2-inf");
  }
  if (id < 0 || static_cast<size_t>(id) >= vocab.size()) {
    throw UsageError("--logit-bias " + text + ": the vocabulary has ids 0 to " +
                     std::to_string(vocab.size() - 1));
  }
  return {id, *sign == '-' ? -bias : bias};
}

std::vector<engine::SamplerStep> ParseSteps(const std::string& text) {
  std::vector<engine::SamplerStep> steps;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ';');) {
    const auto step = engine::FindSamplerStep(name);
    if (!step) {
      throw UsageError("--samplers: '" + name +
                       "' is none of penalties, top_k, typ_p, top_p, min_p, temperature");
    }
    steps.push_back(*step);
  }
  return steps;
}

}  // namespace

void SamplingOptions::AddFlags(Command& command) {
  const auto number = [&](const char* flag, auto& value, const char* what) {
    return command.Add(flag, value, what).ShowDefault().Type("X").Group("Sampling");
  };
  number("-s,--seed", seed, "Seed of the random numbers; -1 is another one each time").AtLeast(-1);
  number("--temp", sampler.temperature, "Temperature; 0 takes the most likely token")
      .Between(0, 1e6);
  number("--top-k", sampler.top_k, "Keep the K most likely; 0 keeps all");
  number("--top-p", sampler.top_p, "Keep the most likely up to this probability together")
      .Between(0, 1);
  number("--min-p", sampler.min_p, "Keep those at least this share as likely as the best")
      .Between(0, 1);
  number("--typical", sampler.typical, "Locally typical sampling; 1 is off").Between(0, 1);
  number("--repeat-penalty", sampler.penalties.repeat, "Divide logits of recent tokens; 1 is off")
      .Between(1e-3, 1e3);
  number("--repeat-last-n", sampler.repeat_last_n, "Tokens the penalties look back on; -1: all")
      .Between(-1, kMaxTokens);
  number("--presence-penalty", sampler.penalties.presence, "Subtract from logits of recent tokens");
  number("--frequency-penalty", sampler.penalties.frequency,
         "The same for each time they occurred");
  command.Add("--logit-bias", logit_bias, "ID+BIAS or ID-BIAS: make a token likelier or rarer")
      .Type("ID+BIAS")
      .Group("Sampling");
  command.Add("--samplers", samplers, "Their order, for example 'top_k;top_p;temperature'")
      .Type("NAMES")
      .Group("Sampling");
  command.Add("--ignore-eos", ignore_eos, "Never end the text by itself").Group("Sampling");
}

engine::SamplerOptions SamplingOptions::For(const tokenizer::Vocabulary& vocab) const {
  engine::SamplerOptions options = sampler;
  options.seed = seed >= 0 ? static_cast<uint64_t>(seed) : std::random_device()();
  for (const std::string& text : logit_bias)
    options.logit_bias.push_back(ParseLogitBias(text, vocab));
  if (ignore_eos) {
    for (const tokenizer::TokenId id : vocab.eog) options.logit_bias.emplace_back(id, -INFINITY);
  }
  if (!samplers.empty()) options.steps = ParseSteps(samplers);
  return options;
}

}  // namespace cli
