// A session on disk: tokens, state and logits, so that a long prompt is read only once.
//
//   offset  bytes
//        0  16   "pronk session 5\n"
//       16   8   hash of the other fields, the tokens, the logits and the state's pieces
//       24   8   hash of the model: of its metadata and all of its weights
//       32   8   stamp of the model: hash of its metadata and its files' device, inode, size
//                and time of change; or 0
//       40   8   n_tokens
//       48   8   vocab_size
//       56   8   type of the keys, plus that of the values times 256 (kernels::KvType)
//       64   8   1: RoPE for a context longer than in training
//       72   8   bytes of the state
//       80       tokens, 4 bytes each; logits, f32; the state: by layer and head the keys and the
//                values that the next token sees, then the recurrent layers' floats
//
// While the stamp matches, the weights need not be hashed again. All numbers are in the machine's
// byte order, like the mapped weights.
#pragma once

#include <cstdint>
#include <string>

#include "engine/error.h"
#include "engine/session/session.h"
#include "gguf/file.h"

namespace engine {

// Thrown by LoadSession() for a file that is not a session, is damaged or does not fit, and for the
// session of another model.
class RefusedSession : public Error {
 public:
  using Error::Error;
};
class OtherModel : public RefusedSession {
 public:
  using RefusedSession::RefusedSession;
};
class SessionTooLong : public RefusedSession {  // the text exceeds the context
 public:
  using RefusedSession::RefusedSession;
};

// Identifies a model without reading the whole file: a hash of the metadata, the tensor index and
// the first 4096 bytes of each tensor. Training changes these bytes in nearly every tensor.
uint64_t FingerprintOf(const gguf::File& file);

// Writes a session that has logits. The file appears complete or not at all. Throws gguf::Error if
// it cannot be written, or would overwrite the model's file.
void SaveSession(Session& session, const std::string& path);

// Restores the file's session. Throws engine::Error, and leaves the session unchanged, for a
// damaged file, another model or cache type, or too long a text; gguf::Error if it cannot be read.
void LoadSession(Session& session, const std::string& path);

}  // namespace engine
