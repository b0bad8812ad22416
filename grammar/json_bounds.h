// Limits of untrusted JSON, checked before values are made of it.
#ifndef PRONK_GRAMMAR_JSON_BOUNDS_H_
#define PRONK_GRAMMAR_JSON_BOUNDS_H_

#include <string>

namespace grammar {

// Why a text must not be parsed: "is not JSON from byte 7 on", or more levels, keys in an object,
// values or digits than real files have. "" if it is fine.
std::string JsonFault(const std::string& text);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_JSON_BOUNDS_H_
