// Answers the entries of pronk chat, and continues with other models and saved chats.
#include "cli/chat/conversation.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string_view>
#include <utility>

#include "cli/chat/saved_chats.h"
#include "cli/output/text.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/session/session_file.h"

namespace cli {

Conversation::Conversation(const ChatOptions& options, std::unique_ptr<ReadyModel> ready,
                           ChatSaver saver)
    : options_(options),
      ready_(std::move(ready)),
      saver_(std::move(saver)),
      verbose_(options.model.verbose) {
  Attach({});
}

void Conversation::Attach(const std::vector<tokenizer::Message>& messages) {
  if (ready_->session == nullptr) ready_->Begin();
  chat_.emplace(*ready_->session, "", ready_->form);
  chat_->SetMessages(messages);
  last_.reset();
}

void Conversation::SwitchTo(const std::string& path, const ChatSetup& setup,
                            const std::vector<tokenizer::Message>& messages) {
  const std::vector<tokenizer::Message> messages_now = chat_->Messages();
  std::unique_ptr<ReadyModel> now;
  try {
    options_.kept->Apply(setup.flags);
    auto next = std::make_unique<ReadyModel>(options_, path, setup, /*is_first=*/false);
    if (ready_->draft_model)
      Note("(the draft model of -md is not used: it belongs to the first model)");
    // Both contexts together may not fit into memory.
    now = std::exchange(ready_, std::move(next));
    chat_.reset();
    now->session.reset();
    Attach(messages);
  } catch (...) {
    if (now != nullptr) ready_ = std::move(now);
    options_.kept->Apply(ready_->setup.flags);
    if (ready_->session == nullptr) Attach(messages_now);
    throw;
  }
}

void Conversation::Resize(size_t context) {
  const std::vector<tokenizer::Message> messages = chat_->Messages();
  const size_t before = ready_->session_options.context;
  chat_.reset();
  ready_->session.reset();
  ready_->session_options.context = context;
  try {
    Attach(messages);
  } catch (...) {
    ready_->session_options.context = before;
    Attach(messages);
    throw;
  }
  ready_->setup.flags["--ctx-size"] = {std::to_string(context)};
  Note("(the context has " + Counted(context, "token") + "; the conversation is read again)");
}

SavedChat Conversation::Now() const { return {ready_->identity, ready_->setup, chat_->Messages()}; }

void Conversation::CheckAnswered(const std::vector<tokenizer::Message>& messages) {
  const std::string last = messages.empty() ? "" : messages.back().role;
  if (last == "user" || last == "tool") throw engine::Error("the last question has no answer");
}

void Conversation::Answer(const std::string& question) {
  const QuietKeyboard quiet;
  ProgressLine progress("reading");
  TextOutput out;
  grammar::Constraint* const constraint = ready_->constraint ? &*ready_->constraint : nullptr;
  engine::GenerateOptions generate = {.max_tokens = ready_->max_tokens,
                                      .stop_texts = ready_->stop_texts,
                                      .should_stop = Interrupted,
                                      .constraint = constraint};
  generate.prompt_progress = [&](size_t done, size_t total) {
    progress.Update(done, total);
    return true;
  };
  generate.on_thinking = [&](std::string_view text) {
    progress.Clear();
    out.WriteThinking(text);
    return true;
  };
  last_ = chat_->Say(question, generate, [&](std::string_view text) {
    progress.Clear();
    return open_ = out.Write(text);
  });
  ++n_answers_;
  const std::vector<tokenizer::Message> messages = chat_->Messages();
  if (!messages.empty() && messages.back().role == "user") chat_->Undo();  // nothing was answered
  progress.Clear();
  open_ = open_ && out.Finish();
  saver_.Save(Now());
  if (!open_) return;
  ExplainEnd(*last_);
  if (last_->generated.has_bad_logits && !std::exchange(is_broken_, true)) ComplainOfBadLogits();
  is_cut_ |= ComplainIfCut(constraint, last_->generated.stop_reason);
  if (verbose_) Stats("");
}

void Conversation::ExplainEnd(const engine::Chat::Answer& answer) const {
  if (answer.n_dropped > 0) {
    Note("(the context is full: the oldest " + Counted(answer.n_dropped, "message") +
         " are forgotten)");
  }
  switch (answer.generated.stop_reason) {
    case pronk::StopReason::kContext:
      return Note("(the context is full: the answer ends here; /set num_ctx makes it larger)");
    case pronk::StopReason::kLength:
      return Note("(the answer was cut after " + Counted(answer.generated.tokens.size(), "token") +
                  ", as -n says)");
    case pronk::StopReason::kInterrupted:
      if (answer.generated.n_unread > 0) {
        return Note("(stopped while reading: the question is taken back; " +
                    Counted(answer.generated.n_unread, "token") + " of it were not read, " +
                    std::to_string(answer.generated.n_prompt) + " were)");
      }
      return Note(answer.generated.text.empty() && answer.generated.thinking.empty()
                      ? "(stopped before the first word: the question is taken back)"
                      : "(stopped)");
    case pronk::StopReason::kEos:
    case pronk::StopReason::kStop:
      return;
  }
}

void Conversation::GoOnWith(const SavedChat& chat, const std::string& path, bool is_other) {
  try {
    CheckAnswered(chat.messages);
    chat_->SetMessages(chat.messages);
  } catch (const engine::Error& error) {
    throw engine::Error(path, ": ", error.what());
  }
  if (path != saver_.path()) saver_.Leave();
  if (!is_other && chat.model && IsSavedChat(path))
    saver_.GoOnWithKept(OwnFile(path, chat.content));
  if (path == saver_.path()) saver_.GoOnWith(OwnFile(path, chat.content));
  file_ = is_other ? OwnFile() : OwnFile(path, chat.content);
  last_.reset();
  Note("(" + Counted(chat.messages.size(), "message") + " loaded from " + ShownChat(path) + ")");
  if (is_other) {
    Note("(" + ready_->identity.name + " goes on with it" +
         (saver_.path().empty() ? ")" : ", as a new chat)"));
  }
  const std::string state = path + kSessionSuffix;
  if (is_other || !std::filesystem::exists(state)) return;
  try {
    engine::LoadSession(*ready_->session, state);
  } catch (const engine::OtherModel& error) {
    Note("(" + std::string(error.what()) + ": the conversation will be read again)");
    saver_.Leave();  // its model is unknown, or differs in few weights
    file_ = OwnFile();
  } catch (const std::exception& error) {
    Note("(" + std::string(error.what()) + ": the conversation will be read again)");
  }
}

}  // namespace cli
