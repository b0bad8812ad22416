// Embedder and Reranker of pronk.h: texts become vectors and scores.
#include "engine/library/guarded.h"
#include "engine/library/handles.h"
#include "engine/sampling/settings.h"
#include "engine/session/embedder.h"
#include "engine/session/embedder_input.h"

namespace library {

// Code that embedding and reranking share.
struct Texts {
  std::shared_ptr<const engine::Model> model;
  engine::Embedder embedder;
  std::atomic<bool> in_use = false;

  Texts(std::shared_ptr<const engine::Model> shared, engine::SessionOptions options,
        std::optional<engine::Pooling> pooling)
      : model(std::move(shared)), embedder(*model, InFloats(std::move(options)), pooling) {}

  // Keys and values are kept for one pass.
  static engine::SessionOptions InFloats(engine::SessionOptions options) {
    options.kv_type = kernels::KvType::kF32;
    return options;
  }

  // Calls take(row) with each text's result.
  template <class Encode, class Take>
  void ForEach(const std::vector<std::string>& texts, const Encode& encode, const Take& take) {
    std::vector<std::vector<tokenizer::TokenId>> ids;
    ids.reserve(texts.size());
    for (const std::string& text : texts) ids.push_back(encode(text));
    const size_t width = embedder.width();
    embedder.Embed(ids, [&](size_t, size_t n, std::span<const float> rows) {
      for (size_t i = 0; i < n; ++i) take(rows.subspan(i * width, width));
      return true;
    });
  }
};

}  // namespace library

namespace pronk {

using library::Guarded;
using library::Use;

struct Embedder::Impl : library::Texts {
  using Texts::Texts;
};

Embedder::Embedder(const Model& model, Pooling pooling, const Options& options)
    : impl_(Guarded([&] {
        if (model.impl_->config.pooling == engine::Pooling::kRank)
          throw Error("this is a reranker, which makes scores, not vectors");
        engine::CheckRange("pooling", static_cast<int>(pooling), 0,
                           static_cast<int>(Pooling::kLast));
        std::optional<engine::Pooling> named;
        if (pooling != Pooling::kOfFile) named = static_cast<engine::Pooling>(pooling);
        static_assert(static_cast<int>(Pooling::kLast) == static_cast<int>(engine::Pooling::kLast));
        return std::make_shared<Impl>(model.impl_,
                                      library::ToEngine(options, *model.impl_, nullptr), named);
      })) {}

std::vector<std::vector<float>> Embedder::Embed(const std::vector<std::string>& texts) {
  return Use(impl_, [&](Impl& impl) {
    const std::string prompt = engine::PromptOf(*impl.model);
    std::vector<std::vector<float>> vectors;
    const auto encode = [&](const std::string& text) {
      return engine::Encode(*impl.model, prompt + text, {}, impl.embedder.capacity());
    };
    impl.ForEach(texts, encode,
                 [&](std::span<const float> row) { vectors.emplace_back(row.begin(), row.end()); });
    return vectors;
  });
}

struct Reranker::Impl : library::Texts {
  using Texts::Texts;
};

Reranker::Reranker(const Model& model, const Options& options)
    : impl_(Guarded([&] {
        return std::make_shared<Impl>(
            model.impl_, library::ToEngine(options, *model.impl_, nullptr), engine::Pooling::kRank);
      })) {}

std::vector<float> Reranker::Score(const std::string& query,
                                   const std::vector<std::string>& texts) {
  return Use(impl_, [&](Impl& impl) {
    std::vector<float> scores;
    const auto encode = [&](const std::string& text) {
      return engine::EncodePair(*impl.model, query, text, impl.embedder.capacity());
    };
    impl.ForEach(texts, encode, [&](std::span<const float> row) { scores.push_back(row[0]); });
    return scores;
  });
}

}  // namespace pronk
