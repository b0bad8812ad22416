// The number of threads when nobody says.
#ifndef PRONK_KERNELS_MACHINE_DEFAULT_THREADS_H_
#define PRONK_KERNELS_MACHINE_DEFAULT_THREADS_H_

#include <string>

namespace kernels {

// The performance cores that the affinity mask and the quotas of control groups leave to this
// process; at least 1.
int DefaultThreads();

// Cores' worth of time that all control groups grant (sysfs.h), at least 1; a large number where
// none is limited. `root` is "/", but in tests.
int CoresOfControlGroups(const std::string& root);

}  // namespace kernels

#endif  // PRONK_KERNELS_MACHINE_DEFAULT_THREADS_H_
