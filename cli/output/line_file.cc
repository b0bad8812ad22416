#include "cli/output/line_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"
#include "gguf/json.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

// Whether a last line without its line feed was written in part only.
bool IsCut(const std::string& line) {
  try {
    gguf::JsonView::Parse(line);
    return false;
  } catch (const gguf::Error&) {
    return true;
  }
}

}  // namespace

LineFile::LineFile(const std::string& path, std::string_view begin,
                   std::span<const gguf::FileId> inputs)
    : path_(path),
      fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666)) {
  struct stat status = {};
  if (fd_ < 0 || fstat(fd_, &status) != 0) Fail("cannot be opened");
  try {
    gguf::RefuseInputs(path, status, inputs);
    if (!S_ISREG(status.st_mode)) throw engine::Error(path + ": expected a file, to continue it");
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0) Fail("cannot be locked; perhaps another run writes it");
    const std::string text = ReadFile(path, kMaxTextBytes);
    size_t at = 0;
    for (size_t end; at < text.size(); at = end + 1) {
      const std::string_view line = std::string_view(text).substr(at, begin.size());
      if (!begin.starts_with(line))
        throw engine::Error(path + ": has other lines than answers: give another name");
      end = std::min(text.find('\n', at), text.size());
      if (end == text.size() && IsCut(text.substr(at))) break;
      lines_.push_back(text.substr(at, end - at));
    }
    kept_bytes_ = std::min(at, text.size());
    lacks_line_feed_ = at > text.size();
  } catch (...) {
    close(fd_);
    throw;
  }
}

LineFile::~LineFile() { close(fd_); }

void LineFile::Begin() {
  if (ftruncate(fd_, static_cast<off_t>(kept_bytes_)) != 0 || lseek(fd_, 0, SEEK_END) < 0)
    Fail("cannot be written to");
  if (lacks_line_feed_) Add("\n");
}

void LineFile::Add(std::string_view line) {
  while (!line.empty()) {
    const ssize_t n = write(fd_, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail("cannot be written to");
    line.remove_prefix(static_cast<size_t>(n));
  }
}

void LineFile::Fail(const std::string& what) const {
  throw engine::Error(path_ + ": " + what + ": " + std::strerror(errno));
}

}  // namespace cli
