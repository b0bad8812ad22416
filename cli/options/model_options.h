// The flags that choose a model and how to run it, shared by the subcommands.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/command_line.h"
#include "engine/sampling/settings.h"
#include "engine/session/session.h"

namespace cli {

using engine::kMaxThreads;
using engine::kMaxTokens;

// -t for a subcommand that runs no session.
void AddThreadsFlag(Command& command, int& n_threads,
                    const std::string& what = "Threads (default: one per core)");

struct ModelOptions {
  std::string model;         // the name as given; empty: default
  Flag* named_by = nullptr;  // the flag that gave it, or nullptr
  const Flag* kv_flag = nullptr;
  std::string cpu;
  std::string kv = "f16";          // type of keys and values, or of each: "q8_0,q4_0"
  std::string kv_keys, kv_values;  // the types of each, by llama.cpp's flags; empty: as kv
  size_t context = engine::kDefaultContext;
  size_t batch = 512;
  int n_threads = 0;
  int n_threads_batch = 0;
  std::vector<std::string> override_kv;  // KEY=TYPE:VALUE
  bool exact = false;
  bool mlock = false;
  bool verbose = false;

  void AddModelFlag(Command& command, bool is_required = false);
  void AddThreadsFlag(Command& command);
  void AddMachineFlags(Command& command);  // --kv, --exact, --cpu
  void AddCpuFlag(Command& command);
  void AddOverrideFlag(Command& command);
  // Adds all of these flags; context_text is the help text of -c.
  void AddSessionFlags(
      Command& command,
      const std::string& context_text =
          "Context length in tokens; 0: as in training (default: it grows up to that)");

  // The names that --kv accepts.
  static const std::vector<std::string>& KvTypeNames();
  // The types of keys and of values that a value of --kv names.
  static std::pair<std::string, std::string> KeysAndValues(const std::string& kv);
  // The file to open: -m, else $PRONK_MODEL, else the default model; see ResolveModel. Throws
  // engine::Error, which names the wrong one, and UsageError.
  std::string ModelPath() const;
  // Applies --cpu, and returns the other options for a session. Throws UsageError.
  engine::SessionOptions ForSession() const;

 private:
  // A hint for a word in the model's place that names no model; "" if its meaning is unknown.
  // Throws UsageError if it was a flag's value.
  std::string WordHint() const;

  Command* command_ = nullptr;  // the command with these flags
};

// The path that -m means: a path is kept (without its ending .gguf, too), a name is looked up in
// the model stores (model_stores.h), and "default" is the included model. Throws engine::Error.
std::string ResolveModel(const std::string& name);

inline constexpr const char* kDefaultModel = "default";  // the included model's name

// The path of this binary, links resolved; "" where the system does not tell.
std::filesystem::path ProgramPath();

// The included model: models/default.gguf of the checkout this binary was built in, or
// share/pronk/default.gguf of the installation. Empty if neither exists.
std::string DefaultModelPath();

}  // namespace cli
