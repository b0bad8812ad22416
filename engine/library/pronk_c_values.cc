// Checks and converts the values of pronk_c.h.
#include "engine/library/pronk_c_values.h"

#include <utility>

namespace library {
namespace {

// No context has room for more tokens (engine::kMaxTokens). A larger count is a mistake, for
// example -1, and the library would read beyond the caller's array.
constexpr size_t kMaxItems = size_t{1} << 30;
// Structures will stay smaller than this; a larger size means that it was never set.
constexpr size_t kMaxStruct = 4096;

void CheckCount(const char* what, size_t n) {
  if (n > kMaxItems)
    throw pronk::Error(std::string(what) + ": expected at most " + std::to_string(kMaxItems) +
                       ", found " + std::to_string(n));
}

}  // namespace

size_t CheckedSize(size_t size, size_t alignment, size_t known) {
  // A multiple of the alignment, so that no pointer is copied in part.
  if (size >= sizeof(size) && size <= kMaxStruct && size % alignment == 0) return size;
  throw pronk::Error("a structure's size: expected " + std::to_string(known) + ", found " +
                     std::to_string(size) + ": PRONK_..._INIT sets it");
}

pronk::Options ReadOptions(const char* text) {
  pronk::Options options;
  std::string word;
  const auto set = [&] {
    const size_t equals = word.find('=');
    if (word.empty()) return;
    if (equals == std::string::npos) throw pronk::Error("'" + word + "': expected NAME=VALUE");
    pronk::Set(options, word.substr(0, equals), word.substr(equals + 1));
    word.clear();
  };
  bool is_quoted = false;
  for (const char* c = text == nullptr ? "" : text; *c != 0; ++c) {
    if (*c == '\\' && is_quoted && c[1] != 0) {
      word += *++c;
    } else if (*c == '"') {
      is_quoted = !is_quoted;
    } else if (*c == ' ' && !is_quoted) {
      set();
    } else {
      word += *c;
    }
  }
  if (is_quoted) throw pronk::Error("'" + word + "': its quotes have no end");
  set();
  return options;
}

pronk::Pooling ReadPooling(const char* name) {
  if (name == nullptr) return pronk::Pooling::kOfFile;
  const std::pair<std::string_view, pronk::Pooling> named[] = {{"mean", pronk::Pooling::kMean},
                                                               {"first", pronk::Pooling::kFirst},
                                                               {"last", pronk::Pooling::kLast}};
  for (const auto& [text, pooling] : named) {
    if (text == name) return pooling;
  }
  throw pronk::Error("there is no pooling '" + std::string(name) + "'");
}

pronk::Reading ReadReading(unsigned flags) {
  constexpr unsigned kKnown =
      PRONK_READ_APART | PRONK_READ_BOS | PRONK_READ_NO_BOS | PRONK_READ_SPECIAL;
  constexpr unsigned kBoth = PRONK_READ_BOS | PRONK_READ_NO_BOS;
  if ((flags & ~kKnown) != 0)
    throw pronk::Error("reading: there is no flag " + std::to_string(flags & ~kKnown));
  if ((flags & kBoth) == kBoth)
    throw pronk::Error("reading: PRONK_READ_BOS excludes PRONK_READ_NO_BOS");
  pronk::Reading reading;
  const auto has = [&](unsigned flag) { return (flags & flag) != 0; };
  reading.joined = !has(PRONK_READ_APART);
  if (has(kBoth)) reading.bos = has(PRONK_READ_BOS);
  reading.special = has(PRONK_READ_SPECIAL);
  return reading;
}

pronk::Rendering ReadRendering(const pronk_rendering* rendering_or_null) {
  pronk::Rendering rendering;
  if (rendering_or_null == nullptr) return rendering;
  const pronk_rendering from = Known(*rendering_or_null);
  const auto text = [](const char* given) { return std::string(given == nullptr ? "" : given); };
  rendering.chat_template = text(from.chat_template);
  rendering.tools = text(from.tools);
  rendering.variables = text(from.variables);
  if (from.now != 0) rendering.now = from.now;
  rendering.begins_answer = from.continues == 0;
  return rendering;
}

bool Give(const pronk::Token& token, pronk_on_token to, void* user) {
  std::vector<pronk_likely> likeliest;
  likeliest.reserve(token.likeliest.size());
  for (const auto& [id, log] : token.likeliest) likeliest.push_back({id, log});
  const pronk_token given = {token.id, token.seconds, token.log_probability, likeliest.data(),
                             likeliest.size()};
  return to(&given, user) == 0;
}

pronk::Limits ReadLimits(const pronk_limits* limits_or_null, void* user) {
  pronk::Limits limits;
  if (limits_or_null == nullptr) return limits;
  const pronk_limits known = Known(*limits_or_null), *const from = &known;
  if (from->max_tokens != 0) limits.max_tokens = from->max_tokens == -1 ? 0 : from->max_tokens;
  if (from->grammar != nullptr) limits.grammar = *from->grammar;
  for (const char* const* stop = from->stops; stop != nullptr && *stop != nullptr; ++stop) {
    limits.stops.emplace_back(*stop);
  }
  if (from->on_prompt != nullptr) {
    limits.on_prompt = [user, call = from->on_prompt](size_t n_read, size_t n) {
      return call(n_read, n, user) == 0;
    };
  }
  limits.reading = ReadReading(from->reading);
  if (from->n_likeliest < 0)
    throw pronk::Error("n_likeliest: expected at least 0, found " +
                       std::to_string(from->n_likeliest));
  if (from->on_token != nullptr) {
    limits.n_likeliest = from->n_likeliest == 0 ? -1 : from->n_likeliest;
    limits.on_token = [user, call = from->on_token](const pronk::Token& token) {
      return Give(token, call, user);
    };
  }
  if (from->on_logits != nullptr) {
    limits.on_logits = [user, call = from->on_logits](float* logits, size_t n) {
      return call(logits, n, user) == 0;
    };
  }
  return limits;
}

std::vector<pronk::Message> ReadMessages(const char* json) {
  if (json == nullptr) return {};
  return pronk::ParseMessages(json);
}

pronk::OnText Caller(pronk_on_text on_text, void* user) {
  if (on_text == nullptr) return {};
  return [=](std::string_view text) { return on_text(text.data(), text.size(), user) == 0; };
}

std::string_view ReadBytes(const char* text, size_t n_bytes) {
  CheckCount("n_bytes", n_bytes);
  return {text, n_bytes};
}

std::vector<int32_t> ReadIds(const int32_t* ids, size_t n_ids) {
  CheckCount("n_ids", n_ids);
  return {ids, ids + n_ids};
}

std::vector<std::string> ReadTexts(const char* const* texts, size_t n_texts) {
  CheckCount("n_texts", n_texts);
  std::vector<std::string> all;
  for (size_t i = 0; i < n_texts; ++i) {
    if (texts[i] == nullptr) throw pronk::Error("text " + std::to_string(i) + " is NULL");
    all.emplace_back(texts[i]);
  }
  return all;
}

void Give(const pronk::Completion& from, pronk_completion* to) {
  Give(pronk_completion{0, static_cast<pronk_stop_reason>(from.stop_reason), from.n_prompt,
                        from.n_unread, from.n_generated, from.prompt_seconds, from.generate_seconds,
                        from.n_dropped},
       to);
}

void Give(const pronk::MemoryUse& from, pronk_memory_use* to) {
  Give(pronk_memory_use{0, from.weights, from.cache, from.scratch}, to);
}

}  // namespace library
