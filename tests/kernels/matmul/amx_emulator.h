// AMX for CPUs that do not have it, slowly, so that its kernels are tested on more machines. 64-bit
// Linux on x86 only.
#pragma once

namespace kernels::test {

// From now on AMX's instructions, as far as kernels/ uses them, work in every thread.
void EmulateAmx();

}  // namespace kernels::test
