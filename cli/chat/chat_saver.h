// Saves a chat as it grows, and never overwrites a file that holds another chat.
#pragma once

#include <string>
#include <utility>

#include "cli/chat/chat_file.h"
#include "engine/session/session.h"

namespace cli {

class ChatSaver {
 public:
  ChatSaver() = default;  // saves nothing
  // Saves to this file, which is one of our own chats (saved_chats.h) if is_kept.
  ChatSaver(OwnFile file, bool is_kept)
      : file_(std::move(file)), given_name_(file_.path()), is_kept_(is_kept) {}

  const std::string& path() const { return file_.path(); }  // "": nothing is saved
  // Further answers replace this file.
  void GoOnWith(OwnFile file) { file_ = std::move(file); }
  // Further answers replace this kept chat, if the saver keeps chats; else nothing changes.
  void GoOnWithKept(OwnFile file) {
    if (is_kept_ && !path().empty()) GoOnWith(std::move(file));
  }
  // Leaves the saved chat unchanged; further answers are saved under a new name.
  void Leave();

  // Saves the chat, or removes a kept chat that has no question left. If the save fails, a chat on
  // a terminal continues unsaved; throws gguf::Fault if --save named the file.
  void Save(const SavedChat& chat);
  // Called at the end: saves the session's state beside the chat, unless it is too large.
  void SaveState(engine::Session& session);

 private:
  OwnFile file_;
  std::string given_name_;
  bool is_kept_ = false;
  bool has_failed_ = false;  // the last save failed
};

}  // namespace cli
