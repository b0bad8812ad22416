// LineFile: a file of JSON lines that an interrupted run leaves as far as it came, and the next one
// continues.
#ifndef PRONK_CLI_OUTPUT_LINE_FILE_H_
#define PRONK_CLI_OUTPUT_LINE_FILE_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file_id.h"

namespace cli {

class LineFile {
 public:
  // Opens a file, perhaps of an earlier run. begin: of every line; a file with other lines is
  // refused, and so is one of the inputs. Nothing is written yet. Throws engine::Error,
  // gguf::Error.
  LineFile(const std::string& path, std::string_view begin, std::span<const gguf::FileId> inputs);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  const std::vector<std::string>& lines() const { return lines_; }  // of earlier runs
  // Cuts off a last line that was written in part. Throws engine::Error.
  void Begin();
  // After Begin(); with its line feed. Throws engine::Error.
  void Add(std::string_view line);

 private:
  [[noreturn]] void Fail(const std::string& what) const;

  std::string path_;
  std::vector<std::string> lines_;
  size_t kept_bytes_ = 0;         // of the lines
  bool lacks_line_feed_ = false;  // the last of them
  int fd_;
};

}  // namespace cli

#endif  // PRONK_CLI_OUTPUT_LINE_FILE_H_
