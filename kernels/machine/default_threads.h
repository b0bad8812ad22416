// The default number of threads.
#ifndef PRONK_KERNELS_MACHINE_DEFAULT_THREADS_H_
#define PRONK_KERNELS_MACHINE_DEFAULT_THREADS_H_

#include <string>

namespace kernels {

// The performance cores that the affinity mask and the quotas of control groups leave to this
// process; at least 1.
int DefaultThreads();

// The CPU quota of all control groups (sysfs.h) in cores, at least 1; a large number if none is
// limited. `root` is "/" except in tests.
int CoresOfControlGroups(const std::string& root);

}  // namespace kernels

#endif  // PRONK_KERNELS_MACHINE_DEFAULT_THREADS_H_
