// The drafts of an assistant for the small model that it was made for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/draft/assistant.h"
#include "engine/pass/forward.h"
#include "tests/support/data.h"

namespace test {

struct Guesses {
  std::vector<tokenizer::TokenId> ids;
  std::vector<float> logits;  // of the last
};

// The first n drafts after a text, with a float cache.
inline Guesses Guess(const engine::Model& model, const engine::Model& assistant,
                     std::span<const tokenizer::TokenId> text, size_t n, int n_threads = 1) {
  const std::span<const tokenizer::TokenId> read = text.first(text.size() - 1);
  kernels::ThreadPool pool(n_threads, kernels::Oversubscription::kRunOnCaller);
  engine::SequenceState state(model.config,
                              {.capacity = 64, .batch = 32, .kv_type = kernels::KvType::kF32});
  engine::Scratch scratch(model.config, 32, static_cast<size_t>(n_threads));
  const std::vector<engine::RopeAngles> ropes = engine::MakeRopes(model, 64);
  engine::AssistantDrafter drafter(model, assistant, state, pool);
  const engine::SequenceSlice span = {ropes, state, 0, read.size()};
  pool.Run([&] { engine::Forward(model, read, {&span, 1}, scratch, pool); });
  drafter.Observe(read, 0, scratch.x);
  Guesses guesses;
  if (drafter.FindDrafts(text)) drafter.Draft(text, n, guesses.ids);
  guesses.logits.assign(drafter.logits().begin(), drafter.logits().end());
  return guesses;
}

// The model beside tests/data/assistants/gemma4.gguf.
inline engine::Model Backbone(const std::string& name = "gemma4") {
  return engine::Model::Load(DataPath("hybrids/" + name + ".gguf"));
}

}  // namespace test
