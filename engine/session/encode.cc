// How long a context is, and the ids of a text that fits into it.
#include "engine/session/encode.h"

#include <algorithm>
#include <string>

#include "engine/error.h"
#include "gguf/error.h"
#include "tokenizer/tokenizer.h"

namespace engine {

size_t ContextOf(const Config& config, size_t wish) {
  constexpr size_t kMost = 4096;  // few texts need more, and a longer cache is large
  if (wish == kDefaultContext) return std::min(config.context_length, kMost);
  if (wish == 0) return config.context_length;
  return config.learned_positions ? std::min(wish, config.context_length) : wish;
}

size_t MaxContextOf(const Config& config, size_t wish) {
  return wish == kDefaultContext ? config.context_length : ContextOf(config, wish);
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
  if (n_bytes <= room) return;  // whatever the tokens are
  size_t longest = 1;           // a token's spelling in the file is never shorter than its text
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

std::string PromptOf(const Model& model, const std::optional<std::string>& name) {
  const gguf::Metadata& meta = model.file.metadata();
  const std::string default_name(meta.GetStringOr("sentence_transformers.default_prompt", ""));
  const std::string& wanted = name ? *name : default_name;
  if (wanted.empty()) return "";
  constexpr const char *kNames = "sentence_transformers.prompt_names",
                       *kPrompts = "sentence_transformers.prompts";
  std::string known;
  if (meta.Has(kNames) && meta.Has(kPrompts)) {
    const auto names = meta.GetStrings(kNames), prompts = meta.GetStrings(kPrompts);
    if (names.size() != prompts.size())
      meta.Fail(kPrompts, "expected ", names.size(), " texts, found ", prompts.size());
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == wanted) return std::string(prompts[i]);
      known += (i > 0 ? ", " : "") + gguf::Printable(names[i]);
    }
  }
  throw Error("this model has no prompt ", gguf::Quoted(wanted, 60), ": it has ",
              known.empty() ? "none" : known);
}

std::vector<tokenizer::TokenId> EncodePair(const Model& model, std::string_view query,
                                           std::string_view document, size_t room) {
  const std::string_view form =
      model.file.metadata().GetStringOr("tokenizer.chat_template.rerank", "");
  if (!form.empty()) {
    std::string text;
    std::vector<tokenizer::ByteSpan> plain;  // control tokens count only in the template
    size_t checked = 0;                      // bytes
    for (size_t at = 0; at < form.size();) {
      const std::string_view rest = form.substr(at);
      const bool is_query = rest.starts_with("{query}"),
                 is_document = rest.starts_with("{document}");
      if (!is_query && !is_document) {
        text += form[at++];
        continue;
      }
      const std::string_view with = is_query ? query : document;
      at += is_query ? sizeof("{query}") - 1 : sizeof("{document}") - 1;
      plain.push_back({text.size(), text.size() + with.size()});
      text += with;
      if (text.size() < 2 * checked) continue;  // there may be any number of places
      CheckTextSize(model, checked = text.size(), room);
    }
    return Encode(model, text, {.add_bos = false, .parse_special = true, .plain = plain}, room);
  }
  const tokenizer::Vocabulary& vocab = model.tokenizer->vocab();
  std::vector<tokenizer::TokenId> ids;
  const auto add = [&](bool wanted, tokenizer::TokenId id) {
    if (wanted && id >= 0) ids.push_back(id);
  };
  const auto add_text = [&](std::string_view text) {
    const auto more = Encode(model, text, {.add_bos = false}, room);
    ids.insert(ids.end(), more.begin(), more.end());
    add(vocab.add_eos, vocab.eos >= 0 ? vocab.eos : vocab.sep);
  };
  add(vocab.add_bos, vocab.bos);
  add_text(query);
  add(vocab.add_sep, vocab.sep);
  add_text(document);
  return ids;
}

}  // namespace engine
