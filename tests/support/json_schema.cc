#include "tests/support/json_schema.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/support/regex.h"

namespace test {
namespace {

bool HasJsonType(const nlohmann::json& value, const std::string& type) {
  if (type == "number") return value.is_number();
  return type == "integer" ? value.is_number_integer() : type == value.type_name();
}

// The number of UTF-8 characters in a string.
size_t CharactersOf(const std::string& text) {
  size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return n;
}

class SchemaCheck {
 public:
  explicit SchemaCheck(const nlohmann::json& root) : root_(root) {}

  // A value's faults, each as "place: what"; empty if it follows the schema.
  std::vector<std::string> Faults(const nlohmann::json& value, const nlohmann::json& schema,
                                  const std::string& place = "$") const {
    std::vector<std::string> faults;
    if (schema == nlohmann::json(false)) faults.push_back(place + ": must not be there");
    if (!schema.is_object()) return faults;
    if (value.is_null() && schema.value("nullable", false)) return faults;
    for (const auto& [rule, what] : schema.items()) {
      const std::vector<std::string> more = ByRule(value, schema, rule, what, place);
      faults.insert(faults.end(), more.begin(), more.end());
    }
    return faults;
  }

 private:
  using Json = nlohmann::json;

  std::vector<std::string> ByRule(const Json& value, const Json& schema, const std::string& rule,
                                  const Json& what, const std::string& place) const {
    std::vector<std::string> faults;
    const auto expect = [&](bool holds) {
      if (!holds)
        faults.push_back(place + ": is " + value.dump() + ", and not as " + rule + " says");
    };
    const auto add = [&](const Json& part, const Json& below, const std::string& where) {
      for (const std::string& fault : Faults(part, below, where)) faults.push_back(fault);
    };
    const auto n_fitting = [&] {
      size_t n = 0;
      for (const Json& way : what) n += Faults(value, way, place).empty() ? 1 : 0;
      return n;
    };
    if (rule == "type") {
      bool has_one = false;
      for (const Json& type : what.is_array() ? what : Json::array({what})) {
        has_one = has_one || HasJsonType(value, type);
      }
      expect(has_one);
    } else if (rule == "enum") {
      expect(std::find(what.begin(), what.end(), value) != what.end());
    } else if (rule == "const") {
      expect(value == what);
    } else if (rule == "anyOf") {
      expect(n_fitting() > 0);
    } else if (rule == "oneOf") {
      expect(n_fitting() == 1);
    } else if (rule == "not") {
      expect(!Faults(value, what, place).empty());
    } else if (rule == "if") {
      const char* const way = Faults(value, what, place).empty() ? "then" : "else";
      if (schema.contains(way)) add(value, schema[way], place);
    } else if (rule == "allOf") {
      for (const Json& part : what) add(value, part, place);
    } else if (rule == "$ref") {
      // Part of an address, where a percent sign is spelt.
      std::string reference = what.get<std::string>().substr(1);
      for (size_t at; (at = reference.find("%20")) != std::string::npos;) {
        reference.replace(at, 3, " ");
      }
      for (size_t at = 0; (at = reference.find("%25", at)) != std::string::npos; ++at) {
        reference.replace(at, 3, "%");
      }
      add(value, root_.at(Json::json_pointer(reference)), place);
    } else if (value.is_object()) {
      OfObject(value, schema, rule, what, place, add, expect);
    } else if (value.is_array()) {
      OfArray(value, schema, rule, what, place, add, expect);
    } else if (value.is_string()) {
      OfString(value, rule, what, expect);
    } else if (value.is_number()) {
      if (rule == "multipleOf") {
        const double times = value.get<double>() / what.get<double>();
        expect(std::abs(times - std::round(times)) < 1e-9);
      }
      if (rule == "minimum") expect(value >= what);
      if (rule == "maximum") expect(value <= what);
      if (rule == "exclusiveMinimum") expect(value > what);
      if (rule == "exclusiveMaximum") expect(value < what);
    }
    if (!IsKnown(rule))
      throw std::invalid_argument("the schema has a rule that is not known: " + rule);
    return faults;
  }

  template <class Add, class Expect>
  static void OfObject(const Json& value, const Json& schema, const std::string& rule,
                       const Json& what, const std::string& place, Add add, Expect expect) {
    const Json named = schema.value("properties", Json::object());
    const Json patterns = schema.value("patternProperties", Json::object());
    const auto fits = [](const std::string& key, const std::string& pattern) {
      return !FindAll(key, pattern).empty();
    };
    if (rule == "minProperties") expect(value.size() >= what);
    if (rule == "maxProperties") expect(value.size() <= what);
    if (rule == "required") {
      for (const Json& key : what) expect(value.contains(key));
    } else if (rule == "patternProperties") {
      for (const auto& [pattern, part] : what.items()) {
        for (const auto& [key, member] : value.items()) {
          if (fits(key, pattern)) add(member, part, place + "." + key);
        }
      }
    } else if (rule == "properties") {
      for (const auto& [key, part] : what.items()) {
        if (value.contains(key)) add(value[key], part, place + "." + key);
      }
    } else if (rule == "additionalProperties") {
      for (const auto& [key, part] : value.items()) {
        bool is_known = named.contains(key);
        for (const auto& pattern : patterns.items()) is_known |= fits(key, pattern.key());
        if (!is_known) add(part, what, place + "." + key);
      }
    }
  }

  template <class Add, class Expect>
  static void OfArray(const Json& value, const Json& schema, const std::string& rule,
                      const Json& what, const std::string& place, Add add, Expect expect) {
    const auto items = [&](size_t first) {
      for (size_t i = first; i < value.size(); ++i) add(value[i], what, place + "[]");
    };
    if (rule == "minItems") expect(value.size() >= what);
    if (rule == "maxItems") expect(value.size() <= what);
    if (rule == "uniqueItems" && what == true) {
      for (auto at = value.begin(); at != value.end(); ++at)
        expect(std::find(value.begin(), at, *at) == at);
    }
    if (rule == "prefixItems" || (rule == "items" && what.is_array())) {
      for (size_t i = 0; i < std::min(what.size(), value.size()); ++i)
        add(value[i], what[i], place + "[]");
    } else if (rule == "items") {
      items(schema.value("prefixItems", Json::array()).size());
    } else if (rule == "additionalItems") {
      items(schema.value("items", Json::array()).size());
    }
  }

  template <class Expect>
  static void OfString(const std::string& value, const std::string& rule, const Json& what,
                       Expect expect) {
    if (rule == "minLength") expect(CharactersOf(value) >= what);
    if (rule == "maxLength") expect(CharactersOf(value) <= what);
    if (rule == "pattern") expect(!FindAll(value, what.get<std::string>()).empty());
    if (rule == "format") expect(HasFormat(value, what));
  }

  static bool HasFormat(const std::string& value, const std::string& format) {
    std::array<unsigned char, 16> address{};
    if (format == "ipv4") return inet_pton(AF_INET, value.c_str(), address.data()) == 1;
    if (format == "ipv6") return inet_pton(AF_INET6, value.c_str(), address.data()) == 1;
    const std::string date = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";
    const std::string time =
        "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?([zZ]|[-+][0-9]{2}:[0-9]{2})";
    const std::string label = "[0-9A-Za-z]([-0-9A-Za-z]{0,61}[0-9A-Za-z])?";
    const std::string host = label + "(\\." + label + ")*";
    const std::map<std::string, std::string> forms = {
        {"date", date},
        {"time", time},
        {"date-time", date + "[Tt]" + time},
        {"duration",
         "P(?!$)([0-9]+W|([0-9]+Y)?([0-9]+M)?([0-9]+D)?"
         "(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+S)?)?)"},
        {"uuid", "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"},
        {"hostname", host},
        {"email", "[-.!#$%&'*+/=?^_`{|}~0-9A-Za-z]+@" + host},
        {"uri",
         "[A-Za-z][-+.0-9A-Za-z]*:([-0-9A-Za-z._~!$&'()*+,;=:@/?\\[\\]]|%[0-9a-fA-F]{2})*"
         "(#([-0-9A-Za-z._~!$&'()*+,;=:@/?]|%[0-9a-fA-F]{2})*)?"}};
    return !MatchAll(value, forms.at(format)).empty();
  }

  static bool IsKnown(const std::string& rule) {
    const std::string rules =
        " type enum const anyOf oneOf allOf $ref required properties additionalProperties "
        "items prefixItems additionalItems minItems maxItems minLength maxLength pattern "
        "format minimum maximum exclusiveMinimum exclusiveMaximum uniqueItems not if then "
        "else multipleOf minProperties maxProperties patternProperties nullable title "
        "description $defs definitions ";
    return rules.find(" " + rule + " ") != std::string::npos;
  }

  const Json& root_;
};

}  // namespace

std::vector<std::string> SchemaFaults(const Json& value, const Json& schema) {
  const auto root = nlohmann::json::parse(schema.dump());
  return SchemaCheck(root).Faults(nlohmann::json::parse(value.dump()), root);
}

}  // namespace test
