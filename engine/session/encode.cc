#include "engine/session/encode.h"

#include <algorithm>
#include <string>

#include "engine/error.h"

namespace engine {

size_t DefaultContext(const Config& config) {
  constexpr size_t kMost = 4096;  // few texts need more, and a longer cache is large
  return std::min(config.context_length, kMost);
}

void ThrowNoRoom(size_t needed, bool at_least, size_t room, const Config& config) {
  throw TooLong("the text needs " + std::string(at_least ? "at least " : "") +
                std::to_string(needed) + " tokens, and the context has room for " +
                std::to_string(room) + " (the model was trained for " +
                std::to_string(config.context_length) + ")");
}

void CheckTextSize(const Model& model, size_t n_bytes, size_t room) {
  size_t longest = 1;  // a token's spelling in the file is never shorter than its text
  for (const std::string_view token : model.tokenizer->vocab().tokens) {
    longest = std::max(longest, token.size());
  }
  const size_t least = n_bytes / longest;
  if (least > room) ThrowNoRoom(least, /*at_least=*/true, room, model.config);
}

std::vector<tokenizer::TokenId> Encode(const Model& model, std::string_view text,
                                       tokenizer::EncodeOptions options, size_t room) {
  constexpr size_t kCounted = size_t{1} << 20;  // excess tokens that are counted, 4 MB of ids
  CheckTextSize(model, text.size(), room);
  options.most_ids = room + kCounted;
  std::vector<tokenizer::TokenId> ids = model.tokenizer->Encode(text, options);
  if (ids.size() > options.most_ids) ThrowNoRoom(ids.size(), /*at_least=*/true, room, model.config);
  return ids;
}

}  // namespace engine
