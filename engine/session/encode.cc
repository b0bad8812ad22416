#include "engine/session/encode.h"

#include <utility>

#include "engine/session/session.h"

namespace engine {

std::vector<tokenizer::TokenId> Encode(const Model& model, std::string_view text,
                                       tokenizer::EncodeOptions options, size_t context) {
  constexpr size_t kCounted = size_t{1} << 20;  // tokens too many that are counted, 4 MB of ids
  CheckTextSize(model, text.size(), context);
  const size_t room = context != 0 ? context : DefaultContext(model.config);
  options.most_ids = room + kCounted;
  std::vector<tokenizer::TokenId> ids = model.tokenizer->Encode(text, options);
  if (ids.size() > options.most_ids) ThrowNoRoom(ids.size(), /*at_least=*/true, room, model.config);
  return ids;
}

}  // namespace engine
