// Saves a chat after each turn, unless its file has changed in between.
#include "cli/chat/chat_saver.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/chat/saved_chats.h"
#include "cli/terminal/terminal.h"
#include "engine/session/session_file.h"

namespace cli {
namespace {

// A state is saved automatically unless it or the model, which is hashed as a whole, is larger.
constexpr size_t kMaxStateBytes = size_t{256} << 20;
constexpr uint64_t kMaxModelBytes = uint64_t{8} << 30;

}  // namespace

void ChatSaver::Leave() {
  std::error_code error;
  if (path().empty()) return;
  if (!std::filesystem::exists(path(), error)) {
    file_ = OwnFile(path());
  } else if (is_kept_) {
    file_ = OwnFile(NewChatPath());
  } else {
    file_ = OwnFile(FreeName(given_name_));
    Note("(what follows is saved as " + path() + ")");
  }
}

void ChatSaver::Save(const SavedChat& chat) {
  if (path().empty()) return;
  if (!file_.IsUnchanged()) {
    std::error_code error;
    if (std::filesystem::exists(path(), error))
      Note("(" + ShownChat(path()) + " was written by another chat)");
    Leave();
  }
  const bool is_empty = std::ranges::count(chat.messages, "user", &tokenizer::Message::role) == 0;
  std::error_code ignored;
  if (is_empty && is_kept_) {
    file_.Remove();
    std::filesystem::remove(path() + kSessionSuffix, ignored);
    return;
  }
  // An empty chat empties a file that the user chose and that exists; it creates none.
  if (is_empty && !std::filesystem::exists(path(), ignored)) return;
  try {
    const auto private_files = is_kept_ ? std::make_optional<PrivateFiles>() : std::nullopt;
    const std::string text = ChatText(chat);
    while (!file_.Write(text)) Leave();  // another program has just taken the name
    if (std::exchange(has_failed_, false)) Note("(this chat is saved again)");
  } catch (const std::exception& error) {
    if (!is_kept_) throw;
    if (!std::exchange(has_failed_, true))
      Complain(std::string(error.what()) + ": this chat is not saved");
  }
}

void ChatSaver::SaveState(engine::Session& session) {
  if (path().empty() || has_failed_ || !session.has_logits() || !file_.IsUnchanged()) return;
  std::error_code error;
  if (!std::filesystem::exists(path(), error)) return;
  const std::string state = path() + kSessionSuffix;
  try {
    if (is_kept_) KeepOnlyStateOf(path());
    std::filesystem::remove(state);
    const size_t bytes = session.RememberedState().ChunkBytes(session.position());
    if (bytes > kMaxStateBytes || session.model().file.tensor_bytes() > kMaxModelBytes) return;
    const auto private_files = is_kept_ ? std::make_optional<PrivateFiles>() : std::nullopt;
    engine::SaveSession(session, state);
  } catch (const std::exception& failure) {  // the chat is saved, and can be read again
    Complain(std::string(failure.what()) + ": what the model remembers is not saved");
  }
}

}  // namespace cli
