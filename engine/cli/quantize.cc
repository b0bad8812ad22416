// pronk quantize: a model's matrices in another type, everything else as it was.
//
// The file is converted piece by piece on its way: neither the old weights nor the new ones need to
// fit into memory.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/loading.h"
#include "engine/cli/model_options.h"
#include "engine/cli/terminal.h"
#include "engine/default_threads.h"
#include "gguf/dtype.h"
#include "gguf/error.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "kernels/encode.h"
#include "kernels/reference.h"
#include "kernels/team.h"

namespace cli {
namespace {

using gguf::DType;

// What matrices can become, and what general.file_type says of such a file: llama.cpp's numbers,
// which readers show to people. (Of the K types they are those of the plainest mix.)
struct Target {
  DType type;
  uint32_t file_type;
};
constexpr std::array kTargets = {
    Target{DType::kF16, 1},   Target{DType::kBF16, 32}, Target{DType::kQ8_0, 7},
    Target{DType::kQ6_K, 18}, Target{DType::kQ5_K, 16}, Target{DType::kQ5_1, 9},
    Target{DType::kQ5_0, 8},  Target{DType::kQ4_K, 14}, Target{DType::kQ4_1, 3},
    Target{DType::kQ4_0, 2},
};
constexpr std::string_view kFileType = "general.file_type";
constexpr std::string_view kVersion = "general.quantization_version";
constexpr uint32_t kQuantizationVersion = 2;  // of the blocks as gguf/blocks.h has them

struct QuantizeOptions {
  std::string in, out, type;
  int n_threads = 0;
};

// "F16|BF16|..."
std::string TargetNames() {
  std::string names;
  for (const Target& target : kTargets) {
    names += (names.empty() ? "" : "|") + std::string(gguf::Info(target.type).name);
  }
  return names;
}

Target FindTarget(const std::string& name) {
  if (const gguf::DTypeInfo* const info = gguf::FindDType(name)) {
    const auto target = std::ranges::find(kTargets, info->type, &Target::type);
    if (target != kTargets.end()) return *target;
  }
  throw UsageError("TYPE " + name + ": expected one of " + TargetNames());
}

bool IsFloat(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

// Vectors (norms, biases) are small and stay as they are.
bool IsMatrix(const gguf::TensorView& tensor) { return tensor.n_dims >= 2; }

bool IsConverted(const gguf::TensorView& tensor, DType type) {
  return IsMatrix(tensor) && tensor.cols() % gguf::Info(type).block_size == 0;
}

// Converts one tensor, a piece at a time.
class Converter {
 public:
  Converter(const gguf::File& file, DType type, int n_threads)
      : file_(file), type_(type), team_(n_threads) {}

  // The next weights of the tensor, from number `done` on, in the new type; moves `done` behind
  // them. Throws gguf::Error where a weight has no value in the type.
  std::span<const std::byte> Next(const gguf::TensorView& tensor, uint64_t& done);

 private:
  // Of a tensor whose rows are whole blocks, any multiple of the largest block can be converted
  // without regard to rows.
  static constexpr uint64_t kPart = 4096;          // weights that a thread takes at a time
  static constexpr uint64_t kPiece = 256 * kPart;  // weights that are handed over at a time

  const gguf::File& file_;
  DType type_;
  kernels::Team team_;
  std::vector<std::byte> bytes_;
  ProgressLine progress_{"quantize", 0.5, "MB"};
  uint64_t bytes_read_ = 0;
};

std::span<const std::byte> Converter::Next(const gguf::TensorView& tensor, uint64_t& done) {
  const uint64_t n = std::min(kPiece, tensor.elements() - done);
  const std::byte* const from = tensor.data + gguf::RowBytes(tensor.dtype, done);
  bytes_.resize(gguf::RowBytes(type_, n));
  std::atomic<bool> all_fit = true;
  team_.Run([&] {
    team_.ForDynamic((n + kPart - 1) / kPart, 1, [&](size_t begin, size_t end, size_t) {
      std::array<float, kPart> weights;
      for (size_t part = begin; part < end; ++part) {
        const uint64_t at = part * kPart, count = std::min(kPart, n - at);
        kernels::DequantizeRow(tensor.dtype, from + gguf::RowBytes(tensor.dtype, at), count,
                               weights.data());
        std::byte* const to = bytes_.data() + gguf::RowBytes(type_, at);
        if (!kernels::EncodeRow(type_, weights.data(), count, to)) all_fit = false;
      }
    });
  });
  if (!all_fit) {
    throw gguf::Error(gguf::PrintablePath(file_.path()) + ": tensor " + gguf::Quoted(tensor.name) +
                      ": expected weights that " + std::string(gguf::Info(type_).name) +
                      " can hold, found some that are no numbers or too large");
  }
  done += n;
  bytes_read_ += gguf::RowBytes(tensor.dtype, n);
  progress_.Update(bytes_read_ / 1'000'000, file_.tensor_bytes() / 1'000'000);
  return bytes_;
}

// All keys but those that say how the old file was laid out. The new types are told where the old
// ones were.
void CopyMetadata(const gguf::File& file, const Target& target, gguf::Writer& writer) {
  const bool quantized = !IsFloat(target.type);
  for (const gguf::Metadata::Entry& entry : file.metadata().entries()) {
    if (entry.key == "general.alignment" || entry.key.starts_with("split.")) continue;
    if (entry.key == kFileType || (entry.key == kVersion && quantized)) continue;
    writer.Add(entry);
  }
  writer.Add(kFileType, target.file_type);
  if (quantized) writer.Add(kVersion, kQuantizationVersion);
}

// How many tensors are converted. Throws gguf::Error where one is quantized already, or there is
// none; says so where matrices stay as they are.
size_t CountConverted(const gguf::File& file, DType type) {
  size_t n_converted = 0, n_odd = 0;
  for (const gguf::TensorView& tensor : file.tensors()) {
    if (!IsMatrix(tensor)) continue;
    if (!IsFloat(tensor.dtype)) {
      throw gguf::Error(gguf::PrintablePath(file.path()) + ": tensor " + gguf::Quoted(tensor.name) +
                        ": expected F32, F16 or BF16, found " +
                        std::string(gguf::Info(tensor.dtype).name) +
                        ": quantize the original, which has lost nothing yet");
    }
    ++(IsConverted(tensor, type) ? n_converted : n_odd);
  }
  const std::string blocks =
      "whole blocks of " + std::to_string(gguf::Info(type).block_size) + " weights";
  if (n_converted == 0) {
    throw gguf::Error(gguf::PrintablePath(file.path()) + ": expected matrices whose rows are " +
                      blocks + ", found none");
  }
  if (n_odd > 0) {
    Complain("note: " + std::to_string(n_odd) + " matrices stay as they are: their rows are not " +
             blocks);
  }
  return n_converted;
}

void CheckVersion(const gguf::File& file) {
  if (file.version() == 1) {
    throw gguf::Error(gguf::PrintablePath(file.path()) +
                      ": expected GGUF of version 2 or 3, found version 1");
  }
}

// Returns the size of the new weights in bytes.
uint64_t Write(const gguf::File& file, const Target& target, const QuantizeOptions& options) {
  Converter converter(file, target.type,
                      options.n_threads > 0 ? options.n_threads : engine::DefaultThreads());
  gguf::Writer writer(static_cast<uint32_t>(file.alignment()));
  CopyMetadata(file, target, writer);
  uint64_t bytes = 0;
  for (const gguf::TensorView& tensor : file.tensors()) {
    const std::vector<uint64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims);
    if (IsConverted(tensor, target.type)) {
      writer.AddTensor(tensor.name, target.type, dims,
                       [&, done = uint64_t{0}]() mutable { return converter.Next(tensor, done); });
      bytes += gguf::RowBytes(target.type, tensor.elements());
    } else {
      writer.AddTensor(tensor.name, tensor.dtype, dims, std::span(tensor.data, tensor.bytes));
      bytes += tensor.bytes;
    }
  }
  writer.WriteFile(options.out, file.ids());
  return bytes;
}

int Quantize(const QuantizeOptions& options) {
  const Target target = FindTarget(options.type);
  const gguf::File file = OpenFile(ResolveModel(options.in));
  CheckVersion(file);
  const size_t n_converted = CountConverted(file, target.type);
  const uint64_t bytes = Write(file, target, options);
  if (IsTerminal(2)) {
    Note(std::to_string(n_converted) + " of " + std::to_string(file.tensors().size()) +
         " tensors are " + std::string(gguf::Info(target.type).name) +
         " now: " + HumanBytes(static_cast<double>(file.tensor_bytes())) + " of weights became " +
         HumanBytes(static_cast<double>(bytes)));
  }
  return kExitDone;
}

}  // namespace

void AddQuantize(CommandLine& line) {
  Command command =
      line.Add("quantize", "Write a model of F32, F16 or BF16 with its matrices in another type");
  const auto options = std::make_shared<QuantizeOptions>();
  command.Add("-m,--model,MODEL", options->in, "A file or a name").Type("MODEL").Required();
  command.Add("OUT", options->out, "File to write").Type("FILE").Required();
  command.Add("TYPE", options->type, "What matrices become; vectors stay as they are")
      .Type(TargetNames())
      .Required();
  command.Add("-t,--threads", options->n_threads, "Threads (default: performance cores)")
      .Between(1, kMaxThreads)
      .Type("N");
  command.Does([options] { return Quantize(*options); });
}

}  // namespace cli
