#include "engine/draft/drafters.h"

#include <utility>
#include <vector>

#include "engine/draft/lookup_drafter.h"
#include "engine/draft/model_drafter.h"
#include "engine/session.h"

namespace engine {

std::unique_ptr<Speculation> MakeSpeculation(const Model& model, const SessionOptions& options,
                                             size_t capacity, kernels::Team&) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  if (options.draft.model != nullptr) {
    drafters.push_back(std::make_unique<ModelDrafter>(model, *options.draft.model, options));
  }
  if (options.draft.lookup) drafters.push_back(std::make_unique<LookupDrafter>(capacity));
  return std::make_unique<Speculation>(std::move(drafters), options.draft);
}

}  // namespace engine
