// The family of a folder (engine/model/family.h), and the steps that its row determines.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/hf/out_model.h"
#include "engine/model/family.h"

namespace convert {

using engine::Change, engine::HasExperts, engine::Families, engine::Family, engine::Fields,
    engine::HfClass, engine::HfFolder, engine::JsonView, engine::kInKeys, engine::KeyKind,
    engine::KeyRule, engine::NumberAt, engine::Order, engine::OutModel, engine::OutTensor,
    engine::Packing, engine::ParseObject, engine::ReadNumbers, engine::RowFactors,
    engine::SafeTensor, engine::Safetensors, engine::Shapes, engine::ShapeText, engine::TensorRule,
    engine::Unit, engine::KeyValue;

// One of Hugging Face's classes, and the family whose files it becomes.
struct Source {
  const Family& family;
  const HfClass& hf;
};

// Finds the folder's source. Throws gguf::Error if it cannot be converted.
Source FindSource(const Fields& config);

// config.json's text part, which is a separate object in models with vision or audio.
Fields TextConfig(const Fields& config);
// TextConfig, with the key names that all families share, and the class's values for absent keys.
Fields ConfigWithDefaults(const HfClass& hf, const Fields& config);

// Makes quantized weights readable as numbers (quantized.cc), without their scales in the folder's
// list. True if weights are to be rounded to three values at run time (BitNet). Throws gguf::Error.
bool ReadQuantization(std::string_view architecture, HfFolder& folder);

// Adds the family's keys, then the keys of all families.
void AddKeys(const Source& source, OutModel& model);
// The keys that Sentence Transformers' files give. Throws gguf::Error.
void AddPooling(OutModel& model);

// Adds the file's tensors. Returns the names of the folder's tensors that are left out: vision and
// audio, blocks after the layers that this program would not run, and tensors that readers compute.
// Throws gguf::Error if a tensor is unknown, an expert is missing, or a shape does not fit.
std::vector<std::string> MapTensors(const Source& source, OutModel& model);
// Tensors that most families share.
std::span<const TensorRule> CommonTensors();

}  // namespace convert
