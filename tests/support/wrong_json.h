// JSON with a value that does not belong there, for tests of hostile files.
#ifndef PRONK_TESTS_SUPPORT_WRONG_JSON_H_
#define PRONK_TESTS_SUPPORT_WRONG_JSON_H_

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace test {

using JsonPlace = nlohmann::json::json_pointer;

// Where the values of a file are: all, but of a list the first three.
inline std::vector<JsonPlace> Places(const nlohmann::json& json,
                                     const JsonPlace& at = JsonPlace()) {
  std::vector<JsonPlace> places = {at};
  const auto add = [&](const nlohmann::json& value, const JsonPlace& there) {
    const std::vector<JsonPlace> inside = Places(value, there);
    places.insert(places.end(), inside.begin(), inside.end());
  };
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) add(value, at / key);
  } else if (json.is_array()) {
    for (size_t i = 0; i < std::min<size_t>(json.size(), 3); ++i) add(json[i], at / i);
  }
  return places;
}

inline const std::vector<nlohmann::json>& WrongValues() {
  static const std::vector<nlohmann::json> kWrong = {
      nullptr,
      true,
      -1,
      0,
      1,
      3,
      65536,
      4294967295u,
      UINT64_MAX,
      INT64_MIN,
      0.5,
      -1e300,
      1e300,
      "",
      "x",
      std::string("a\0\n\x1b[2J", 7),
      std::string(5000, 'y'),
      nlohmann::json::array(),
      nlohmann::json::object(),
      {1e300, -1e300},
      {-1, "x", nullptr},
      {{"x", -1}},
      nlohmann::json::array({nlohmann::json::array({nlohmann::json::array()})})};
  return kWrong;
}

}  // namespace test

#endif  // PRONK_TESTS_SUPPORT_WRONG_JSON_H_
