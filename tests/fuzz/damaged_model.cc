// A small valid model cut at every byte, and damaged in random ways; each goes through all that a
// user would do with it: open, tokenize a prompt, render the chat template, generate four tokens.
//
//   damaged_model [COUNT [SEED]]          that many random ones (default 300)
//   damaged_model --write FOLDER COUNT    only writes them, to try other programs with
//
// Whatever the bytes: one line of error or an answer, in at most 2 seconds of processor time, with
// at most 64 MB of memory besides the KV cache and the file's size. Ends with status 1 otherwise
// (or by whatever signal; it is most telling with sanitizers).
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/model.h"
#include "engine/session.h"
#include "gguf/error.h"
#include "tests/support/allocations.h"
#include "tests/support/small_model.h"
#include "tests/support/temp_dir.h"
#include "tokenizer/chat_template.h"

namespace {

using Bytes = std::vector<std::byte>;

constexpr double kMostSeconds = 2;
constexpr size_t kMostBytes = 64'000'000;

struct Outcome {
  std::string error;  // empty: tokens were generated
  double seconds = 0;
  size_t bytes = 0;        // most memory held at once
  size_t state_bytes = 0;  // of that, keys and values
};

struct Counts {
  size_t n = 0, refused = 0;
  double slowest = 0;
  size_t largest = 0;
  bool failed = false;
};

// All that a user would do; returns the size of the state.
size_t UseModel(const Bytes& bytes) {
  const engine::Model model = engine::Model::From(gguf::File::Parse("f.gguf", bytes));
  const auto source = model.file.metadata().GetStringOr("tokenizer.chat_template", "");
  const auto chat = tokenizer::ChatTemplate::Parse(source);
  chat.Render(tokenizer::ChatInput(std::vector<tokenizer::Message>{{"user", "Hi"}}));
  auto ids = model.tokenizer->Encode("a prompt: ab abc <s>\n", {.parse_special = true});
  engine::SessionOptions options;
  options.n_threads = 1;
  engine::Session session(model, options);
  session.Prefill(ids);
  std::string text;
  for (int i = 0; i < 4; ++i) {
    const tokenizer::TokenId id = session.Sample();
    text += model.tokenizer->Piece(id);
    session.Decode(id);
  }
  return session.state().bytes();
}

Outcome Try(const Bytes& damaged) {
  Outcome outcome;
  const Bytes exact = damaged;  // a block of just this size, whose ends the sanitizers watch
  const size_t before = test::CountAllocations().bytes;
  test::ResetPeak();
  const std::clock_t start = std::clock();
  try {
    outcome.state_bytes = UseModel(exact);
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

void Add(const Outcome& outcome, const Bytes& damaged, const std::string& name, Counts& counts) {
  ++counts.n;
  counts.refused += !outcome.error.empty();
  counts.slowest = std::max(counts.slowest, outcome.seconds);
  const size_t bytes = outcome.bytes - std::min(outcome.bytes, outcome.state_bytes);
  counts.largest = std::max(counts.largest, bytes);
  const bool one_line = std::all_of(outcome.error.begin(), outcome.error.end(),
                                    [](char c) { return static_cast<unsigned char>(c) >= ' '; });
  if (outcome.seconds <= kMostSeconds && bytes <= kMostBytes + damaged.size() && one_line) return;
  counts.failed = true;
  std::fprintf(stderr, "%s: %.1f s, %zu bytes, %s\n", name.c_str(), outcome.seconds, bytes,
               outcome.error.c_str());
}

class Damage {
 public:
  Damage(const Bytes& good, uint32_t seed) : good_(good), random_(seed) {}

  Bytes Next() {
    Bytes bytes = good_;
    for (size_t i = 1 + Below(4); i > 0 && !bytes.empty(); --i) Once(bytes);
    return bytes;
  }

 private:
  size_t Below(size_t n) { return static_cast<size_t>(random_() % n); }

  // Mostly where numbers are, which is where the bytes are small: lengths, counts, types, offsets.
  size_t Place(const Bytes& bytes) {
    size_t at = Below(bytes.size());
    for (int i = 0; i < 4 && std::to_integer<int>(bytes[at]) >= ' '; ++i) at = Below(bytes.size());
    return Below(3) == 0 ? at : at % std::min<size_t>(bytes.size(), 2048);
  }

  void WriteEdge(Bytes& bytes) {
    constexpr std::array<uint64_t, 18> kEdges = {0,
                                                 1,
                                                 2,
                                                 3,
                                                 8,
                                                 13,
                                                 0x7F,
                                                 0xFF,
                                                 0xFFFF,
                                                 1u << 24,
                                                 0x7FFFFFFF,
                                                 0x80000000,
                                                 UINT32_MAX,
                                                 1ull << 32,
                                                 1ull << 61,
                                                 1ull << 63,
                                                 UINT64_MAX - 31,
                                                 UINT64_MAX};
    const uint64_t edge = kEdges[Below(kEdges.size())];
    const size_t at = Place(bytes);
    std::memcpy(bytes.data() + at, &edge, std::min(bytes.size() - at, Below(2) == 0 ? 4ul : 8ul));
  }

  void SwapSections(Bytes& bytes) {
    const size_t n = 1 + Below(std::min<size_t>(bytes.size() / 2, 512));
    const size_t a = Below(bytes.size() - 2 * n + 1);
    const size_t b = a + n + Below(bytes.size() - a - 2 * n + 1);
    const auto at = [&](size_t i) { return bytes.begin() + static_cast<std::ptrdiff_t>(i); };
    std::swap_ranges(at(a), at(a + n), at(b));
  }

  void Once(Bytes& bytes) {
    const auto at = [&](size_t i) { return bytes.begin() + static_cast<std::ptrdiff_t>(i); };
    switch (Below(8)) {
      case 0:
      case 1:
        bytes[Place(bytes)] = static_cast<std::byte>(random_());
        break;
      case 2:
        bytes[Place(bytes)] ^= static_cast<std::byte>(1u << Below(8));
        break;
      case 3:
      case 4:
        WriteEdge(bytes);
        break;
      case 5:
        if (bytes.size() >= 4) SwapSections(bytes);
        break;
      case 6: {  // some bytes less, all behind moves up; or twice
        const size_t from = Place(bytes);
        const size_t n = std::min(bytes.size() - from, 1 + Below(64));
        const Bytes piece(at(from), at(from + n));
        Below(2) == 0 ? void(bytes.erase(at(from), at(from + n)))
                      : void(bytes.insert(at(from), piece.begin(), piece.end()));
        break;
      }
      default:
        if (Below(4) == 0) bytes.resize(Below(bytes.size() + 1));
    }
  }

  const Bytes& good_;
  std::mt19937 random_;
};

void Print(const char* what, const Counts& counts) {
  std::printf("%s: %zu, of them %zu refused; slowest %.2f s, most memory %.1f MB\n", what, counts.n,
              counts.refused, counts.slowest, static_cast<double>(counts.largest) / 1e6);
}

int Main(int argc, char** argv) {
  const bool write = argc == 4 && std::strcmp(argv[1], "--write") == 0;
  const size_t n = write ? std::strtoull(argv[3], nullptr, 10)
                         : (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 300);
  const auto seed =
      static_cast<uint32_t>(!write && argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 20241121);
  bool failed = false;
  for (const char* family : {"llama", "gpt2"}) {
    test::SmallModel model;
    model.tokenizer = family;
    const Bytes good = model.Bytes();
    if (const Outcome sound = Try(good); !sound.error.empty()) {
      std::fprintf(stderr, "%s: the sound model is refused: %s\n", family, sound.error.c_str());
      return 1;
    }
    Counts cut;
    for (size_t size = 0; size < good.size() && !write; ++size) {
      const Bytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
      Add(Try(bytes), bytes, std::string(family) + " cut at " + std::to_string(size), cut);
    }
    Counts random;
    Damage damage(good, seed);
    for (size_t i = 0; i < n / 2; ++i) {
      const Bytes bytes = damage.Next();
      const std::string name = std::string(family) + "-" + std::to_string(i) + ".gguf";
      if (write) {
        test::WriteBytes(std::string(argv[2]) + "/" + name, bytes);
      } else {
        Add(Try(bytes), bytes, name, random);
      }
    }
    if (write) continue;
    Print((std::string(family) + " cut at every byte").c_str(), cut);
    Print((std::string(family) + " damaged").c_str(), random);
    // Every cut has to be noticed; of the damaged, some are and some are not.
    failed |= cut.failed || random.failed || cut.refused != cut.n;
    failed |= random.refused == 0 || random.refused == random.n;
  }
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }
