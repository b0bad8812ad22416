// Writes a saved chat as JSON, reads it back, and checks that its model is the same.
#include "cli/chat/chat_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "cli/options/model_options.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/session/session_file.h"
#include "engine/session/xxh64.h"
#include "gguf/error.h"
#include "gguf/file.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kChatVersion = 1;
constexpr uint64_t kNoFile = 0, kUnreadable = 1;  // in place of a hash

uint64_t ContentHash(const std::string& text) {
  return engine::Xxh64(std::as_bytes(std::span(text)));
}

uint64_t ContentOf(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::is_regular_file(status)) return kNoFile;  // or a device, whose content is not read
  try {
    return ContentHash(ReadFile(path, kMaxDocumentBytes));
  } catch (const engine::Error&) {
    return kUnreadable;
  }
}

// Locks a folder against other pronk processes. Waits a second at most: if folders cannot be
// locked, or a stopped program holds the lock, it continues without the lock.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) {
    const std::string folder = fs::path(path).parent_path();
    fd_ = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    constexpr int kTries = 100;
    for (int i = 0; fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) != 0 && i < kTries; ++i)
      usleep(10'000);
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

// A value of -m that finds this file, if there is one.
std::string ShownModel(const gguf::File& file) {
  const fs::path path = file.path();
  if (IsDefaultModel(path)) return kDefaultModel;
  if (path.extension() == ".gguf") return gguf::Printable(path.stem().string());
  const std::string file_name = path.filename();
  return gguf::Printable(file.metadata().GetStringOr("general.name", file_name));
}

[[noreturn]] void FailAt(const std::string& key, const std::string& expected,
                         const JsonView& found) {
  const std::string text =
      found.is_there() ? gguf::Printable(found.text(), 80) : std::string("nothing");
  throw engine::Error(key, ": expected ", expected, ", found ", text);
}

std::string TextAt(const JsonView& json, const std::string& key) {
  const JsonView text = json[key.substr(key.rfind('.') + 1)];
  if (!text.IsString()) FailAt(key, "a text", text);
  return text.String();
}

uint64_t NumberAt(const JsonView& json, const std::string& key, uint64_t most) {
  const JsonView number = json[key.substr(key.rfind('.') + 1)];
  const auto value = number.Unsigned();
  if (!value || *value > most) FailAt(key, "a whole number up to " + std::to_string(most), number);
  return *value;
}

ModelIdentity ReadIdentity(const JsonView& json) {
  ModelIdentity model = {TextAt(json, "model.name"), TextAt(json, "model.path"),
                         NumberAt(json, "model.bytes", INT64_MAX)};
  if (!model.path.starts_with('/')) FailAt("model.path", "an absolute path", json["path"]);
  const std::string hex = TextAt(json, "model.fingerprint");
  const char* const end = hex.data() + hex.size();
  if (hex.size() != 16 || std::from_chars(hex.data(), end, model.fingerprint, 16).ptr != end)
    FailAt("model.fingerprint", "16 hexadecimal digits", json["fingerprint"]);
  return model;
}

FlagValues ReadFlags(const JsonView& json) {
  FlagValues flags;
  if (!json.IsObject()) FailAt("flags", "an object", json);
  for (const auto& [name, list] : json.Members()) {
    const std::string key = "flags: " + gguf::Printable(name);
    if (!list.IsArray() || list.size() == 0) FailAt(key, "a list of texts", list);
    for (const auto& item : list) {
      if (!item.value.IsString()) FailAt(key, "a list of texts", list);
      flags[name].push_back(item.value.String());
    }
  }
  return flags;
}

void ReadSetup(const JsonView& json, SavedChat& chat) {
  const JsonView version = json["pronk_chat"];
  if (!version.is_there()) return;  // {"messages": [...]}, as other programs have it
  if (version.Unsigned() != kChatVersion)
    FailAt("pronk_chat", std::to_string(kChatVersion) + " (another version of pronk wrote others)",
           version);
  if (!json["model"].IsObject()) FailAt("model", "an object", json["model"]);
  chat.model = ReadIdentity(json["model"]);
  if (json["template"].is_there()) chat.setup.chat_template = TextAt(json, "template");
  chat.setup.flags = ReadFlags(json["flags"]);
}

}  // namespace

bool IsDefaultModel(const std::string& path) {
  std::error_code error;
  return fs::equivalent(path, DefaultModelPath(), error);
}

ModelIdentity IdentityOf(const std::string& path) {
  const gguf::File file = gguf::File::Open(path);
  return {ShownModel(file), fs::absolute(path).lexically_normal(), file.file_bytes(),
          engine::FingerprintOf(file)};
}

SavedChat ReadChat(const std::string& path) {
  return ParseChat(ReadText(path, kMaxDocumentBytes), path);
}

SavedChat ParseChat(std::string text, const std::string& name) {
  SavedChat chat;
  chat.content = ContentHash(text);
  const JsonView json = ParseJson(std::move(text), name);
  try {
    if (json.IsObject()) ReadSetup(json, chat);
    chat.messages = tokenizer::ReadMessages(json.IsObject() ? json["messages"] : json);
  } catch (const gguf::Fault& error) {
    throw engine::Error(name, ": ", error.what());
  }
  return chat;
}

std::string ChatText(const SavedChat& chat) {
  std::string text = "{\"pronk_chat\": " + std::to_string(kChatVersion);
  const auto add = [&](const std::string& key, const std::string& value) {
    text.append(",\n \"").append(key).append("\": ").append(value);
  };
  const ModelIdentity& model = chat.model.value();
  add("model", JsonLine({{"name", model.name},
                         {"path", model.path},
                         {"bytes", model.bytes},
                         {"fingerprint",
                          Format("%016llx", static_cast<unsigned long long>(model.fingerprint))}}));
  if (!chat.setup.chat_template.empty()) add("template", JsonLine(chat.setup.chat_template));
  Json flags = Json::object();
  for (const auto& [name, values] : chat.setup.flags) flags[name] = values;
  add("flags", JsonLine(flags));
  add("messages", MessagesText(chat.messages));
  return text + "}\n";
}

bool OwnFile::IsUnchanged() const { return ContentOf(path_) == content_; }

bool OwnFile::Write(const std::string& text) {
  if (text.size() > kMaxDocumentBytes)
    throw engine::Error(path_, ": the chat is longer than ", kMaxDocumentBytes, " bytes");
  ParseJson(text, path_);
  const FolderLock lock(path_);
  if (!IsUnchanged()) return false;
  gguf::OutputFile file(path_);
  file.Write(text);
  file.Commit();
  std::error_code error;
  content_ = fs::is_regular_file(path_, error) ? ContentHash(text) : kNoFile;
  return true;
}

void OwnFile::Remove() {
  const FolderLock lock(path_);
  std::error_code ignored;
  if (IsUnchanged() && content_ != kNoFile) fs::remove(path_, ignored);
  content_ = ContentOf(path_);
}

}  // namespace cli
