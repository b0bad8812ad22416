// Automatically saved chats, and typed lines, under $XDG_STATE_HOME/pronk, by default
// ~/.local/state/pronk. Only its owner can read it, like ~/.ssh.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <vector>

namespace cli {

// Suffix of the file with the session's state, saved beside a conversation.
inline constexpr const char* kSessionSuffix = ".session";

// Files that are created while it lives have the mode 0600.
class PrivateFiles {
 public:
  PrivateFiles() : before_(umask(077)) {}
  ~PrivateFiles() { umask(before_); }
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;

 private:
  mode_t before_;
};

// All functions throw engine::Error if there is no folder to save to, or it is not writable.

// The path, or NAME-2.json, NAME-3.json and so on if the file exists.
std::string FreeName(const std::string& path);
// A path for a chat that begins now.
std::string NewChatPath();
// The paths of all saved chats, the last one first.
std::vector<std::string> SavedChats();
// A line for each saved chat: its number, from 1, its name, how long ago it was saved, its model,
// the first question. Lines are cut to `columns` unless that is 0. "" without a saved chat. Files
// that are not chats are named on stderr.
std::string SavedChatsText(size_t columns);
// Whether a saved chat has exactly this name.
bool IsNameOfSavedChat(const std::string& name);
// The path of the saved chat with this number, name or unique beginning of a name. Throws
// engine::Error if no chat or several fit.
std::string FindSavedChat(const std::string& name);
// The file of this path if there is one, else the saved chat of this name; a path that names
// neither is returned unchanged.
std::string FindChat(const std::string& name);
// Whether a path is a saved chat's.
bool IsSavedChat(const std::string& path);
// The name of a saved chat, the path of another file.
std::string ShownChat(const std::string& path);
// Removes the states of all chats but this one: they may be large, and can be recomputed.
void KeepOnlyStateOf(const std::string& path);

// Lines typed in earlier chats, the oldest first.
std::vector<std::string> TypedLines();
// Adds a line, unless it is so long that it was pasted, or the disk is full.
void AddTypedLine(const std::string& line);

}  // namespace cli
