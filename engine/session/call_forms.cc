// The forms of calls by family, and the parser of each.
#include "engine/session/call_forms.h"

#include <algorithm>
#include <optional>

#include "engine/session/thinking.h"
#include "engine/session/tool_calls.h"
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
  // The text before the mark; skips both.
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
bool AddParsed(const JsonView& json, Calls& calls) {
  if (json.IsArray()) {
    for (const auto& [index, item] : json) {
      if (!item.IsObject() || !AddParsed(item, calls)) return false;
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
  return AddParsed(ParsedObject(Trimmed(inside)), calls);
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
  if (const auto named = cursor.Until(kBlockOfCode)) {
    name = named;
    cursor.rest = cursor.rest.substr(0, cursor.rest.rfind(kBlockEnd));
  }
  return Add(Trimmed(*name), Parsed(cursor.rest), id, calls);
}

// A value other than a string, as a template prints it (JSON, or Python's True, False or None), as
// JSON.
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

// call:NAME{key:<|"|>text<|"|>,other:[1,true]}: JSON with other quotes around strings and none
// around keys. JSON's quotes are accepted, too.
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

// Qwen3-Coder often leaves out the mark that opens a call: <function=NAME>...</function>, perhaps
// with the mark that closes it. Takes such calls of declared functions out of a text.
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
    {"<seed:tool_call>",
     "<seed:tool_call>",
     "</seed:tool_call>",
     Body::kParameters,
     {"<function=", ">", "<parameter=", ">", "", "</parameter>", "</function>"}},  // Seed-OSS
    {"<function=",
     "<tool_call>",
     "</tool_call>",
     Body::kParameters,
     {"<function=", ">", "<parameter=", ">", "", "</parameter>", "</function>"}},  // Qwen3-Coder
    {"<tool_call>", "<tool_call>", "</tool_call>", Body::kObject},                 // Hermes, Qwen
    {.mark = "<TOOLCALL>",
     .open = "<TOOLCALL>",
     .close = "</TOOLCALL>",
     .body = Body::kObject,
     .is_list = true},  // Nemotron Nano 2
    {.mark = "<tool_calls>",
     .open = "<tool_calls>",
     .close = "</tool_calls>",
     .body = Body::kObject,
     .is_list = true},  // Jamba, Apriel
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

size_t QuotedSize(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

bool AddObject(std::string_view text, Calls& calls) { return AddParsed(ParsedObject(text), calls); }

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
  if (form.MayLackOpen()) rest = TakeUnopened(form, rest, tools, calls);
  if (calls.empty()) return rest;
  for (const std::string_view mark : form.around) {
    if (const size_t at = rest.find(mark); at != npos) rest.erase(at, mark.size());
  }
  return rest;
}

}  // namespace engine
