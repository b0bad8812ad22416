// The flags that choose a model and how it is run, shared by the subcommands.
#ifndef PRONK_CLI_OPTIONS_MODEL_OPTIONS_H_
#define PRONK_CLI_OPTIONS_MODEL_OPTIONS_H_

#include <string>

#include "cli/options/command_line.h"
#include "engine/session/session.h"

namespace cli {

// What a flag may ask for at most. More than any machine has use for, and less than what the sizes
// that follow from it could overflow with.
inline constexpr int kMaxThreads = 1024;
inline constexpr int kMaxTokens = 1 << 30;

// -t for a subcommand that runs no session.
void AddThreadsFlag(Command& command, int& n_threads,
                    const std::string& what = "Threads (default: performance cores)");

struct ModelOptions {
  std::string model;  // as given; empty: the default
  std::string cpu;
  std::string kv = "f16";
  std::string kv_keys, kv_values;  // the same by llama.cpp's names; empty: as kv
  size_t context = 0;
  size_t batch = 512;
  int n_threads = 0;
  int n_threads_batch = 0;
  bool mlock = false;
  bool verbose = false;

  Flag& AddModelFlag(Command& command);
  void AddThreadsFlag(Command& command);
  void AddMachineFlags(Command& command);  // --kv, --cpu
  // All of them; context_text is what --help says of -c.
  void AddSessionFlags(Command& command, const std::string& context_text =
                                             "Context in tokens (default: trained, at most 4096)");

  // A name that --kv takes.
  static bool IsKvType(const std::string& name);
  // The file to open: -m, else $PRONK_MODEL, else the default model; see ResolveModel. Throws
  // engine::Error.
  std::string ModelPath() const;
  // Applies --cpu and gives the rest to a session. Throws UsageError.
  engine::SessionOptions Session() const;
};

// What -m says as the path of a file: a path stays, a name is looked for where people keep models
// (model_stores.h), and "default" is the model that ships. Throws engine::Error.
std::string ResolveModel(const std::string& name);

inline constexpr const char* kDefaultModel = "default";  // its name

// The model that ships with pronk: models/default.gguf of the checkout this binary was built in, or
// share/pronk/default.gguf of the place it is installed in. Empty where neither exists.
std::string DefaultModelPath();

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_MODEL_OPTIONS_H_
