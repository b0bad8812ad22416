// Sets options of pronk.h by name.
#include <string>
#include <string_view>

#include "engine/error.h"
#include "engine/library/handles.h"
#include "engine/sampling/settings.h"

namespace library {
namespace {

// The options other than sampling.
std::vector<engine::Setting> OwnSettings(pronk::Options& options) {
  return {{"context", &options.context, 0, engine::kMaxTokens},
          {"threads", &options.threads, 0, engine::kMaxThreads},
          {"cache_bits", &options.cache_bits, 4, 32}};
}

}  // namespace

engine::SessionOptions ToEngine(pronk::Options options, const engine::Model& model,
                                const engine::Model* draft) {
  for (const engine::Setting& own : OwnSettings(options))
    engine::CheckRange(own.name, own.Get(), own.low, own.high);
  engine::SessionOptions result = {.n_threads = options.threads};
  if (options.context != 0) result.context = options.context;
  const int bits = options.cache_bits;
  if (bits != 4 && bits != 8 && bits != 16 && bits != 32) {
    throw engine::Error("cache_bits: expected 4, 8, 16 or 32, found ", bits);
  }
  result.kv_type = model.exact  ? kernels::KvType::kF32
                   : bits == 4  ? kernels::KvType::kQ4_0
                   : bits == 8  ? kernels::KvType::kQ8_0
                   : bits == 16 ? kernels::KvType::kF16
                                : kernels::KvType::kF32;
  result.draft.on = true;  // drafts do not change the text
  result.draft.model = draft;
  engine::ResolveSampling(model.file.metadata(), *model.tokenizer, options.sampling);
  result.sampling = std::move(options.sampling);
  return result;
}

}  // namespace library

namespace pronk {
namespace {

// Calls take(setting) with the option of this name. take() returns the fault of the value.
template <class Take>
void SetBy(Options& options, std::string_view name, const Take& take) {
  for (const auto& settings : {library::OwnSettings(options), engine::Settings(options.sampling)}) {
    const engine::Setting* const setting = engine::FindSetting(settings, name);
    if (setting == nullptr) continue;
    const std::string fault = take(*setting);
    if (!fault.empty()) throw Error(std::string(setting->name) + ": " + fault);
    return;
  }
  throw Error("there is no option '" + std::string(name) + "'");
}

}  // namespace

void Set(Options& options, std::string_view name, const std::string& value) {
  if (name == "draft") {
    options.draft.emplace(value);
    return;
  }
  if (name == "chat_template") {
    options.chat_template = value;
    return;
  }
  SetBy(options, name, [&](const engine::Setting& setting) { return setting.Read(value); });
}

void Set(Options& options, std::string_view name, double number) {
  SetBy(options, name, [&](const engine::Setting& setting) {
    if (!setting.is_number()) return std::string("expected a text, found a number");
    std::string fault = engine::RangeFault(number, setting.low, setting.high);
    if (fault.empty()) setting.Set(number);
    return fault;
  });
}

}  // namespace pronk
