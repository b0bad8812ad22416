// The operators of the template language, with Python's meaning.
//
// All functions throw TemplateError if Python raises a TypeError or a ZeroDivisionError, if an
// operand is undefined, or if an integer does not fit into 64 bits.
#pragma once

#include <optional>
#include <string_view>

#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace tokenizer::jinja {

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

// The operator as templates write it: "+", "not in".
std::string_view Symbol(BinaryOp op);
std::string_view Symbol(CompareOp op);

Value Calculate(Runtime& rt, BinaryOp op, const Value& left, const Value& right);
Value Negate(const Value& value);
bool CompareValues(Runtime& rt, CompareOp op, const Value& left, const Value& right);

bool Equal(Runtime& rt, const Value& left, const Value& right);
// left < right, for sorting: throws for values without an order, including nan.
bool Less(Runtime& rt, const Value& left, const Value& right);
// `needle in haystack`.
bool Contains(Runtime& rt, const Value& haystack, const Value& needle);

// The items of a for loop: characters of a string, keys of a dictionary. Empties a generator.
// Undefined has no items.
Values ItemsOf(const Value& value);
bool IsIterable(const Value& value);
// Python's len(); for strings, the number of characters.
int64_t LengthOf(const Value& value);

// value[start:stop:step]; None is an absent bound.
Value Slice(Runtime& rt, const Value& value, const Value& start, const Value& stop,
            const Value& step);
// value[index], or empty if the type has no such index or item.
std::optional<Value> Item(const Value& value, const Value& index);

// Throws the message that `value` carries if it is undefined.
void RequireDefined(const Value& value);
// `value` as an integer, for the argument `what`.
int64_t ToInteger(const Value& value, std::string_view what);

}  // namespace tokenizer::jinja
