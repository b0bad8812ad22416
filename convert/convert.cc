// The steps from a folder to a file: configuration, tensors, tokenizer, writing.
#include "convert/convert.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string_view>
#include <tuple>

#include "convert/encoder.h"
#include "convert/hf_tokenizer.h"
#include "convert/quantize_plan.h"
#include "convert/source.h"
#include "engine/model/model.h"
#include "engine/sampling/settings.h"
#include "gguf/error.h"
#include "gguf/file.h"

namespace convert {
namespace {

using gguf::DType;

// The default type for floats of the folder.
DType FloatType(const SafeTensor& tensor) {
  if (!tensor.floats) return DType::kBF16;
  return *tensor.floats == DType::kF64 ? DType::kF32 : *tensor.floats;
}

bool IsMatrix(const OutTensor& tensor) {
  return tensor.name.ends_with(".weight") && IsQuantized(tensor.name, tensor.dims.size());
}

bool IsTernary(const OutTensor& tensor) {
  const SafeTensor* const from = tensor.source();
  return tensor.change == Change::kTernary ||
         (from != nullptr && from->packing == Packing::kTernary);
}

// The types of matrices: ordinary, and of -1, 0 and 1; and the type in the file's name.
struct Types {
  DType floats, ternary, most;
};

DType TypeOf(const OutTensor& tensor, const Types& types) {
  if (tensor.scales != nullptr) return DType::kMXFP4;
  if (!IsMatrix(tensor)) return DType::kF32;
  const DType wanted = IsTernary(tensor) ? types.ternary : types.floats;
  const bool fits = tensor.dims[0] % gguf::Info(wanted).block_size == 0;
  return fits ? wanted : FloatType(*tensor.source());
}

// The type of most weights in matrices.
DType MostUsed(const std::vector<OutTensor>& tensors) {
  std::map<DType, uint64_t> n;
  for (const OutTensor& tensor : tensors) {
    if (tensor.scales != nullptr || !IsMatrix(tensor) || IsTernary(tensor)) continue;
    n[FloatType(*tensor.source())] += tensor.rows() * tensor.dims[0];
  }
  const auto most = std::ranges::max_element(n, {}, [](const auto& one) { return one.second; });
  return most == n.end() ? DType::kF32 : most->first;
}

Types ChooseTypes(const Options& options, OutModel& model) {
  if (options.type) return {*options.type, *options.type, *options.type};
  const DType floats = MostUsed(model.tensors);
  Types types = {floats, DType::kTQ2_0, floats};
  const auto n = std::ranges::count_if(model.tensors, [&](const OutTensor& tensor) {
    return TypeOf(tensor, types) == types.ternary;
  });
  if (n > 0) {
    types.most = types.ternary;
    model.notes.push_back(std::to_string(n) + " matrices of -1, 0 and 1 become TQ2_0, others " +
                          std::string(gguf::Info(types.floats).name));
  }
  return types;
}

// llama.cpp's number for this type of file.
uint32_t FileType(DType type, const Options& options) {
  if (options.type && !IsFloat(type)) return options.file_type;
  return FindMix(gguf::Info(type).name)->file_type;
}

// The order in which a pass reads tensors: the embedding, the layers, the output.
void Sort(std::vector<OutTensor>& tensors) {
  std::ranges::sort(tensors, {}, [](const OutTensor& tensor) {
    const std::string_view name = tensor.name;
    const std::optional<size_t> layer = gguf::LayerOf(name);
    const size_t outside = name.starts_with("output") ? SIZE_MAX : 0;
    return std::tuple(layer ? *layer + 1 : outside, name);
  });
}

void AddGeneralKeys(const std::string& path, DType type, uint32_t file_type, gguf::Writer& keys) {
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::string name = folder.filename().string();
  if (name.empty() || name == "." || name == "..") {
    std::error_code ignored;
    name = std::filesystem::canonical(path, ignored).filename().string();
  }
  keys.Add("general.name", gguf::Printable(name));
  keys.Add("general.file_type", file_type);
  if (!IsFloat(type)) keys.Add("general.quantization_version", kQuantizationVersion);
}

// The folder's recommended sampling as llama.cpp's keys. Only these two have other names there.
void AddSampling(const Fields& recommended, gguf::Writer& keys) {
  if (!recommended.BoolOr("do_sample", true)) {  // the rest is not used
    keys.Add(std::string(engine::kSamplingPrefix) + "temp", 0.0f);
    return;
  }
  pronk::Sampling options;
  for (const engine::Setting& setting : engine::Settings(options)) {
    std::string name(setting.key);
    if (name == "temp") name = "temperature";
    if (name == "penalty_repeat" && !recommended.Has(name)) name = "repetition_penalty";
    if (name.empty() || !recommended.Has(name)) continue;
    const double number = recommended.Number(name);
    std::string fault = engine::RangeFault(number, setting.low, setting.high);
    if (fault.empty() && setting.is_whole() && number != std::floor(number))
      fault = "expected a whole number";
    if (!fault.empty()) recommended.Fail(name, fault);
    const std::string key = std::string(engine::kSamplingPrefix) + std::string(setting.key);
    setting.is_whole() ? keys.Add(key, static_cast<int32_t>(number))
                       : keys.Add(key, static_cast<float>(number));
  }
}

// A model without an output matrix makes vectors of texts, and the file must say how.
void CheckHead(const HfClass& hf, const Fields& config, const OutModel& model) {
  const std::string name = config.Texts("architectures")[0];
  const bool has_head = std::ranges::count(model.tensors, "output.weight", &OutTensor::name) > 0;
  if (has_head || !name.ends_with("Model") || std::ranges::count(hf.names, name) > 0) return;
  if (model.Gives("pooling_type") || model.Gives("attention.causal")) return;
  config.Fail("architectures", name,
              " has no output matrix, and no 1_Pooling/config.json says how it makes vectors");
}

// The file without its weights, in full size: a mapping whose untouched pages take no memory.
class Skeleton {
 public:
  explicit Skeleton(const gguf::Writer& writer) : size_(writer.FileBytes()) {
    const std::vector<std::byte> head = writer.Head();
    void* const at = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    bytes_ = static_cast<std::byte*>(at);
    if (mprotect(at, head.size(), PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    std::memcpy(bytes_, head.data(), head.size());
  }
  ~Skeleton() { munmap(bytes_, size_); }
  Skeleton(const Skeleton&) = delete;
  Skeleton& operator=(const Skeleton&) = delete;

  std::span<const std::byte> bytes() const { return {bytes_, size_}; }

 private:
  size_t size_;
  std::byte* bytes_ = nullptr;
};

// Refuses a model that this program would not run before hours are spent on it. Reads no weights.
void CheckThatItRuns(const std::string& folder, const gguf::Writer& writer) {
  const Skeleton skeleton(writer);
  engine::Model::From(gguf::File::Parse(folder + ", as GGUF", skeleton.bytes()));
}

// Writes the file; each tensor is encoded when it is written.
void Write(const OutModel& model, const Types& types, const Options& options,
           const std::string& out) {
  gguf::Writer writer = model.keys;
  TensorEncoder encoder(options.n_threads);
  uint64_t done = 0, total = 0;
  for (const OutTensor& tensor : model.tensors) {
    const DType type = TypeOf(tensor, types);
    total += gguf::RowBytes(type, tensor.dims[0]) * tensor.rows();
    writer.AddTensor(tensor.name, type, tensor.dims, [&, type, row = uint64_t{0}]() mutable {
      const std::span<const std::byte> bytes = encoder.Next(tensor, type, row);
      done += bytes.size();
      if (options.progress) options.progress(done, total);
      return bytes;
    });
  }
  CheckThatItRuns(model.folder.path(), writer);
  writer.WriteFile(out, model.folder.ids());
}

uint64_t EmbeddingRows(const OutModel& model) {
  const auto found = std::ranges::find(model.tensors, "token_embd.weight", &OutTensor::name);
  if (found == model.tensors.end()) {
    gguf::Fail(model.folder.path(),
               "expected a matrix of embeddings (model.embed_tokens.weight), found none");
  }
  if (found->dims.size() != 2) {
    const SafeTensor& tensor = *found->source();
    tensor.Fail("expected a matrix of embeddings, found shape ", ShapeText(tensor.shape));
  }
  return found->dims[1];
}

}  // namespace

Report Convert(const std::string& path, const std::string& out, const Options& options) {
  HfFolder folder = HfFolder::Open(path);
  const Source source = FindSource(folder.config());
  const Family& family = source.family;
  const bool is_ternary = ReadQuantization(family.name, folder);
  OutModel model(folder, ConfigWithDefaults(source.hf, folder.config()), family.name);
  model.is_ternary = is_ternary;
  model.keys.Add("general.architecture", family.name);
  model.keys.Add("general.type", "model");
  Report report;
  AddKeys(source, model);
  report.left_out = MapTensors(source, model);
  CheckHead(source.hf, folder.config(), model);
  Sort(model.tensors);
  const Types types = ChooseTypes(options, model);
  report.type = types.most;
  AddGeneralKeys(path, report.type, FileType(report.type, options), model.keys);
  AddSampling(folder.Object("generation_config.json"), model.keys);
  AddTokenizer(source, EmbeddingRows(model), model);
  Write(model, types, options, out);
  report.architecture = model.architecture;
  report.n_tensors = model.tensors.size();
  report.notes = model.notes;
  return report;
}

}  // namespace convert
