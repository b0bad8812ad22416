// Python's two ways to format text: "%s is %.1f" % (a, b) and "{} is {:.1f}".format(a, b).
#ifndef PRONK_TOKENIZER_JINJA_VALUES_FORMAT_H_
#define PRONK_TOKENIZER_JINJA_VALUES_FORMAT_H_

#include <functional>

#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

// `args`: a tuple of values, a dictionary for %(name)s, or one value.
// Conversions s r d i u x X o e E f F g G c %, with - + 0 # flags, width and precision.
Text FormatPercent(Runtime& rt, const Text& format, const Value& args);

// Fields {} {0} {name} {name.key} {name[key]}, each with !r or !s and :[[fill]align][sign][#][0]
// [width][,][.precision][type].
using Lookup = std::function<Value(const Value& object, const Value& key, bool is_attribute)>;
Text FormatBraces(Runtime& rt, const Text& format, const Arguments& args, const Lookup& lookup);

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_VALUES_FORMAT_H_
