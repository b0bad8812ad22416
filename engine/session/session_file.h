// A session on disk: its tokens, what the model remembers of them, and the logits behind them, so
// that a long prompt is read once.
//
//   offset  bytes
//        0  16   "pronk session 1\n"
//       16   8   hash of the rest
//       24   8   hash of the model: of its metadata, and of some bytes of each tensor
//       32   8   n_tokens
//       40   8   vocab_size
//       48   8   type of the cache: 0 f32, 1 f16, 2 q8_0
//       56   8   bytes of what follows behind the logits
//       64       tokens, 4 bytes each; logits, f32 each; then layer by layer, head by head, the
//                keys and the values that the next token sees; then the recurrent layers' floats
//
// All numbers have the machine's order of bytes, as the mapped weights have.
#ifndef PRONK_ENGINE_SESSION_SESSION_FILE_H_
#define PRONK_ENGINE_SESSION_SESSION_FILE_H_

#include <string>

#include "engine/session/session.h"

namespace engine {

// Writes a session whose last token's logits are there, whole or not at all. Throws gguf::Error
// where it cannot be written, or would go into the model's file.
void SaveSession(Session& session, const std::string& path);

// Takes a session to where the file was written. Throws engine::Error, and leaves the session as it
// was, where the file is damaged, of another model or another type of cache, or where its text does
// not fit into the context; gguf::Error where it cannot be read.
void LoadSession(Session& session, const std::string& path);

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_SESSION_FILE_H_
