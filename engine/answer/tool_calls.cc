// Tools as JSON, and the splitter that finds their calls in an answer.
#include "engine/answer/tool_calls.h"

#include <algorithm>
#include <utility>

#include "engine/answer/thinking.h"
#include "engine/error.h"
#include "gguf/error.h"

namespace engine {
namespace {

using gguf::JsonQuoted;
using gguf::JsonView;

// Whether a text, perhaps incomplete, begins with a bare call of one of these functions.
enum class Begins : uint8_t { kNo, kPerhaps, kYes };
Begins BeginsCall(std::string_view text, const std::vector<std::string>& names) {
  constexpr std::string_view kBefore[] = {"", "```json", "```"}, kOpen[] = {"{", "{{", "[{"},
                             kType[] = {"", "\"type\":\"function\","};
  constexpr size_t kMaxRest = 64;  // the length without the name
  size_t max_length = kMaxRest;
  const auto without_blanks = [](std::string_view from, size_t n) {
    std::string result;
    for (const char c : from) {
      if (result.size() == n) break;
      if (kBlank.find(c) == kBlank.npos) result += c;
    }
    return result;
  };
  for (const std::string& name : names)
    max_length = std::max(max_length, kMaxRest + JsonQuoted(name).size());
  const std::string compact = without_blanks(text, max_length);
  auto result = Begins::kNo;
  for (const std::string& name : names) {
    const std::string member =
        "\"name\":" + without_blanks(JsonQuoted(name), std::string_view::npos);
    for (const std::string_view before : kBefore) {
      if (!compact.starts_with(before.substr(0, compact.size()))) continue;
      for (const std::string_view open : kOpen) {
        for (const std::string_view type : kType) {
          std::string begun(before);
          begun.append(open).append(type).append(member);
          if (compact.starts_with(begun)) return Begins::kYes;
          if (begun.starts_with(compact)) result = Begins::kPerhaps;
        }
      }
    }
  }
  return result;
}

// Where a bare call begins or may begin: at the start of a line.
struct Bare {
  size_t at;
  Begins begins;
};
Bare FindBare(std::string_view text, const std::vector<std::string>& names, bool at_start) {
  for (size_t line = at_start ? 0 : text.find('\n'); line != std::string_view::npos;
       line = text.find('\n', line)) {
    line = text.find_first_not_of(kBlank, line);
    if (line == std::string_view::npos) break;
    const bool may_be = std::string_view("{[`").find(text[line]) != std::string_view::npos;
    const Begins begins = may_be ? BeginsCall(text.substr(line), names) : Begins::kNo;
    if (begins != Begins::kNo) return {line, begins};
  }
  return {text.size(), Begins::kNo};
}

// The end of the object or list that begins a text; std::string_view::npos if it has no end.
size_t EndOfValue(std::string_view text) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      i += QuotedSize(text.substr(i)) - 1;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// The end of the calls in the object or list that begins a text; std::string_view::npos if it
// contains no calls.
size_t ReadBare(std::string_view text, const std::vector<std::string>& names, Calls& calls) {
  const size_t n_before = calls.size();
  for (const size_t skipped :
       {size_t{0}, size_t{1}}) {  // doubled braces: the second may have no end
    const size_t n = EndOfValue(text.substr(skipped));
    if (n != std::string_view::npos && AddObject(text.substr(skipped, n), calls)) {
      const bool all_known = std::all_of(
          calls.begin() + static_cast<ptrdiff_t>(n_before), calls.end(), [&](const auto& call) {
            return std::find(names.begin(), names.end(), call.name) != names.end();
          });
      if (all_known) return skipped + n;
    }
    calls.resize(n_before);
    if (!text.starts_with("{{")) break;
  }
  return std::string_view::npos;
}

// Removes bare calls from a text.
std::string TakeBare(std::string_view text, const std::vector<std::string>& names, bool at_start,
                     Calls& calls) {
  std::string rest;
  for (;;) {
    const Bare bare = FindBare(text, names, at_start);
    rest += text.substr(0, bare.at);
    text.remove_prefix(bare.at);
    if (text.empty()) return rest;
    const size_t open = std::min(text.find_first_of("{["), text.size());
    const size_t n = ReadBare(text.substr(open), names, calls);
    at_start = n != std::string_view::npos;  // otherwise the line is text
    if (n == std::string_view::npos) {
      rest += text[0];
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(open + n);
    const size_t end = std::min(text.find_first_not_of(kBlank), text.size());
    if (open > 0 && text.substr(end).starts_with(kBlockEnd))
      text.remove_prefix(end + kBlockEnd.size());
  }
}

}  // namespace

JsonView ReadTools(const std::string& json) {
  JsonView tools;
  try {
    if (!json.empty()) tools = JsonView::Parse(json, tokenizer::kValueLimits);
  } catch (const gguf::Error& error) {
    throw Error("tools: ", error.what());
  }
  if (!json.empty() && !tools.IsArray()) throw Error("tools: expected a list");
  std::vector<std::string> names;
  size_t number = 0;
  for (const auto& [key, tool] : tools) {
    const std::string place = "tools: number " + std::to_string(++number) + ": ";
    const JsonView function = tool["function"], parameters = function["parameters"];
    if (!function["name"].IsString() || function["name"].String().empty())
      throw Error(place, R"(expected {"type": "function", "function": {"name": ..., ...}})");
    const bool has_none = !parameters.is_there() || parameters.kind() == JsonView::Kind::kNull;
    if (!has_none && !parameters.IsObject())
      throw Error(place, "parameters: expected a schema, found ", parameters.KindName());
    names.push_back(function["name"].String());
    if (std::count(names.begin(), names.end(), names.back()) > 1)
      throw Error(place, "expected each function once, found '", names.back(), "' again");
  }
  return names.empty() ? JsonView() : tools;
}

ToolChoice ReadToolChoice(std::string_view choice, const JsonView& tools) {
  using Kind = ToolChoice::Kind;
  if (choice == "auto") return {Kind::kAuto};
  if (choice == "none") return {Kind::kNone};
  const std::vector<std::string> names = ToolNames(tools);
  if (choice == "required" && !names.empty()) return {Kind::kRequired};
  if (std::find(names.begin(), names.end(), choice) == names.end()) {
    std::string list;
    for (const std::string& name : names) list += ", " + name;
    throw Error("tool choice '", choice, "': expected auto, none, required or the name of a tool",
                names.empty() ? "; there are no tools" : list);
  }
  return {Kind::kRequired, std::string(choice)};
}

CallSplitter::CallSplitter(const CallForm* form, JsonView tools)
    : form_(form), tools_(std::move(tools)), names_(ToolNames(tools_)) {}

std::string CallSplitter::Push(std::string_view text) {
  held_ += text;
  if (form_ == nullptr && names_.empty()) return std::exchange(held_, "");
  if (in_call_) {  // the name in an answer that is an object comes later
    if (!has_begun_) has_begun_ = BeginsWhole();
    return "";
  }
  const Bare bare = FindBare(held_, names_, at_start_);
  const bool is_whole = form_ != nullptr && form_->is_whole;
  size_t safe = bare.at;
  in_call_ = bare.begins == Begins::kYes;
  if (form_ != nullptr) {
    const std::string_view begins = form_->MayLackOpen() ? form_->parts[0] : "";
    const bool may_open = !is_whole || (at_start_ && Trimmed(held_).starts_with(form_->open));
    for (const std::string_view mark : {form_->around[0], begins, may_open ? form_->open : ""}) {
      if (mark.empty()) continue;
      const size_t at = held_.find(mark);
      in_call_ = in_call_ || at != std::string_view::npos;
      safe =
          std::min(safe, at != std::string_view::npos ? at : held_.size() - BegunMark(held_, mark));
    }
  }
  has_begun_ = in_call_ && (!is_whole || bare.begins == Begins::kYes);
  safe = std::string_view(held_).substr(0, safe).find_last_not_of(kBlank) + 1;
  std::string released = held_.substr(0, safe);
  held_.erase(0, safe);
  if (!released.empty()) at_start_ = false;
  return released;
}

bool CallSplitter::BeginsWhole() const {
  std::string_view text = Trimmed(held_);
  const std::string_view tag = form_ == nullptr ? "" : form_->around[0];
  if (text.starts_with(tag)) text.remove_prefix(tag.size());
  return BeginsCall(text, names_) == Begins::kYes;
}

bool CallSplitter::MayHaveMarked() const {
  if (form_ == nullptr) return false;
  return !form_->is_whole || at_start_ || Trimmed(held_).starts_with(form_->around[0]);
}

std::string CallSplitter::Finish(Calls& calls) {
  const bool may_have_marked = MayHaveMarked();
  std::string rest = std::exchange(held_, "");
  if (!in_call_) return rest;
  if (may_have_marked) rest = TakeMarked(*form_, rest, tools_, calls);
  rest = TakeBare(rest, names_, at_start_, calls);
  if (!calls.empty()) rest.resize(rest.find_last_not_of(kBlank) + 1);
  return rest;
}

}  // namespace engine
