// What happens when a model's file is cut off while it is in use.
#ifndef PRONK_ENGINE_CLI_MAPPING_FAULT_H_
#define PRONK_ENGINE_CLI_MAPPING_FAULT_H_

namespace cli {

// Weights are read from the mapped file as they are needed. Where somebody has shortened the file
// meanwhile, or its disk fails, there is nothing to read and the system sends SIGBUS. From here on
// that ends the program with one line that says so, and status 1.
void ExplainMappingFaults();

}  // namespace cli

#endif  // PRONK_ENGINE_CLI_MAPPING_FAULT_H_
