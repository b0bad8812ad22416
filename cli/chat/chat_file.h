// A saved chat: its messages, and the settings to continue it as before.
//
//     {"pronk_chat": 1,
//      "model": {"name": "qwen-0.5b", "path": "/models/qwen-0.5b.gguf", "bytes": 397808192,
//                "fingerprint": "5f1c09aa7be0d3c4"},
//      "template": "{% for ...",                     only if it is not the model's own
//      "flags": {"--ctx-size": ["8192"], "--temp": ["0.2"], "--ignore-eos": [""]},
//      "messages": [...]}                            as tokenizer/messages.h has them
//
// The list of messages alone, as other programs write it, is a chat that names no model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/chat/kept_flags.h"
#include "tokenizer/messages.h"

namespace cli {

struct ModelIdentity {
  std::string name;  // the name that is shown
  std::string path;  // absolute
  uint64_t bytes = 0;
  uint64_t fingerprint = 0;  // engine::FingerprintOf()

  // Ignores the file's path.
  bool IsSame(const ModelIdentity& other) const {
    return bytes == other.bytes && fingerprint == other.fingerprint;
  }
};
// Whether this is the included model's file.
bool IsDefaultModel(const std::string& path);
// Throws gguf::Error if the file is not a model's.
ModelIdentity IdentityOf(const std::string& path);

// A chat's settings.
struct ChatSetup {
  std::string chat_template;  // "": the model's own
  FlagValues flags;
};

struct SavedChat {
  std::optional<ModelIdentity> model;
  ChatSetup setup;
  std::vector<tokenizer::Message> messages;
  uint64_t content = 0;  // ContentHash() of the file
};

// Throws engine::Error, which names the file and the fault.
SavedChat ReadChat(const std::string& path);
SavedChat ParseChat(std::string text, const std::string& name);
// The text of the file.
std::string ChatText(const SavedChat& chat);

// A file that is replaced only while no other program changes it.
class OwnFile {
 public:
  // content: its hash when it was read; 0: there is no file.
  explicit OwnFile(std::string path = "", uint64_t content = 0)
      : path_(std::move(path)), content_(content) {}
  const std::string& path() const { return path_; }
  bool IsUnchanged() const;
  // Replaces the file; returns false, without writing, if it has changed. Only one program at a
  // time saves to a folder. Throws engine::Error for a text that ReadChat() would refuse,
  // gguf::Error if the write fails: the old file then stays.
  bool Write(const std::string& text);
  // Removes the file, if there is one that has not changed.
  void Remove();

 private:
  std::string path_;
  uint64_t content_;
};

}  // namespace cli
