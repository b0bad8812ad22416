// Notes the files that a command reads, and refuses outputs that would overwrite one.
#include "cli/options/inputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "engine/error.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

// One list for the process, which runs one command.
std::vector<gguf::FileId>& All() {
  static std::vector<gguf::FileId> ids;
  return ids;
}

}  // namespace

void AddInput(const std::string& path) {
  struct stat status;
  const bool is_there =
      (path == "-" ? fstat(STDIN_FILENO, &status) : stat(path.c_str(), &status)) == 0;
  if (is_there && S_ISREG(status.st_mode)) All().push_back(gguf::FileId::Of(status));
}

void AddInputs(const std::vector<gguf::FileId>& ids) {
  All().insert(All().end(), ids.begin(), ids.end());
}

std::span<const gguf::FileId> Inputs() { return All(); }

void CheckOutput(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0) return gguf::RefuseInputs(path, status, All());
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && stat(folder.c_str(), &status) != 0 && errno == ENOENT)
    throw engine::Error(path, ": there is no folder ", folder.string());
}

void CheckPrinted(const std::string& path, const std::vector<gguf::FileId>& ids) {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat status;
    if (fstat(fd, &status) != 0) continue;
    if (std::ranges::find(ids, gguf::FileId::Of(status)) == ids.end()) continue;
    throw engine::Error("what is printed would go into ", path, ", the file that is read");
  }
}

}  // namespace cli
