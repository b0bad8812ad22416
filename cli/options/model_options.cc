// Declares the flags of a model and its machine, and finds the file that -m means.
#include "cli/options/model_options.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "cli/command.h"
#include "cli/options/model_stores.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "kernels/threads/cpu.h"
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace cli {
namespace {

namespace fs = std::filesystem;

kernels::KvType KvTypeOf(const std::string& name) {
  return name == "f32"    ? kernels::KvType::kF32
         : name == "q8_0" ? kernels::KvType::kQ8_0
         : name == "q4_0" ? kernels::KvType::kQ4_0
                          : kernels::KvType::kF16;
}

// True if the path exists or cannot be checked; opening it will report the error.
bool MayBeFile(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

}  // namespace

std::filesystem::path ProgramPath() {
  std::error_code error;
#if defined(__APPLE__)
  char buffer[4096];
  uint32_t size = sizeof(buffer);
  if (_NSGetExecutablePath(buffer, &size) != 0) return {};
  return fs::canonical(buffer, error);
#else
  return fs::canonical("/proc/self/exe", error);
#endif
}

std::string DefaultModelPath() {
  const fs::path bin = ProgramPath().parent_path();
  std::error_code error;
  for (const fs::path& path : {bin / "../share/pronk/default.gguf",   // installed: PREFIX/bin
                               bin / "../../models/default.gguf"}) {  // built: CHECKOUT/build/bin
    if (fs::is_regular_file(path, error)) return path.lexically_normal().string();
  }
  return "";
}

std::string ResolveModel(const std::string& name) {
  const bool is_path = name.starts_with('/') || name.starts_with('.');
  const bool is_default = Lower(name) == kDefaultModel;
  // A file that happens to be called "default" does not replace the default model.
  const std::string with_ending = name + ".gguf";
  std::error_code error;
  if (!is_default && !MayBeFile(name) && fs::is_regular_file(with_ending, error))
    return with_ending;
  if (is_path || (!is_default && MayBeFile(name))) return name;
  if (!is_default) return PathOfModel(name, FindModels());
  std::string path = DefaultModelPath();
  if (path.empty()) {
    throw engine::Error("the included model, ", kDefaultModel,
                        ", is not beside this program: name another with -m or PRONK_MODEL");
  }
  return path;
}

void ModelOptions::AddModelFlag(Command& command, bool is_required) {
  command_ = &command;
  const std::string about = "A file or a name";
  named_by = &command.Add(
      "-m,--model,MODEL MODEL", model,
      is_required ? about : about + " (default: $PRONK_MODEL, else the included model)");
  if (is_required) named_by->Required();
}

void AddThreadsFlag(Command& command, int& n_threads, const std::string& what) {
  command.Add("-t,--threads N", n_threads, {1, kMaxThreads}, what);
}

void ModelOptions::AddThreadsFlag(Command& command) {
  cli::AddThreadsFlag(command, n_threads, "Number of threads (default: what is fastest)");
}

void ModelOptions::AddMachineFlags(Command& command) {
  kv_flag =
      &command.Add("--kv", kv, "Type of the key-value cache; q8_0,q4_0: of keys and of values")
           .OneOf(KvTypeNames())
           .OrTwo()
           .ShowDefault();
  command.Add(
      "--exact", exact,
      "Use the weights as stored and round nothing else: activations and cache in F32 (slow)");
  AddCpuFlag(command);
}

void ModelOptions::AddCpuFlag(Command& command) {
  command.Add("--cpu NAME", cpu, "Use at most this instruction set ('help' lists the names)");
}

void ModelOptions::AddOverrideFlag(Command& command) {
  command.Add("--override-kv KEY=TYPE:VALUE,...", override_kv,
              "Replace the value of a metadata key, or with KEY= remove the key, at your own risk");
}

void ModelOptions::AddSessionFlags(Command& command, const std::string& context_text) {
  if (command_ == nullptr) AddModelFlag(command);
  const std::string group = std::exchange(command.group, "Model and machine");
  AddThreadsFlag(command);
  command.Add("--threads-batch N", n_threads_batch, {1, kMaxThreads},
              "Also -tb: threads for reading the prompt (default: -t, else one per core)");
  command.Add("-c,--ctx-size N", context, {0, kMaxTokens}, context_text);
  command
      .Add("-b,--batch-size,--ubatch-size N", batch, {1, 4096}, "Also -ub: tokens read at a time")
      .ShowDefault();
  AddMachineFlags(command);
  command.Add("--cache-type-k", kv_keys, "Also -ctk: --kv of keys").OneOf(KvTypeNames());
  command.Add("--cache-type-v", kv_values, "Also -ctv: --kv of values").OneOf(KvTypeNames());
  command.Add("--mlock", mlock, "Lock the weights in memory");
  AddOverrideFlag(command);
  command.Add("-v,--verbose", verbose, "Explain on stderr what was chosen and why");
  command.group = group;
}

const std::vector<std::string>& ModelOptions::KvTypeNames() {
  static const std::vector<std::string> types = {"f16", "f32", "q8_0", "q4_0"};
  return types;
}

std::pair<std::string, std::string> ModelOptions::KeysAndValues(const std::string& kv) {
  const size_t comma = kv.find(',');
  return {kv.substr(0, comma), comma == std::string::npos ? kv : kv.substr(comma + 1)};
}

std::string ModelOptions::ModelPath() const {
  const std::string from_environment = FromEnvironment("PRONK_MODEL").value_or("");
  std::string by = named_by != nullptr ? named_by->typed : "";
  if (model.empty() && from_environment.empty()) return ResolveModel(kDefaultModel);
  try {
    return ResolveModel(model.empty() ? from_environment : model);
  } catch (const engine::Error& error) {
    if (model.empty()) by = "PRONK_MODEL";
    const std::string what = (by.empty() ? "" : by + ": ") + error.what();
    throw engine::Error(what, (by.empty() ? WordHint() : ""));
  }
}

std::string ModelOptions::WordHint() const {
  if (command_ == nullptr) return "";
  command_->RefuseValue(model);
  if (command_->name == "embed" || command_->name == "rerank")
    return "; the first word names the model, texts follow";
  const Flag* const prompt = command_->Find("--prompt");
  if (prompt == nullptr || !prompt->given.empty() || model.ends_with(".gguf")) return "";
  const bool completes = command_->name == "run";
  if (model == "-") return completes ? "; to complete the standard input: -f -" : "";
  return completes ? "; to complete it as a text: -p" : "; to take it as a text: -p";
}

engine::SessionOptions ModelOptions::ForSession() const {
  if (!kernels::LimitCpu(cpu)) {
    const std::string names = Joined(kernels::CpuTargets(), " ");
    if (kernels::BuildLacks(cpu)) {
      throw UsageError("--cpu ", cpu, ": this build has ", names,
                       "; PRONK_TARGETS=all ./pronk ... builds the others");
    }
    throw UsageError("--cpu ", cpu, ": this machine and build have ", names);
  }
  const bool has_kv = kv_flag != nullptr && !kv_flag->given.empty();
  auto [keys, values] = KeysAndValues(exact && !has_kv ? "f32" : kv);
  if (!kv_keys.empty()) keys = kv_keys;
  if (!kv_values.empty()) values = kv_values;
  if (exact && has_kv + !kv_keys.empty() + !kv_values.empty() > 0 &&
      (keys != "f32" || values != "f32"))
    throw UsageError("--exact: the key-value cache is f32");
  return {.context = context,
          .batch = batch,
          .n_threads = n_threads,
          .n_threads_batch = n_threads_batch,
          .kv_type = {KvTypeOf(keys), KvTypeOf(values)}};
}

}  // namespace cli
