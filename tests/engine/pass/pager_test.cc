// The pages that are prefetched and released in a model larger than memory. The gain in speed shows
// only with such a model (kernels/NOTEBOOK.md).
#include "engine/pass/pager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/data.h"

namespace engine {
namespace {

using Advice = Pager::Advice;

// The tensors of each kind of advice, in order, as "blk.0.attn_q.weight".
class Log {
 public:
  explicit Log(const Model& model) : model_(model) {}
  Pager::Advise Listener() {
    return [this](std::span<const std::byte> bytes, Advice advice) {
      const std::lock_guard lock(mutex_);
      for (const gguf::TensorView& t : model_.file.tensors()) {
        if (bytes.data() < t.data || bytes.data() >= t.data + t.bytes) continue;
        said_[advice].emplace_back(t.name);
        bytes_[std::string(t.name)] += bytes.size();
      }
    };
  }
  // The layers, without repetition of neighbours.
  std::vector<std::string> Blocks(Advice advice) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> blocks;
    for (const std::string& name : said_[advice]) {
      const std::string block = name.substr(0, name.starts_with("blk.") ? 5 : name.size());
      if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
    }
    return blocks;
  }
  uint64_t Bytes(const std::string& name) { return bytes_[name]; }

 private:
  const Model& model_;
  std::mutex mutex_;
  std::map<Advice, std::vector<std::string>> said_;
  std::map<std::string, uint64_t> bytes_;
};

// Waits until the pager's thread has done its work.
void Finish(Log& log, Advice advice, size_t n) {
  while (log.Blocks(advice).size() < n) std::this_thread::yield();
}

TEST(Pager, WhatFitsStaysAndTheOthersAreAskedForAndLetGo) {
  const Model model = Model::Load(test::kDefault);
  ASSERT_EQ(model.config.n_layers(), 6u);
  uint64_t layer = 0;
  for (const gguf::TensorView& t : model.file.tensors()) {
    layer += t.name.starts_with("blk.0.") ? t.bytes : 0;
  }
  const uint64_t output = model.weights.output.tensor->bytes;  // larger than a layer
  ASSERT_GT(output, layer);
  Log log(model);
  Pager pager(model, 3 * output + 2 * layer, log.Listener());  // two layers and three outputs
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < 6; ++i) pager.EndLayer(i);
  }
  Finish(log, Advice::kAsk, 14);
  Finish(log, Advice::kLetGo, 10);
  const std::vector<std::string> once = {
      "blk.1", "blk.2", "blk.3", "blk.4", "blk.5", "token_embd.weight", "blk.0"};
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(log.Blocks(Advice::kAsk), twice);
  EXPECT_EQ(log.Blocks(Advice::kLetGo),
            (std::vector<std::string>{"token_embd.weight", "blk.2", "blk.3", "blk.4", "blk.5",
                                      "token_embd.weight", "blk.2", "blk.3", "blk.4", "blk.5"}));
}

TEST(Pager, TheChosenExpertsAreAskedForOnce) {
  const Model model = Model::Load(test::DataPath("families/qwen3moe.gguf").string());
  Log log(model);
  Pager pager(model, 0, log.Listener());
  const LayerWeights& w = model.weights.layers[1];
  const std::vector<uint32_t> chosen = {1, 3, 3, 1};
  pager.Expect(w, chosen);
  for (const ExpertsView* view : {&w.ffn_gate_exps, &w.ffn_up_exps, &w.ffn_down_exps}) {
    EXPECT_EQ(log.Bytes(std::string(view->tensor->name)),
              2 * view->tensor->bytes / view->n_experts);
  }
}

TEST(Pager, ExpertsThatWereNotUsedForTheLongestTimeAreLetGo) {
  const Model model = Model::Load(test::DataPath("families/qwen3moe.gguf").string());
  const std::vector<LayerWeights>& layers = model.weights.layers;
  uint64_t expert = 0, others = 0, largest = 0;  // bytes: of an expert, of layers without them
  for (size_t i = 0; i < layers.size(); ++i) {
    uint64_t layer = 0;
    for (const gguf::TensorView& t : model.file.tensors()) {
      if (!t.name.starts_with("blk." + std::to_string(i) + ".")) continue;
      const bool is_expert = t.name.find("_exps.") != std::string_view::npos;
      if (is_expert && i == 0) expert += t.bytes / layers[0].ffn_up_exps.n_experts;
      if (!is_expert) layer += t.bytes;
    }
    others += layer;
    largest = std::max(largest, layer);
  }
  const uint64_t output = model.weights.output.tensor->bytes;
  const uint64_t room = others + output + 3 * std::max(largest, output) + 3 * expert;

  std::mutex mutex;
  std::vector<std::pair<size_t, size_t>> let_go;  // (layer, expert)
  const auto listen = [&](std::span<const std::byte> bytes, Advice advice) {
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < layers.size(); ++i) {
      for (size_t e = 0; e < layers[i].ffn_up_exps.n_experts; ++e) {
        if (advice == Advice::kLetGo && layers[i].ffn_up_exps.expert(e).data == bytes.data())
          let_go.emplace_back(i, e);
      }
    }
  };
  Pager pager(model, room, listen);
  const auto expect = [&](size_t layer, std::vector<uint32_t> chosen) {
    pager.Expect(layers[layer], chosen);
  };
  const auto wait_for = [&](size_t n) {
    for (int i = 0; i < 10000; ++i) {
      {
        const std::lock_guard lock(mutex);
        if (let_go.size() >= n) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  expect(0, {0, 1});
  expect(1, {2});
  expect(0, {0});  // again, so expert 1 is the oldest
  expect(1, {3});  // a fourth
  wait_for(1);
  expect(0, {1, 2});  // 1 comes back
  wait_for(3);
  const std::lock_guard lock(mutex);
  const std::vector<std::pair<size_t, size_t>> expected = {{0, 1}, {1, 2}, {0, 0}};
  EXPECT_EQ(let_go, expected);
}

// The block after the last layer, which only drafts use, is not taken for the output matrix.
TEST(Pager, LeavesTheNextnBlockAlone) {
  const Model model = Model::Load(test::DataPath("more/glm4moe.gguf").string());
  ASSERT_NE(model.weights.nextn.eh_proj.tensor, nullptr);
  Log log(model);
  Pager pager(model, 0, log.Listener());
  const size_t n = model.config.n_layers();
  for (size_t i = 0; i < n; ++i) pager.EndLayer(i);
  Finish(log, Advice::kLetGo, n + 1);
  Finish(log, Advice::kAsk, n);
  const std::vector<std::string> asked = log.Blocks(Advice::kAsk);
  EXPECT_EQ(std::ranges::count(asked, "blk." + std::to_string(n)), 0);
  EXPECT_EQ(std::ranges::count(asked, "output.weight"), 1);
}

TEST(Pager, NoneWhereAllFits) {
  const Model model = Model::Load(test::kDefault);
  EXPECT_EQ(Pager::IfLarger(model, model.file.tensor_bytes()), nullptr);
  EXPECT_NE(Pager::IfLarger(model, model.file.tensor_bytes() - 1), nullptr);
}

}  // namespace
}  // namespace engine
