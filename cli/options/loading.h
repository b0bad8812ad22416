// From -m to a model that is ready: opening it, bringing it into memory, and what --verbose says
// about all that was chosen.
#ifndef PRONK_CLI_OPTIONS_LOADING_H_
#define PRONK_CLI_OPTIONS_LOADING_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/options/model_options.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "gguf/file.h"

namespace cli {

// Throws engine::Error where what is printed would go into one of the files that are read.
void CheckOutputs(const std::string& path, const std::vector<gguf::FileId>& inputs);

// Nothing where there is no such file.
std::optional<gguf::FileId> FileIdOf(const std::string& path);

// Throws engine::Error where a model at this path would be lost: a GGUF file, unless `pronk
// imatrix` wrote it.
void CheckNoModelIsLost(const std::string& out);

// Opens a file, and refuses to print into it: `inspect MODEL >> MODEL` would break it. Throws
// gguf::Error, engine::Error.
gguf::File OpenFile(const std::string& path);

// Opens the model that the flags name. Weights that are not in memory yet are read from the disk
// with a progress line on a terminal; without a terminal, when they are first used. --mlock locks
// them in memory. Throws gguf::Error, engine::Error.
engine::Model LoadModel(const ModelOptions& options);

// How the model calls itself, or the path of its file; in one line, fit to print.
std::string ModelTitle(const engine::Model& model);

// Model, memory, threads and instruction set, a line each on stderr, with the reasons.
void ExplainChoices(const ModelOptions& options, const engine::Model& model,
                    const engine::Session& session, const engine::SessionOptions& session_options);

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_LOADING_H_
