#include "engine/session/embedder_input.h"

#include "engine/error.h"
#include "engine/session/encode.h"
#include "gguf/error.h"
#include "tokenizer/tokenizer.h"

namespace engine {

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
  throw Error("this model has no prompt ", gguf::Quoted(wanted, 60), "; ",
              known.empty() ? "its file has none" : "there are " + known);
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
      if (text.size() < 2 * checked) continue;  // the text may contain many control tokens
      CheckTextSize(model, checked = text.size(), room);
    }
    return Encode(model, text, {.add_special = false, .parse_special = true, .plain = plain}, room);
  }
  const tokenizer::Vocabulary& vocab = model.tokenizer->vocab();
  std::vector<tokenizer::TokenId> ids;
  const auto add = [&](bool wanted, tokenizer::TokenId id) {
    if (wanted && id >= 0) ids.push_back(id);
  };
  const auto add_text = [&](std::string_view text) {
    const auto more = Encode(model, text, {.add_special = false}, room);
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
