// Conversation: what happens to an entry of `pronk chat`. A question is answered; a line that
// begins with a slash is a command.
#ifndef PRONK_CLI_CHAT_CONVERSATION_H_
#define PRONK_CLI_CHAT_CONVERSATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/session/chat.h"
#include "engine/session/session.h"

namespace cli {

struct ConversationOptions {
  std::string system;
  int64_t max_tokens = -1;         // of an answer
  bool verbose = false;            // say how each answer was made
  engine::SamplerOptions sampler;  // as the session has it
  std::vector<std::string> stop_texts;
  grammar::Constraint* constraint = nullptr;  // of each answer; none: they are free
};

class Conversation {
 public:
  Conversation(engine::Session& session, const ConversationOptions& options, engine::ChatForm form);

  // False where the conversation is over: somebody said /exit, or nobody reads the answers.
  // Throws what Chat::Say throws, and engine::Error from commands; the conversation then goes on.
  bool Take(const std::string& entry);

  // One answer was given.
  bool has_answered() const { return last_.has_value(); }

  static std::vector<std::string> CommandNames();  // "/help", ...

 private:
  // A command's function gets the text after its name.
  struct ChatCommand;
  static const std::vector<ChatCommand>& Commands();
  void Help(const std::string& argument);
  void Clear(const std::string& argument);
  void Regenerate(const std::string& argument);
  void Undo(const std::string& argument);
  void System(const std::string& argument);
  void Save(const std::string& argument);
  void Load(const std::string& argument);
  void Stats(const std::string& argument);
  void Set(const std::string& argument);
  void Think(const std::string& argument);
  void Exit(const std::string& argument);

  void Answer(const std::string& question);
  void ExplainEnd(const engine::Chat::Answer& answer) const;

  engine::Session& session_;
  ConversationOptions options_;
  engine::Chat chat_;
  std::optional<engine::Chat::Answer> last_;
  std::string file_;  // saved to or loaded from last
  bool open_ = true;  // what Take() returns
};

}  // namespace cli

#endif  // PRONK_CLI_CHAT_CONVERSATION_H_
