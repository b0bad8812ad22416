// Checks JSON against a schema: as much of JSON Schema as our schemas use.
#ifndef PRONK_TESTS_SUPPORT_JSON_SCHEMA_H_
#define PRONK_TESTS_SUPPORT_JSON_SCHEMA_H_

#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

inline bool HasJsonType(const nlohmann::json& value, const std::string& type) {
  return type == "integer" ? value.is_number_integer() : type == value.type_name();
}

// What is wrong with a value, each fault as "place: what"; empty where it follows the schema.
inline std::vector<std::string> SchemaFaults(const nlohmann::json& value,
                                             const nlohmann::json& schema,
                                             const std::string& place = "$") {
  std::vector<std::string> faults;
  const auto add = [&](const nlohmann::json& part, const nlohmann::json& rule,
                       const std::string& where) {
    for (const std::string& fault : SchemaFaults(part, rule, where)) faults.push_back(fault);
  };
  for (const auto& [rule, what] : schema.items()) {
    if (rule == "type") {
      bool has_one = false;
      for (const auto& type : what.is_array() ? what : nlohmann::json::array({what})) {
        has_one = has_one || HasJsonType(value, type);
      }
      if (!has_one) faults.push_back(place + ": is " + value.dump() + ", expected " + what.dump());
    } else if (rule == "required") {
      for (const auto& key : what) {
        if (!value.contains(key)) faults.push_back(place + ": lacks " + key.dump());
      }
    } else if (rule == "properties") {
      for (const auto& [key, part] : what.items()) {
        if (value.contains(key)) add(value[key], part, place + "." + key);
      }
    } else if (rule == "additionalProperties") {
      for (const auto& [key, part] : value.items()) {
        if (!what && !schema["properties"].contains(key)) faults.push_back(place + ": has " + key);
      }
    } else if (rule == "items") {
      for (const auto& item : value) add(item, what, place + "[]");
    } else if (rule == "minimum") {
      if (value.is_number() && value < what) faults.push_back(place + ": is " + value.dump());
    } else if (rule == "pattern") {
      if (value.is_string() && !std::regex_search(value.get<std::string>(), std::regex(what))) {
        faults.push_back(place + ": is " + value.dump());
      }
    } else if (rule != "title") {
      throw std::invalid_argument("the schema has a rule that is not known: " + rule);
    }
  }
  return faults;
}

}  // namespace test

#endif  // PRONK_TESTS_SUPPORT_JSON_SCHEMA_H_
