// The rows of the table, and functions that read a value from text, from a number and from a file.
#include "engine/sampling/settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <sstream>
#include <type_traits>

#include "engine/error.h"
#include "engine/sampling/dry_penalty.h"
#include "gguf/error.h"
#include "gguf/number.h"

namespace engine {
namespace {

using pronk::Origin;
using tokenizer::TokenId;

template <class T>
inline constexpr bool kHasOrigin = false;
template <class T>
inline constexpr bool kHasOrigin<pronk::Value<T>> = true;

// "top_k;top_p;temperature". Names that are unknown are added to `unknown`.
std::vector<SamplerStep> StepsIn(const std::string& text, std::vector<std::string>& unknown) {
  std::vector<SamplerStep> steps;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ';');) {
    const auto step = FindSamplerStep(name);
    if (step) {
      steps.push_back(*step);
    } else {
      unknown.push_back(name);
    }
  }
  return steps;
}

// Reads a bias in llama.cpp's form: "15043+1.5", "2-inf".
std::optional<std::pair<TokenId, float>> BiasIn(const std::string& text) {
  const size_t sign = std::min(text.find_first_of("+-", 1), text.size());
  const auto id = gguf::NumberIn<TokenId>(text.substr(0, sign));
  const std::string rest = text.substr(std::min(sign + 1, text.size()));
  const auto bias = gguf::NumberIn<float>(rest);
  if (!id || !bias || std::isnan(*bias) || rest.starts_with('-')) return std::nullopt;
  return std::make_pair(*id, text[sign] == '-' ? -*bias : *bias);
}

std::string ReadInto(pronk::Value<std::vector<SamplerStep>>& steps, const std::string& text) {
  std::vector<std::string> unknown;
  steps = StepsIn(text, unknown);
  if (unknown.empty()) return "";
  return "'" + gguf::Printable(unknown[0], 40) + "' is none of " + SamplerStepNames();
}

std::string ReadInto(pronk::Value<std::vector<std::string>>& texts, const std::string& text) {
  if (!texts.is_set() || text == "none") texts = std::vector<std::string>();
  if (text != "none") texts.value.push_back(text);
  return "";
}

std::string ReadInto(std::vector<std::pair<TokenId, float>>& biases, const std::string& text) {
  const auto bias = BiasIn(text);
  if (!bias) return text + ": expected ID+BIAS or ID-BIAS, for example 2-inf";
  biases.push_back(*bias);
  return "";
}

// Calls work(variable, its value) if the value is a number; a variable may keep its value's origin.
template <class Work>
void VisitNumber(const Setting::Variable& variable, Work work) {
  std::visit(
      [&](auto* at) {
        if constexpr (kHasOrigin<std::remove_reference_t<decltype(*at)>>) {
          if constexpr (std::is_arithmetic_v<decltype(at->value)>) work(*at, at->value);
        } else if constexpr (std::is_arithmetic_v<std::remove_reference_t<decltype(*at)>>) {
          work(*at, *at);
        }
      },
      variable);
}

// The form in which names are compared: "--top-k" is top_k, and "dry_base" is dry.base.
std::string Normalized(std::string_view name) {
  std::string plain(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::ranges::replace(plain, '-', '_');
  std::ranges::replace(plain, '.', '_');
  return plain;
}

}  // namespace

double Setting::Get() const {
  double number = 0;
  VisitNumber(variable, [&](auto&, auto& value) { number = static_cast<double>(value); });
  return number;
}

std::string Setting::Fault(double number) const {
  if (name == "mirostat" && number == 1)
    return "expected 0 or 2, found 1: there is only version 2, which does the same more simply";
  return RangeFault(number, low, high);
}

void Setting::Set(double number) const {
  VisitNumber(variable, [&](auto& to, auto& value) {
    to = static_cast<std::remove_reference_t<decltype(value)>>(number);
  });
}

std::string Setting::Read(const std::string& text) const {
  if (is_number()) {
    const auto number = gguf::NumberIn<double>(text);
    if (!number || (is_whole() && *number != std::floor(*number)))
      return std::string("expected a ") + (is_whole() ? "whole " : "") + "number, found '" +
             gguf::Printable(text, 40) + "'";
    const std::string fault = Fault(*number);
    if (fault.empty()) Set(*number);
    return fault;
  }
  return std::visit(
      [&](auto* to) -> std::string {
        if constexpr (requires { ReadInto(*to, text); }) return ReadInto(*to, text);
        const bool is_on = text == "1" || text == "true";
        if (!is_on && text != "0" && text != "false")
          return "expected true or false, found '" + gguf::Printable(text, 40) + "'";
        if constexpr (std::is_same_v<decltype(to), bool*>) *to = is_on;
        return "";
      },
      variable);
}

pronk::Origin Setting::origin() const {
  return std::visit(
      [](const auto* from) {
        if constexpr (kHasOrigin<std::remove_cvref_t<decltype(*from)>>) return from->origin;
        return Origin::kDefault;
      },
      variable);
}

std::vector<Setting> Settings(Sampling& s) {
  constexpr double kMax = 1e6, kMaxPenalty = 1e9;
  pronk::Dry& dry = s.dry;
  return {
      {"temperature", &s.temperature, 0, kMax, "temp", "--temp,--temperature X",
       "Temperature; 0 takes the most likely token"},
      {"top_k", &s.top_k, -1, kMaxTokens, "top_k", "--top-k X",
       "Keep this many of the most likely tokens; 0 keeps all of them"},
      {"top_p", &s.top_p, 0, 1, "top_p", "--top-p X",
       "Keep the most likely tokens whose probabilities add up to this"},
      {"min_p", &s.min_p, 0, 1, "min_p", "--min-p X",
       "Keep tokens whose probability is at least this times the highest one"},
      {"typical_p", &s.typical_p, 0, 1, "", "--typical,--typical-p X",
       "Locally typical sampling: keep tokens of about average surprisal whose probabilities add "
       "up to this; 1 is off"},
      {"repeat_penalty", &s.repeat_penalty, 1e-3, 1e3, "penalty_repeat", "--repeat-penalty X",
       "Divide the logits of recent tokens by this; 1 is off"},
      {"repeat_last_n", &s.repeat_last_n, -1, kMaxTokens, "penalty_last_n", "--repeat-last-n X",
       "The number of recent tokens that penalties consider; -1: all tokens"},
      {"presence_penalty", &s.presence_penalty, -kMaxPenalty, kMaxPenalty, "",
       "--presence-penalty X", "Subtract this from the logits of recent tokens"},
      {"frequency_penalty", &s.frequency_penalty, -kMaxPenalty, kMaxPenalty, "",
       "--frequency-penalty X", "Subtract this from a recent token's logit for each occurrence"},
      {"logit_bias", &s.logit_bias, 0, 0, "", "--logit-bias ID+BIAS",
       "Make a token likelier (ID+BIAS) or rarer (ID-BIAS)"},
      {"temperature_range", &s.temperature_range, 0, kMax, "", "--dynatemp-range X",
       "Vary the temperature by this around --temp, lower where the model is sure; 0 is off"},
      {"temperature_exponent", &s.temperature_exponent, 0, kMax, "",
       "--dynatemp-exp,--dynatemp-exponent X",
       "Exponent of the normalized entropy for --dynatemp-range"},
      {"top_n_sigma", &s.top_n_sigma, -1, kMax, "", "--top-nsigma,--top-n-sigma X",
       "Keep logits at most this many standard deviations below the best; 0 or less is off"},
      {"xtc_probability", &s.xtc_probability, 0, 1, "xtc_probability", "--xtc-probability X",
       "Exclude the top choices with this probability; 0 is off"},
      {"xtc_threshold", &s.xtc_threshold, 0, 1, "xtc_threshold", "--xtc-threshold X",
       "Tokens at least this likely are top choices; the least likely of them stays"},
      {"dry.multiplier", &dry.multiplier, 0, kMax, "", "--dry-multiplier X",
       "DRY: lower the logit of a token that continues a repetition by this; 0 is off"},
      {"dry.base", &dry.base, 1, kMax, "", "--dry-base X",
       "DRY: the penalty grows by this factor with each token beyond --dry-allowed-length"},
      {"dry.allowed_length", &dry.allowed_length, 0, kMaxTokens, "", "--dry-allowed-length X",
       "DRY: repetitions of up to this many tokens are not penalized"},
      {"dry.last_n", &dry.last_n, -1, kMaxTokens, "", "--dry-penalty-last-n X",
       "DRY: the number of recent tokens that it considers; -1: all tokens"},
      {"dry.breakers", &dry.breakers, 0, 0, "", "--dry-sequence-breaker TEXT",
       "DRY: a repetition ends at this text (repeatable; 'none': at no text; default: line end : "
       "\" *)"},
      {"mirostat", &s.mirostat.version, 0, 2, "mirostat", "--mirostat X",
       "2: Mirostat 2, which holds the surprisal of the text at --mirostat-ent and replaces top-k, "
       "top-p and the like; 0 is off"},
      {"mirostat.tau", &s.mirostat.tau, 0, kMax, "mirostat_tau", "--mirostat-ent X",
       "The surprisal (-log2 of a token's probability) that Mirostat aims at, in bits"},
      {"mirostat.eta", &s.mirostat.eta, 0, kMax, "mirostat_eta", "--mirostat-lr X",
       "How fast Mirostat adapts to the surprisal of the text"},
      {"steps", &s.steps, 0, 0, "sequence", "--samplers NAMES",
       "The order of the sampling steps, for example 'top_k;top_p;temperature'"},
      {"ignore_end", &s.ignore_end, 0, 0, "", "--ignore-eos", "Do not let the model end the text"},
      {"seed", &s.seed, -1, 0x1p53, "", "-s,--seed X",
       "Seed of the random numbers; -1: a new one each time"},
  };
}

const Setting* FindSetting(const std::vector<Setting>& settings, std::string_view name) {
  const std::string plain = Normalized(name);
  const auto is_meant = [&](const Setting& setting) {
    if (plain == Normalized(setting.name) || plain == setting.key) return true;
    std::istringstream flags(std::string(setting.flags.substr(0, setting.flags.find(' '))));
    for (std::string flag; std::getline(flags, flag, ',');) {
      if (plain == Normalized(flag)) return true;
    }
    return false;
  };
  const auto found = std::ranges::find_if(settings, is_meant);
  return plain.empty() || found == settings.end() ? nullptr : &*found;
}

std::string RangeFault(double number, double low, double high) {
  if (number >= low && number <= high) return "";
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(), "expected a number from %.15g to %.15g, found %.9g", low,
                high, number);
  return text.data();
}

void CheckRange(std::string_view name, double number, double low, double high) {
  const std::string fault = RangeFault(number, low, high);
  if (!fault.empty()) throw Error(name, ": ", fault);
}

std::vector<std::string> ReadSampling(const gguf::Metadata& metadata, Sampling& sampling) {
  std::vector<std::string> notes, known;
  const std::string prefix(kSamplingPrefix);
  for (const Setting& setting : Settings(sampling)) {
    if (setting.key.empty()) continue;
    const std::string& key = known.emplace_back(prefix + std::string(setting.key));
    if (!metadata.Has(key)) continue;
    if (!setting.is_number()) {  // the steps; llama.cpp ignores unknown names as well
      std::vector<std::string> unknown;
      std::vector<SamplerStep> steps = StepsIn(std::string(metadata.GetString(key)), unknown);
      if (!unknown.empty())
        notes.push_back(key + ": '" + unknown[0].substr(0, 40) + "' is none of " +
                        SamplerStepNames() + ", and is ignored");
      if (steps.empty() || sampling.steps.is_set()) continue;
      sampling.steps = std::move(steps);
      sampling.steps.origin = Origin::kFile;
      continue;
    }
    const double number =
        setting.is_whole() ? static_cast<double>(metadata.GetInt(key)) : metadata.GetFloat(key);
    const std::string fault = RangeFault(number, setting.low, setting.high);
    if (!fault.empty()) metadata.Fail(key, fault);
    if (setting.origin() == Origin::kCaller) continue;
    setting.Set(number);
    std::visit(
        [](auto* value) {
          if constexpr (kHasOrigin<std::remove_reference_t<decltype(*value)>>)
            value->origin = Origin::kFile;
        },
        setting.variable);
  }
  for (const gguf::Metadata::Entry& entry : metadata.entries()) {
    if (!entry.key.starts_with(prefix) || std::ranges::count(known, entry.key) > 0) continue;
    notes.push_back(std::string(entry.key) + ": there is no such sampler here");
    break;  // one message is enough: a file can have any number of errors
  }
  return notes;
}

std::vector<std::string> ResolveSampling(const gguf::Metadata& metadata,
                                         const tokenizer::Tokenizer& tokenizer,
                                         Sampling& sampling) {
  std::vector<std::string> notes = ReadSampling(metadata, sampling);
  for (const Setting& setting : Settings(sampling)) {
    // A double cannot represent every seed.
    const bool may_be_large = setting.name == "seed" && sampling.seed >= -1;
    if (setting.is_number() && !may_be_large)
      CheckRange(setting.name, setting.Get(), setting.low, setting.high);
  }
  for (const SamplerStep step : sampling.steps.value)
    CheckRange("steps", static_cast<int>(step), 0, static_cast<int>(SamplerStep::kCount) - 1);
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (!tokenizer.vocab().Has(id)) throw Error("logit_bias: the vocabulary has no token ", id);
    if (std::isnan(bias)) throw Error("logit_bias: the bias of token ", id, " is not a number");
  }
  if (sampling.dry.IsOn()) {
    try {
      TokensWith(sampling.dry.breakers, tokenizer);
    } catch (const Error& error) {
      throw Error("dry.breakers: ", error.what());
    }
  }
  if (sampling.seed < 0) sampling.seed.value = std::random_device()();
  return notes;
}

}  // namespace engine
