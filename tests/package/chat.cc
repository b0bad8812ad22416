// Converses on the terminal, a question a line, and shows the answers as they are written:
//
//   chat MODEL.gguf
#include <pronk/pronk.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    pronk::Options options;
    options.sampling.seed = -1;  // each run gives another conversation
    pronk::Chat chat(pronk::Model(argv[1]), "You are a kind storyteller.", options);
    pronk::Limits limits;
    limits.max_tokens = 200;
    const auto print = [](std::string_view text) { std::cout << text << std::flush; };
    for (std::string question; std::getline(std::cin, question);) {
      try {
        const pronk::Completion answer = chat.Say(question, print, limits);
        std::cout << '\n';
        if (answer.stop_reason == pronk::StopReason::kLength) std::cout << "(cut)\n";
      } catch (const pronk::Error& error) {
        if (error.kind() != pronk::ErrorKind::kContextFull) throw;
        std::cout << "(that question is too long)\n";
      }
    }
    return 0;
  } catch (const pronk::Error& error) {
    std::fprintf(stderr, "chat: %s\n", error.what());
    return 1;
  }
}
