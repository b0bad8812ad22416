// The length of a context, and the ids of a text that fits into it.
#include "engine/session/encode.h"

#include <algorithm>
#include <string>

#include "engine/error.h"
#include "gguf/error.h"
#include "tokenizer/tokenizer.h"

namespace engine {

size_t ContextOf(const Config& config, size_t requested) {
  constexpr size_t kMaxDefaultContext = 4096;  // few texts need more, and a longer cache is large
  if (requested == kDefaultContext) return std::min(config.context_length, kMaxDefaultContext);
  if (requested == 0) return config.context_length;
  return config.learned_positions ? std::min(requested, config.context_length) : requested;
}

size_t MaxContextOf(const Config& config, size_t requested) {
  return requested == kDefaultContext ? config.context_length : ContextOf(config, requested);
}

void ThrowNoRoom(size_t needed, bool at_least, size_t room, const Config& config,
                 size_t in_memory) {
  throw TooLong("the text needs ", at_least ? "at least " : "", needed,
                " tokens, and the context has room for ", room, " (the model was trained for ",
                config.context_length,
                in_memory > 0 ? "; there is memory for " + std::to_string(in_memory) : "", ")");
}

void CheckIds(std::span<const tokenizer::TokenId> ids, const Config& config) {
  for (const tokenizer::TokenId id : ids) {
    if (id >= 0 && static_cast<size_t>(id) < config.vocab_size) continue;
    throw Error("token id ", id, " is not in the vocabulary of ", config.vocab_size);
  }
}

void CheckTextSize(const Model& model, size_t n_bytes, size_t room) {
  if (n_bytes <= room) return;  // then n_bytes / longest fits, too
  size_t longest = 1;           // a token's spelling in the file is never shorter than its text
  for (const std::string_view token : model.tokenizer->vocab().tokens) {
    longest = std::max(longest, token.size());
  }
  const size_t min_tokens = n_bytes / longest;
  if (min_tokens > room) ThrowNoRoom(min_tokens, /*at_least=*/true, room, model.config);
}

std::vector<tokenizer::TokenId> Encode(const Model& model, std::string_view text,
                                       tokenizer::EncodeOptions options, size_t room) {
  constexpr size_t kCounted = size_t{1} << 20;  // excess tokens that are counted, 4 MB of ids
  CheckTextSize(model, text.size(), room);
  options.max_ids = room + kCounted;
  std::vector<tokenizer::TokenId> ids = model.tokenizer->Encode(text, options);
  if (ids.size() > options.max_ids) ThrowNoRoom(ids.size(), /*at_least=*/true, room, model.config);
  return ids;
}

std::vector<tokenizer::TokenId> EncodeAfter(const Model& model,
                                            std::span<const tokenizer::TokenId> so_far,
                                            std::string_view prompt,
                                            const tokenizer::EncodeOptions& options, size_t room) {
  CheckTextSize(model, prompt.size(), room - std::min(room, so_far.size()));
  // Control tokens have no text, and the text of unknown tokens is lost.
  const tokenizer::Vocabulary& vocab = model.tokenizer->vocab();
  size_t kept = so_far.size();
  while (kept > 0 && !vocab.IsControl(so_far[kept - 1]) && so_far[kept - 1] != vocab.unk) --kept;
  const std::vector<tokenizer::TokenId> end(so_far.begin() + static_cast<ptrdiff_t>(kept),
                                            so_far.end());
  const auto bytes = [&](const std::vector<tokenizer::TokenId>& ids) {
    std::string text;
    for (const tokenizer::TokenId id : ids) text += model.tokenizer->Piece(id);
    return text;
  };
  std::vector<tokenizer::TokenId> ids =
      Encode(model, model.tokenizer->Decode(end).append(prompt), options, room);
  // A model may continue a word after a control token, where every text begins with a space.
  if (!bytes(ids).starts_with(bytes(end))) {
    kept = so_far.size();
    ids = Encode(model, prompt, options, room);
  }
  ids.insert(ids.begin(), so_far.begin(), so_far.begin() + static_cast<ptrdiff_t>(kept));
  return ids;
}

}  // namespace engine
