// The data behind the classes of pronk.h.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/library/guarded.h"
#include "engine/model/model.h"
#include "engine/pronk.h"
#include "engine/session/chat.h"
#include "engine/session/encode.h"
#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "grammar/constraint.h"
#include "grammar/grammar.h"
#include "tokenizer/vocabulary.h"

namespace library {

// The engine's options. Throws engine::Error if an option is out of range.
engine::SessionOptions ToEngine(pronk::Options options, const engine::Model& model,
                                const engine::Model* draft);

// The ids of a prompt that follows a text.
std::vector<tokenizer::TokenId> IdsOf(const engine::Model& model, const pronk::Prompt& prompt,
                                      const pronk::Reading& reading,
                                      std::span<const tokenizer::TokenId> so_far, size_t room);

// A session and the objects that it borrows.
struct Borrower {
  std::shared_ptr<const engine::Model> model, draft;  // draft may be null
  engine::Session session;
  std::atomic<bool> in_use = false;
  // The grammar of the last text; the constraint's caches serve the next text.
  std::shared_ptr<const grammar::Grammar> grammar = nullptr;
  std::optional<grammar::Constraint> constraint = {};

  Borrower(std::shared_ptr<const engine::Model> shared,
           std::shared_ptr<const engine::Model> shared_draft, const pronk::Options& options)
      : model(std::move(shared)),
        draft(std::move(shared_draft)),
        session(*model, ToEngine(options, *model, draft.get())) {}

  // Throws engine::Error if a limit is out of range.
  engine::GenerateOptions OptionsFor(const pronk::Limits& limits,
                                     std::shared_ptr<const grammar::Grammar> wanted);
  pronk::MemoryUse memory() const;
  void Save(const std::string& path);
};

// An object that a batch may hold.
struct Lent {
  // Expires when the batch lets the object go.
  std::weak_ptr<const void> batch = {};

  void CheckFree() const {
    if (!batch.expired()) throw pronk::Error("the session has a text in a batch");
  }
};

}  // namespace library

namespace pronk {

struct Model::Impl : engine::Model {};

struct Grammar::Impl : grammar::Grammar {};

// Hidden: the shared library exports only what the header declares.
struct [[gnu::visibility("hidden")]] Session::Impl : library::Borrower, library::Lent {
  Impl(const std::shared_ptr<const engine::Model>& shared,
       const std::shared_ptr<const engine::Model>& shared_draft, const Options& given)
      : Borrower(shared, shared_draft, given), options(given) {}

  Options options;
  // The number of read tokens that form the text. Clear() and Truncate() keep the rest, which may
  // turn out to begin the next text.
  std::size_t n_text = SIZE_MAX;

  engine::Session& Free() {
    CheckFree();
    return session;
  }

  std::span<const tokenizer::TokenId> Text() const {
    const std::span<const tokenizer::TokenId> all = session.tokens();
    return all.first(std::min(n_text, all.size()));
  }

  // The ids to read for a prompt, after the tokens that are already read.
  std::vector<tokenizer::TokenId> ToRead(const Prompt& prompt, const Reading& reading) {
    std::vector<tokenizer::TokenId> ids =
        library::IdsOf(*model, prompt, reading, Text(), session.capacity());
    CheckRoom(ids);
    const size_t n_reused = session.RewindToCommon(ids);
    n_text = SIZE_MAX;
    ids.erase(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(n_reused));
    return ids;
  }

  // Throws if a text of these tokens does not fit, before it forgets any of the text so far.
  void CheckRoom(std::span<const tokenizer::TokenId> ids) {
    if (ids.size() <= session.capacity()) return;
    const auto common = static_cast<size_t>(std::ranges::mismatch(ids, Text()).in1 - ids.begin());
    engine::ThrowNoRoom(ids.size() - common, /*at_least=*/false, session.capacity() - common,
                        model->config);
  }

  // Makes the state and the logits match the text. Throws if a batch holds the session.
  void Settle() {
    if (Text().size() == session.position() && session.has_logits()) return;
    CheckFree();
    const std::vector<tokenizer::TokenId> ids = ToRead(Prompt(""), {});
    session.Prefill(ids);
  }
};

struct [[gnu::visibility("hidden")]] Chat::Impl : library::Borrower, library::Lent {
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
    options.on_thinking = library::Marked(on_thinking);
    return options;
  }
};

}  // namespace pronk
