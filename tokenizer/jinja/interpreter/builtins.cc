// Finds the names that a template can use, and matches arguments to parameters.
#include "tokenizer/jinja/interpreter/builtins.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/operators.h"

namespace tokenizer::jinja {

BuiltinCall::BuiltinCall(Interpreter& interpreter, const Builtin& builtin, const Value& input,
                         const Arguments& arguments)
    : in(interpreter), rt(interpreter.rt()), self(input), args(arguments), function_(builtin.name) {
  if (builtin.parameters == "*") return;
  size_t n_optional = 0;
  for (std::string_view rest = builtin.parameters; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (n_optional > 0 || name == "|") ++n_optional;
    if (name != "|") names_.push_back(name);
  }
  const size_t n_required = names_.size() - (n_optional > 0 ? n_optional - 1 : 0);
  values_.resize(names_.size());
  if (args.positional.size() > names_.size()) {
    Fail(function_, "() takes at most ", names_.size(), " argument(s)");
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    const auto i = static_cast<size_t>(found - names_.begin());
    if (found == names_.end() || values_[i] != nullptr) {
      Fail(function_, "() got an unexpected argument '", name, "'");
    }
    values_[i] = &value;
  }
  for (size_t i = 0; i < n_required; ++i) {
    if (values_[i] == nullptr) Fail(function_, "() lacks the argument '", names_[i], "'");
  }
}

const Value* BuiltinCall::GetSome(size_t i) const {
  return values_[i] != nullptr && values_[i]->IsNone() ? nullptr : values_[i];
}

int64_t BuiltinCall::Integer(size_t i, int64_t absent) const {
  if (values_[i] == nullptr) return absent;
  return ToInteger(*values_[i], std::string(function_) + "()'s " + std::string(names_[i]));
}

const Text& BuiltinCall::String(size_t i) const {
  const Value* value = values_[i];
  if (value != nullptr) RequireDefined(*value);
  if (value == nullptr || !value->IsString()) {
    Fail(function_, "()'s ", names_[i], " must be a string");
  }
  return value->text();
}

const Builtin* FindBuiltin(Owner owner, std::string_view name) {
  using Names = std::unordered_map<std::string_view, const Builtin*>;
  static const auto by_owner = [] {
    std::vector<Names> names(static_cast<size_t>(Owner::kDict) + 1);
    for (const auto& table : {TextFilters(), SequenceFilters(), Methods(), GlobalsAndTests()}) {
      for (const Builtin& row : table) names[static_cast<size_t>(row.owner)][row.name] = &row;
    }
    return names;
  }();
  const Names& names = by_owner[static_cast<size_t>(owner)];
  const auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}

const Builtin* FindMethod(const Value& self, std::string_view name) {
  if (self.IsString()) return FindBuiltin(Owner::kString, name);
  if (self.IsDict()) return FindBuiltin(Owner::kDict, name);
  if (!self.IsList() || !self.list().HasLength()) return nullptr;
  const Builtin* const method = FindBuiltin(Owner::kSequence, name);
  if (method != nullptr || self.list().kind != List::Kind::kList) return method;
  return FindBuiltin(Owner::kList, name);
}

}  // namespace tokenizer::jinja
