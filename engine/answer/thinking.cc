// The marks of each family, and a splitter that reads text as it comes.
#include "engine/answer/thinking.h"

#include <algorithm>

#include "engine/answer/tool_calls.h"
#include "engine/error.h"

namespace engine {
namespace {

using tokenizer::TokenId;
using tokenizer::Value;
using Kind = ThinkingFormat::Kind;

constexpr std::string_view kChannel = "<|channel|>", kMessage = "<|message|>", kEnd = "<|end|>",
                           kStart = "<|start|>", kConstrain = "<|constrain|>";
constexpr std::string_view kRecipient = " to=", kFunctions = " to=functions.";

// Tags that are tokens. In <|channel>thought the token is only a part of the tag.
constexpr ThinkingFormat Tags(std::string_view open, std::string_view close) {
  return {.kind = Kind::kTags, .open = open, .close = close, .tokens = {open, close}};
}

// The first format whose closing mark is in the template applies. Qwen 3 to 3.6, DeepSeek, GLM,
// Granite 3.3, LFM2, MiniMax, Nemotron and SmolLM3 use <think>.
constexpr auto kFormats = std::to_array<ThinkingFormat>({
    {.kind = Kind::kChannels,
     .open = "",
     .close = kMessage,
     .tokens = {kChannel, kMessage, kEnd, kStart, kConstrain}},  // gpt-oss
    {.kind = Kind::kTags,
     .open = "<|channel>thought",
     .close = "<channel|>",
     .tokens = {"<|channel>", "<channel|>"}},                     // Gemma 4
    Tags("[THINK]", "[/THINK]"),                                  // Magistral
    Tags("<seed:think>", "</seed:think>"),                        // Seed-OSS
    Tags("<|START_THINKING|>", "<|END_THINKING|>"),               // Command R7B, Command A
    Tags("<|inner_prefix|>", "<|inner_suffix|>"),                 // Apertus
    Tags("◁think▷", "◁/think▷"),                                  // Kimi-VL
    Tags("<thought>", "</thought>"),                              // EXAONE Deep
    Tags("<reasoning>", "</reasoning>"),                          // Reka
    Tags("Here is my thought process:", "Here is my response:"),  // Granite 3.2
    {.kind = Kind::kTags,
     .open = "Here are my reasoning steps:",
     .close = "[BEGIN FINAL RESPONSE]",
     .answer_close = "[END FINAL RESPONSE]"},  // Apriel
    Tags("<think>", "</think>"),
});

// Marks around the answer, if both are in a template with tags: Granite 3.3, Hunyuan.
constexpr std::pair<std::string_view, std::string_view> kAnswerMarks[] = {
    {"<response>", "</response>"}, {"<answer>", "</answer>"}};

// The size of a text without the white space at its end.
size_t TrimmedSize(std::string_view text) { return text.find_last_not_of(kBlank) + 1; }

std::string Rendered(const tokenizer::ChatTemplate& chat_template, const char* variable,
                     Value value) {
  tokenizer::ChatInput input(std::vector<tokenizer::Message>{{"user", "Why?"}});
  input.extra = {{variable, std::move(value)}};
  try {
    return chat_template.Render(input).text;
  } catch (const tokenizer::TemplateError&) {
    return "";  // equal to the text for other values if none works
  }
}

}  // namespace

size_t BegunMark(std::string_view text, std::string_view mark) {
  for (size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n) {
    if (mark.starts_with(text.substr(text.size() - n))) return n;
  }
  return 0;
}

ThinkingFormat FindThinkingFormat(std::string_view template_source) {
  const auto has = [&](std::string_view mark) {
    return template_source.find(mark) != std::string_view::npos;
  };
  const auto found =
      std::ranges::find_if(kFormats, [&](const ThinkingFormat& one) { return has(one.close); });
  if (found == kFormats.end()) return {};
  ThinkingFormat format = *found;
  for (const auto& [open, close] : kAnswerMarks) {
    if (format.kind != Kind::kTags || !has(open) || !has(close)) continue;
    format.answer_open = open;
    format.answer_close = close;
  }
  return format;
}

std::string EndOfThinking(const ThinkingFormat& format, bool must_answer) {
  if (format.kind != Kind::kChannels) return "\n" + std::string(format.close);
  std::string end(kEnd);
  end.append(kStart).append("assistant");
  if (must_answer || !format.has_calls) end.append(kChannel).append("final").append(kMessage);
  return end;
}

std::vector<TokenId> MarkTokens(std::span<const std::string_view> marks,
                                const tokenizer::Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  for (const std::string_view token : marks) {
    const TokenId id = token.empty() ? -1 : tokenizer.Find(token);
    if (id >= 0) ids.push_back(id);
  }
  return ids;
}

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, TrimmedSize(text));
}

ThinkingSplitter::ThinkingSplitter(const ThinkingFormat& format, std::string_view prompt_end)
    : format_(format) {
  prompt_end = prompt_end.substr(0, TrimmedSize(prompt_end));
  if (format_.kind == Kind::kTags) {
    state_ = prompt_end.ends_with(format_.open) ? State::kThinking : State::kStart;
    is_closed_ = prompt_end.ends_with(format_.close);
  } else if (format_.kind == Kind::kChannels) {
    const size_t turn = prompt_end.rfind(kStart);
    const size_t at = turn == std::string_view::npos ? turn : prompt_end.find(kChannel, turn);
    if (at != std::string_view::npos) {
      Push(prompt_end.substr(at), [](std::string_view, Part) {});
    } else if (turn != std::string_view::npos) {
      state_ = State::kStart;
    }
  }
}

void ThinkingSplitter::Emit(size_t n_bytes, Part part, const Sink& sink) {
  if (n_bytes == 0) return;
  (part == Part::kThinking ? has_thinking_ : has_answer_) = true;
  sink(std::string_view(held_).substr(0, n_bytes), part);
  held_.erase(0, n_bytes);
}

bool ThinkingSplitter::Start() {
  const std::string_view text =
      std::string_view(held_).substr(std::min(held_.find_first_not_of(kBlank), held_.size()));
  if (text.starts_with(format_.open)) {
    held_.erase(0, held_.size() - text.size() + format_.open.size());
    state_ = State::kThinking;
    return true;
  }
  if (format_.open.starts_with(text)) return false;
  state_ = format_.answer_open.empty() ? State::kAnswer : State::kClosed;
  return true;
}

// Skips the start of the answer: white space and the mark that opens an answer.
void ThinkingSplitter::BeginAnswer() {
  const std::string_view open = format_.answer_open;
  const auto skip_blank = [this] {
    held_.erase(0, std::min(held_.find_first_not_of(kBlank), held_.size()));
  };
  skip_blank();
  if (held_.empty() || (held_.size() < open.size() && open.starts_with(held_))) return;
  if (!is_wrapped_ && !format_.answer_close.empty() && held_.starts_with(open)) {
    held_.erase(0, open.size());
    is_wrapped_ = true;
    skip_blank();
    if (held_.empty()) return;
  }
  state_ = State::kAnswer;
}

// Handles the answer, without its closing mark and the white space around that mark. Returns
// whether more of it may follow.
bool ThinkingSplitter::Answer(const Sink& sink) {
  if (!is_wrapped_) {
    Emit(held_.size(), Part::kAnswer, sink);
    return false;
  }
  const std::string_view close = format_.answer_close;
  const size_t at = held_.find(close);
  const size_t end = std::min(at, held_.size() - BegunMark(held_, close));
  Emit(TrimmedSize(std::string_view(held_).substr(0, end)), Part::kAnswer, sink);
  if (at == std::string::npos) return false;
  held_.erase(0, held_.find(close) + close.size());
  is_wrapped_ = false;
  state_ = State::kClosed;
  return true;
}

bool ThinkingSplitter::Think(const Sink& sink) {
  if (!has_thinking_) held_.erase(0, std::min(held_.find_first_not_of(kBlank), held_.size()));
  const size_t close = held_.find(format_.close);
  const size_t end =
      close != std::string::npos ? close : held_.size() - BegunMark(held_, format_.close);
  const size_t n = TrimmedSize(std::string_view(held_).substr(0, end));
  Emit(n, Part::kThinking, sink);
  if (close == std::string::npos) return false;
  held_.erase(0, close - n + format_.close.size());
  state_ = State::kClosed;
  return true;
}

// A header names its recipient before or after the channel. Messages to tools are not the answer.
void ThinkingSplitter::EndHeader(const Sink& sink) {
  const std::string_view header = header_, channel = header.substr(channel_);
  const size_t to = header.find(kRecipient);
  std::string call;
  if (const size_t at = header.find(kFunctions); format_.has_calls && at != header.npos) {
    const std::string_view name = header.substr(at + kFunctions.size());
    call.append(kCallHeader).append(name.substr(0, name.find_first_of(" <"))).append(kMessage);
  }
  const bool is_answer = channel.starts_with("final") || !call.empty() ||
                         (channel.starts_with("commentary") && to == header.npos);
  state_ = is_answer ? State::kAnswer : State::kThinking;
  is_closed_ = is_answer;
  // Several messages of a kind are paragraphs.
  if (is_answer ? has_answer_ : has_thinking_) {
    sink("\n\n", is_answer ? Part::kAnswer : Part::kThinking);
  }
  if (!call.empty()) sink(call, Part::kAnswer);
}

bool ThinkingSplitter::Channels(const Sink& sink) {
  if (state_ == State::kStart) {  // the turn's header may continue
    if (held_.size() < kRecipient.size() && kRecipient.starts_with(held_)) return false;
    state_ = held_.starts_with(kRecipient) ? State::kHeader : State::kAnswer;
  }
  size_t at = held_.size(), begun = 0;
  std::string_view mark;
  for (const std::string_view token : {kChannel, kMessage, kEnd, kStart}) {
    if (const size_t found = held_.find(token); found < at) {
      at = found;
      mark = token;
    }
    begun = std::max(begun, BegunMark(held_, token));
  }
  const size_t n = mark.empty() ? held_.size() - begun : at;
  if (state_ == State::kHeader) {
    header_ += std::string_view(held_).substr(0, n);
    held_.erase(0, n);
  } else {
    Emit(n, state_ == State::kThinking ? Part::kThinking : Part::kAnswer, sink);
  }
  if (mark.empty()) return false;
  held_.erase(0, mark.size());
  if (mark == kMessage) {
    EndHeader(sink);
  } else {
    if (mark != kChannel || state_ != State::kHeader) header_.clear();
    header_ += ' ';  // ends a name before the channel
    channel_ = header_.size();
    state_ = State::kHeader;
  }
  return true;
}

ThinkingSplitter::Place ThinkingSplitter::place() const {
  if (format_.kind == Kind::kNone) return Place::kAnswer;
  if (format_.kind == Kind::kChannels) {
    return state_ == State::kAnswer && is_closed_ ? Place::kAnswer : Place::kThinking;
  }
  if (state_ == State::kAnswer || state_ == State::kClosed) return Place::kAnswer;
  if (state_ == State::kThinking || TrimmedSize(held_) > 0) return Place::kThinking;
  return is_closed_ ? Place::kAnswer : Place::kEither;
}

void ThinkingSplitter::Push(std::string_view text, const Sink& sink) {
  held_ += text;
  if (format_.kind == Kind::kChannels) {
    while (Channels(sink)) {
    }
    return;
  }
  if (state_ == State::kStart && !Start()) return;
  if (state_ == State::kThinking && !Think(sink)) return;
  do {
    if (state_ == State::kClosed) BeginAnswer();
  } while (state_ == State::kAnswer && Answer(sink));
}

void ThinkingSplitter::Finish(const Sink& sink) {
  if (state_ == State::kThinking) {
    Emit(TrimmedSize(held_), Part::kThinking, sink);
  } else if (state_ != State::kHeader) {
    Emit(is_wrapped_ || state_ == State::kClosed ? TrimmedSize(held_) : held_.size(), Part::kAnswer,
         sink);
  }
  held_.clear();
}

ThinkingSwitch FindThinkingSwitch(const tokenizer::ChatTemplate& chat_template) {
  for (const char* const variable : {"enable_thinking", "thinking"}) {
    if (Rendered(chat_template, variable, Value(true)) !=
        Rendered(chat_template, variable, Value(false))) {
      return {variable, /*has_levels=*/false};
    }
  }
  constexpr const char* kEffort = "reasoning_effort";
  const bool reads = Rendered(chat_template, kEffort, Value("low")) !=
                     Rendered(chat_template, kEffort, Value("high"));
  return {reads ? kEffort : "", reads};
}

void SetThinking(const tokenizer::ChatTemplate& chat_template, std::string_view level,
                 std::vector<std::pair<std::string, Value>>& variables) {
  const ThinkingSwitch found = FindThinkingSwitch(chat_template);
  const bool is_level = level != "on" && level != "off";
  if (found.variable.empty()) {
    throw Error("this chat template has no switch for thinking: the model thinks or does not");
  }
  if (found.has_levels && level == "off") {
    throw Error("this chat template cannot turn thinking off; it knows low, medium and high");
  }
  if (!found.has_levels && is_level) {
    throw Error("this chat template turns thinking on or off, and knows no levels such as '", level,
                "'");
  }
  std::erase_if(variables, [&](const auto& variable) { return variable.first == found.variable; });
  if (!found.has_levels) {
    variables.emplace_back(found.variable, Value(level == "on"));
  } else if (is_level) {  // otherwise the template's own variable
    variables.emplace_back(found.variable, Value(level));
  }
}

}  // namespace engine
