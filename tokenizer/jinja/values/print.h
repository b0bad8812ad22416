// Values as text: the output of {{ value }}, Python's repr() inside lists, JSON, and Python's two
// languages of formats, '%5.2f' % x and '{:>8}'.format(x) (format.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

// Python's str(): undefined is empty, strings are themselves, other values as in Repr().
Text Str(Runtime& rt, const Value& value);
void AppendStr(Runtime& rt, const Value& value, Text& out);
// Python's repr(): 'it', [1, 2.0], {'a': None}.
Text Repr(Runtime& rt, const Value& value);
// Python's repr() of a float, the shortest digits that read back the same: 1.0,
// 1e+16, inf, nan.
std::string FloatRepr(double value);

// An escape of a string: \u001f, or with another letter and number of digits.
void AppendEscape(char letter, int digits, char32_t code, String& out);

struct JsonOptions {
  bool ensure_ascii = false;     // \u escapes for everything but ASCII
  std::optional<String> indent;  // one level's indentation; empty: all on one line
  String item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};

// Python's json.dumps(). Throws TemplateError for values without JSON (undefined,
// functions).
Text ToJson(Runtime& rt, const Value& value, const JsonOptions& options);

// '%s %d' % values: a tuple's items, a dictionary for %(name)s, or one value.
Text PercentFormat(Runtime& rt, const Text& format, const Value& values);

// '{} {0} {name!r:>8}'.format(...). field returns the value of the name before ! and :.
using FieldOf = std::function<Value(std::string_view name)>;
Text BraceFormat(Runtime& rt, const Text& format, const FieldOf& field);

// Read a number as Python's int() and float() do, perhaps with white space around it. Empty: no
// number.
std::optional<int64_t> ParseInt(std::string_view text, int64_t base = 10);
std::optional<double> ParseFloat(std::string_view text);

}  // namespace tokenizer::jinja
