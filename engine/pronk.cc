// The public face of the engine: what is behind it may change, this does not.
#include "engine/pronk.h"

#include <exception>
#include <new>
#include <span>

#include "engine/chat.h"
#include "engine/encode.h"
#include "engine/generate.h"
#include "engine/model.h"
#include "engine/session.h"
#include "kernels/cpu.h"

namespace pronk {
namespace {

// Runs the function; whatever it throws leaves as an Error.
template <class Function>
auto Guarded(Function function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    throw Error("out of memory");
  } catch (const std::exception& error) {
    throw Error(error.what());
  }
}

engine::SessionOptions ToEngine(const Options& options) {
  engine::SessionOptions result;
  result.context = options.context;
  result.n_threads = options.threads;
  result.draft.on = true;  // it changes no text
  result.sampler.seed = options.sampling.seed;
  result.sampler.temperature = options.sampling.temperature;
  result.sampler.top_k = options.sampling.top_k;
  result.sampler.top_p = options.sampling.top_p;
  result.sampler.min_p = options.sampling.min_p;
  result.sampler.penalties.repeat = options.sampling.repeat_penalty;
  return result;
}

engine::GenerateOptions ToEngine(const Limits& limits) {
  engine::GenerateOptions result;
  result.max_tokens = limits.max_tokens;
  result.stop_texts = limits.stops;
  return result;
}

End ToPublic(engine::StopReason reason) {
  switch (reason) {
    case engine::StopReason::kEos:
      return End::kText;
    case engine::StopReason::kStop:
      return End::kStop;
    case engine::StopReason::kLength:
      return End::kLength;
    case engine::StopReason::kContext:
      return End::kContext;
    case engine::StopReason::kInterrupted:
      return End::kCaller;
  }
  return End::kCaller;
}

Completion ToPublic(engine::GenerateResult result) {
  Completion completion;
  completion.text = std::move(result.text);
  completion.end = ToPublic(result.stop_reason);
  completion.n_prompt = result.n_prompt;
  completion.n_generated = result.tokens.size();
  completion.prompt_seconds = result.prompt_seconds;
  completion.generate_seconds = result.decode_seconds;
  return completion;
}

engine::Model Open(const std::string& path) {
  if (!kernels::CpuIsSupported()) throw Error("this CPU lacks the instructions of this build");
  return engine::Model::Load(path);
}

}  // namespace

struct Model::Impl {
  engine::Model model;
};

struct Session::Impl {
  std::shared_ptr<const Model::Impl> model;
  engine::Session session;
};

struct Chat::Impl {
  std::shared_ptr<const Model::Impl> model;
  engine::Session session;
  engine::Chat chat;

  Impl(std::shared_ptr<const Model::Impl> shared, std::string system, const Options& options)
      : model(std::move(shared)),
        session(model->model, ToEngine(options)),
        chat(session, std::move(system), engine::ChatForm(model->model)) {}
};

std::string Version() { return PRONK_VERSION; }

Model::Model(const std::string& path)
    : impl_(Guarded([&] { return std::make_shared<const Impl>(Impl{Open(path)}); })) {}

std::string Model::architecture() const { return impl_->model.config.architecture; }
std::size_t Model::context_length() const { return impl_->model.config.context_length; }
std::size_t Model::size_in_bytes() const { return impl_->model.file.tensor_bytes(); }

std::vector<std::int32_t> Model::Tokenize(std::string_view text) const {
  return Guarded([&] { return impl_->model.tokenizer->Encode(text); });
}

Session::Session(const Model& model, const Options& options)
    : impl_(Guarded([&] {
        return std::unique_ptr<Impl>(
            new Impl{model.impl_, {model.impl_->model, ToEngine(options)}});
      })) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Completion Session::Complete(std::string_view prompt, const OnText& on_text, const Limits& limits) {
  return Guarded([&] {
    engine::Session& session = impl_->session;
    const std::vector<tokenizer::TokenId> ids =
        engine::Encode(session.model(), prompt, {.add_bos = session.position() == 0},
                       session.capacity() - session.position());
    return ToPublic(engine::Generate(session, ids, ToEngine(limits), on_text));
  });
}

void Session::Clear() { impl_->session.Rewind(0); }

Chat::Chat(const Model& model, std::string system, const Options& options)
    : impl_(Guarded(
          [&] { return std::make_unique<Impl>(model.impl_, std::move(system), options); })) {}
Chat::~Chat() = default;
Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;

Completion Chat::Say(const std::string& text, const OnText& on_text, const Limits& limits) {
  return Guarded(
      [&] { return ToPublic(impl_->chat.Say(text, ToEngine(limits), on_text).generated); });
}

void Chat::Clear() { impl_->chat.Clear(); }

}  // namespace pronk
