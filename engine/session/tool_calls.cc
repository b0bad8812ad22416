#include "engine/session/tool_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

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

bool ReadObject(const CallForm& form, std::string_view inside, const JsonView&, Calls& calls) {
  inside = Trimmed(inside);
  if (inside.starts_with(form.parts[0])) inside.remove_prefix(form.parts[0].size());
  return AddObject(Parsed(inside), calls);
}

// NAME, parts[0], {...}: with an id before that (Mistral), or "function" in place of the name,
// which follows with the arguments as a block of code (DeepSeek V3, R1). Mistral's older list, too.
bool ReadNamed(const CallForm& form, std::string_view inside, const JsonView& tools, Calls& calls) {
  constexpr std::string_view kBlock = "\n```json\n", kBlockEnd = "```";
  Cursor cursor = {inside};
  if (Trimmed(inside).starts_with('[')) return ReadObject({}, inside, tools, calls);
  auto name = cursor.Until(form.parts[0]);
  if (!name) return false;
  std::string_view id;
  const std::string_view id_mark = form.parts[1];
  if (const size_t at = id_mark.empty() ? npos : name->find(id_mark); at != npos) {
    id = Trimmed(name->substr(at + id_mark.size()));
    name = name->substr(0, at);
  }
  if (const auto named = cursor.Until(kBlock)) {
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

// Whether a function takes this argument as a string.
bool IsText(const JsonView& tools, std::string_view name, std::string_view key) {
  for (const auto& [index, tool] : tools) {
    const JsonView function = tool["function"];
    if (!function["name"].IsString() || function["name"].String() != name) continue;
    const JsonView type = function["parameters"]["properties"][key]["type"];
    return type.IsString() && type.String() == "string";
  }
  return false;
}

// parts: before and after the name, before and after a key, before and after a value, the end.
bool ReadParameters(const CallForm& form, std::string_view inside, const JsonView& tools,
                    Calls& calls) {
  const auto& [name_open, name_close, key_open, key_close, open, close, end] = form.parts;
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
    const bool is_text = IsText(tools, Trimmed(*name), *key);
    const auto printed = is_text ? std::nullopt : Printed(*value);
    arguments += (arguments.size() > 1 ? "," : "") + JsonQuoted(*key) + ":" +
                 printed.value_or(JsonQuoted(*value));
  }
  return cursor.Skip(end) && cursor.AtEnd() &&
         Add(Trimmed(*name), Parsed(arguments + "}"), "", calls);
}

// call:NAME{key:<|"|>text<|"|>,other:[1,true]}: JSON, but for its quotes and without any for keys.
bool ReadGemma(const CallForm& form, std::string_view inside, const JsonView&, Calls& calls) {
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
    const size_t n = std::min(cursor.rest.find_first_of("{}[],:"), cursor.rest.size());
    const std::string_view word = Trimmed(cursor.rest.substr(0, n));
    const std::string_view mark = cursor.rest.substr(n, 1);
    cursor.rest.remove_prefix(n + mark.size());
    if (!word.empty()) json += mark == ":" ? JsonQuoted(word) : Printed(word).value_or("?");
    json += mark;
  }
  return Add(Trimmed(name), Parsed(json), "", calls);
}

// Takes the calls out of a text; the rest is as it was, but for white space at its end.
std::string TakeCalls(const CallForm& form, std::string_view text, const JsonView& tools,
                      Calls& calls) {
  if (form.is_whole) return form.read(form, text, tools, calls) ? "" : std::string(text);
  const std::string_view end = form.close.empty() ? form.open : form.close;
  std::string rest;
  Cursor cursor = {text};
  while (const auto before = cursor.Until(form.open)) {
    rest += *before;
    const size_t n = std::min(cursor.rest.find(end), cursor.rest.size());
    const size_t n_all = std::min(n + form.close.size(), cursor.rest.size());
    const size_t n_calls = calls.size();
    if (!form.read(form, cursor.rest.substr(0, n), tools, calls)) {
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
  rest.resize(rest.find_last_not_of(kBlank) + 1);
  return rest;
}

// The first whose mark is in the template applies.
constexpr auto kForms = std::to_array<CallForm>({
    {"<|tool_call>", "<|tool_call>", "<tool_call|>", ReadGemma, {"call:", "<|\"|>"}},  // Gemma 4
    {"<｜tool▁call▁begin｜>",
     "<｜tool▁call▁begin｜>",
     "<｜tool▁call▁end｜>",
     ReadNamed,
     {"<｜tool▁sep｜>"},
     {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}},                      // DeepSeek
    {"<|call|>", kCallHeader, "", ReadNamed, {"<|message|>"}},                 // gpt-oss
    {"[TOOL_CALLS]", "[TOOL_CALLS]", "", ReadNamed, {"[ARGS]", "[CALL_ID]"}},  // Mistral
    {"<arg_key>",
     "<tool_call>",
     "</tool_call>",
     ReadParameters,
     {"", "", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", ""}},  // GLM
    {"<function=",
     "<tool_call>",
     "</tool_call>",
     ReadParameters,
     {"<function=", ">", "<parameter=", ">", "", "</parameter>", "</function>"}},  // Qwen3-Coder
    {"<tool_call>", "<tool_call>", "</tool_call>", ReadObject},                    // Hermes, Qwen
    {"\"parameters\": dictionary",
     "{",
     "",
     ReadObject,
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

CallSplitter::CallSplitter(const CallForm* form, JsonView tools)
    : form_(form), tools_(std::move(tools)) {}

std::string CallSplitter::Push(std::string_view text) {
  held_ += text;
  if (form_ == nullptr) return std::exchange(held_, "");
  if (in_call_) return "";
  size_t safe = held_.size();
  for (const std::string_view mark : {form_->open, form_->around[0]}) {
    if (mark.empty()) continue;
    const size_t at = held_.find(mark);
    in_call_ = in_call_ || at != npos;
    safe = std::min(safe, at != npos ? at : held_.size() - BegunMark(held_, mark));
  }
  safe = std::string_view(held_).substr(0, safe).find_last_not_of(kBlank) + 1;
  if (form_->is_whole && safe > 0) {
    form_ = nullptr;
    return std::exchange(held_, "");
  }
  std::string released = held_.substr(0, safe);
  held_.erase(0, safe);
  return released;
}

std::string CallSplitter::Finish(Calls& calls) {
  const std::string held = std::exchange(held_, "");
  return form_ == nullptr || !in_call_ ? held : TakeCalls(*form_, held, tools_, calls);
}

}  // namespace engine
