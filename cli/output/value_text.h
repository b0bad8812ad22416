// A metadata value as text, written piece by piece: a value may be as large as its file, and is not
// copied to be shown.
#ifndef PRONK_CLI_OUTPUT_VALUE_TEXT_H_
#define PRONK_CLI_OUTPUT_VALUE_TEXT_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "gguf/metadata.h"

namespace cli {

// Where text goes, a piece at a time.
using TextSink = std::function<void(std::string_view)>;

// A string in JSON's quotes.
void WriteJsonString(std::string_view text, const TextSink& sink);

// As JSON. Numbers that JSON lacks are the strings "NaN", "Infinity" and "-Infinity"; an array is
// an object of its type, its count and its first elements.
void WriteJsonValue(const gguf::Value& value, const TextSink& sink);

// For a line of this many columns: strings in quotes and with escapes as in JSON, an array as
// "5 x f32 [1.0,2.0]". It may be longer than the line, but not by much.
std::string ValueLine(const gguf::Value& value, size_t columns);

}  // namespace cli

#endif  // PRONK_CLI_OUTPUT_VALUE_TEXT_H_
