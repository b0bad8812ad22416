// Uses models with valid structure and hostile values (hostile_model.h) as a user would:
//
//   hostile_models [COUNT [SEED [FOLDER]]]
//
// COUNT (default 1) is the number of models for each key of each architecture. Half as many models
// again get random changes, and a tenth as many are split into parts.
//
// Each model must give one error line or an answer, within the limits of use_model.h. Otherwise the
// exit status is 1, or a signal ends the program. Models with random changes that fail are written
// into FOLDER. Sanitizers find most faults. model_fuzz.cc makes such models from a fuzzer's bytes.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>

#include "engine/model/family.h"
#include "tests/fuzz/hostile_model.h"
#include "tests/fuzz/use_model.h"
#include "tests/support/transformers.h"

namespace {

using Bytes = std::vector<std::byte>;

fuzz::Outcome Try(const Bytes& bytes) {
  return fuzz::UseModel([&] { return gguf::File::Parse("f.gguf", bytes); });
}

// Returns whether every base model is valid, and whether each architecture has one.
bool AreSound(const fuzz::HostileModels& models) {
  bool sound = true;
  std::set<std::string, std::less<>> names = test::MadeWhileTesting();
  for (size_t base = 0; base < models.n_bases(); ++base) {
    const fuzz::Outcome outcome = Try(models.Base(base));
    names.insert(models.NameOfBase(base));
    if (outcome.error.empty()) continue;
    std::fprintf(stderr, "%s: the sound model is refused: %s\n", models.NameOfBase(base).c_str(),
                 outcome.error.c_str());
    sound = false;
  }
  for (const engine::Family& architecture : engine::Families()) {
    if (names.contains(architecture.name)) continue;
    std::fprintf(stderr, "no model of %s\n", std::string(architecture.name).c_str());
    sound = false;
  }
  if (const size_t n_keys = models.Keys(0).size(); n_keys < 50) {
    std::fprintf(stderr, "%zu keys were found in the sources, at least 50 expected\n", n_keys);
    sound = false;
  }
  return sound;
}

int Main(int argc, char** argv) {
  const size_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const auto seed = static_cast<uint32_t>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 20261122);
  const fuzz::HostileModels models;
  if (!AreSound(models)) return 1;
  std::mt19937 random(seed);
  const fuzz::Choices choose = [&](size_t below) { return random() % below; };

  fuzz::Counts keys;
  for (size_t base = 0; base < models.n_bases(); ++base) {
    for (const std::string& key : models.Keys(base)) {
      for (size_t i = 0; i < n; ++i) {
        const Bytes bytes = models.WithKey(base, key, choose);
        fuzz::Add(Try(bytes), bytes.size(), models.NameOfBase(base) + " " + key, keys);
      }
    }
  }
  fuzz::Print("keys", keys);
  fuzz::Counts any;
  for (size_t i = 0; i < keys.n / 2; ++i) {
    const Bytes bytes = models.Next(choose);
    const bool held = fuzz::Add(Try(bytes), bytes.size(), "model " + std::to_string(i), any,
                                fuzz::kLimitsOfTemplates);
    if (!held && argc > 3) {
      test::WriteBytes(std::string(argv[3]) + "/" + std::to_string(i) + ".gguf", bytes);
    }
  }
  fuzz::Print("models", any);
  fuzz::Counts parts;
  for (size_t i = 0; i < keys.n / 10; ++i) {
    const test::TempDir folder;
    const std::string path = models.NextInParts(folder, choose);
    const fuzz::Outcome outcome = fuzz::UseModel([&] { return gguf::File::Open(path); });
    fuzz::Add(outcome, 0, "parts " + std::to_string(i), parts);
  }
  fuzz::Print("models in parts", parts);
  bool failed = false;
  for (const fuzz::Counts& counts : {keys, any, parts}) {
    failed |= counts.failed || counts.refused == 0 || counts.refused == counts.n;
  }
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }
