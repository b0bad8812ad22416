// Maps a folder's tensors to the file's, by the tables of family.h.
#ifndef PRONK_CONVERT_TENSOR_MAP_H_
#define PRONK_CONVERT_TENSOR_MAP_H_

#include <string>
#include <vector>

#include "convert/family.h"

namespace convert {

// Adds the file's tensors to the model. Returns the names of the folder's tensors that are left
// out: vision and audio, blocks after the layers that this program would not run, and tensors that
// readers compute. Throws gguf::Error if a tensor is unknown, an expert is missing, or a shape does
// not fit.
std::vector<std::string> MapTensors(const Family& family, OutModel& model);

}  // namespace convert

#endif  // PRONK_CONVERT_TENSOR_MAP_H_
