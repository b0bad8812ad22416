// A reader for each format of calls.
#include "engine/answer/read_calls.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "engine/answer/thinking.h"
#include "gguf/error.h"
#include "gguf/utf8.h"

namespace engine {
namespace {

using gguf::JsonQuoted;
using gguf::JsonView;
using Body = CallForm::Body;

constexpr size_t npos = std::string_view::npos;

// The number of closing marks tried for one call: an argument may contain the mark.
constexpr int kMaxEnds = 8;

// Absent if the text is not JSON.
JsonView Parsed(std::string_view text) {
  try {
    return JsonView::Parse(std::string(text), tokenizer::kValueLimits);
  } catch (const gguf::Error&) {
    return {};
  }
}

// An object in doubled braces, as some models write it: they learned it from templates that escape
// braces that way.
JsonView ParsedObject(std::string_view text) {
  JsonView json = Parsed(text);
  if (json.is_there() || !text.starts_with("{{")) return json;
  text.remove_prefix(1);
  json = Parsed(text);
  return json.is_there() || !text.ends_with("}}") ? json : Parsed(text.substr(0, text.size() - 1));
}

// Reads a text from its beginning.
struct Cursor {
  std::string_view rest;

  void SkipBlank() { rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size())); }
  // Skips white space and then the mark, if it follows.
  bool Skip(std::string_view mark) {
    const size_t n = std::min(rest.find_first_not_of(kBlank), rest.size());
    if (!rest.substr(n).starts_with(mark)) return false;
    rest.remove_prefix(n + mark.size());
    return true;
  }
  // Returns the text before the mark; skips both.
  std::optional<std::string_view> Until(std::string_view mark) {
    const size_t n = rest.find(mark);
    if (n == npos) return std::nullopt;
    const std::string_view before = rest.substr(0, n);
    rest.remove_prefix(n + mark.size());
    return before;
  }
  std::string_view Take(size_t n) {
    const std::string_view taken = rest.substr(0, n);
    rest.remove_prefix(taken.size());
    return taken;
  }
  bool AtEnd() const { return Trimmed(rest).empty(); }
};

bool Add(std::string_view name, const JsonView& arguments, std::string_view id, Calls& calls) {
  if (name.empty() || !arguments.IsObject()) return false;
  calls.push_back({std::string(id), std::string(name), arguments.Compact()});
  return true;
}

// The first of two members that exists.
JsonView EitherOf(const JsonView& json, std::string_view first, std::string_view second) {
  JsonView value = json[first];
  return value.is_there() ? value : json[second];
}

// {"name": ..., "arguments" or "parameters": {...}}, or a list of them. Cohere's names begin with
// tool_.
bool AddParsed(const JsonView& json, Calls& calls) {
  if (json.IsArray()) {
    for (const auto& [index, item] : json) {
      if (!item.IsObject() || !AddParsed(item, calls)) return false;
    }
    return json.size() > 0;
  }
  const JsonView name = EitherOf(json, "name", "tool_name");
  const JsonView id = EitherOf(json, "id", "tool_call_id");
  return name.IsString() && Add(name.String(), EitherOf(json, "arguments", "parameters"),
                                id.IsString() ? id.String() : "", calls);
}

bool ReadObject(std::string_view before, std::string_view inside, Calls& calls) {
  inside = Trimmed(inside);
  if (inside.starts_with(before)) inside.remove_prefix(before.size());
  return AddParsed(ParsedObject(Trimmed(inside)), calls);
}

// {NAME: {...}}, or a list of them.
bool ReadNamedObjects(const JsonView& json, Calls& calls) {
  if (json.IsArray()) {
    for (const auto& [index, item] : json) {
      if (!item.IsObject() || !ReadNamedObjects(item, calls)) return false;
    }
    return json.size() > 0;
  }
  if (!json.IsObject()) return false;
  const std::vector<JsonView::Member> members = json.Members();
  return members.size() == 1 && Add(members[0].key, members[0].value, "", calls);
}

// NAME, parts[0], {...}: with an id before parts[0] (Mistral), or with "function" in place of the
// name, and after parts[0] the name and the arguments in a code block (DeepSeek V3, R1). Also
// parses Mistral's older list.
bool ReadNamed(const CallForm& form, std::string_view inside, Calls& calls) {
  Cursor cursor = {inside};
  if (Trimmed(inside).starts_with('[')) return AddParsed(Parsed(Trimmed(inside)), calls);
  auto name = cursor.Until(form.parts[0]);
  if (!name) return false;
  std::string_view id;
  const std::string_view id_mark = form.parts[1];
  if (const size_t at = id_mark.empty() ? npos : name->find(id_mark); at != npos) {
    id = Trimmed(name->substr(at + id_mark.size()));
    name = name->substr(0, at);
  }
  if (form.body == Body::kKimi) {
    id = Trimmed(*name);
    name = id.substr(0, id.rfind(':'));
    if (name->starts_with(kKimiPrefix)) name->remove_prefix(kKimiPrefix.size());
  }
  if (const auto named = cursor.Until(kBlockOfCode)) {
    name = named;
    cursor.rest = cursor.rest.substr(0, cursor.rest.rfind(kBlockEnd));
  }
  return Add(Trimmed(*name), Parsed(cursor.rest), id, calls);
}

// Converts a value other than a string from a template's form (JSON, or Python's True, False or
// None) to JSON.
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

bool HasType(const JsonView& schema, std::string_view type) {
  return schema["type"].IsString() && schema["type"].String() == type;
}

// Converts a value without quotes to JSON.
std::string ArgumentJson(std::string_view text, const JsonView& schema) {
  if (const auto plain = FindPlainText(schema)) {
    const bool is_null = plain->may_be_null && (text == "null" || text == "None");
    return is_null ? "null" : JsonQuoted(text);
  }
  if (!HasType(schema, "string")) return Printed(text).value_or(JsonQuoted(text));
  const JsonView quoted = Parsed(Trimmed(text));
  return quoted.IsString() ? quoted.Compact() : JsonQuoted(text);
}

// parts: before and after the name, before and after a key, before and after a value, the end.
bool ReadParameters(const CallForm& form, std::string_view inside, const JsonView& tools,
                    Calls& calls) {
  const auto& [name_open, name_close, key_open, key_close, open, close, end] = form.parts;
  if (Trimmed(inside).starts_with('{')) return ReadObject("", inside, calls);
  Cursor cursor = {inside};
  if (!cursor.Skip(name_open)) return false;
  std::optional<std::string_view> name = cursor.Until(name_close);
  if (name_close.empty()) name = cursor.Take(cursor.rest.find(key_open));
  if (!name) return false;
  std::string arguments = "{";
  while (cursor.Skip(key_open)) {
    const auto key = cursor.Until(key_close);
    if (!key || !cursor.Skip(open)) return false;
    auto value = cursor.Until(close);
    if (!value) return false;
    if (open.empty()) {  // a value is on its own lines
      if (value->starts_with('\n')) value->remove_prefix(1);
      if (value->ends_with('\n')) value->remove_suffix(1);
    }
    arguments += (arguments.size() > 1 ? "," : "") + JsonQuoted(*key) + ":" +
                 ArgumentJson(*value, SchemaOf(tools, Trimmed(*name), *key));
  }
  return cursor.Skip(end) && cursor.AtEnd() &&
         Add(Trimmed(*name), Parsed(arguments + "}"), "", calls);
}

// The text of a Python string, without its quotes. As in Python, unknown escapes are kept.
std::string PythonText(std::string_view inside) {
  constexpr std::string_view kEscapes = "\\\\''\"\"n\nt\tr\rb\bf\f";
  std::string text;
  for (size_t i = 0; i < inside.size(); ++i) {
    const char next = inside[i] == '\\' && i + 1 < inside.size() ? inside[i + 1] : '\0';
    const size_t n_digits = next == 'x' ? 2 : next == 'u' ? 4 : 0;
    size_t escape = 0;
    while (next != '\0' && escape < kEscapes.size() && kEscapes[escape] != next) escape += 2;
    uint32_t code = 0;
    const char* const digits = inside.data() + i + 2;
    if (n_digits > 0 && i + 2 + n_digits <= inside.size() &&
        std::from_chars(digits, digits + n_digits, code, 16).ptr == digits + n_digits) {
      text += gguf::ToUtf8(code);
      i += 1 + n_digits;
    } else if (next != '\0' && escape < kEscapes.size()) {
      text += kEscapes[escape + 1];
      ++i;
    } else {
      text += inside[i];
    }
  }
  return text;
}

// Converts an object in a notation close to JSON's to JSON, and moves the cursor past it. Keys have
// no quotes. Strings have JSON's quotes, Gemma's (`quote`), or Python's if `quote` is "". In
// Python's notation a call's arguments, (key=value), are an object. "?" replaces an invalid value.
std::string TakeObject(Cursor& cursor, std::string_view quote) {
  const bool is_python = quote.empty();
  const std::string_view marks = is_python ? "{}[](),:=" : "{}[],:";
  std::string json, open;  // open brackets
  do {
    cursor.SkipBlank();
    const char c = cursor.rest.empty() ? '\0' : cursor.rest[0];
    if (!is_python && cursor.Skip(quote)) {
      const auto text = cursor.Until(quote);
      json += text ? JsonQuoted(*text) : "?";
    } else if (c == '"' || (is_python && c == '\'')) {
      const std::string_view quoted = cursor.Take(QuotedSize(cursor.rest));
      const bool is_whole = quoted.size() > 1 && quoted.back() == c;
      const bool is_json = !is_python || Parsed(quoted).IsString();
      json += is_json    ? std::string(quoted)
              : is_whole ? JsonQuoted(PythonText(quoted.substr(1, quoted.size() - 2)))
                         : "?";
    } else {
      const std::string_view word =
          Trimmed(cursor.Take(std::min(cursor.rest.find_first_of(marks), cursor.rest.size())));
      char mark = cursor.rest.empty() ? '?' : cursor.Take(1)[0];
      if (mark == '=') mark = open.size() == 1 ? ':' : '?';
      if (!word.empty()) json += mark == ':' ? JsonQuoted(word) : Printed(word).value_or("?");
      if (mark == '(') mark = open.empty() ? '{' : '[';
      if (mark == '{' || mark == '[') open += mark;
      if (mark == '}' || mark == ']' || mark == ')') {
        if (mark == ')') mark = open.size() == 1 ? '}' : ']';
        if (is_python && json.ends_with(',')) json.pop_back();
        if (!open.empty()) open.pop_back();
      }
      json += mark;
    }
  } while (!open.empty() && !cursor.rest.empty());
  return json;
}

// call:NAME{key:<|"|>text<|"|>,other:[1,true]}
bool ReadGemma(const CallForm& form, std::string_view inside, Calls& calls) {
  Cursor cursor = {inside};
  if (!cursor.Skip(form.parts[0])) return false;
  const std::string_view name = cursor.Take(cursor.rest.find('{'));
  const std::string arguments = TakeObject(cursor, form.parts[1]);
  return cursor.AtEnd() && Add(Trimmed(name), Parsed(arguments), "", calls);
}

// NAME(key="text", other=[1, True]) and further calls, in brackets or not. Also reads objects of
// JSON, which some templates show.
bool ReadPython(std::string_view inside, Calls& calls) {
  Cursor cursor = {Trimmed(inside)};
  if (const JsonView json = Parsed(cursor.rest); json.is_there()) return AddParsed(json, calls);
  const bool is_list = cursor.Skip("[");
  do {
    cursor.SkipBlank();
    const std::string_view name = cursor.Take(cursor.rest.find('('));
    if (name.find_first_of("\"'[]{},") != npos ||
        !Add(Trimmed(name), Parsed(TakeObject(cursor, "")), "", calls))
      return false;
    cursor.Skip(",");
  } while (!cursor.AtEnd() && !(is_list && cursor.Skip("]")));
  return cursor.AtEnd();
}

// Adds the calls in a text between open and close. Returns false if it has no call or other text.
bool ReadBody(const CallForm& form, std::string_view inside, const JsonView& tools, Calls& calls) {
  switch (form.body) {
    case Body::kObject:
      return ReadObject(form.parts[0], inside, calls);
    case Body::kNamedObject:
      return ReadNamedObjects(Parsed(inside), calls);
    case Body::kNamed:
    case Body::kMistral:
    case Body::kDeepSeek:
    case Body::kKimi:
    case Body::kChannel:
      return ReadNamed(form, inside, calls);
    case Body::kParameters:
      return ReadParameters(form, inside, tools, calls);
    case Body::kGemma:
      return ReadGemma(form, inside, calls);
    case Body::kPython:
      return ReadPython(inside, calls);
  }
  return false;
}

// Adds the calls at the beginning of a text, which follows an open mark. Returns the number of
// bytes before the closing mark, which may be missing at the end of the text. Returns npos, and
// adds nothing, if the text does not begin with calls.
size_t ReadMarked(const CallForm& form, std::string_view text, const JsonView& tools,
                  Calls& calls) {
  const std::string_view end = form.close.empty() ? form.open : form.close;
  const size_t n_before = calls.size(), next = std::min(text.find(form.open), text.size());
  size_t n = std::min(text.find(end), text.size());
  if (n == text.size() && next < n) return npos;
  for (int i = 0; i < kMaxEnds; ++i) {
    if (ReadBody(form, text.substr(0, n), tools, calls)) return n;
    calls.resize(n_before);
    if (n == text.size()) break;
    n = std::min(text.find(end, n + 1), text.size());
    if (n > next) break;  // another call
  }
  return npos;
}

// Qwen3-Coder often omits the mark that opens a call: <function=NAME>...</function>, perhaps with
// the closing mark. Removes such calls of declared functions from a text.
std::string TakeUnopened(const CallForm& form, std::string_view text, const JsonView& tools,
                         Calls& calls) {
  const std::string_view begin = form.parts[0], end = form.parts[6];
  const std::vector<std::string> names = ToolNames(tools);
  std::string rest;
  for (size_t at; (at = text.find(begin)) != npos;) {
    rest += text.substr(0, at);
    text.remove_prefix(at);
    const size_t n = text.find(end);
    if (n == npos) break;
    const std::string_view inside = text.substr(0, n + end.size());
    text.remove_prefix(inside.size());
    const size_t n_before = calls.size();
    if (ReadBody(form, inside, tools, calls) && std::ranges::count(names, calls.back().name) > 0) {
      const size_t n_blank = std::min(text.find_first_not_of(kBlank), text.size());
      if (text.substr(n_blank).starts_with(form.close))
        text.remove_prefix(n_blank + form.close.size());
    } else {
      calls.resize(n_before);
      rest += inside;
    }
  }
  return rest.append(text);
}

}  // namespace

std::optional<PlainText> FindPlainText(const JsonView& schema) {
  constexpr std::string_view kNotes[] = {"description", "title", "default", "example", "examples"};
  const auto is_null = [](const JsonView& value) { return HasType(value, "null"); };
  JsonView strings = schema;
  bool may_be_null = false;
  for (const auto& [key, value] : schema) {
    if (std::ranges::find(kNotes, key) != std::end(kNotes)) continue;
    if (key == "anyOf" || key == "oneOf") {  // a string or null, as Pydantic writes it
      std::vector<JsonView> ways;
      for (const auto& [index, way] : value) ways.push_back(way);
      if (ways.size() != 2 || may_be_null || schema["type"].is_there() || schema["enum"].is_there())
        return std::nullopt;
      if (is_null(ways[0])) std::swap(ways[0], ways[1]);
      if (!is_null(ways[1]) || !FindPlainText(ways[0])) return std::nullopt;
      strings = ways[0];
      may_be_null = true;
    } else if (key != "type" && key != "enum") {
      return std::nullopt;
    }
  }
  const JsonView type = strings["type"];
  if (type.IsArray() && type.size() == 2) {
    bool has_string = false;
    for (const auto& [index, one] : type) {
      has_string |= one.IsString() && one.String() == "string";
      may_be_null |= one.IsString() && one.String() == "null";
    }
    if (!has_string || !may_be_null) return std::nullopt;
    may_be_null = !strings["enum"].is_there();  // an enum lists only strings
  } else if (!HasType(strings, "string")) {
    return std::nullopt;
  }
  for (const auto& [index, value] : strings["enum"]) {
    if (!value.IsString()) return std::nullopt;
  }
  return PlainText{strings, may_be_null};
}

size_t QuotedSize(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == text[0]) return i + 1;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

bool AddObject(std::string_view text, Calls& calls) { return AddParsed(ParsedObject(text), calls); }

std::vector<std::string> ToolNames(const JsonView& tools) {
  std::vector<std::string> names;
  for (const auto& [key, tool] : tools) {
    if (tool["function"]["name"].IsString()) names.push_back(tool["function"]["name"].String());
  }
  return names;
}

std::string TakeMarked(const CallForm& form, std::string_view text, const JsonView& tools,
                       Calls& calls) {
  if (form.is_whole) return ReadBody(form, text, tools, calls) ? "" : std::string(text);
  std::string rest;
  Cursor cursor = {text};
  while (const auto before = cursor.Until(form.open)) {
    rest += *before;
    const size_t n = ReadMarked(form, cursor.rest, tools, calls);
    if (n != npos) {
      cursor.Take(n);
      cursor.Take(form.close.size());
    } else {
      rest += form.open;
    }
  }
  rest += cursor.rest;
  if (form.MayLackOpen()) rest = TakeUnopened(form, rest, tools, calls);
  if (calls.empty()) return rest;
  for (const std::string_view mark : form.around) {
    for (size_t at; !mark.empty() && (at = rest.find(mark)) != npos;) rest.erase(at, mark.size());
  }
  return rest;
}

}  // namespace engine
