// The forms of calls by family, and their parser.
#include "engine/session/tool_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/error.h"
#include "engine/session/thinking.h"
#include "gguf/error.h"

namespace engine {
namespace {

using gguf::JsonQuoted;
using gguf::JsonView;
using Calls = CallForm::Calls;

constexpr size_t npos = std::string_view::npos;

// Absent if the text is not JSON.
JsonView Parsed(std::string_view text) {
  try {
    return JsonView::Parse(std::string(text), tokenizer::kValueLimits);
  } catch (const gguf::Error&) {
    return {};
  }
}

// An object as some models write it, in doubled braces: they learned it from templates that escape
// them so.
JsonView ParsedObject(std::string_view text) {
  JsonView json = Parsed(text);
  if (json.is_there() || !text.starts_with("{{")) return json;
  text.remove_prefix(1);
  json = Parsed(text);
  return json.is_there() || !text.ends_with("}}") ? json : Parsed(text.substr(0, text.size() - 1));
}

// Takes a text apart from its beginning.
struct Cursor {
  std::string_view rest;

  // Past white space and the mark, if that is there.
  bool Skip(std::string_view mark) {
    const size_t n = std::min(rest.find_first_not_of(kBlank), rest.size());
    if (!rest.substr(n).starts_with(mark)) return false;
    rest.remove_prefix(n + mark.size());
    return true;
  }
  // What is before the mark, which is passed.
  std::optional<std::string_view> Until(std::string_view mark) {
    const size_t n = rest.find(mark);
    if (n == npos) return std::nullopt;
    const std::string_view before = rest.substr(0, n);
    rest.remove_prefix(n + mark.size());
    return before;
  }
  bool AtEnd() const { return Trimmed(rest).empty(); }
};

bool Add(std::string_view name, const JsonView& arguments, std::string_view id, Calls& calls) {
  if (name.empty() || !arguments.IsObject()) return false;
  calls.push_back({std::string(id), std::string(name), arguments.Compact()});
  return true;
}

// {"name": ..., "arguments" or "parameters": {...}}, or a list of them.
bool AddObject(const JsonView& json, Calls& calls) {
  if (json.IsArray()) {
    for (const auto& [index, item] : json) {
      if (!item.IsObject() || !AddObject(item, calls)) return false;
    }
    return json.size() > 0;
  }
  const JsonView name = json["name"], id = json["id"], arguments = json["arguments"];
  return name.IsString() &&
         Add(name.String(), arguments.is_there() ? arguments : json["parameters"],
             id.IsString() ? id.String() : "", calls);
}

bool ReadObject(const CallForm& form, std::string_view inside, Calls& calls) {
  inside = Trimmed(inside);
  if (inside.starts_with(form.parts[0])) inside.remove_prefix(form.parts[0].size());
  return AddObject(ParsedObject(Trimmed(inside)), calls);
}

// NAME, parts[0], {...}: with an id before that (Mistral), or "function" in place of the name,
// which follows with the arguments as a block of code (DeepSeek V3, R1). Mistral's older list, too.
bool ReadNamed(const CallForm& form, std::string_view inside, Calls& calls) {
  Cursor cursor = {inside};
  if (Trimmed(inside).starts_with('[')) return AddObject(Parsed(Trimmed(inside)), calls);
  auto name = cursor.Until(form.parts[0]);
  if (!name) return false;
  std::string_view id;
  const std::string_view id_mark = form.parts[1];
  if (const size_t at = id_mark.empty() ? npos : name->find(id_mark); at != npos) {
    id = Trimmed(name->substr(at + id_mark.size()));
    name = name->substr(0, at);
  }
  if (const auto named = cursor.Until(kBlockOfCode)) {
    name = named;
    cursor.rest = cursor.rest.substr(0, cursor.rest.rfind(kBlockEnd));
  }
  return Add(Trimmed(*name), Parsed(cursor.rest), id, calls);
}

// What a template prints of a value that is no text: JSON, but for Python's words.
std::optional<std::string> Printed(std::string_view text) {
  if (text == "True") return "true";
  if (text == "False") return "false";
  if (text == "None") return "null";
  const JsonView json = Parsed(text);
  if (!json.is_there()) return std::nullopt;
  return json.Compact();
}

// The schema of a function's argument; absent if it has none.
JsonView SchemaOf(const JsonView& tools, std::string_view name, std::string_view key) {
  for (const auto& [index, tool] : tools) {
    const JsonView function = tool["function"];
    if (function["name"].IsString() && function["name"].String() == name)
      return function["parameters"]["properties"][key];
  }
  return {};
}

bool IsText(const JsonView& schema) {
  return schema["type"].IsString() && schema["type"].String() == "string";
}

// What a text without quotes stands for, as JSON.
std::string ArgumentJson(std::string_view text, const JsonView& schema) {
  if (!IsText(schema)) return Printed(text).value_or(JsonQuoted(text));
  const JsonView quoted = IsPlainText(schema) ? JsonView() : Parsed(Trimmed(text));
  return quoted.IsString() ? quoted.Compact() : JsonQuoted(text);
}

// parts: before and after the name, before and after a key, before and after a value, the end.
bool ReadParameters(const CallForm& form, std::string_view inside, const JsonView& tools,
                    Calls& calls) {
  const auto& [name_open, name_close, key_open, key_close, open, close, end] = form.parts;
  if (Trimmed(inside).starts_with('{')) return ReadObject({}, inside, calls);
  Cursor cursor = {inside};
  if (!cursor.Skip(name_open)) return false;
  std::optional<std::string_view> name = cursor.Until(name_close);
  if (name_close.empty()) {
    name = cursor.rest.substr(0, cursor.rest.find(key_open));
    cursor.rest.remove_prefix(name->size());
  }
  if (!name) return false;
  std::string arguments = "{";
  while (cursor.Skip(key_open)) {
    const auto key = cursor.Until(key_close);
    if (!key || !cursor.Skip(open)) return false;
    auto value = cursor.Until(close);
    if (!value) return false;
    if (open.empty()) {  // a value has lines of its own
      if (value->starts_with('\n')) value->remove_prefix(1);
      if (value->ends_with('\n')) value->remove_suffix(1);
    }
    arguments += (arguments.size() > 1 ? "," : "") + JsonQuoted(*key) + ":" +
                 ArgumentJson(*value, SchemaOf(tools, Trimmed(*name), *key));
  }
  return cursor.Skip(end) && cursor.AtEnd() &&
         Add(Trimmed(*name), Parsed(arguments + "}"), "", calls);
}

// The size of a string of JSON that a text begins with.
size_t QuotedSize(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

// call:NAME{key:<|"|>text<|"|>,other:[1,true]}: JSON, but for its quotes and without any for keys.
// Quotes of JSON are read, too.
bool ReadGemma(const CallForm& form, std::string_view inside, Calls& calls) {
  const std::string_view quote = form.parts[1];
  Cursor cursor = {inside};
  if (!cursor.Skip(form.parts[0])) return false;
  const std::string_view name = cursor.rest.substr(0, cursor.rest.find('{'));
  cursor.rest.remove_prefix(name.size());
  std::string json;
  while (!cursor.rest.empty()) {
    if (cursor.Skip(quote)) {
      const auto text = cursor.Until(quote);
      if (!text) return false;
      json += JsonQuoted(*text);
      continue;
    }
    const size_t blanks = std::min(cursor.rest.find_first_not_of(kBlank), cursor.rest.size());
    if (cursor.rest.substr(blanks).starts_with('"')) {
      const size_t n_quoted = QuotedSize(cursor.rest.substr(blanks));
      json += cursor.rest.substr(blanks, n_quoted);
      cursor.rest.remove_prefix(blanks + n_quoted);
      continue;
    }
    const size_t n = std::min(cursor.rest.find_first_of("{}[],:"), cursor.rest.size());
    const std::string_view word = Trimmed(cursor.rest.substr(0, n));
    const std::string_view mark = cursor.rest.substr(n, 1);
    cursor.rest.remove_prefix(n + mark.size());
    if (!word.empty()) json += mark == ":" ? JsonQuoted(word) : Printed(word).value_or("?");
    json += mark;
  }
  return Add(Trimmed(name), Parsed(json), "", calls);
}

// Adds the calls in a text between open and close; false if it has none or anything else.
bool ReadBody(const CallForm& form, std::string_view inside, const JsonView& tools, Calls& calls) {
  switch (form.body) {
    case CallForm::Body::kObject:
      return ReadObject(form, inside, calls);
    case CallForm::Body::kMistral:
    case CallForm::Body::kDeepSeek:
    case CallForm::Body::kChannel:
      return ReadNamed(form, inside, calls);
    case CallForm::Body::kParameters:
      return ReadParameters(form, inside, tools, calls);
    case CallForm::Body::kGemma:
      return ReadGemma(form, inside, calls);
  }
  return false;
}

// Whether a text begins a bare call of one of these functions, by what it has of it.
enum class Begins : uint8_t { kNo, kPerhaps, kYes };
Begins BeginsCall(std::string_view text, const std::vector<std::string>& names) {
  constexpr std::string_view kBefore[] = {"", "```json", "```"}, kOpen[] = {"{", "{{", "[{"},
                             kType[] = {"", "\"type\":\"function\","};
  constexpr size_t kMost = 64;  // without the name
  size_t most = kMost;
  const auto without_blanks = [](std::string_view from, size_t n) {
    std::string result;
    for (const char c : from) {
      if (result.size() == n) break;
      if (kBlank.find(c) == kBlank.npos) result += c;
    }
    return result;
  };
  for (const std::string& name : names) most = std::max(most, kMost + JsonQuoted(name).size());
  const std::string compact = without_blanks(text, most);
  auto result = Begins::kNo;
  for (const std::string& name : names) {
    const std::string member = "\"name\":" + without_blanks(JsonQuoted(name), npos);
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

// Where a bare call begins, or could: at the beginning of a line.
struct Bare {
  size_t at;
  Begins begins;
};
Bare FindBare(std::string_view text, const std::vector<std::string>& names, bool at_start) {
  for (size_t line = at_start ? 0 : text.find('\n'); line != npos; line = text.find('\n', line)) {
    line = text.find_first_not_of(kBlank, line);
    if (line == npos) break;
    const bool may_be = std::string_view("{[`").find(text[line]) != npos;
    const Begins begins = may_be ? BeginsCall(text.substr(line), names) : Begins::kNo;
    if (begins != Begins::kNo) return {line, begins};
  }
  return {text.size(), Begins::kNo};
}

// The end of the object or list that a text begins with; npos if it has none.
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
  return npos;
}

// The end of the calls in the object or list that a text begins with; npos if they are none.
size_t ReadBare(std::string_view text, const std::vector<std::string>& names, Calls& calls) {
  const size_t n_before = calls.size();
  for (const size_t skipped :
       {size_t{0}, size_t{1}}) {  // of doubled braces, the second may have no end
    const size_t n = EndOfValue(text.substr(skipped));
    if (n != npos && AddObject(ParsedObject(text.substr(skipped, n)), calls)) {
      const bool all_known = std::all_of(
          calls.begin() + static_cast<ptrdiff_t>(n_before), calls.end(), [&](const auto& call) {
            return std::find(names.begin(), names.end(), call.name) != names.end();
          });
      if (all_known) return skipped + n;
    }
    calls.resize(n_before);
    if (!text.starts_with("{{")) break;
  }
  return npos;
}

// Takes bare calls out of a text.
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
    at_start = n != npos;  // else the line is text
    if (n == npos) {
      rest += text[0];
      text.remove_prefix(1);
      continue;
    }
    Cursor cursor = {text.substr(open + n)};
    if (open > 0) cursor.Skip(kBlockEnd);
    text = cursor.rest;
  }
}

// Takes the calls between marks out of a text; the rest is as it was.
std::string TakeMarked(const CallForm& form, std::string_view text, const JsonView& tools,
                       Calls& calls) {
  if (form.is_whole) return ReadBody(form, text, tools, calls) ? "" : std::string(text);
  const std::string_view end = form.close.empty() ? form.open : form.close;
  std::string rest;
  Cursor cursor = {text};
  while (const auto before = cursor.Until(form.open)) {
    rest += *before;
    const size_t n = std::min(cursor.rest.find(end), cursor.rest.size());
    const size_t n_all = std::min(n + form.close.size(), cursor.rest.size());
    const size_t n_calls = calls.size();
    if (!ReadBody(form, cursor.rest.substr(0, n), tools, calls)) {
      calls.resize(n_calls);
      rest.append(form.open).append(cursor.rest.substr(0, n_all));
    }
    cursor.rest.remove_prefix(n_all);
  }
  rest += cursor.rest;
  if (calls.empty()) return rest;
  for (const std::string_view mark : form.around) {
    if (const size_t at = rest.find(mark); at != npos) rest.erase(at, mark.size());
  }
  return rest;
}

using Body = CallForm::Body;

// The first whose mark is in the template applies.
constexpr auto kForms = std::to_array<CallForm>({
    {"<|tool_call>", "<|tool_call>", "<tool_call|>", Body::kGemma, {"call:", "<|\"|>"}},  // Gemma 4
    {"<｜tool▁call▁begin｜>",
     "<｜tool▁call▁begin｜>",
     "<｜tool▁call▁end｜>",
     Body::kDeepSeek,
     {"<｜tool▁sep｜>"},
     {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}},                           // DeepSeek
    {"<|call|>", kCallHeader, "", Body::kChannel, {"<|message|>"}},                 // gpt-oss
    {"[TOOL_CALLS]", "[TOOL_CALLS]", "", Body::kMistral, {"[ARGS]", "[CALL_ID]"}},  // Mistral
    {"<arg_key>",
     "<tool_call>",
     "</tool_call>",
     Body::kParameters,
     {"", "", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", ""}},  // GLM
    {"<function=",
     "<tool_call>",
     "</tool_call>",
     Body::kParameters,
     {"<function=", ">", "<parameter=", ">", "", "</parameter>", "</function>"}},  // Qwen3-Coder
    {"<tool_call>", "<tool_call>", "</tool_call>", Body::kObject},                 // Hermes, Qwen
    {"\"parameters\": dictionary",
     "{",
     "",
     Body::kObject,
     {"<|python_tag|>"},
     {"<|python_tag|>"},
     true},  // Llama 3
});

}  // namespace

const CallForm* FindCallForm(std::string_view template_source) {
  for (const CallForm& form : kForms) {
    if (template_source.find(form.mark) != npos) return &form;
  }
  return nullptr;
}

std::vector<std::string_view> CallForm::Marks() const {
  std::vector<std::string_view> marks = {open, close};
  marks.insert(marks.end(), parts.begin(), parts.end());
  marks.insert(marks.end(), around.begin(), around.end());
  return marks;
}

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
      throw Error(place, "a function '", names.back(), "' is there already");
  }
  return names.empty() ? JsonView() : tools;
}

std::vector<std::string> ToolNames(const JsonView& tools) {
  std::vector<std::string> names;
  for (const auto& [key, tool] : tools) {
    if (tool["function"]["name"].IsString()) names.push_back(tool["function"]["name"].String());
  }
  return names;
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

bool IsPlainText(const JsonView& schema) {
  constexpr std::string_view kKnown[] = {"type",    "description", "title", "default",
                                         "example", "examples",    "enum"};
  for (const auto& [key, value] : schema) {
    if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown)) return false;
  }
  for (const auto& [key, value] : schema["enum"]) {
    if (!value.IsString()) return false;
  }
  return IsText(schema);
}

CallSplitter::CallSplitter(const CallForm* form, JsonView tools)
    : form_(form), tools_(std::move(tools)), names_(ToolNames(tools_)) {}

std::string CallSplitter::Push(std::string_view text) {
  held_ += text;
  if (form_ == nullptr && names_.empty()) return std::exchange(held_, "");
  if (in_call_) {  // an answer that is an object gets its name later
    if (!has_begun_) has_begun_ = BeginsWhole();
    return "";
  }
  const Bare bare = FindBare(held_, names_, at_start_);
  size_t safe = bare.at;
  in_call_ = bare.begins == Begins::kYes;
  if (form_ != nullptr) {
    for (const std::string_view mark : {form_->open, form_->around[0]}) {
      if (mark.empty()) continue;
      const size_t at = held_.find(mark);
      in_call_ = in_call_ || at != npos;
      safe = std::min(safe, at != npos ? at : held_.size() - BegunMark(held_, mark));
    }
  }
  const bool is_whole = form_ != nullptr && form_->is_whole;
  if (is_whole && std::string_view(held_).substr(0, safe).find_first_not_of(kBlank) != npos) {
    form_ = nullptr;
    in_call_ = bare.begins == Begins::kYes;
    safe = bare.at;
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

std::string CallSplitter::Finish(Calls& calls) {
  std::string rest = std::exchange(held_, "");
  if (!in_call_) return rest;
  if (form_ != nullptr) rest = TakeMarked(*form_, rest, tools_, calls);
  rest = TakeBare(rest, names_, at_start_, calls);
  if (!calls.empty()) rest.resize(rest.find_last_not_of(kBlank) + 1);
  return rest;
}

}  // namespace engine
