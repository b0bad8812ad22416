// OutputFile: a file that appears under its name only when it is whole; until then it is called
// NAME.partial. A device or pipe (/dev/stdout, /dev/null) is written as it stands.
#ifndef PRONK_ENGINE_CLI_OUTPUT_FILE_H_
#define PRONK_ENGINE_CLI_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

namespace cli {

// All methods throw engine::Error. Destroyed before Commit(), it leaves nothing behind, and so does
// a signal that ends the program, but for SIGKILL, which nobody can catch. One at a time.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::span<const std::byte> bytes);
  void Commit();

 private:
  [[noreturn]] void Fail() const;

  std::string path_;
  std::string partial_;  // the name while it is being written; empty for a device or pipe
  std::FILE* file_;
};

// For signal handlers that end the program: removes what an OutputFile has written so far.
void RemoveUnfinishedFile();

}  // namespace cli

#endif  // PRONK_ENGINE_CLI_OUTPUT_FILE_H_
