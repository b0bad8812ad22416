#include "tokenizer/jinja/values/arguments.h"

#include <algorithm>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/operators.h"

namespace tokenizer::jinja {

Params::Params(std::string_view function, const Arguments& args,
               std::initializer_list<std::string_view> names, size_t required)
    : function_(function), names_(names), values_(names.size(), nullptr) {
  if (args.positional.size() > names.size()) {
    Fail(function, "() takes at most ", names.size(), " argument(s)");
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    const auto i = static_cast<size_t>(found - names_.begin());
    if (found == names_.end() || values_[i] != nullptr) {
      Fail(function, "() got an unexpected argument '", name, "'");
    }
    values_[i] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) Fail(function, "() lacks the argument '", names_[i], "'");
  }
}

const Value* Params::GetSome(size_t i) const {
  return values_[i] != nullptr && values_[i]->IsNone() ? nullptr : values_[i];
}

Value Params::Or(size_t i, Value absent) const {
  if (values_[i] != nullptr) return *values_[i];
  return absent;
}

bool Params::Flag(size_t i) const { return values_[i] != nullptr && values_[i]->Truth(); }

int64_t Params::Integer(size_t i, int64_t absent) const {
  if (values_[i] == nullptr) return absent;
  return ToInteger(*values_[i], std::string(function_) + "()'s " + std::string(names_[i]));
}

const Text& Params::String(size_t i) const {
  const Value* value = values_[i];
  if (value != nullptr) RequireDefined(*value);
  if (value == nullptr || !value->IsString()) {
    Fail(function_, "()'s ", names_[i], " must be a string");
  }
  return value->text();
}

}  // namespace tokenizer::jinja
