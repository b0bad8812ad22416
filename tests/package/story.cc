// Prints a story while the model of a file writes it:
//
//   story MODEL.gguf "Once upon a time"
#include <pronk/pronk.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

void Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int Tell(const std::string& path, const std::string& beginning) {
  const pronk::Model model(path);
  pronk::Options options;
  options.sampling.temperature = 0;  // the same story every time
  pronk::Session session(model, options);

  Print(beginning);
  const pronk::Completion story = session.Complete(beginning, Print, {/*max_tokens=*/100, {}});
  std::fprintf(stderr, "\n%zu tokens of a %s model in %.2f s, pronk %s\n", story.n_generated,
               model.architecture().c_str(), story.generate_seconds, pronk::Version().c_str());
  return story.text.empty() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return Tell(argv[1], argv[2]);
  } catch (const pronk::Error& error) {
    std::fprintf(stderr, "story: %s\n", error.what());
    return 1;
  }
}
