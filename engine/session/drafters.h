// The drafters of a session.
#ifndef PRONK_ENGINE_SESSION_DRAFTERS_H_
#define PRONK_ENGINE_SESSION_DRAFTERS_H_

#include <cstddef>
#include <memory>

#include "engine/draft/speculation.h"
#include "kernels/team.h"

namespace engine {

struct SessionOptions;

// Those that the options ask for and the model has, for texts of up to `capacity` tokens. Throws
// engine::Error where the draft model's vocabulary is another one, or where the machine lacks the
// memory for its session.
std::unique_ptr<Speculation> MakeSpeculation(const Model& model, const SessionOptions& options,
                                             size_t capacity, kernels::Team& team);

}  // namespace engine

#endif  // PRONK_ENGINE_SESSION_DRAFTERS_H_
