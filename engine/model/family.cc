// The rows of all lineages in one list.
#include "engine/model/family.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "engine/model/families/families.h"

namespace engine {

std::span<const Family> Families() {
  static const std::vector<Family> kAll = [] {
    std::vector<Family> all;
    for (const auto lineage :
         {LlamaLineage(), QwenLineage(), GraniteLineage(), GemmaLineage(), LlamaLikeLineages(),
          Lfm2Lineage(), DeepSeekLineage(), NemotronLineage(), MambaLineage(), ExpertsLineage(),
          GptLineage(), BertLineage()}) {
      all.insert(all.end(), lineage.begin(), lineage.end());
    }
    return all;
  }();
  return kAll;
}

std::optional<kernels::Activation> UngatedActivation(std::string_view name) {
  using kernels::Activation;
  constexpr std::pair<std::string_view, Activation> kNames[] = {
      {"gelu", Activation::kGeluErf},        {"gelu_new", Activation::kGeluAlone},
      {"gelu_fast", Activation::kGeluAlone}, {"gelu_pytorch_tanh", Activation::kGeluAlone},
      {"relu", Activation::kRelu},           {"relu2", Activation::kReluSquared}};
  for (const auto& [known, activation] : kNames) {
    if (name == known) return activation;
  }
  return {};
}

}  // namespace engine
