// JSON that others wrote, looked at before values are made of it.
#ifndef PRONK_GRAMMAR_JSON_BOUNDS_H_
#define PRONK_GRAMMAR_JSON_BOUNDS_H_

#include <string>

namespace grammar {

// Why a text is not to be parsed: "is not JSON from byte 7 on", or nested deeper, with objects of
// more keys, more values or larger numbers than any honest one. "" where nothing is wrong with it.
std::string JsonFault(const std::string& text);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_JSON_BOUNDS_H_
