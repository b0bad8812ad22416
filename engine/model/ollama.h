// Files of Ollama's own converter, which spells some keys and tensors in its own way.
#pragma once

#include "gguf/file.h"

namespace engine {

// Gives such a file the usual keys and names before they are read. Other files are unchanged.
void RespellOllama(gguf::File& file);

}  // namespace engine
