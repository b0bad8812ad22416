// Measures the masks of schemas, with the cases of a file in MaskBench's form:
//
//   masks_bench VOCABULARY.gguf CASES.jsonl [STEP]
//
// Each line of the file is {"id": ..., "schema": TEXT, "tests": [[valid, TEXT], ...]}; the program
// takes every STEP-th line. A schema passes if it allows each valid text token by token and then
// the end, and stops each invalid text. Prints the outcomes, and percentiles of one thread's
// processor time: up to the first mask (including reading the schema, but not building the
// vocabulary's trie), and for each mask.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "grammar/constraint.h"
#include "grammar/json_schema.h"
#include "tokenizer/tokenizer.h"

namespace {

double Now() {  // us
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

void Print(const char* what, std::vector<double> us) {
  if (us.empty()) return;
  std::sort(us.begin(), us.end());
  double sum = 0;
  for (const double t : us) sum += t;
  const auto at = [&](double part) {
    return us[static_cast<size_t>(part * static_cast<double>(us.size() - 1))];
  };
  std::printf("%-11s mean %8.1f  p50 %8.1f  p99 %8.1f  p99.9 %8.1f  largest %8.1f us\n", what,
              sum / static_cast<double>(us.size()), at(0.5), at(0.99), at(0.999), us.back());
}

class Bench {
 public:
  explicit Bench(const tokenizer::Tokenizer& tokenizer) : tokenizer_(tokenizer) {
    const auto any = std::make_shared<const grammar::Grammar>(grammar::JsonObject());
    grammar::Constraint(any, tokenizer_).Allowed();  // builds the trie
  }

  void Run(const nlohmann::json& test) {
    std::string outcome;
    try {
      outcome = Try(test);
    } catch (const std::exception&) {
      outcome = "refused";
    }
    ++outcomes_[outcome];
    if (outcome.find("valid") != std::string::npos) {
      std::printf("%s: %s\n", test["id"].get<std::string>().c_str(), outcome.c_str());
    }
  }

  void Report() const {
    for (const auto& [outcome, n] : outcomes_) std::printf("%-18s %zu\n", outcome.c_str(), n);
    Print("first mask", first_);
    Print("mask", masks_);
    std::printf("hash of the masks %016llx\n", static_cast<unsigned long long>(hash_));
    std::puts(
        "Published for Llama 3.1's vocabulary and all of MaskBench's 11,306 schemas (2025): "
        "passing LLGuidance 8,909, XGrammar 8,122,");
    std::puts(
        "Outlines 7,050, llama.cpp 6,505; a mask's mean and p99 in us: 64, 533; 728, 5,687; 1,858, "
        "7,184; 16,565, 60,371.");
  }

 private:
  std::string Try(const nlohmann::json& test) {
    double begin = Now();
    const auto grammar = std::make_shared<const grammar::Grammar>(
        grammar::ParseJsonSchema(test["schema"].get<std::string>()));
    grammar::Constraint constraint(grammar, tokenizer_);
    constraint.Allowed();
    first_.push_back(Now() - begin);
    for (const auto& [is_valid, text] :
         test["tests"].get<std::vector<std::pair<bool, std::string>>>()) {
      constraint.Restart();
      bool fits = true;
      for (const tokenizer::TokenId id :
           tokenizer_.Encode(text, {.add_special = false, .parse_special = false})) {
        begin = Now();
        const std::span<const uint64_t> mask = constraint.Allowed();
        double us = Now() - begin;
        for (const uint64_t word : mask) {
          hash_ = (hash_ ^ word) * 0x9E3779B97F4A7C15u;
          hash_ ^= hash_ >> 32;
        }
        begin = Now();
        const auto bit = static_cast<size_t>(id);
        fits = (mask[bit / 64] >> (bit % 64) & 1) != 0;
        if (fits) constraint.Accept(id);
        us += Now() - begin;
        masks_.push_back(us);
        if (!fits) break;
      }
      if (is_valid && fits) fits = constraint.may_end();
      if (fits != is_valid) return is_valid ? "rejects valid" : "accepts invalid";
    }
    return "passes";
  }

  const tokenizer::Tokenizer& tokenizer_;
  std::map<std::string, size_t> outcomes_;
  std::vector<double> first_, masks_;
  uint64_t hash_ = 0xCBF29CE484222325u;  // of all masks
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fputs("masks_bench VOCABULARY.gguf CASES.jsonl [STEP]\n", stderr), 2;
  const gguf::File file = gguf::File::Open(argv[1]);
  const auto tokenizer = tokenizer::Tokenizer::Create(file);
  Bench bench(*tokenizer);
  std::ifstream in(argv[2]);
  const int step = argc > 3 ? std::atoi(argv[3]) : 1;
  std::string line;
  for (int n = 0; std::getline(in, line); ++n) {
    if (n % step == 0) bench.Run(nlohmann::json::parse(line));
  }
  bench.Report();
}
