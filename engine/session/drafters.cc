#include "engine/session/drafters.h"

#include <utility>
#include <vector>

#include "engine/draft/lookup_drafter.h"
#include "engine/draft/nextn_drafter.h"
#include "engine/session/model_drafter.h"
#include "engine/session/session.h"

namespace engine {

std::unique_ptr<Speculation> MakeSpeculation(const Model& model, const SessionOptions& options,
                                             size_t capacity, kernels::Team& team) {
  std::vector<std::shared_ptr<Drafter>> drafters;
  if (options.draft.own) drafters.push_back(options.draft.own);
  if (options.draft.model != nullptr) {
    drafters.push_back(std::make_shared<ModelDrafter>(model, *options.draft.model, options));
  }
  if (options.draft.lookup) drafters.push_back(std::make_shared<LookupDrafter>(capacity));
  if (options.draft.nextn && model.weights.nextn.eh_proj.tensor != nullptr) {
    drafters.push_back(std::make_shared<NextnDrafter>(model, capacity, options.kv_type, team));
  }
  return std::make_unique<Speculation>(std::move(drafters), options.draft, model.config.vocab_size);
}

}  // namespace engine
