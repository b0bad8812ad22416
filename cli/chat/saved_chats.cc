// Names, lists and finds the saved chats in the state folder, and keeps the lines that were typed.
#include "cli/chat/saved_chats.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "cli/chat/chat_file.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"
#include "gguf/number.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTypedLines = 1000;
// Bytes of a line; twice as many lines fit kMaxDocumentBytes.
constexpr size_t kMaxTypedBytes = 4096;

// A folder of ours, which is made if it is missing.
fs::path StateFolder(const std::string& name) {
  fs::path folder = FromEnvironment("XDG_STATE_HOME").value_or("");
  if (!folder.is_absolute()) {  // the specification demands that
    const auto home = FromEnvironment("HOME");
    if (!home) throw engine::Error("neither XDG_STATE_HOME nor HOME says where chats are saved");
    folder = fs::path(*home) / ".local/state";
  }
  folder /= "pronk";
  try {
    const PrivateFiles made_here;
    fs::create_directories(folder / name);
    fs::permissions(folder, fs::perms::owner_all);
    fs::directory_iterator(folder / name);  // throws if it cannot be read
  } catch (const fs::filesystem_error& error) {
    throw engine::Error(error.path1().string(),
                        ": cannot be made or read: ", error.code().message());
  }
  return folder / name;
}

std::string LocalTime(std::time_t time, const char* form) {
  std::tm parts = {};
  localtime_r(&time, &parts);
  std::array<char, 64> text = {};
  std::strftime(text.data(), text.size(), form, &parts);
  return text.data();
}

std::time_t ChangedAt(const fs::path& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 ? status.st_mtime : 0;
}

// The age of a time; for more than a month, the day.
std::string Age(std::time_t time) {
  constexpr std::time_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  const std::time_t age = std::time(nullptr) - time;
  if (age < kMinute) return "now";
  if (age < kHour) return std::to_string(age / kMinute) + " min";
  if (age < kDay) return std::to_string(age / kHour) + " h";
  if (age < 31 * kDay) return Counted(static_cast<size_t>(age / kDay), "day");
  return LocalTime(time, "%Y-%m-%d");
}

std::string ModelColumn(const SavedChat& chat) {
  constexpr size_t kMost = 28;  // columns
  const std::string name = chat.model ? gguf::Printable(chat.model->name) : "?";
  return TextColumns(name) <= kMost ? name : Column(name, kMost);
}

// The first characters of a text, at most 40 bytes.
std::string Beginning(const std::string& text) {
  size_t n = std::min<size_t>(text.size(), 40);
  while (n > 0 && n < text.size() && (text[n] & 0xC0) == 0x80) --n;
  return text.substr(0, n);
}

fs::path TypedLinesPath() { return StateFolder("") / "typed"; }

}  // namespace

std::string FreeName(const std::string& path) {
  const fs::path extension = fs::path(path).extension();
  const std::string stem = path.substr(0, path.size() - extension.string().size());
  std::string free = path;
  for (int i = 2; fs::exists(free); ++i) free = stem + "-" + std::to_string(i) + extension.string();
  return free;
}

std::string NewChatPath() {
  const std::string now = LocalTime(std::time(nullptr), "%Y-%m-%d-%H%M%S-") +
                          std::to_string(getpid());  // another chat may begin in this second
  return FreeName(StateFolder("chats") / (now + ".json"));
}

std::vector<std::string> SavedChats() {
  std::vector<std::pair<std::time_t, fs::path>> chats;  // chats of one second; names are dates
  for (const fs::path& path : Entries(StateFolder("chats"))) {
    if (path.extension() == ".json") chats.emplace_back(ChangedAt(path), path);
  }
  std::ranges::sort(chats, std::greater());
  std::vector<std::string> paths;
  for (const auto& [changed, path] : chats) paths.push_back(path);
  return paths;
}

std::string SavedChatsText(size_t columns) {
  Table table(Table::Style::kPlain, {{"", true}, {"name"}, {"saved", true}, {"model"}, {"begins"}});
  std::vector<std::vector<std::string>> rows;
  size_t number = 0;
  for (const std::string& path : SavedChats()) {
    ++number;
    try {
      const SavedChat chat = ReadChat(path);
      const auto first = std::ranges::find(chat.messages, "user", &tokenizer::Message::role);
      rows.push_back({std::to_string(number), gguf::Printable(ShownChat(path)),
                      Age(ChangedAt(path)), ModelColumn(chat),
                      first == chat.messages.end() ? "" : JsonLine(Beginning(first->content))});
    } catch (const engine::Error& error) {
      Complain(error.what());
    }
  }
  if (rows.empty()) return "";
  std::istringstream lines(table.All(rows));
  std::string text;
  for (std::string line; std::getline(lines, line);)
    text += (columns == 0 ? line : Cut(line, columns)) + "\n";
  return text;
}

bool IsNameOfSavedChat(const std::string& name) {
  return std::ranges::any_of(SavedChats(),
                             [&](const std::string& path) { return ShownChat(path) == name; });
}

std::string FindSavedChat(const std::string& name) {
  const std::vector<std::string> chats = SavedChats();
  const auto fail = [&](const std::string& what) {
    throw engine::Error(what, "; 'pronk chat --list' lists ", Counted(chats.size(), "chat"));
  };
  // 2026 may be the beginning of a name, too.
  if (const auto n = gguf::NumberIn<size_t>(name); n && *n > 0 && *n <= chats.size())
    return chats[*n - 1];
  std::vector<std::string> found, names;
  for (const std::string& path : chats) {
    const std::string chat = ShownChat(path);
    if (chat == name) return path;
    if (name.empty() || !chat.starts_with(name)) continue;
    found.push_back(path);
    if (names.size() < 3) names.push_back(chat);
  }
  if (found.empty()) fail("there is no saved chat " + gguf::Printable(name));
  if (found.size() > 1) {
    fail(gguf::Printable(name) + " could be " + Joined(names, ", ") +
         (found.size() > names.size() ? " and others" : ""));
  }
  return found.front();
}

std::string FindChat(const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error) || name.find('/') != std::string::npos || name == "-") return name;
  try {
    return FindSavedChat(name);
  } catch (const engine::Error&) {
    // A word that may be a number or a name is meant as one; any other names a missing file.
    if (name.find_first_not_of("0123456789-") == std::string::npos) throw;
    return name;
  }
}

bool IsSavedChat(const std::string& path) {
  try {
    std::error_code error;
    return fs::equivalent(fs::path(path).parent_path(), StateFolder("chats"), error);
  } catch (const engine::Error&) {
    return false;
  }
}

std::string ShownChat(const std::string& path) {
  return IsSavedChat(path) ? fs::path(path).stem().string() : path;
}

void KeepOnlyStateOf(const std::string& path) {
  for (const fs::path& other : Entries(StateFolder("chats"))) {
    std::error_code ignored;
    if (other.extension() == kSessionSuffix && other != path + kSessionSuffix)
      fs::remove(other, ignored);
  }
}

std::vector<std::string> TypedLines() {
  const fs::path path = TypedLinesPath();
  std::vector<std::string> lines;
  if (!fs::exists(path)) return lines;
  std::istringstream text(ReadFile(path, kMaxDocumentBytes));
  for (std::string line; std::getline(text, line);) {
    if (const auto entry = UnquoteJson(line)) lines.push_back(*entry);
  }
  if (lines.size() <= 2 * kMaxTypedLines) return lines;
  lines.erase(lines.begin(), lines.end() - kMaxTypedLines);
  const PrivateFiles made_here;
  const fs::path shorter = path.string() + ".new";
  std::ofstream file(shorter);
  for (const std::string& line : lines) file << JsonText(line, -1);
  file.close();
  if (file) fs::rename(shorter, path);
  return lines;
}

void AddTypedLine(const std::string& line) {
  if (line.size() > kMaxTypedBytes) return;
  const PrivateFiles made_here;
  std::ofstream(TypedLinesPath(), std::ios::app) << JsonText(line, -1);
}

}  // namespace cli
