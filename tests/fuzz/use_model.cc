#include "tests/fuzz/use_model.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <span>
#include <vector>

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/sampling/settings.h"
#include "engine/session/chat.h"
#include "engine/session/embedder.h"
#include "engine/session/embedder_input.h"
#include "engine/session/encode.h"
#include "engine/session/generate.h"
#include "engine/session/session.h"
#include "gguf/error.h"
#include "tests/support/allocations.h"
#include "tests/support/data.h"

namespace fuzz {
namespace {

using tokenizer::TokenId;

// Returns the size of the state. The model is its own draft model, too.
size_t Use(gguf::File file, size_t most_context) {
  const engine::Model model = engine::Model::From(std::move(file));
  engine::SessionOptions options = {
      .context = std::min(engine::ContextOf(model.config), most_context), .n_threads = 1};
  const std::vector<TokenId> ids =
      model.tokenizer->Encode("a prompt: ab abc <s>\n", {.parse_special = true});
  if (model.config.backbone_length > 0) {  // a draft model of another model
    static const engine::Model backbone =
        engine::Model::Load(test::DataPath("hybrids/gemma4.gguf").string());
    options.context = 64;
    options.draft = {.on = true, .fixed = 2, .lookup = false, .model = &model};
    engine::Session session(backbone, options);
    session.Prefill(std::vector<TokenId>{1, 30, 12, 9, 36});
    for (int i = 0; i < 4; ++i) session.Decode(session.Sample());
    return session.state().bytes();
  }
  if (model.config.pooling != engine::Pooling::kNone || !model.config.WritesText()) {
    engine::Embedder embedder(model, options);
    const std::vector<std::vector<TokenId>> texts = {
        ids, engine::EncodePair(model, "a query", "an answer", embedder.capacity()), {0}};
    embedder.Embed(texts, [](size_t, size_t, std::span<const float>) { return true; });
    if (!model.config.WritesText()) return 0;
  }
  engine::ReadSampling(model.file.metadata(), options.sampling);
  options.draft = {.on = true, .fixed = 2, .model = &model};
  engine::Session session(model, options);
  engine::GenerateOptions few = {.max_tokens = 4};
  const std::string text = engine::Generate(session, ids, few, [](auto) { return true; }).text;
  engine::EncodeChat(model, engine::ChatForm(model), {{"user", text}}, session.capacity());
  return 2 * session.state().bytes();
}

}  // namespace

Outcome UseModel(const std::function<gguf::File()>& open, size_t most_context) {
  Outcome outcome;
  const size_t before = test::CountAllocations().bytes;
  test::ResetPeak();
  const std::clock_t start = std::clock();
  try {
    outcome.state_bytes = Use(open(), most_context);
  } catch (const gguf::Error& error) {
    outcome.error = error.what();
  } catch (const engine::Error& error) {
    outcome.error = error.what();
  } catch (const tokenizer::TemplateError& error) {
    outcome.error = error.what();
  }
  outcome.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  outcome.bytes = test::CountAllocations().peak - before;
  return outcome;
}

bool Add(const Outcome& outcome, size_t model_bytes, const std::string& name, Counts& counts,
         const Limits& limits) {
  ++counts.n;
  counts.refused += !outcome.error.empty();
  counts.slowest = std::max(counts.slowest, outcome.seconds);
  const size_t bytes = outcome.bytes - std::min(outcome.bytes, outcome.state_bytes);
  counts.largest = std::max(counts.largest, bytes);
  const bool one_line = gguf::PrintablePath(outcome.error) == outcome.error;
  const bool in_limits = outcome.seconds <= limits.seconds && bytes <= limits.bytes + model_bytes;
  if (in_limits && one_line) return true;
  counts.failed = true;
  std::fprintf(stderr, "%s: %.1f s, %zu bytes, %s\n", name.c_str(), outcome.seconds, bytes,
               outcome.error.c_str());
  return false;
}

void Print(const std::string& what, const Counts& counts) {
  std::printf("%s: %zu, of them %zu refused; slowest %.2f s, most memory %.1f MB\n", what.c_str(),
              counts.n, counts.refused, counts.slowest, static_cast<double>(counts.largest) / 1e6);
}

}  // namespace fuzz
