// Edits a session file (session_file.h) and loads it. Input: a letter, then one edit a line,
// "AT N TEXT": TEXT replaces N bytes from offset AT on. If the letter is s, the hash is recomputed
// afterwards, as an attacker would do.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "engine/session/session_file.h"
#include "engine/session/xxh64.h"
#include "gguf/error.h"
#include "gguf/file.h"
#include "tests/fuzz/input.h"
#include "tests/support/data.h"
#include "tests/support/small_model.h"
#include "tests/support/temp_dir.h"

namespace {

constexpr size_t kContext = 32;

// The numbers at the beginning of the file, after a magic of 16 bytes.
struct Head {
  uint64_t hash, model, stamp, n_tokens, vocab_size, kv_type, is_long, state_bytes;
};
constexpr size_t kHeadAt = 16;

class Target {
 public:
  Target() {
    const std::vector<tokenizer::TokenId> ids = {5, 6, 7, 8};
    session_.Prefill(ids);
    engine::SaveSession(session_, path_);
    good_ = test::ReadText(path_);
  }

  const std::string& good() const { return good_; }

  void Sign(std::string& file) {
    Head head;
    if (file.size() < kHeadAt + sizeof(head)) return;
    std::memcpy(&head, file.data() + kHeadAt, sizeof(head));
    const size_t n_logits = model_.config.vocab_size * sizeof(float);
    if (head.n_tokens > kContext || !session_.Reserve(head.n_tokens)) return;
    std::span<const std::byte> rest =
        std::as_bytes(std::span(file)).subspan(kHeadAt + sizeof(head));
    std::vector<uint64_t> hashes = {head.model,   head.stamp,   head.n_tokens,   head.vocab_size,
                                    head.kv_type, head.is_long, head.state_bytes};
    const auto add = [&](size_t n) {
      n = std::min(n, rest.size());
      hashes.push_back(engine::Xxh64(rest.first(n)));
      rest = rest.subspan(n);
    };
    add(head.n_tokens * sizeof(tokenizer::TokenId));
    add(n_logits);
    session_.RememberedState().ForEachChunk(head.n_tokens,
                                            [&](std::span<std::byte> chunk) { add(chunk.size()); });
    head.hash = engine::Xxh64(std::as_bytes(std::span(hashes)));
    std::memcpy(file.data() + kHeadAt, &head, sizeof(head));
  }

  // Returns whether the file was accepted.
  bool Use(const std::string& file) {
    dir_.Write("session", file);
    try {
      engine::LoadSession(session_, path_);
    } catch (const engine::Error&) {
      return false;
    } catch (const gguf::Error&) {
      return false;
    }
    if (session_.position() > kContext) std::abort();
    if (session_.position() < kContext) session_.Decode(9);  // the state may have any numbers
    return true;
  }

 private:
  const test::TempDir dir_;
  const std::string path_ = dir_.Path("session");
  const std::vector<std::byte> bytes_ = test::SmallModel().Bytes();
  const engine::Model model_ = engine::Model::From(gguf::File::Parse("f.gguf", bytes_));
  engine::Session session_{model_, {.context = kContext, .batch = kContext, .n_threads = 1}};
  std::string good_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Target target;
  fuzz::Input input(data, size);
  const bool is_signed = input.Byte() == 's';
  std::string file = target.good();
  while (!input.empty()) {
    std::istringstream line{std::string(input.Line())};
    size_t at = 0, n = 0;
    std::string text;
    line >> at >> n;
    std::getline(line.ignore(1), text);
    file.replace(std::min(at, file.size()), n, text);
  }
  if (is_signed) target.Sign(file);
  const bool is_taken = target.Use(file);
  if (!is_taken && file == target.good()) std::abort();
  if (is_taken && !is_signed && file != target.good()) std::abort();
  return 0;
}
