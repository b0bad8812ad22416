#include "cli/options/sampling_options.h"

#include <charconv>
#include <cmath>
#include <random>
#include <sstream>

#include "cli/command.h"
#include "cli/options/model_options.h"
#include "engine/error.h"

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
      throw UsageError("--samplers: '" + name + "' is none of " + engine::SamplerStepNames());
    }
    steps.push_back(*step);
  }
  return steps;
}

}  // namespace

void SamplingOptions::AddFlags(Command& command) {
  const auto number = [&](const char* flag, auto& value, const char* what) -> Flag& {
    return command.Add(flag, value, what).ShowDefault().Type("X").Group("Sampling");
  };
  number("-s,--seed", seed, "Seed of the random numbers; -1 is another one each time").AtLeast(-1);
  number("--temp,--temperature", sampler.temperature, "Temperature; 0 takes the most likely token")
      .Between(0, 1e6);
  number("--top-k", sampler.top_k, "Keep the K most likely; 0 keeps all");
  number("--top-p", sampler.top_p, "Keep the most likely up to this probability together")
      .Between(0, 1);
  number("--min-p", sampler.min_p, "Keep those at least this share as likely as the best")
      .Between(0, 1);
  number("--typical,--typical-p", sampler.typical, "Locally typical sampling; 1 is off")
      .Between(0, 1);
  number("--repeat-penalty", sampler.penalties.repeat, "Divide logits of recent tokens; 1 is off")
      .Between(1e-3, 1e3);
  number("--repeat-last-n", sampler.repeat_last_n, "Tokens the penalties look back on; -1: all")
      .Between(-1, kMaxTokens);
  number("--presence-penalty", sampler.penalties.presence, "Subtract from logits of recent tokens");
  number("--frequency-penalty", sampler.penalties.frequency,
         "The same for each time they occurred");
  command
      .Add("--logit-bias ID+BIAS", logit_bias, "ID+BIAS or ID-BIAS: make a token likelier or rarer")
      .Group("Sampling");
  AddMoreSamplers(command);
  command.Add("--samplers NAMES", samplers, "Their order, for example 'top_k;top_p;temperature'")
      .Group("Sampling");
  command.Add("--ignore-eos", ignore_eos, "Never end the text by itself").Group("Sampling");
}

void SamplingOptions::AddMoreSamplers(Command& command) {
  const auto number = [&](const char* flag, auto& value, double low, double high,
                          const char* what) {
    command.Add(flag, value, what).ShowDefault().Type("X").Group("Sampling").Between(low, high);
  };
  constexpr double kMax = 1e6;
  number("--dynatemp-range", sampler.temperature_range, 0, kMax,
         "Temperature from --temp minus this, where the model is sure, to plus this; 0 is off");
  number("--dynatemp-exp", sampler.temperature_exponent, 0, kMax,
         "How the entropy becomes that temperature: its power");
  number("--top-nsigma,--top-n-sigma", sampler.top_n_sigma, -1, kMax,
         "Keep logits so many standard deviations below the best; 0 or less is off");
  number("--xtc-probability", sampler.xtc_probability, 0, 1,
         "Exclude top choices, with this probability; 0 is off");
  number("--xtc-threshold", sampler.xtc_threshold, 0, 1,
         "Those at least this likely are top choices; the least likely of them stays");
  engine::DryOptions& dry = sampler.dry;
  number("--dry-multiplier", dry.multiplier, 0, kMax,
         "DRY: logits of tokens that go on with a repetition fall by this; 0 is off");
  number("--dry-base", dry.base, 1, kMax, "... times this for each token that it is longer");
  number("--dry-allowed-length", dry.allowed_length, 0, kMaxTokens,
         "... than so many tokens, which may repeat as they like");
  number("--dry-penalty-last-n", dry.last_n, -1, kMaxTokens,
         "Tokens that DRY looks back on; -1: all");
  command
      .Add("--dry-sequence-breaker TEXT", dry_breakers,
           "No repetition goes beyond this text (repeatable; none: no limit; default: line end : "
           "\" *)")
      .Group("Sampling");
  number("--mirostat", mirostat, 0, 2,
         "2: steer the surprise of the text instead of cutting tokens off; 0 is off");
  number("--mirostat-ent", sampler.mirostat.tau, 0, kMax, "The surprise to aim at, in bits");
  number("--mirostat-lr", sampler.mirostat.eta, 0, kMax, "How fast Mirostat learns");
}

engine::SamplerOptions SamplingOptions::For(const tokenizer::Tokenizer& tokenizer) const {
  const tokenizer::Vocabulary& vocab = tokenizer.vocab();
  engine::SamplerOptions options = sampler;
  if (mirostat == 1)
    throw UsageError("--mirostat 1: pronk has version 2 of it, which does the same simpler");
  options.mirostat.on = mirostat == 2;
  if (!options.dry.Active() && !dry_breakers.empty()) {
    throw UsageError("--dry-sequence-breaker has no effect without --dry-multiplier");
  }
  if (options.dry.Active() && dry_breakers != std::vector<std::string>{"none"}) {
    const std::vector<std::string> usual = {"\n", ":", "\"", "*"};
    try {
      options.dry.breakers =
          engine::TokensWith(dry_breakers.empty() ? usual : dry_breakers, tokenizer);
    } catch (const engine::Error& error) {
      throw UsageError("--dry-sequence-breaker: " + std::string(error.what()));
    }
  }
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
