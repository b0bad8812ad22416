// From a folder's tensors to the file's, by the tables of family.h.
#ifndef PRONK_CONVERT_TENSOR_MAP_H_
#define PRONK_CONVERT_TENSOR_MAP_H_

#include <string>
#include <vector>

#include "convert/family.h"

namespace convert {

// Adds the file's tensors to the draft. Returns the names of the folder's that are left out: other
// senses than reading, blocks behind the layers that predict further tokens and that this program
// would not run, what can be worked out. Throws gguf::Error where a tensor has no place, an expert
// is missing, or a shape does not fit.
std::vector<std::string> MapTensors(const Family& family, Draft& draft);

}  // namespace convert

#endif  // PRONK_CONVERT_TENSOR_MAP_H_
