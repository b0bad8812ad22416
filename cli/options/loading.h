// Opens and reads the model that -m names, and explains the choices for --verbose.
#pragma once

#include <exception>
#include <string>

#include "cli/options/model_options.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "gguf/file.h"

namespace cli {

// Throws engine::Error if `out` is a model: a GGUF file that is not from `pronk imatrix`.
void CheckNoModelIsLost(const std::string& out);

// The error's message, and the flag with which the file may be run nonetheless, if there is one.
std::string MessageOf(const std::exception& error);

// Reports a written file on stderr: "wrote PATH, 3.20 MB: WHAT".
void NoteWritten(const std::string& path, const std::string& what);

// Opens a file; refuses `inspect MODEL >> MODEL`. Throws gguf::Error, engine::Error.
gguf::File OpenFile(const std::string& path);

// Opens and reads the model that the flags name, with their changes of its keys. Prints notes on
// these changes and on parts of the file that are ignored. Throws gguf::Error, engine::Error,
// UsageError.
engine::Model ReadModel(const ModelOptions& options);

// ReadModel(), ready to run. On a terminal, weights that are not in memory are read with a progress
// line; otherwise they are read when first used. --mlock locks them in memory.
engine::Model LoadModel(const ModelOptions& options);

// The model's own name, or the path of its file; in one line, fit to print.
std::string ModelTitle(const engine::Model& model);

// Model, memory, threads and instruction set with the reasons, one line each on stderr.
void ExplainChoices(const ModelOptions& options, const engine::Model& model,
                    const engine::Session& session, const engine::SessionOptions& session_options);

}  // namespace cli
