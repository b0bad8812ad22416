// The rows of all lineages in one list.
#include "engine/model/architecture.h"

#include <vector>

#include "engine/model/families/families.h"

namespace engine {

std::span<const Architecture> Architectures() {
  static const std::vector<Architecture> kAll = [] {
    std::vector<Architecture> all;
    for (const auto lineage :
         {LlamaLineage(), QwenLineage(), GraniteLineage(), GemmaLineage(), SingleLineages(),
          Lfm2Lineage(), DeepSeekLineage(), NemotronLineage(), MambaLineage(), ExpertsLineage(),
          GptLineage(), BertLineage()}) {
      all.insert(all.end(), lineage.begin(), lineage.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace engine
