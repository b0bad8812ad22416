// Handles one entry of `pronk chat`: a question, or a command, which begins with a slash.
#ifndef PRONK_CLI_CHAT_CONVERSATION_H_
#define PRONK_CLI_CHAT_CONVERSATION_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/generation_options.h"
#include "engine/session/chat.h"
#include "engine/session/session.h"

namespace cli {

struct ConversationOptions {
  std::string system;
  int64_t max_tokens = -1;                                     // of an answer
  bool verbose = false;                                        // report how each answer was made
  engine::SamplerOptions sampler;                              // the session's current options
  Origins origins;                                             // of their values
  std::map<std::string_view, std::vector<std::string>> flags;  // by the options' names
  std::vector<std::string> stop_texts;
  grammar::Constraint* constraint = nullptr;  // of each answer; nullptr: none
  std::string save_to = {};  // where the conversation is saved after each answer; "": nowhere
  bool is_kept = false;      // it is one of our own (saved_chats.h)
};

class Conversation {
 public:
  Conversation(engine::Session& session, const ConversationOptions& options, engine::ChatForm form);

  // False when the conversation is over: after /exit, or when nobody reads the answers. Throws what
  // Chat::Say throws, and engine::Error from commands; the conversation then goes on.
  bool Take(const std::string& entry);

  // As /load does: the conversation, and what the model remembers of it.
  void Load(const std::string& argument);
  // As /system does; the text may have several lines.
  void System(const std::string& argument);
  // The end: saves the session's state beside the conversation, unless it is too large.
  void SaveState();

  // True once a question was answered.
  bool has_answered() const { return last_.has_value(); }
  // True once an answer ended in the middle of its grammar.
  bool is_cut() const { return is_cut_; }

  // The lines that one that begins like this could be: commands, and files for /load and /save.
  static std::vector<std::string> Completions(const std::string& typed);

 private:
  // The function of a command gets the text after the command's name.
  struct ChatCommand;
  static const std::vector<ChatCommand>& Commands();
  void Help(const std::string& argument);
  void Clear(const std::string& argument);
  void Regenerate(const std::string& argument);
  void Undo(const std::string& argument);
  void Save(const std::string& argument);
  void Stats(const std::string& argument);
  void Set(const std::string& argument);
  void Think(const std::string& argument);
  void Exit(const std::string& argument);

  void Answer(const std::string& question);
  void ExplainEnd(const engine::Chat::Answer& answer) const;
  void SaveItself();
  void Write(const std::string& path);
  void LeaveFile();  // what was saved so far stays as it is, and what follows gets a new name

  engine::Session& session_;
  ConversationOptions options_;
  engine::Chat chat_;
  std::optional<engine::Chat::Answer> last_;
  std::string file_;  // last saved or loaded
  const std::string given_name_ = options_.save_to;
  // When we read or wrote save_to: another chat may go on with it, too.
  std::filesystem::file_time_type written_at_ = std::filesystem::file_time_type::min();
  bool open_ = true;  // what Take() returns
  bool is_cut_ = false;
};

}  // namespace cli

#endif  // PRONK_CLI_CHAT_CONVERSATION_H_
