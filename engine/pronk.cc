// The library on top of the engine, whose headers it hides.
#include "engine/pronk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <new>
#include <span>

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/sampling/log_probabilities.h"
#include "engine/sampling/settings.h"
#include "engine/session/batch.h"
#include "engine/session/chat.h"
#include "engine/session/embedder.h"
#include "engine/session/encode.h"
#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "engine/session/session_file.h"
#include "gguf/mapped_file.h"
#include "gguf/reader.h"
#include "grammar/constraint.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "kernels/machine/cpu.h"
#include "tokenizer/errors.h"
#include "tokenizer/messages.h"

namespace pronk {
namespace {

// What a function of the host threw, on its way through the engine.
struct HostError {
  std::exception_ptr thrown;
};

template <class Exception>
bool Is(const std::exception& error) {
  return dynamic_cast<const Exception*>(&error) != nullptr;
}

ErrorKind KindOf(const std::exception& error) {
  if (Is<engine::NoMemory>(error) || Is<std::bad_alloc>(error)) return ErrorKind::kNoMemory;
  if (Is<engine::TooLong>(error)) return ErrorKind::kContextFull;
  if (Is<engine::RefusedSession>(error)) return ErrorKind::kRefused;
  if (Is<engine::Error>(error)) return ErrorKind::kWrongUse;
  if (Is<gguf::NotFound>(error)) return ErrorKind::kNotFound;
  if (Is<gguf::NotGguf>(error)) return ErrorKind::kNotAModel;
  if (Is<gguf::Error>(error)) return ErrorKind::kRefused;
  if (Is<grammar::Error>(error)) return ErrorKind::kBadGrammar;
  if (Is<tokenizer::TemplateError>(error)) return ErrorKind::kBadTemplate;
  if (Is<tokenizer::Interrupted>(error)) return ErrorKind::kCancelled;
  return ErrorKind::kOther;
}

// Calls a function and turns any exception into an Error, but those of the host's own functions.
template <class Function>
auto Guarded(Function function) {
  try {
    return function();
  } catch (const HostError& error) {
    std::rethrow_exception(error.thrown);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(Is<std::bad_alloc>(error) ? "out of memory" : error.what(), KindOf(error));
  }
}

// Marks what is in use: by a callback of its own, or by another thread.
class InUse {
 public:
  explicit InUse(std::atomic<bool>& flag) : flag_(flag) {
    if (flag.exchange(true)) throw Error("it is in use, by another thread or by its own callback");
  }
  ~InUse() { flag_ = false; }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  std::atomic<bool>& flag_;
};

// Calls it for an object that nothing else uses meanwhile.
template <class Impl, class Function>
auto Use(const std::shared_ptr<Impl>& impl, Function function) {
  return Guarded([&] {
    if (impl == nullptr) throw Error("it was moved away");
    const InUse in_use(impl->in_use);
    return function(*impl);
  });
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

// The options that are not of the sampling.
std::vector<engine::Setting> OwnSettings(Options& options) {
  return {{"context", &options.context, 0, engine::kMaxTokens},
          {"threads", &options.threads, 0, engine::kMaxThreads},
          {"cache_bits", &options.cache_bits, 4, 32}};
}

engine::SessionOptions ToEngine(Options options, const engine::Model& model,
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
  result.draft.on = true;  // does not change the text
  result.draft.model = draft;
  engine::ResolveSampling(model.file.metadata(), *model.tokenizer, options.sampling);
  result.sampler = std::move(options.sampling);
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
std::vector<tokenizer::TokenId> Read(const engine::Model& model, const Prompt& prompt,
                                     const Reading& reading,
                                     std::span<const tokenizer::TokenId> so_far, size_t room) {
  const tokenizer::Vocabulary& vocab = model.tokenizer->vocab();
  std::vector<tokenizer::TokenId> ids(so_far.begin(), so_far.end());
  if (prompt.ids) {
    engine::CheckIds(*prompt.ids, model.config);
    ids.insert(ids.end(), prompt.ids->begin(), prompt.ids->end());
    return ids;
  }
  const std::string_view text = prompt.text;
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

// A session with everything it borrows.
struct Borrower {
  std::shared_ptr<const engine::Model> model, draft;  // draft may be null
  engine::Session session;
  std::atomic<bool> in_use = false;
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
    result.n_likeliest = limits.n_likeliest;
    if (limits.on_token) result.on_token = Marked(limits.on_token);
    if (limits.on_logits) {
      result.on_logits = [call = Marked(limits.on_logits)](std::span<float> logits) {
        return call(logits.data(), logits.size());
      };
    }
    return result;
  }

  MemoryUse memory() const {
    return {model->file.tensor_bytes(), static_cast<std::size_t>(session.state().bytes()),
            session.scratch_bytes()};
  }

  void Save(const std::string& path) {
    if (!session.has_logits()) throw engine::Error(path, ": nothing was read that could be saved");
    engine::SaveSession(session, path);
  }
};

}  // namespace

struct Model::Impl : engine::Model {};

struct Grammar::Impl : grammar::Grammar {};

namespace {

// What a batch may have.
struct Lent {
  // What the batch keeps while it has it.
  std::weak_ptr<const void> batch = {};

  void CheckFree() const {
    if (!batch.expired()) throw Error("the session has a text in a batch");
  }
};

}  // namespace

// Hidden: the shared library shows no more than the header.
struct [[gnu::visibility("hidden")]] Session::Impl : Borrower, Lent {
  Impl(const std::shared_ptr<const engine::Model>& shared,
       const std::shared_ptr<const engine::Model>& shared_draft, const Options& given)
      : Borrower(shared, shared_draft, given), options(given) {}

  Options options;
  // Tokens of what is read that are the text: Clear() and Truncate() leave the rest, which may turn
  // out to be the beginning of the next text.
  std::size_t n_text = SIZE_MAX;

  engine::Session& Free() {
    CheckFree();
    return session;
  }

  std::span<const tokenizer::TokenId> Text() const {
    const std::span<const tokenizer::TokenId> all = session.tokens();
    return all.first(std::min(n_text, all.size()));
  }

  // The ids to read for a prompt, after what is read already.
  std::vector<tokenizer::TokenId> ToRead(const Prompt& prompt, const Reading& reading) {
    std::vector<tokenizer::TokenId> ids = Read(*model, prompt, reading, Text(), session.capacity());
    if (ids.size() > session.capacity()) {
      const auto common = static_cast<size_t>(std::ranges::mismatch(ids, Text()).in1 - ids.begin());
      engine::ThrowNoRoom(ids.size() - common, /*at_least=*/false, session.capacity() - common,
                          model->config);
    }
    const size_t n_reused = session.RewindToCommon(ids);
    n_text = SIZE_MAX;
    ids.erase(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(n_reused));
    return ids;
  }

  // Makes the state and the logits those of the text.
  void Settle() {
    if (Text().size() == session.position() && session.has_logits()) return;
    const std::vector<tokenizer::TokenId> ids = ToRead(Prompt(""), {});
    session.Prefill(ids);
  }
};

struct [[gnu::visibility("hidden")]] Chat::Impl : Borrower, Lent {
  engine::Chat chat;
  OnText on_thinking;

  Impl(const pronk::Model& shared, std::string system, const Options& options)
      : Borrower(shared.impl_, options.draft ? options.draft->impl_ : nullptr, options),
        chat(session, std::move(system),
             options.chat_template.empty() ? engine::ChatForm(*model)
                                           : engine::ChatForm(options.chat_template)) {}

  engine::Chat& Free() {
    CheckFree();
    return chat;
  }
  engine::GenerateOptions OptionsFor(const Limits& limits) {
    engine::GenerateOptions options = Borrower::OptionsFor(limits, limits.grammar.impl_);
    options.on_thinking = Marked(on_thinking);
    return options;
  }
};

std::string Version() { return PRONK_VERSION; }

Model::Model(const std::string& path, bool exact)
    : impl_(Guarded([&] { return std::make_shared<const Impl>(Impl{Open(path, exact)}); })) {}

std::string Model::architecture() const { return impl_->config.architecture; }
std::size_t Model::context_length() const { return impl_->config.context_length; }
std::size_t Model::size_in_bytes() const { return impl_->file.tensor_bytes(); }
std::size_t Model::n_parameters() const { return impl_->file.elements(); }
std::size_t Model::vocabulary_size() const { return impl_->tokenizer->vocab().size(); }
std::size_t Model::embedding_length() const { return impl_->config.embedding_length; }

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

std::vector<std::string> Model::MetadataKeys() const {
  return Guarded([&] {
    std::vector<std::string> keys;
    for (const auto& entry : impl_->file.metadata().entries()) keys.emplace_back(entry.key);
    return keys;
  });
}

std::string Model::chat_template() const {
  return std::string(engine::ChatTemplateSource(impl_->file, *impl_->tokenizer));
}

namespace {

engine::ChatForm FormOf(const engine::Model& model, const Rendering& rendering) {
  engine::ChatForm form = rendering.chat_template.empty()
                              ? engine::ChatForm(model)
                              : engine::ChatForm(rendering.chat_template);
  form.SetTools(rendering.tools);
  form.begins_answer = rendering.begins_answer;
  if (rendering.now) form.now = std::chrono::local_seconds(std::chrono::seconds(*rendering.now));
  if (rendering.variables.empty()) return form;
  const auto json = gguf::JsonView::Parse(rendering.variables, tokenizer::kValueLimits);
  if (!json.IsObject()) throw engine::Error("variables: expected a JSON object");
  for (const auto& [key, value] : json.Members())
    form.variables.emplace_back(key, tokenizer::ToTemplateValue(value));
  return form;
}

}  // namespace

std::string Model::Render(const std::vector<Message>& messages, const Rendering& rendering) const {
  return Guarded(
      [&] { return engine::RenderChat(*impl_, FormOf(*impl_, rendering), messages).text; });
}

std::vector<std::int32_t> Model::TokenizeChat(const std::vector<Message>& messages,
                                              const Rendering& rendering) const {
  return Guarded([&] {
    return engine::EncodeChat(*impl_, FormOf(*impl_, rendering), messages, engine::kMaxTokens);
  });
}

namespace {

// Calls take(setting) with the option of this name. It returns what is wrong with the value.
template <class Take>
void SetBy(Options& options, std::string_view name, const Take& take) {
  for (const auto& settings : {OwnSettings(options), engine::Settings(options.sampling)}) {
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

Completion Session::Complete(const Prompt& prompt, const OnText& on_text, const Limits& limits) {
  return Use(impl_, [&](Impl& impl) -> Completion {
    engine::Session& session = impl.Free();
    const engine::GenerateOptions options = impl.OptionsFor(limits, limits.grammar.impl_);
    return engine::Generate(session, impl.ToRead(prompt, limits.reading), options, Marked(on_text));
  });
}

std::vector<Token> Session::Score(const Prompt& prompt, int n_likeliest, const Reading& reading) {
  return Use(impl_, [&](Impl& impl) {
    engine::CheckRange("n_likeliest", n_likeliest, 0, engine::kMaxTokens);
    engine::Session& session = impl.Free();
    if (impl.n_text != 0 && session.position() > 0) impl.Settle();
    const std::size_t n_before = impl.Text().size();
    std::vector<tokenizer::TokenId> ids =
        Read(*impl.model, prompt, reading, impl.Text(), session.capacity());
    // The logits of the token before the first that is scored are needed.
    const auto common =
        static_cast<size_t>(std::ranges::mismatch(ids, impl.Text()).in1 - ids.begin());
    size_t n_read = std::min(common, n_before);
    if (n_read < session.position() || !session.has_logits())
      n_read = session.Rewind(n_read == 0 ? 0 : n_read - 1);
    impl.n_text = SIZE_MAX;
    std::vector<Token> tokens;
    const auto add = [&](size_t at, std::span<const float> logits) {
      if (at < common || at >= ids.size()) return;
      tokens.push_back({ids[at], 0, NAN, {}});
      if (logits.empty()) return;
      engine::SetLogProbabilities(tokens.back(), logits, static_cast<size_t>(n_likeliest));
    };
    add(n_read, session.has_logits() ? session.logits() : std::span<const float>());
    const std::size_t width = impl.model->config.vocab_size;
    session.PrefillAllLogits(std::span(ids).subspan(n_read), [&](size_t first, size_t n,
                                                                 std::span<const float> rows) {
      for (size_t i = 0; i < n; ++i) {
        add(n_read + first + i + 1, rows.subspan(i * width, impl.model->tokenizer->vocab().size()));
      }
    });
    return tokens;
  });
}

std::vector<std::int32_t> Session::tokens() const {
  return Use(impl_, [](Impl& impl) {
    const auto tokens = impl.Text();
    return std::vector<std::int32_t>(tokens.begin(), tokens.end());
  });
}
std::vector<float> Session::logits() const {
  return Use(impl_, [](Impl& impl) -> std::vector<float> {
    if (impl.Text().empty()) return {};
    impl.Settle();
    const auto logits = impl.session.logits();
    return {logits.begin(), logits.end()};
  });
}
void Session::Clear() { Truncate(0); }
void Session::Truncate(std::size_t n) {
  Use(impl_, [&](Impl& impl) {
    impl.CheckFree();
    impl.n_text = std::min(n, impl.Text().size());
  });
}
Session Session::Copy() const {
  return Use(impl_, [](Impl& impl) {
    impl.CheckFree();
    auto copy = std::make_shared<Impl>(impl.model, impl.draft, impl.options);
    copy->session.CopyFrom(impl.session);
    copy->n_text = impl.n_text;
    return Session(std::move(copy));
  });
}
MemoryUse Session::memory() const {
  return Use(impl_, [](Impl& impl) { return impl.memory(); });
}
void Session::Save(const std::string& path) {
  Use(impl_, [&](Impl& impl) {
    if (impl.Text().empty()) throw Error(path + ": nothing was read that could be saved");
    impl.Settle();
    impl.Save(path);
  });
}
void Session::Load(const std::string& path) {
  Use(impl_, [&](Impl& impl) {
    engine::LoadSession(impl.Free(), path);
    impl.n_text = SIZE_MAX;
  });
}

struct Batch::Impl {
  std::shared_ptr<const engine::Model> model;
  engine::Batch batch;
  std::atomic<bool> in_use = false;
  // Answers of chats, by the number of their text.
  std::map<std::size_t, std::pair<std::shared_ptr<Chat::Impl>, engine::Chat::Turn>> turns = {};

  Impl(std::shared_ptr<const engine::Model> shared, int threads)
      : model(std::move(shared)), batch(*model, threads) {}
};

Batch::Batch(const Model& model, int threads)
    : impl_(Guarded([&] {
        engine::CheckRange("threads", threads, 0, engine::kMaxThreads);
        return std::make_shared<Impl>(model.impl_, threads);
      })) {}

std::size_t Batch::Add(Session& session, const Prompt& prompt, const OnText& on_text,
                       const Limits& limits) {
  return Use(impl_, [&](Impl& own) {
    return Use(session.impl_, [&](Session::Impl& impl) {
      impl.Free();
      if (impl.model != own.model) throw Error("the session is of another model than the batch");
      const auto kept = std::make_shared<const std::shared_ptr<Session::Impl>>(session.impl_);
      engine::GenerateOptions options = impl.OptionsFor(limits, limits.grammar.impl_);
      const std::size_t number = own.batch.Add(
          impl.session, impl.ToRead(prompt, limits.reading), std::move(options),
          [kept, call = Marked(on_text)](std::string_view text) { return call(text); });
      impl.batch = kept;
      return number;
    });
  });
}

std::size_t Batch::Add(Chat& chat, const std::vector<Message>& messages, const OnText& on_text,
                       const Limits& limits) {
  return Use(impl_, [&](Impl& own) {
    return Use(chat.impl_, [&](Chat::Impl& impl) {
      if (impl.model != own.model) throw Error("the chat is of another model than the batch");
      engine::Chat::Turn turn = impl.Free().Begin(messages, impl.OptionsFor(limits));
      const auto kept = std::make_shared<const std::shared_ptr<Chat::Impl>>(chat.impl_);
      const std::size_t number = own.batch.Add(
          impl.session, turn.ids, turn.options,
          [kept, call = Marked(on_text)](std::string_view text) { return call(text); });
      own.turns.emplace(number, std::pair(chat.impl_, std::move(turn)));
      impl.batch = kept;
      return number;
    });
  });
}

std::vector<std::pair<std::size_t, Completion>> Batch::Step() {
  return Use(impl_, [](Impl& impl) {
    std::vector<std::pair<std::size_t, Completion>> ended;
    for (auto& [number, result] : impl.batch.Step()) {
      const auto turn = impl.turns.find(number);
      if (turn == impl.turns.end()) {
        ended.emplace_back(number, std::move(result));
        continue;
      }
      auto& [chat, begun] = turn->second;
      ended.emplace_back(number, chat->chat.End(std::move(begun), std::move(result)).generated);
      impl.turns.erase(turn);
    }
    // Those of chats whose text has ended by an exception.
    std::erase_if(impl.turns, [](const auto& turn) { return turn.second.first->batch.expired(); });
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
  return Use(impl_, [&](Impl& impl) -> Completion {
    return impl.Free().Reply(messages, impl.OptionsFor(limits), Marked(on_text)).generated;
  });
}

std::vector<Message> Chat::History() const {
  return Use(impl_, [](Impl& impl) { return impl.chat.Messages(); });
}
void Chat::SetHistory(const std::vector<Message>& messages) {
  Use(impl_, [&](Impl& impl) { impl.Free().SetMessages(messages); });
}
void Chat::SetTools(const std::string& json) {
  Use(impl_, [&](Impl& impl) { impl.Free().SetTools(json); });
}
void Chat::SetToolChoice(const std::string& choice) {
  Use(impl_, [&](Impl& impl) { impl.Free().SetToolChoice(choice); });
}
std::size_t Chat::Count(const std::string& text) {
  return Use(impl_, [&](Impl& impl) { return impl.chat.Count(text); });
}
void Chat::SetThinking(const std::string& level) {
  Use(impl_, [&](Impl& impl) { impl.Free().SetThinking(level); });
}
void Chat::SetThinkingBudget(int tokens, const std::string& message) {
  Use(impl_, [&](Impl& impl) {
    engine::CheckRange("thinking budget", tokens, -1, engine::kMaxTokens);
    impl.Free().SetThinkingBudget(tokens, message);
  });
}
void Chat::OnThinking(const OnText& on_thinking) {
  Use(impl_, [&](Impl& impl) { impl.on_thinking = on_thinking; });
}
void Chat::Clear() {
  Use(impl_, [](Impl& impl) { impl.Free().Clear(); });
}
MemoryUse Chat::memory() const {
  return Use(impl_, [](Impl& impl) { return impl.memory(); });
}
void Chat::Save(const std::string& path) {
  Use(impl_, [&](Impl& impl) { impl.Save(path); });
}
void Chat::Load(const std::string& path) {
  Use(impl_, [&](Impl& impl) {
    impl.Free();
    engine::LoadSession(impl.session, path);
  });
}

std::vector<Message> ParseMessages(const std::string& json) {
  return Guarded([&] {
    return tokenizer::ReadMessages(gguf::JsonView::Parse(json, tokenizer::kValueLimits));
  });
}
std::string MessagesJson(const std::vector<Message>& messages) {
  return Guarded([&] { return tokenizer::MessagesJson(messages); });
}

namespace {

// What embedding and reranking have in common.
struct Texts {
  std::shared_ptr<const engine::Model> model;
  engine::Embedder embedder;
  std::atomic<bool> in_use = false;

  Texts(std::shared_ptr<const engine::Model> shared, engine::SessionOptions options,
        std::optional<engine::Pooling> pooling)
      : model(std::move(shared)), embedder(*model, InFloats(options), pooling) {}

  // Keys and values are kept for one pass.
  static engine::SessionOptions InFloats(engine::SessionOptions options) {
    options.kv_type = kernels::KvType::kF32;
    return options;
  }

  // Calls take(row) with the result of each text.
  template <class Encode, class Take>
  void ForEach(const std::vector<std::string>& texts, const Encode& encode, const Take& take) {
    std::vector<std::vector<tokenizer::TokenId>> ids;
    ids.reserve(texts.size());
    for (const std::string& text : texts) ids.push_back(encode(text));
    const size_t width = embedder.width();
    embedder.Embed(ids, [&](size_t, size_t n, std::span<const float> rows) {
      for (size_t i = 0; i < n; ++i) take(rows.subspan(i * width, width));
      return true;
    });
  }
};

}  // namespace

struct Embedder::Impl : Texts {
  using Texts::Texts;
};

Embedder::Embedder(const Model& model, Pooling pooling, const Options& options)
    : impl_(Guarded([&] {
        if (model.impl_->config.pooling == engine::Pooling::kRank)
          throw Error("this is a reranker, which makes scores, not vectors");
        std::optional<engine::Pooling> named;
        if (pooling != Pooling::kOfFile) named = static_cast<engine::Pooling>(pooling);
        static_assert(static_cast<int>(Pooling::kLast) == static_cast<int>(engine::Pooling::kLast));
        return std::make_shared<Impl>(model.impl_, ToEngine(options, *model.impl_, nullptr), named);
      })) {}

std::vector<std::vector<float>> Embedder::Embed(const std::vector<std::string>& texts) {
  return Use(impl_, [&](Impl& impl) {
    const std::string prompt = engine::PromptOf(*impl.model);
    std::vector<std::vector<float>> vectors;
    const auto encode = [&](const std::string& text) {
      return engine::Encode(*impl.model, prompt + text, {}, impl.embedder.capacity());
    };
    impl.ForEach(texts, encode,
                 [&](std::span<const float> row) { vectors.emplace_back(row.begin(), row.end()); });
    return vectors;
  });
}

struct Reranker::Impl : Texts {
  using Texts::Texts;
};

Reranker::Reranker(const Model& model, const Options& options)
    : impl_(Guarded([&] {
        return std::make_shared<Impl>(model.impl_, ToEngine(options, *model.impl_, nullptr),
                                      engine::Pooling::kRank);
      })) {}

std::vector<float> Reranker::Score(const std::string& query,
                                   const std::vector<std::string>& texts) {
  return Use(impl_, [&](Impl& impl) {
    std::vector<float> scores;
    const auto encode = [&](const std::string& text) {
      return engine::EncodePair(*impl.model, query, text, impl.embedder.capacity());
    };
    impl.ForEach(texts, encode, [&](std::span<const float> row) { scores.push_back(row[0]); });
    return scores;
  });
}

}  // namespace pronk
