// The library on top of the engine, whose headers it hides.
#include "engine/pronk.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <span>

#include "engine/model/model.h"
#include "engine/sampling/dry.h"
#include "engine/sampling/settings.h"
#include "engine/session/chat.h"
#include "engine/session/embedder.h"
#include "engine/session/encode.h"
#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "engine/session/session_file.h"
#include "grammar/constraint.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "kernels/machine/cpu.h"

namespace pronk {
namespace {

// What a function of the host threw, on its way through the engine.
struct HostError {
  std::exception_ptr thrown;
};

// Runs the function and turns any exception into an Error, but those of the host's own functions.
template <class Function>
auto Guarded(Function function) {
  try {
    return function();
  } catch (const HostError& error) {
    std::rethrow_exception(error.thrown);
  } catch (const std::bad_alloc&) {
    throw Error("out of memory");
  } catch (const std::exception& error) {
    throw Error(error.what());
  }
}

template <class... Args>
Callback<Args...> Marked(const Callback<Args...>& function) {
  return [&function](Args... args) {
    try {
      return function(args...);
    } catch (...) {
      throw HostError{std::current_exception()};
    }
  };
}

engine::SamplerOptions ToEngine(const Sampling& sampling, const engine::Model& model) {
  const tokenizer::Tokenizer& tokenizer = *model.tokenizer;
  engine::SamplerOptions result;
  engine::ReadSampling(model.file.metadata(), result);
  const auto take = [](const auto& from, auto& to) { to = from.value_or(to); };
  result.seed = sampling.seed;
  take(sampling.temperature, result.temperature);
  result.temperature_range = sampling.temperature_range;
  result.temperature_exponent = sampling.temperature_exponent;
  take(sampling.top_k, result.top_k);
  result.typical = sampling.typical;
  take(sampling.top_p, result.top_p);
  take(sampling.min_p, result.min_p);
  result.top_n_sigma = sampling.top_n_sigma;
  take(sampling.xtc_probability, result.xtc_probability);
  take(sampling.xtc_threshold, result.xtc_threshold);
  take(sampling.repeat_penalty, result.penalties.repeat);
  result.penalties.frequency = sampling.frequency_penalty;
  result.penalties.presence = sampling.presence_penalty;
  take(sampling.penalty_last_n, result.repeat_last_n);
  const Dry& dry = sampling.dry;
  result.dry = {dry.multiplier, dry.base, dry.allowed_length, dry.last_n, {}};
  if (result.dry.Active()) result.dry.breakers = engine::TokensWith(dry.breakers, tokenizer);
  if (sampling.mirostat.on) result.mirostat.version = *sampling.mirostat.on ? 2 : 0;
  take(sampling.mirostat.tau, result.mirostat.tau);
  take(sampling.mirostat.eta, result.mirostat.eta);
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (id < 0 || static_cast<size_t>(id) >= tokenizer.vocab().size()) {
      throw Error("logit_bias: the vocabulary has no token " + std::to_string(id));
    }
    result.logit_bias.emplace_back(id, bias);
  }
  if (sampling.ignore_end) {
    for (const auto id : tokenizer.vocab().eog) result.logit_bias.emplace_back(id, -INFINITY);
  }
  for (const engine::Setting& setting : engine::Settings(result)) {
    engine::CheckRange(setting.name, setting.Get(), setting.low, setting.high);
  }
  if (!sampling.steps.empty()) result.steps.clear();
  for (const std::string& name : sampling.steps) {
    const auto step = engine::FindSamplerStep(name);
    if (!step) throw Error("steps: '" + name + "' is none of " + engine::SamplerStepNames());
    result.steps.push_back(*step);
  }
  return result;
}

engine::SessionOptions ToEngine(const Options& options, const engine::Model& model,
                                const engine::Model* draft) {
  engine::CheckRange("context", static_cast<double>(options.context), 0, engine::kMaxTokens);
  engine::CheckRange("threads", options.threads, 0, engine::kMaxThreads);
  engine::SessionOptions result;
  result.context = options.context;
  result.n_threads = options.threads;
  result.draft.on = true;  // does not change the text
  result.draft.model = draft;
  result.sampler = ToEngine(options.sampling, model);
  return result;
}

End ToPublic(engine::StopReason reason) {
  constexpr End kEnds[] = {End::kText, End::kStop, End::kLength, End::kContext, End::kCaller};
  static_assert(std::size(kEnds) == static_cast<size_t>(engine::StopReason::kInterrupted) + 1);
  return kEnds[static_cast<size_t>(reason)];  // both enums have the same order
}

Completion ToPublic(engine::GenerateResult result) {
  Completion completion;
  completion.text = std::move(result.text);
  completion.thinking = std::move(result.thinking);
  completion.end = ToPublic(result.stop_reason);
  completion.n_prompt = result.n_prompt;
  completion.n_generated = result.tokens.size();
  completion.prompt_seconds = result.prompt_seconds;
  completion.generate_seconds = result.decode_seconds;
  return completion;
}

// The ids of a prompt after a text.
std::vector<tokenizer::TokenId> Read(const engine::Model& model, std::string_view text,
                                     const Reading& reading,
                                     std::span<const tokenizer::TokenId> so_far, size_t room) {
  const tokenizer::Vocabulary& vocab = model.tokenizer->vocab();
  std::vector<tokenizer::TokenId> ids(so_far.begin(), so_far.end());
  if (text.empty() && !ids.empty()) return ids;
  const bool begins = reading.bos.value_or(ids.empty() && vocab.add_bos && vocab.bos >= 0);
  if (begins && vocab.bos < 0) throw Error("bos: the vocabulary has no token that begins a text");
  if (begins) ids.push_back(vocab.bos);
  const tokenizer::EncodeOptions options{.add_bos = false, .parse_special = reading.special};
  if (reading.joined) return engine::EncodeAfter(model, ids, text, options, room);
  const auto more = engine::Encode(model, text, options, room - std::min(room, ids.size()));
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

engine::Model Open(const std::string& path) {
  if (!kernels::CpuIsSupported()) throw Error("this CPU lacks the instructions of this build");
  return engine::Model::Load(path);
}

// A session with everything it borrows.
struct Borrower {
  std::shared_ptr<const engine::Model> model, draft;  // draft may be null
  engine::Session session;
  // The last text's, with its caches for the next.
  std::shared_ptr<const grammar::Grammar> grammar = nullptr;
  std::optional<grammar::Constraint> constraint = {};

  Borrower(std::shared_ptr<const engine::Model> shared,
           std::shared_ptr<const engine::Model> shared_draft, const Options& options)
      : model(std::move(shared)),
        draft(std::move(shared_draft)),
        session(*model, ToEngine(options, *model, draft.get())) {}

  engine::GenerateOptions OptionsFor(const Limits& limits,
                                     std::shared_ptr<const grammar::Grammar> wanted) {
    if (wanted != grammar) {
      grammar = std::move(wanted);
      constraint.reset();
      if (grammar != nullptr) constraint.emplace(grammar, *model->tokenizer);
    }
    engine::CheckRange("max_tokens", limits.max_tokens, -1, engine::kMaxTokens);
    engine::GenerateOptions result;
    result.max_tokens = limits.max_tokens;
    result.stop_texts = limits.stops;
    result.constraint = constraint ? &*constraint : nullptr;
    result.prompt_progress = Marked(limits.on_prompt);
    return result;
  }

  void Save(const std::string& path) {
    if (!session.has_logits()) throw Error(path + ": nothing was read that could be saved");
    engine::SaveSession(session, path);
  }
};

}  // namespace

struct Model::Impl : engine::Model {};

struct Grammar::Impl : grammar::Grammar {};

struct Session::Impl : Borrower {
  using Borrower::Borrower;
};

struct Chat::Impl : Borrower {
  engine::Chat chat;
  OnText on_thinking;

  Impl(const pronk::Model& shared, std::string system, const Options& options)
      : Borrower(shared.impl_, options.draft ? options.draft->impl_ : nullptr, options),
        chat(session, std::move(system), engine::ChatForm(*model)) {}
};

std::string Version() { return PRONK_VERSION; }

Model::Model(const std::string& path)
    : impl_(Guarded([&] { return std::make_shared<const Impl>(Impl{Open(path)}); })) {}

std::string Model::architecture() const { return impl_->config.architecture; }
std::size_t Model::context_length() const { return impl_->config.context_length; }
std::size_t Model::size_in_bytes() const { return impl_->file.tensor_bytes(); }

std::vector<std::int32_t> Model::Tokenize(std::string_view text, const Reading& reading) const {
  return Guarded([&] { return Read(*impl_, text, reading, {}, engine::kMaxTokens); });
}

Grammar Grammar::JsonSchema(const std::string& schema) {
  return Guarded([&] { return Grammar(Impl{grammar::ParseJsonSchema(schema)}); });
}
Grammar Grammar::JsonObject() {
  return Guarded([&] { return Grammar(Impl{grammar::JsonObject()}); });
}
Grammar Grammar::Gbnf(const std::string& rules) {
  return Guarded([&] { return Grammar(Impl{grammar::ParseGbnf(rules)}); });
}
Grammar::Grammar(Impl impl) : impl_(std::make_shared<const Impl>(std::move(impl))) {}

Session::Session(const Model& model, const Options& options)
    : impl_(Guarded([&] {
        return std::make_unique<Impl>(model.impl_, options.draft ? options.draft->impl_ : nullptr,
                                      options);
      })) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Completion Session::Complete(std::string_view prompt, const OnText& on_text, const Limits& limits) {
  return Guarded([&] {
    engine::Session& session = impl_->session;
    const std::span<const tokenizer::TokenId> so_far = session.tokens();
    const std::vector<tokenizer::TokenId> ids =
        Read(session.model(), prompt, limits.reading, so_far, session.capacity());
    const engine::GenerateOptions options = impl_->OptionsFor(limits, limits.grammar.impl_);
    if (ids.size() > session.capacity()) {
      const auto common = static_cast<size_t>(std::ranges::mismatch(ids, so_far).in1 - ids.begin());
      engine::ThrowNoRoom(ids.size() - common, /*at_least=*/false, session.capacity() - common,
                          session.model().config);
    }
    const size_t n_reused = session.RewindToCommon(ids);
    return ToPublic(
        engine::Generate(session, std::span(ids).subspan(n_reused), options, Marked(on_text)));
  });
}

void Session::Clear() { impl_->session.Rewind(0); }
void Session::Save(const std::string& path) {
  Guarded([&] { impl_->Save(path); });
}
void Session::Load(const std::string& path) {
  Guarded([&] { engine::LoadSession(impl_->session, path); });
}

Chat::Chat(const Model& model, std::string system, const Options& options)
    : impl_(Guarded([&] { return std::make_unique<Impl>(model, std::move(system), options); })) {}
Chat::~Chat() = default;
Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;

Completion Chat::Say(const std::string& text, const OnText& on_text, const Limits& limits) {
  return Guarded([&] {
    engine::GenerateOptions options = impl_->OptionsFor(limits, limits.grammar.impl_);
    options.on_thinking = Marked(impl_->on_thinking);
    return ToPublic(impl_->chat.Say(text, std::move(options), Marked(on_text)).generated);
  });
}

struct Embedder::Impl {
  std::shared_ptr<const engine::Model> model;
  engine::Embedder embedder;

  Impl(std::shared_ptr<const engine::Model> shared, const engine::SessionOptions& options,
       std::optional<engine::Pooling> pooling)
      : model(std::move(shared)), embedder(*model, options, pooling) {}
};

Embedder::Embedder(const Model& model, Pooling pooling, const Options& options)
    : impl_(Guarded([&] {
        engine::SessionOptions session = ToEngine(options, *model.impl_, nullptr);
        session.kv_type = kernels::KvType::kF32;  // kept for one pass
        constexpr engine::Pooling kNamed[] = {engine::Pooling::kNone, engine::Pooling::kMean,
                                              engine::Pooling::kFirst, engine::Pooling::kLast};
        const engine::Pooling named = kNamed[static_cast<size_t>(pooling)];
        if (model.impl_->config.pooling == engine::Pooling::kRank)
          throw Error("this is a reranker, which makes scores, not vectors");
        const auto asked = pooling == Pooling::kOfFile ? std::nullopt : std::optional(named);
        return std::make_unique<Impl>(model.impl_, session, asked);
      })) {}
Embedder::~Embedder() = default;
Embedder::Embedder(Embedder&&) noexcept = default;
Embedder& Embedder::operator=(Embedder&&) noexcept = default;

std::vector<std::vector<float>> Embedder::Embed(const std::vector<std::string>& texts) {
  return Guarded([&] {
    std::vector<std::vector<tokenizer::TokenId>> ids;
    for (const std::string& text : texts) {
      ids.push_back(engine::Encode(*impl_->model, text, {}, impl_->embedder.capacity()));
    }
    std::vector<std::vector<float>> vectors;
    const size_t width = impl_->embedder.width();
    impl_->embedder.Embed(ids, [&](size_t, size_t n, std::span<const float> rows) {
      for (size_t i = 0; i < n; ++i) {
        const auto row = rows.subspan(i * width, width);
        vectors.emplace_back(row.begin(), row.end());
      }
      return true;
    });
    return vectors;
  });
}

void Chat::SetThinking(const std::string& level) {
  Guarded([&] { impl_->chat.SetThinking(level); });
}
void Chat::OnThinking(const OnText& on_thinking) { impl_->on_thinking = on_thinking; }
void Chat::Clear() { impl_->chat.Clear(); }
void Chat::Save(const std::string& path) {
  Guarded([&] { impl_->Save(path); });
}
void Chat::Load(const std::string& path) {
  Guarded([&] { engine::LoadSession(impl_->session, path); });
}

}  // namespace pronk
