// Opens a model, reads its weights from disk with a progress line, and applies --override-kv.
#include "cli/options/loading.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/command.h"
#include "cli/options/inputs.h"
#include "cli/output/text.h"
#include "cli/terminal/charset.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/model/keys.h"
#include "engine/session/memory.h"
#include "gguf/error.h"
#include "gguf/mapped_file.h"
#include "gguf/number.h"
#include "gguf/reader.h"
#include "kernels/threads/cpu.h"
#include "kernels/threads/default_threads.h"

namespace cli {
namespace {

constexpr size_t kSamples = 100;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// The share of the weights that is in memory now, by a sample of their pages.
double ResidentShare(const engine::Model& model) {
  const uint64_t step = std::max<uint64_t>(model.file.tensor_bytes() / kSamples, 1);
  uint64_t begin = 0, next = 0;  // positions in all tensors, one after the other
  size_t n = 0, n_resident = 0;
  for (const gguf::TensorView& tensor : model.file.tensors()) {
    for (; next < begin + tensor.bytes; next += step, ++n) {
      if (gguf::IsResident(tensor.data + (next - begin))) ++n_resident;
    }
    begin += tensor.bytes;
  }
  return n == 0 ? 1 : static_cast<double>(n_resident) / static_cast<double>(n);
}

// Reads mapped bytes into memory.
void PageIn(std::span<const std::byte> mapped) {
  if (mapped.empty()) return;
  gguf::ReadAhead(mapped);  // then waits for each page by touching it
  [[maybe_unused]] volatile std::byte sink{};
  for (size_t at = 0; at < mapped.size(); at += PageBytes()) sink = mapped[at];
}

constexpr size_t kStep = size_t{16} << 20;  // bytes between two checks of the clock

// Reads the weights from the disk before the first pass, in the file's order. Otherwise the first
// pass would read them page by page: five times as slow, without any progress shown, and into small
// pages of the system's cache, which every later start maps one by one.
void PageInWeights(const engine::Model& model) {
  const uint64_t total = model.file.tensor_bytes();
  // If the weights do not fit, the first bytes would be evicted before the last are read.
  if (total > engine::MachineMemory().for_files || ResidentShare(model) == 1) return;
  ProgressLine progress("loading", "MB", 1'000'000);
  uint64_t done = 0;
  for (const gguf::TensorView& tensor : model.file.tensors()) {
    const std::span<const std::byte> bytes(tensor.data, tensor.bytes);
    for (size_t at = 0; at < bytes.size(); at += kStep) {
      const size_t n = std::min(kStep, bytes.size() - at);
      PageIn(bytes.subspan(at, n));
      done += n;
      progress.Update(done, total);
    }
  }
}

void LockWeights(const engine::Model& model) {
  for (const gguf::TensorView& tensor : model.file.tensors()) {
    if (gguf::Lock({tensor.data, tensor.bytes})) continue;
    return Complain("note: --mlock: the system does not allow this much to be locked (ulimit -l)");
  }
}

// A list's parts, as llama.cpp splits it: commas may be in double quotes, where "" is a quote.
std::vector<std::string> PartsOf(const std::string& list) {
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '"' && quoted && list.substr(i + 1, 1) == "\"") {
      parts.back() += list[i++];
    } else if (c == '"' && (quoted || parts.back().empty())) {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Changes a key for --override-kv KEY=TYPE:VALUE, or removes it for KEY=. Returns a description.
std::string Override(const std::string& text, gguf::Metadata& metadata) {
  const size_t equals = text.find('='), colon = text.find(':', equals);
  const std::string key = text.substr(0, equals);
  const auto fail = [&](const std::string& what) {
    throw UsageError("--override-kv ", text, ": ", what);
  };
  if (equals == std::string::npos || key.empty()) fail("expected KEY=TYPE:VALUE, or KEY=");
  if (equals + 1 == text.size()) {
    if (!metadata.Has(key)) return "the file has no " + key;
    metadata.Remove(key);
    return "without the file's " + key;
  }
  const std::string type = text.substr(equals + 1, colon - equals - 1);
  const std::string value = colon == std::string::npos ? "" : text.substr(colon + 1);
  const auto whole = gguf::NumberIn<int64_t>(value);
  const auto number = gguf::NumberIn<double>(value);
  if (type == "int" && whole) {
    metadata.SetInt(key, *whole);
  } else if (type == "float" && number) {
    metadata.SetFloat(key, *number);
  } else if (type == "bool" && (value == "true" || value == "false")) {
    metadata.SetBool(key, value == "true");
  } else if (type == "str" && colon != std::string::npos) {
    metadata.SetString(key, value);
  } else {
    fail("expected int:NUMBER, float:NUMBER, bool:true, bool:false or str:TEXT after =");
  }
  return key + " is " + value + ", whatever the file says";
}

template <class... Parts>
void Explain(const char* what, const Parts&... parts) {
  const std::string text = gguf::PrintablePath(gguf::Message(parts...));
  std::fprintf(stderr, "%-8s %s\n", what, ForTerminal(text).c_str());
}

}  // namespace

void CheckNoModelIsLost(const std::string& out) {
  if (!gguf::BeginsAsGguf(out)) return;
  try {
    const gguf::File file = gguf::File::Open(out);
    if (file.metadata().GetStringOr("general.type", "") == "imatrix") return;
  } catch (const gguf::Error&) {  // perhaps one part of a model
  }
  throw engine::Error(gguf::PrintablePath(out),
                      ": is a GGUF file, perhaps a model, that would be lost: give another name");
}

std::string MessageOf(const std::exception& error) {
  const auto* const refused = dynamic_cast<const engine::KeyRefused*>(&error);
  if (refused == nullptr) return error.what();
  const std::string& change = refused->change();
  return error.what() + (" (--override-kv " + gguf::Printable(change)) +
         (change.ends_with('=') ? " runs it without this key)" : ")");
}

void NoteWritten(const std::string& path, const std::string& what) {
  std::error_code error;  // a pipe has no size
  const uint64_t bytes = std::filesystem::file_size(path, error);
  Note("wrote " + gguf::PrintablePath(path) + (error ? "" : ", " + HumanBytes(bytes)) + ": " +
       what);
}

gguf::File OpenFile(const std::string& path) {
  gguf::File file = gguf::File::Open(path);
  CheckPrinted(path, file.ids());
  AddInputs(file.ids());
  return file;
}

engine::Model ReadModel(const ModelOptions& options) {
  gguf::File file = OpenFile(options.ModelPath());
  std::vector<std::string> notes;
  for (const std::string& list : options.override_kv) {
    for (const std::string& text : PartsOf(list)) {
      notes.push_back("--override-kv: " + Override(text, file.metadata()));
    }
  }
  engine::Model model = engine::Model::From(std::move(file), options.exact);
  notes.insert(notes.end(), model.notes.begin(), model.notes.end());
  for (const std::string& note : notes) Note("note: " + gguf::Printable(note));
  return model;
}

engine::Model LoadModel(const ModelOptions& options) {
  engine::Model model = ReadModel(options);
  const uint64_t free = engine::MachineMemory().for_files;
  if (model.file.tensor_bytes() > free) {
    Note("note: of " + HumanBytes(model.file.tensor_bytes()) + " of weights " + HumanBytes(free) +
         " fit into memory, so parts are read from the disk again and again; `pronk quantize` "
         "makes a smaller file");
  }
  PageInWeights(model);
  if (options.mlock) LockWeights(model);
  return model;
}

std::string ModelTitle(const engine::Model& model) {
  return gguf::Printable(model.file.metadata().GetStringOr("general.name", model.file.path()));
}

void ExplainChoices(const ModelOptions& options, const engine::Model& model,
                    const engine::Session& session, const engine::SessionOptions& session_options) {
  const engine::Config& config = model.config;
  Explain("model", model.file.path(), ": ", ModelTitle(model), ", ", config.architecture, ", ",
          config.n_layers(), " layers");
  Explain("memory", HumanBytes(model.file.tensor_bytes()), " of weights, mapped from the file, ",
          std::lround(100 * ResidentShare(model)), "% of them in memory now; ",
          HumanBytes(session.state().bytes()), " of keys and values; ",
          HumanBytes(engine::MachineMemory().available), " available");
  const size_t now = session.state().capacity();
  Explain("context", now, " tokens",
          options.context != engine::kDefaultContext ? ", as -c says"
          : session.capacity() > now ? gguf::Message(", which may grow to ", session.capacity())
                                     : "",
          "; trained for ", config.context_length);
  const kernels::ThreadCounts counts = kernels::DefaultThreads();
  Explain("threads", session.n_threads(),
          options.n_threads != 0 ? gguf::Message(", as -t says; by default ", counts.generating)
          : counts.prompt > 1    ? " at first, then what is fastest"
                                 : "",
          "; ", session.n_threads_batch(), " for prompts");
  Explain("kernels", kernels::CpuTarget(), options.cpu.empty() ? ", the best of " : ", of ",
          Joined(kernels::CpuTargets(), " "), options.cpu.empty() ? "" : ", as --cpu says");
  Explain("seed", session_options.sampling.seed.value);
}

}  // namespace cli
