// Python's two languages of formats: '%5.2f' % x, and '{:>8}'.format(x).
#ifndef PRONK_TOKENIZER_JINJA_VALUES_FORMAT_H_
#define PRONK_TOKENIZER_JINJA_VALUES_FORMAT_H_

#include <functional>
#include <string_view>

#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

// '%s %d' % values: a tuple's items, a dictionary for %(name)s, or one value.
Text PercentFormat(Runtime& rt, const Text& format, const Value& values);

// '{} {0} {name!r:>8}'.format(...). field finds the value of what stands before ! and :.
using FieldOf = std::function<Value(std::string_view name)>;
Text BraceFormat(Runtime& rt, const Text& format, const FieldOf& field);

// The text in a field of `width` characters, with `fill` (one character) around it as `align` (<, >
// or ^) says; of an odd number of fills, ^ puts one more behind it.
Text Padded(const Text& text, char align, int64_t width, std::string_view fill = " ");

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_VALUES_FORMAT_H_
