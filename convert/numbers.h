// Weights of a folder as floats, from any stored type.
#ifndef PRONK_CONVERT_NUMBERS_H_
#define PRONK_CONVERT_NUMBERS_H_

#include <cstdint>

#include "convert/out_tensor.h"

namespace convert {

// Writes n numbers of the unit to out[n], changed for kPlusOne and kMinusExp, but not for kTernary.
void ReadNumbers(const Unit& unit, uint64_t n, Change change, float* out);

// Number i of a tensor of floats.
float NumberAt(const SafeTensor& tensor, uint64_t i);

}  // namespace convert

#endif  // PRONK_CONVERT_NUMBERS_H_
