// Completes several beginnings at once, which takes little longer than completing one:
//
//   batch MODEL.gguf "Once upon" "The goat" ...
#include <pronk/pronk.h>

#include <cstddef>
#include <cstdio>
#include <iostream>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    const pronk::Model model(argv[1]);
    pronk::Batch batch(model);
    pronk::Limits limits;
    limits.max_tokens = 40;
    std::vector<pronk::Session> sessions;
    for (int i = 2; i < argc; ++i) {
      sessions.emplace_back(model);
      batch.Add(sessions.back(), argv[i], {}, limits);
    }
    while (batch.size() > 0) {
      for (const auto& [number, completion] : batch.Step()) {
        std::cout << number << ": " << argv[number + 2] << completion.text << '\n';
      }
    }
    return 0;
  } catch (const pronk::Error& error) {
    std::fprintf(stderr, "batch: %s\n", error.what());
    return 1;
  }
}
