// Parts of the folder for a family's code: tensors, numbers by layer, RoPE.
#include "engine/hf/out_model.h"

#include <algorithm>
#include <memory>

#include "gguf/error.h"

namespace engine {

void OutModel::PerLayer(std::string_view key, const std::vector<bool>& values) {
  const auto flags = std::make_unique<bool[]>(values.size());
  std::copy(values.begin(), values.end(), flags.get());
  if (given_.emplace(key).second) {
    keys.AddArray(Full(key), std::span<const bool>(flags.get(), values.size()));
  }
}

void OutModel::Rank(const std::vector<std::string>& labels) {
  Uint("pooling_type", 4);
  keys.AddStrings(Full("classifier.output_labels"),
                  std::vector<std::string_view>(labels.begin(), labels.end()));
}

void OutModel::Computed(const std::string& name, std::vector<float> values, uint64_t width) {
  OutTensor tensor;
  tensor.name = name;
  tensor.dims = {values.size()};
  if (width > 0) tensor.dims = {width, values.size() / width};
  tensor.values = std::move(values);
  tensors.push_back(std::move(tensor));
}

const SafeTensor& OutModel::Need(const std::string& hf_name) const {
  const auto found = folder.tensors().find(hf_name);
  if (found == folder.tensors().end()) gguf::Fail(folder.path(), "tensor ", hf_name, " is missing");
  return *found->second;
}

uint64_t OutModel::RowsOf(const std::string& hf_name) const {
  const SafeTensor& tensor = Need(hf_name);
  if (tensor.shape.size() != 2) {
    tensor.Fail("expected a matrix, found shape ", ShapeText(tensor.shape));
  }
  return tensor.shape[0];
}

uint64_t OutModel::head_dim() const {
  if (config.Has("head_dim")) return config.Count("head_dim");
  return config.Count("hidden_size") / config.Count("num_attention_heads");
}

Fields OutModel::rope() const {
  if (!config.Has("rope_parameters")) return config.Object("rope_scaling");
  const Fields rope = config.Object("rope_parameters");
  return rope.Has("full_attention") ? rope.Object("full_attention") : rope;
}

double OutModel::rope_theta() const {
  const std::vector<double> of_layers = config.Numbers("rope_theta");
  const double outside = of_layers.empty() ? default_theta : of_layers[0];
  return rope().NumberOr("rope_theta", outside);
}

}  // namespace engine
