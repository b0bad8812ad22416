// The library on top of the engine, whose headers it hides.
#include "engine/pronk.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <exception>
#include <new>
#include <span>

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/sampling/dry.h"
#include "engine/sampling/log_probabilities.h"
#include "engine/sampling/settings.h"
#include "engine/session/batch.h"
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

// Calls a function and turns any exception into an Error, but those of the host's own functions.
template <class Function, class... Args>
auto Guarded(Function function, Args&&... args) {
  try {
    return std::invoke(function, std::forward<Args>(args)...);
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
  return [function](Args... args) {
    try {
      return function(args...);
    } catch (...) {
      throw HostError{std::current_exception()};
    }
  };
}

// Calls visit(name, field) for a Sampling's numbers but the seed, by engine::Settings' names.
template <class Sampling, class Visit>
void ForEachNumber(Sampling& sampling, const Visit& visit) {
  visit("temperature", sampling.temperature);
  visit("temperature_range", sampling.temperature_range);
  visit("temperature_exponent", sampling.temperature_exponent);
  visit("top_k", sampling.top_k);
  visit("typical", sampling.typical);
  visit("top_p", sampling.top_p);
  visit("min_p", sampling.min_p);
  visit("top_n_sigma", sampling.top_n_sigma);
  visit("xtc_probability", sampling.xtc_probability);
  visit("xtc_threshold", sampling.xtc_threshold);
  visit("repeat_penalty", sampling.repeat_penalty);
  visit("frequency_penalty", sampling.frequency_penalty);
  visit("presence_penalty", sampling.presence_penalty);
  visit("penalty_last_n", sampling.penalty_last_n);
  visit("dry.multiplier", sampling.dry.multiplier);
  visit("dry.base", sampling.dry.base);
  visit("dry.allowed_length", sampling.dry.allowed_length);
  visit("dry.last_n", sampling.dry.last_n);
  visit("mirostat", sampling.mirostat.on);
  visit("mirostat.tau", sampling.mirostat.tau);
  visit("mirostat.eta", sampling.mirostat.eta);
}

// The number in a field; none where it is left to the file and the default.
std::optional<double> Number(float number) { return number; }
std::optional<double> Number(int number) { return number; }
std::optional<double> Number(bool is_on) { return is_on ? 2 : 0; }  // mirostat's version
template <class T>
std::optional<double> Number(const std::optional<T>& field) {
  if (field) return Number(*field);
  return std::nullopt;
}

void SetNumber(float& field, double number) { field = static_cast<float>(number); }
void SetNumber(int& field, double number) { field = static_cast<int>(number); }
template <class T>
void SetNumber(std::optional<T>& field, double number) {
  field = static_cast<T>(number);
}

engine::SamplerOptions ToEngine(const Sampling& sampling, const engine::Model& model) {
  const tokenizer::Tokenizer& tokenizer = *model.tokenizer;
  engine::SamplerOptions result;
  engine::ReadSampling(model.file.metadata(), result);
  const std::vector<engine::Setting> settings = engine::Settings(result);
  ForEachNumber(sampling, [&](std::string_view name, const auto& field) {
    const std::optional<double> number = Number(field);
    if (number) engine::FindSetting(settings, name).Set(*number);
  });
  result.seed = sampling.seed;
  if (result.dry.Active())
    result.dry.breakers = engine::TokensWith(sampling.dry.breakers, tokenizer);
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (id < 0 || static_cast<size_t>(id) >= tokenizer.vocab().size()) {
      throw engine::Error("logit_bias: the vocabulary has no token ", id);
    }
    result.logit_bias.emplace_back(id, bias);
  }
  if (sampling.ignore_end) {
    for (const auto id : tokenizer.vocab().eog) result.logit_bias.emplace_back(id, -INFINITY);
  }
  for (const engine::Setting& setting : settings) {
    engine::CheckRange(setting.name, setting.Get(), setting.low, setting.high);
  }
  if (!sampling.steps.empty()) result.steps.clear();
  for (const std::string& name : sampling.steps) {
    const auto step = engine::FindSamplerStep(name);
    if (!step) throw engine::Error("steps: '", name, "' is none of ", engine::SamplerStepNames());
    result.steps.push_back(*step);
  }
  return result;
}

engine::SessionOptions ToEngine(const Options& options, const engine::Model& model,
                                const engine::Model* draft) {
  engine::CheckRange("context", static_cast<double>(options.context), 0, engine::kMaxTokens);
  engine::CheckRange("threads", options.threads, 0, engine::kMaxThreads);
  engine::SessionOptions result = {.n_threads = options.threads};
  if (options.context != 0) result.context = options.context;
  const int bits = options.cache_bits;
  if (bits != 8 && bits != 16 && bits != 32) {
    throw engine::Error("cache_bits: expected 8, 16 or 32, found ", bits);
  }
  result.kv_type = model.exact  ? kernels::KvType::kF32
                   : bits == 8  ? kernels::KvType::kQ8_0
                   : bits == 16 ? kernels::KvType::kF16
                                : kernels::KvType::kF32;
  result.draft.on = true;  // does not change the text
  result.draft.model = draft;
  result.sampler = ToEngine(options.sampling, model);
  return result;
}

std::vector<ToolCall> ToPublic(const std::vector<tokenizer::ToolCall>& calls) {
  std::vector<ToolCall> result;
  result.reserve(calls.size());
  for (const auto& [id, name, arguments] : calls) result.push_back({id, name, arguments});
  return result;
}

Completion ToPublic(engine::GenerateResult result) {
  static_assert(static_cast<int>(End::kCaller) ==
                static_cast<int>(engine::StopReason::kInterrupted));  // the same order
  return {.text = std::move(result.text),
          .end = static_cast<End>(result.stop_reason),
          .n_prompt = result.n_prompt,
          .n_generated = result.tokens.size(),
          .prompt_seconds = result.prompt_seconds,
          .generate_seconds = result.decode_seconds,
          .thinking = std::move(result.thinking),
          .tool_calls = ToPublic(result.calls)};
}

std::vector<Message> ToPublic(const std::vector<tokenizer::Message>& messages) {
  std::vector<Message> result;
  result.reserve(messages.size());
  for (const auto& [role, content, thinking, calls, call_id] : messages)
    result.push_back({role, content, call_id, ToPublic(calls), thinking});
  return result;
}

std::vector<tokenizer::Message> ToTokenizer(const std::vector<Message>& messages) {
  std::vector<tokenizer::Message> result;
  result.reserve(messages.size());
  for (const auto& [role, content, call_id, calls, thinking] : messages) {
    result.push_back({role, content, thinking, {}, call_id});
    for (const auto& [id, name, arguments] : calls)
      result.back().tool_calls.push_back({id, name, arguments});
  }
  return result;
}

template <class T>
std::string TextOf(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    std::array<char, 32> text;  // the shortest that reads as the same number
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  } else {
    return std::string(value);
  }
}

template <class Items>
std::string Lines(const Items& items) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : "\n") + TextOf(item);
  return text;
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

engine::Model Open(const std::string& path, bool exact) {
  if (!kernels::CpuIsSupported()) throw Error("this CPU lacks the instructions of this build");
  return engine::Model::Load(path, exact);
}

// logits: what the token was chosen by; empty: no log probabilities.
Token ToPublic(tokenizer::TokenId id, double seconds, std::span<const float> logits, size_t n) {
  Token token = {id, seconds, NAN, {}};
  if (logits.empty()) return token;
  const engine::LogProbabilities found = engine::LogProbabilitiesOf(id, logits, n);
  token.log_probability = found.of_token;
  for (const auto& [likely, log_probability] : found.likeliest)
    token.likeliest.push_back({likely, log_probability});
  return token;
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
    engine::GenerateOptions result = {.max_tokens = limits.max_tokens,
                                      .stop_texts = limits.stops,
                                      .prompt_progress = Marked(limits.on_prompt),
                                      .constraint = constraint ? &*constraint : nullptr};
    engine::CheckRange("n_likeliest", limits.n_likeliest, -1, engine::kMaxTokens);
    if (!limits.on_token) return result;
    result.on_token = [this, n = limits.n_likeliest, call = Marked(limits.on_token)](
                          tokenizer::TokenId id, bool sampled, double seconds) {
      const bool asked = n >= 0 && sampled;
      return call(ToPublic(id, seconds, asked ? session.logits() : std::span<const float>(),
                           static_cast<size_t>(std::max(n, 0))));
    };
    return result;
  }

  void Save(const std::string& path) {
    if (!session.has_logits()) throw engine::Error(path, ": nothing was read that could be saved");
    engine::SaveSession(session, path);
  }
};

}  // namespace

struct Model::Impl : engine::Model {};

struct Grammar::Impl : grammar::Grammar {};

struct Session::Impl : Borrower {
  using Borrower::Borrower;

  // What the batch keeps while it has the session.
  std::weak_ptr<const void> batch = {};

  engine::Session& Free() {
    if (!batch.expired()) throw Error("the session has a text in a batch");
    return session;
  }

  // The ids to read for a prompt, after what is read already.
  std::vector<tokenizer::TokenId> ToRead(std::string_view prompt, const Reading& reading) {
    const std::span<const tokenizer::TokenId> so_far = session.tokens();
    std::vector<tokenizer::TokenId> ids = Read(*model, prompt, reading, so_far, session.capacity());
    if (ids.size() > session.capacity()) {
      const auto common = static_cast<size_t>(std::ranges::mismatch(ids, so_far).in1 - ids.begin());
      engine::ThrowNoRoom(ids.size() - common, /*at_least=*/false, session.capacity() - common,
                          model->config);
    }
    const size_t n_reused = session.RewindToCommon(ids);
    ids.erase(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(n_reused));
    return ids;
  }
};

struct Chat::Impl : Borrower {
  engine::Chat chat;
  OnText on_thinking;

  Impl(const pronk::Model& shared, std::string system, const Options& options)
      : Borrower(shared.impl_, options.draft ? options.draft->impl_ : nullptr, options),
        chat(session, std::move(system), engine::ChatForm(*model)) {}
};

std::string Version() { return PRONK_VERSION; }

Model::Model(const std::string& path, bool exact)
    : impl_(Guarded([&] { return std::make_shared<const Impl>(Impl{Open(path, exact)}); })) {}

std::string Model::architecture() const { return impl_->config.architecture; }
std::size_t Model::context_length() const { return impl_->config.context_length; }
std::size_t Model::size_in_bytes() const { return impl_->file.tensor_bytes(); }

std::vector<std::int32_t> Model::Tokenize(std::string_view text, const Reading& reading) const {
  return Guarded([&] { return Read(*impl_, text, reading, {}, engine::kMaxTokens); });
}

std::string Model::Detokenize(const std::vector<std::int32_t>& ids, bool special) const {
  return Guarded([&] { return impl_->tokenizer->Decode(ids, special); });
}

SpecialTokens Model::special_tokens() const {
  const tokenizer::Vocabulary& vocab = impl_->tokenizer->vocab();
  return {vocab.bos, vocab.eos, vocab.eot, vocab.unk, vocab.sep, vocab.eog};
}

std::optional<std::string> Model::Metadata(std::string_view key) const {
  return Guarded([&]() -> std::optional<std::string> {
    const gguf::Metadata& metadata = impl_->file.metadata();
    const gguf::Value* const value = metadata.Find(key);
    if (value == nullptr) return std::nullopt;
    const bool is_array = value->type == gguf::ValueType::kArray;
    switch (is_array ? value->element_type : value->type) {
      case gguf::ValueType::kString:
        return is_array ? Lines(metadata.GetStrings(key)) : std::string(metadata.GetString(key));
      case gguf::ValueType::kF32:
      case gguf::ValueType::kF64:
        if (is_array) return Lines(metadata.GetFloats(key));
        return TextOf(static_cast<float>(metadata.GetFloat(key)));
      case gguf::ValueType::kBool:
        if (!is_array) return metadata.GetBoolOr(key, false) ? "true" : "false";
        [[fallthrough]];
      default:
        return is_array ? Lines(metadata.GetInts(key)) : TextOf(metadata.GetInt(key));
    }
  });
}

std::string Model::chat_template() const {
  return std::string(engine::ChatTemplateSource(impl_->file, *impl_->tokenizer));
}

void Set(Options& options, std::string_view name, double number) {
  const auto in_range = [&](double low, double high) {
    Guarded(engine::CheckRange, name, number, low, high);
    return number;
  };
  if (name == "context") {
    options.context = static_cast<std::size_t>(in_range(0, engine::kMaxTokens));
  } else if (name == "threads") {
    options.threads = static_cast<int>(in_range(0, engine::kMaxThreads));
  } else if (name == "cache_bits") {
    options.cache_bits = static_cast<int>(in_range(8, 32));
  } else if (name == "seed") {
    options.sampling.seed = static_cast<std::uint64_t>(in_range(0, 0x1p53));
  } else {
    engine::SamplerOptions ranges;
    const std::vector<engine::Setting> settings = engine::Settings(ranges);
    bool is_known = false;
    ForEachNumber(options.sampling, [&](std::string_view known, auto& field) {
      if (known != name) return;
      const engine::Setting& setting = engine::FindSetting(settings, name);
      SetNumber(field, in_range(setting.low, setting.high));
      is_known = true;
    });
    if (!is_known) throw Error("there is no option '" + std::string(name) + "'");
  }
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
        return std::make_shared<Impl>(model.impl_, options.draft ? options.draft->impl_ : nullptr,
                                      options);
      })) {}

Completion Session::Complete(std::string_view prompt, const OnText& on_text, const Limits& limits) {
  return Guarded([&] {
    engine::Session& session = impl_->Free();
    const engine::GenerateOptions options = impl_->OptionsFor(limits, limits.grammar.impl_);
    return ToPublic(
        engine::Generate(session, impl_->ToRead(prompt, limits.reading), options, Marked(on_text)));
  });
}

std::vector<std::int32_t> Session::tokens() const {
  const auto tokens = impl_->session.tokens();
  return {tokens.begin(), tokens.end()};
}
std::vector<float> Session::logits() const {
  if (!impl_->session.has_logits()) return {};
  const auto logits = impl_->session.logits();
  return {logits.begin(), logits.end()};
}
void Session::Clear() { impl_->Free().Rewind(0); }
void Session::Save(const std::string& path) { Guarded(&Impl::Save, *impl_, path); }
void Session::Load(const std::string& path) { Guarded(engine::LoadSession, impl_->Free(), path); }

struct Batch::Impl {
  std::shared_ptr<const engine::Model> model;
  engine::Batch batch;

  Impl(std::shared_ptr<const engine::Model> shared, int threads)
      : model(std::move(shared)), batch(*model, threads) {}
};

Batch::Batch(const Model& model, int threads)
    : impl_(Guarded([&] {
        engine::CheckRange("threads", threads, 0, engine::kMaxThreads);
        return std::make_shared<Impl>(model.impl_, threads);
      })) {}

std::size_t Batch::Add(Session& session, std::string_view prompt, const OnText& on_text,
                       const Limits& limits) {
  return Guarded([&] {
    Session::Impl& impl = *session.impl_;
    impl.Free();
    if (impl.model != impl_->model) throw Error("the session is of another model than the batch");
    const auto kept = std::make_shared<const std::shared_ptr<Session::Impl>>(session.impl_);
    engine::GenerateOptions options = impl.OptionsFor(limits, limits.grammar.impl_);
    const std::size_t number = impl_->batch.Add(
        impl.session, impl.ToRead(prompt, limits.reading), std::move(options),
        [kept, call = Marked(on_text)](std::string_view text) { return call(text); });
    impl.batch = kept;
    return number;
  });
}

std::vector<std::pair<std::size_t, Completion>> Batch::Step() {
  return Guarded([&] {
    std::vector<std::pair<std::size_t, Completion>> ended;
    for (auto& [number, result] : impl_->batch.Step()) {
      ended.emplace_back(number, ToPublic(std::move(result)));
    }
    return ended;
  });
}

std::size_t Batch::size() const { return impl_->batch.size(); }

Chat::Chat(const Model& model, std::string system, const Options& options)
    : impl_(Guarded([&] { return std::make_shared<Impl>(model, std::move(system), options); })) {}

Completion Chat::Say(const std::string& text, const OnText& on_text, const Limits& limits) {
  const auto question = Guarded([&] { return std::vector<Message>{{"user", text}}; });
  return Answer(question, on_text, limits);
}

Completion Chat::Answer(const std::vector<Message>& messages, const OnText& on_text,
                        const Limits& limits) {
  return Guarded([&] {
    engine::GenerateOptions options = impl_->OptionsFor(limits, limits.grammar.impl_);
    options.on_thinking = Marked(impl_->on_thinking);
    engine::Chat& chat = impl_->chat;
    Completion completion =
        ToPublic(chat.Reply(ToTokenizer(messages), std::move(options), Marked(on_text)).generated);
    completion.n_dropped = chat.n_dropped();
    return completion;
  });
}

std::vector<Message> Chat::History() const {
  return Guarded([&] { return ToPublic(impl_->chat.Messages()); });
}
void Chat::SetHistory(const std::vector<Message>& messages) {
  Guarded([&] { impl_->chat.SetMessages(ToTokenizer(messages)); });
}
void Chat::SetTools(const std::string& json) {
  Guarded([&] { impl_->chat.SetTools(json); });
}
void Chat::SetToolChoice(const std::string& choice) {
  Guarded([&] { impl_->chat.SetToolChoice(choice); });
}
std::size_t Chat::Count(const std::string& text) {
  return Guarded([&] { return impl_->chat.Count(text); });
}
void Chat::SetThinking(const std::string& level) {
  Guarded([&] { impl_->chat.SetThinking(level); });
}
void Chat::SetThinkingBudget(int tokens, const std::string& message) {
  Guarded([&] {
    engine::CheckRange("thinking budget", tokens, -1, engine::kMaxTokens);
    impl_->chat.SetThinkingBudget(tokens, message);
  });
}
void Chat::OnThinking(const OnText& on_thinking) { impl_->on_thinking = on_thinking; }
void Chat::Clear() { impl_->chat.Clear(); }
void Chat::Save(const std::string& path) { Guarded(&Impl::Save, *impl_, path); }
void Chat::Load(const std::string& path) { Guarded(engine::LoadSession, impl_->session, path); }

std::vector<Message> ParseMessages(const std::string& json) {
  return Guarded([&] {
    const auto parsed = gguf::JsonView::Parse(json, tokenizer::kValueLimits);
    return ToPublic(tokenizer::ReadMessages(parsed));
  });
}
std::string MessagesJson(const std::vector<Message>& messages) {
  return Guarded([&] { return tokenizer::MessagesJson(ToTokenizer(messages)); });
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
        if (model.impl_->config.pooling == engine::Pooling::kRank)
          throw Error("this is a reranker, which makes scores, not vectors");
        std::optional<engine::Pooling> named;
        if (pooling != Pooling::kOfFile) named = static_cast<engine::Pooling>(pooling);
        static_assert(static_cast<int>(Pooling::kLast) == static_cast<int>(engine::Pooling::kLast));
        return std::make_shared<Impl>(model.impl_, session, named);
      })) {}

std::vector<std::vector<float>> Embedder::Embed(const std::vector<std::string>& texts) {
  return Guarded([&] {
    std::vector<std::vector<tokenizer::TokenId>> ids;
    ids.reserve(texts.size());
    const std::string prompt = engine::PromptOf(*impl_->model);
    for (const std::string& text : texts) {
      ids.push_back(engine::Encode(*impl_->model, prompt + text, {}, impl_->embedder.capacity()));
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

}  // namespace pronk
