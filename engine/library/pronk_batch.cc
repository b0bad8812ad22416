// Batch of pronk.h: several texts by one pass over the weights.
#include <map>

#include "engine/library/guarded.h"
#include "engine/library/handles.h"
#include "engine/sampling/settings.h"
#include "engine/session/batch.h"

namespace pronk {

using library::Guarded;
using library::Marked;
using library::Use;

struct Batch::Impl {
  std::shared_ptr<const engine::Model> model;
  engine::Batch batch;
  std::atomic<bool> in_use = false;
  // The answers of chats, by their texts' numbers.
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
    // Drops the turns of chats whose texts an exception has ended.
    std::erase_if(impl.turns, [](const auto& turn) { return turn.second.first->batch.expired(); });
    return ended;
  });
}

std::size_t Batch::size() const {
  if (impl_ == nullptr) throw Error("this object was moved from");
  return impl_->batch.size();
}

}  // namespace pronk
