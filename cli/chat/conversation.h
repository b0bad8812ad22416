// Handles one entry of `pronk chat`: a question, or a command, which begins with a slash.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/chat/chat_file.h"
#include "cli/chat/chat_saver.h"
#include "cli/chat/ready_model.h"
#include "engine/session/chat.h"

namespace cli {

class Conversation {
 public:
  // Begins with this model, which has a session or gets one.
  Conversation(const ChatOptions& options, std::unique_ptr<ReadyModel> ready, ChatSaver saver);

  // Returns false at the end of the conversation: after /exit, or when the output's reader is gone.
  // Throws as Chat::Say, and engine::Error from commands; the conversation then continues.
  bool Take(const std::string& entry);

  // Continues the chat that was read from `path`. is_other: the model is not the chat's, so nothing
  // is written to `path`.
  void GoOnWith(const SavedChat& chat, const std::string& path, bool is_other);
  // Does what /system does; the text may have several lines.
  void System(const std::string& argument);
  // The end: saves the session's state beside the chat, if an answer has changed it.
  void SaveState() {
    if (last_) saver_.SaveState(*ready_->session);
  }

  // Answers so far, including answers that Ctrl-C stopped.
  size_t n_answers() const { return n_answers_; }
  // True once an answer ended in the middle of its grammar.
  bool is_cut() const { return is_cut_; }

  // The possible completions of a typed line: commands and their arguments.
  std::vector<std::string> Completions(const std::string& typed) const;

 private:
  // chat_commands.cc. The function of a command gets the text after the command's name.
  struct ChatCommand;
  static const std::vector<ChatCommand>& Commands();
  void Help(const std::string& argument);
  void Clear(const std::string& argument);
  void Regenerate(const std::string& argument);
  void Undo(const std::string& argument);
  void File(const std::string& argument);
  void Model(const std::string& argument);
  void Save(const std::string& argument);
  void Load(const std::string& argument);
  void Chats(const std::string& argument);
  void Stats(const std::string& argument);
  void Set(const std::string& argument);
  void Think(const std::string& argument);
  void Exit(const std::string& argument);

  // The last message must be an answer: the next one is a question.
  static void CheckAnswered(const std::vector<tokenizer::Message>& messages);
  void Answer(const std::string& question);
  void ExplainEnd(const engine::Chat::Answer& answer) const;
  // The chat as it is saved.
  SavedChat Now() const;
  // Gives the model a session and the conversation these messages.
  void Attach(const std::vector<tokenizer::Message>& messages);
  // Continues with another model, or reopens the same one. Keeps the current model if this throws.
  void SwitchTo(const std::string& path, const ChatSetup& setup,
                const std::vector<tokenizer::Message>& messages);
  void Resize(size_t context);

  const ChatOptions& options_;
  std::unique_ptr<ReadyModel> ready_;
  std::optional<engine::Chat> chat_;  // uses ready_'s session
  ChatSaver saver_;
  bool verbose_;  // report how each answer was made
  std::optional<engine::Chat::Answer> last_;
  std::vector<std::string> texts_;  // texts of /file, for the next question
  OwnFile file_;                    // last saved or loaded
  bool open_ = true;                // Take()'s result
  size_t n_answers_ = 0;
  bool is_cut_ = false;
  bool is_broken_ = false;  // the model is broken, and this was reported
};

}  // namespace cli
