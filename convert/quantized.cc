// Folders whose weights are quantized already, in the two forms that can be read as numbers:
//
//   BitNet  "NAME.weight" is U8 [rows / 4, cols]: byte (i, j) holds row i in its lowest two bits,
//           row i + rows / 4 in the next, and so on, as 0, 1, 2 for -1, 0, 1. One number,
//           NAME.weight_scale, belongs to all: Hugging Face's "autobitlinear" multiplies with it,
//           its "bitlinear" divides.
//   FP8     "NAME.weight" is F8_E4M3 [rows, cols]; NAME.weight_scale_inv (or _scale) has a
//           number for each block of them (mostly 128 x 128), or one for all, to multiply with.
//
// gpt-oss's MXFP4 is copied, not read: out_tensor.h. All others are refused by name.
#include <cmath>
#include <string>
#include <vector>

#include "convert/source.h"
#include "gguf/error.h"

namespace convert {
namespace {

struct Pair {
  SafeTensor weight;
  const SafeTensor* scale;
};

// Weights with a separate scale: NAME and NAME + suffix.
std::vector<Pair> Scaled(const HfFolder& folder, std::string_view suffix) {
  std::vector<Pair> pairs;
  for (const auto& [name, scale] : folder.tensors()) {
    if (!name.ends_with(suffix)) continue;
    const std::string of = name.substr(0, name.size() - suffix.size());
    const auto weight = folder.tensors().find(of);
    if (weight == folder.tensors().end()) scale->Fail("is a scale without weights");
    if (!scale->floats) scale->Fail("expected floats, found ", scale->dtype);
    pairs.push_back({*weight->second, scale});
  }
  return pairs;
}

void ReadTernary(const Pair& pair, bool divides, HfFolder& folder) {
  SafeTensor weight = pair.weight;
  if (weight.dtype != "U8" || weight.shape.size() != 2 || weight.elements == 0) {
    weight.Fail("expected a matrix of U8, four weights in each, found ", weight.dtype, " ",
                ShapeText(weight.shape));
  }
  const bool is_one = pair.scale->elements == 1;
  const float scale = is_one ? NumberAt(*pair.scale, 0) : 0;
  if (!(std::isfinite(scale) && scale > 0)) pair.scale->Fail("expected one number above 0");
  weight.packing = Packing::kTernary;
  weight.factor = divides ? 1 / scale : scale;
  weight.shape[0] *= 4;
  weight.elements *= 4;
  folder.Replace(weight);
  folder.Remove(pair.scale->name);
}

// True if the folder has no such weights and the model is to be rounded here.
bool ReadAllTernary(const Fields& quantization, HfFolder& folder) {
  const bool divides = quantization.TextOr("linear_class", "bitlinear") != "autobitlinear";
  const std::vector<Pair> pairs = Scaled(folder, "_scale");
  for (const Pair& pair : pairs) ReadTernary(pair, divides, folder);
  if (!pairs.empty()) return false;
  if (quantization.TextOr("quantization_mode", "offline") != "online") {
    quantization.Fail("quantization_mode", "expected online, as no weight has a weight_scale");
  }
  for (const std::string& name : quantization.Texts("modules_to_not_convert")) {
    if (name == "lm_head") continue;
    quantization.Fail("modules_to_not_convert", "expected lm_head alone, found ",
                      gguf::Quoted(name, 60));
  }
  return true;
}

void ReadF8(const Pair& pair, const std::vector<double>& block, HfFolder& folder) {
  SafeTensor weight = pair.weight;
  const SafeTensor& scale = *pair.scale;
  const size_t rank = weight.shape.size();
  if (weight.dtype != "F8_E4M3" || rank < 2 || weight.elements == 0) {
    weight.Fail("expected matrices of F8_E4M3, found ", weight.dtype, " ", ShapeText(weight.shape));
  }
  uint64_t &rows = weight.shape[rank - 2], &cols = weight.shape[rank - 1];
  std::vector<uint64_t> expected = scale.shape;  // one scale for all
  if (scale.elements == 1 && scale.shape.size() <= 1 && rank == 2) {
    weight.block_rows = rows;
    weight.block_cols = cols;
  } else {
    weight.block_rows = static_cast<uint64_t>(block[0]);
    weight.block_cols = static_cast<uint64_t>(block[1]);
    expected = weight.shape;
    expected[rank - 2] = (rows - 1) / weight.block_rows + 1;
    expected[rank - 1] = (cols - 1) / weight.block_cols + 1;
  }
  if (scale.shape != expected) {
    scale.Fail("expected ", ShapeText(expected), ", one for each block, found ",
               ShapeText(scale.shape));
  }
  weight.packing = Packing::kF8;
  weight.scales = &scale;
  folder.Replace(weight);
  folder.Remove(scale.name);
}

void ReadAllF8(const Fields& quantization, HfFolder& folder) {
  std::vector<double> block = quantization.Numbers("weight_block_size");
  if (block.empty()) block = {128, 128};
  for (const double n : block) {
    if (block.size() == 2 && n >= 1 && n <= 65536 && n == std::floor(n)) continue;
    quantization.Fail("weight_block_size", "expected two whole numbers from 1 to 65536");
  }
  // Settings for activations, keys and values, which are not rounded here.
  std::vector<std::string> others;
  for (const auto& [name, tensor] : folder.tensors()) {
    for (const char* const end : {".activation_scale", ".input_scale", ".k_scale", ".v_scale"}) {
      if (name.ends_with(end)) others.push_back(name);
    }
  }
  for (const std::string& name : others) folder.Remove(name);
  for (const char* const suffix : {"_scale_inv", "_scale"}) {
    for (const Pair& pair : Scaled(folder, suffix)) ReadF8(pair, block, folder);
  }
}

}  // namespace

bool ReadQuantization(std::string_view architecture, HfFolder& folder) {
  const Fields quantization = TextConfig(folder.config()).Object("quantization_config");
  if (!quantization.is_there()) return architecture == "bitnet";
  const std::string method = quantization.TextOr("quant_method", "config.json does not say how");
  if (method == "mxfp4" && architecture == "gpt-oss") return false;
  if (method == "bitnet") return ReadAllTernary(quantization, folder);
  if (method != "fp8") {
    quantization.Fail("quant_method",
                      "expected weights of floats, of FP8 or BitNet's, found them quantized (",
                      gguf::Printable(method, 40), "): get the model as it was before");
  }
  ReadAllF8(quantization, folder);
  return false;
}

}  // namespace convert
