// Model and Grammar of pronk.h, which sessions share.
#include <array>
#include <charconv>
#include <chrono>

#include "engine/error.h"
#include "engine/library/guarded.h"
#include "engine/library/handles.h"
#include "engine/sampling/settings.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "kernels/threads/cpu.h"
#include "tokenizer/messages.h"

namespace library {

// The ids of a prompt that follows a text.
std::vector<tokenizer::TokenId> IdsOf(const engine::Model& model, const pronk::Prompt& prompt,
                                      const pronk::Reading& reading,
                                      std::span<const tokenizer::TokenId> so_far, size_t room) {
  const tokenizer::Vocabulary& vocab = model.tokenizer->vocab();
  std::vector<tokenizer::TokenId> ids(so_far.begin(), so_far.end());
  if (prompt.ids) {
    engine::CheckIds(*prompt.ids, model.config);
    ids.insert(ids.end(), prompt.ids->begin(), prompt.ids->end());
    return ids;
  }
  const std::string_view text = prompt.text;
  if (text.empty() && !ids.empty()) return ids;
  const bool begins = reading.bos.value_or(ids.empty() && vocab.add_bos && vocab.bos >= 0);
  if (begins && vocab.bos < 0)
    throw pronk::Error("bos: the vocabulary has no token that begins a text");
  if (begins) ids.push_back(vocab.bos);
  const tokenizer::EncodeOptions options{.add_special = false, .parse_special = reading.special};
  if (reading.joined) return engine::EncodeAfter(model, ids, text, options, room);
  const auto more = engine::Encode(model, text, options, room - std::min(room, ids.size()));
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

}  // namespace library

namespace pronk {
namespace {

using library::Guarded;

template <class T>
std::string TextOf(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    std::array<char, 32> text;  // the shortest text that reads as the same number
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  } else {
    return std::string(value);
  }
}

template <class Items>
std::string Lines(const Items& items) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : "\n") + TextOf(item);
  return text;
}

engine::Model Open(const std::string& path, bool exact) {
  if (!kernels::CpuIsSupported()) throw Error("this CPU lacks the instructions of this build");
  return engine::Model::Load(path, exact);
}

engine::ChatForm FormOf(const engine::Model& model, const Rendering& rendering) {
  engine::ChatForm form = rendering.chat_template.empty()
                              ? engine::ChatForm(model)
                              : engine::ChatForm(rendering.chat_template);
  form.SetTools(rendering.tools);
  form.begins_answer = rendering.begins_answer;
  if (rendering.now) {
    constexpr double kYear1 = -62'135'596'800, kYear9999 = 253'402'300'799;
    engine::CheckRange("now", static_cast<double>(*rendering.now), kYear1, kYear9999);
    form.now = std::chrono::local_seconds(std::chrono::seconds(*rendering.now));
  }
  if (rendering.variables.empty()) return form;
  const auto json = gguf::JsonView::Parse(rendering.variables, tokenizer::kValueLimits);
  if (!json.IsObject()) throw engine::Error("variables: expected a JSON object");
  for (const auto& [key, value] : json.Members())
    form.variables.emplace_back(key, tokenizer::ToTemplateValue(value));
  return form;
}

}  // namespace

std::string Version() { return PRONK_VERSION; }

Model::Model(const std::string& path, bool exact)
    : impl_(Guarded([&] { return std::make_shared<const Impl>(Impl{Open(path, exact)}); })) {}

std::string Model::architecture() const { return impl_->config.architecture; }
std::size_t Model::context_length() const { return impl_->config.context_length; }
std::size_t Model::size_in_bytes() const { return impl_->file.tensor_bytes(); }
std::size_t Model::n_parameters() const { return impl_->file.elements(); }
std::size_t Model::vocabulary_size() const { return impl_->tokenizer->vocab().size(); }
std::size_t Model::embedding_length() const { return impl_->config.embedding_length; }

std::vector<std::int32_t> Model::Tokenize(std::string_view text, const Reading& reading) const {
  return Guarded([&] { return library::IdsOf(*impl_, text, reading, {}, engine::kMaxTokens); });
}

std::string Model::Detokenize(const std::vector<std::int32_t>& ids, bool special) const {
  return Guarded([&] { return impl_->tokenizer->Decode(ids, special); });
}

SpecialTokens Model::special_tokens() const {
  const tokenizer::Vocabulary& vocab = impl_->tokenizer->vocab();
  return {vocab.bos, vocab.eos, vocab.eot, vocab.unk, vocab.sep, vocab.eog};
}

std::optional<std::string> Model::Metadata(std::string_view key) const {
  return Guarded([&]() -> std::optional<std::string> {
    const gguf::Metadata& metadata = impl_->file.metadata();
    const gguf::Value* const value = metadata.Find(key);
    if (value == nullptr) return std::nullopt;
    const bool is_array = value->type == gguf::ValueType::kArray;
    switch (is_array ? value->element_type : value->type) {
      case gguf::ValueType::kString:
        return is_array ? Lines(metadata.GetStrings(key)) : std::string(metadata.GetString(key));
      case gguf::ValueType::kF32:
      case gguf::ValueType::kF64:
        if (is_array) return Lines(metadata.GetFloats(key));
        return TextOf(static_cast<float>(metadata.GetFloat(key)));
      case gguf::ValueType::kBool:
        if (!is_array) return metadata.GetBoolOr(key, false) ? "true" : "false";
        [[fallthrough]];
      default:
        return is_array ? Lines(metadata.GetInts(key)) : TextOf(metadata.GetInt(key));
    }
  });
}

std::vector<std::string> Model::MetadataKeys() const {
  return Guarded([&] {
    std::vector<std::string> keys;
    for (const auto& entry : impl_->file.metadata().entries()) keys.emplace_back(entry.key);
    return keys;
  });
}

std::string Model::chat_template() const {
  return std::string(engine::ChatTemplateSource(impl_->file, *impl_->tokenizer));
}

std::string Model::Render(const std::vector<Message>& messages, const Rendering& rendering) const {
  return Guarded([&] {
    return engine::RenderChat(impl_->tokenizer.get(), FormOf(*impl_, rendering), messages).text;
  });
}

std::vector<std::int32_t> Model::TokenizeChat(const std::vector<Message>& messages,
                                              const Rendering& rendering) const {
  return Guarded([&] {
    return engine::EncodeChat(*impl_, FormOf(*impl_, rendering), messages, engine::kMaxTokens);
  });
}

Grammar Grammar::JsonSchema(const std::string& schema) {
  return Guarded([&] { return Grammar(Impl{grammar::ParseJsonSchema(schema)}); });
}
Grammar Grammar::JsonObject() {
  return Guarded([&] { return Grammar(Impl{grammar::JsonObject()}); });
}
Grammar Grammar::Gbnf(const std::string& rules) {
  return Guarded([&] { return Grammar(Impl{grammar::ParseGbnf(rules)}); });
}
Grammar::Grammar(Impl impl) : impl_(std::make_shared<const Impl>(std::move(impl))) {}

std::vector<Message> ParseMessages(const std::string& json) {
  return Guarded([&] {
    try {
      return tokenizer::ReadMessages(gguf::JsonView::Parse(json, tokenizer::kValueLimits));
    } catch (const gguf::Error& error) {  // the error is in the caller's text, not in a file
      throw engine::Error(error.what());
    }
  });
}
std::string MessagesJson(const std::vector<Message>& messages) {
  return Guarded([&] { return tokenizer::MessagesJson(messages); });
}

}  // namespace pronk
