// Weights of a folder as floats, in whatever type they are stored.
#ifndef PRONK_CONVERT_NUMBERS_H_
#define PRONK_CONVERT_NUMBERS_H_

#include <cstdint>

#include "convert/out_tensor.h"

namespace convert {

// n numbers of the unit, changed as kPlusOne and kMinusExp ask (for kTernary: as they are), to
// out[n].
void ReadNumbers(const Unit& unit, uint64_t n, Change change, float* out);

// Number i of a tensor of floats.
float NumberAt(const SafeTensor& tensor, uint64_t i);

}  // namespace convert

#endif  // PRONK_CONVERT_NUMBERS_H_
