// Files of Ollama's own converter, which spells some keys and tensors in its own way.
#pragma once

#include "gguf/file.h"

namespace engine {

// Gives such a file the usual keys and names, before anything reads them. Others stay as they are.
void RespellOllama(gguf::File& file);

}  // namespace engine
