// JSON with a misplaced value, for tests of hostile files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/json.h"

namespace test {

// Keys, and indices of items, from the outermost to the innermost.
using JsonPlace = std::vector<std::string>;

inline std::string PathOf(const JsonPlace& place) {
  std::string path;
  for (const std::string& key : place) path += "/" + key;
  return path;
}

inline Json& At(Json& json, const JsonPlace& place) {
  Json* at = &json;
  for (const std::string& key : place) {
    at = at->is_array() ? &(*at)[std::stoul(key)] : &(*at)[key];
  }
  return *at;
}

// The places of a file's values; of a list, only the first three.
inline std::vector<JsonPlace> Places(const Json& json, const JsonPlace& at = {}) {
  std::vector<JsonPlace> places = {at};
  size_t i = 0;
  for (const auto& [key, value] : json.items()) {
    if (json.is_array() && i == 3) break;
    JsonPlace there = at;
    there.push_back(json.is_array() ? std::to_string(i++) : key);
    const std::vector<JsonPlace> inside = Places(value, there);
    places.insert(places.end(), inside.begin(), inside.end());
  }
  return places;
}

inline const std::vector<Json>& WrongValues() {
  static const std::vector<Json> kWrong = [] {
    std::vector<Json> wrong = {UINT64_MAX, std::string("a\0\n\x1b[2J", 7), std::string(5000, 'y')};
    for (const Json& value :
         Json::parse(R"([null, true, -1, 0, 1, 3, 65536, 4294967295, 0.5, -1e300,
        1e300, -9223372036854775808, "", "x", [], {}, [1e300, -1e300], [-1, "x", null], {"x": -1},
        [[[]]]])")) {
      wrong.push_back(value);
    }
    return wrong;
  }();
  return kWrong;
}

}  // namespace test
