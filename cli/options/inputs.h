// The files that a command reads, and must not write to.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gguf/file_id.h"

namespace cli {

// Registers files by device and inode. The command line registers all files that flags name and
// standard input ("-"); OpenFile() registers all parts of a model. Only regular files count.
void AddInput(const std::string& path);
void AddInputs(const std::vector<gguf::FileId>& ids);

// All registered files, for OutputFile.
std::span<const gguf::FileId> Inputs();

// Throws gguf::Error if this path is a registered file, engine::Error if its folder does not exist.
void CheckOutput(const std::string& path);

// Throws engine::Error if printed text would go into one of these files, called `path`.
void CheckPrinted(const std::string& path, const std::vector<gguf::FileId>& ids);

}  // namespace cli
