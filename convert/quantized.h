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
#ifndef PRONK_CONVERT_QUANTIZED_H_
#define PRONK_CONVERT_QUANTIZED_H_

#include <string_view>

#include "convert/hf_folder.h"

namespace convert {

// Makes quantized weights readable as numbers (numbers.h), without their scales in the folder's
// list. True if weights are to be rounded to three values at run time (BitNet). Throws gguf::Error.
bool ReadQuantization(std::string_view architecture, HfFolder& folder);

}  // namespace convert

#endif  // PRONK_CONVERT_QUANTIZED_H_
