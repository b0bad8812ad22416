// A field of a request: its value, checked, in the type that it must have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/run_request.h"
#include "cli/output/json_file.h"
#include "engine/sampling/settings.h"

namespace cli {

// All functions throw engine::Error, with the field's name, for a value of another type.
class RequestField {
 public:
  RequestField(std::string key, JsonView value) : key_(std::move(key)), value_(std::move(value)) {}

  const std::string& key() const { return key_; }
  const JsonView& value() const { return value_; }
  [[noreturn]] void Fail(const std::string& expected) const;

  double Number(double low, double high, bool is_whole) const;
  int64_t Whole(double low, double high) const;
  std::string Text() const;
  std::vector<std::string> Texts() const;  // one text, or a list
  // The schema of a response_format; "": any object; none: any text.
  std::optional<std::string> Schema() const;
  // The value of a setting: a number, or texts, which are also read into the setting.
  RunRequest::Value ValueOf(const engine::Setting& setting) const;

 private:
  std::vector<std::string> Biases() const;

  std::string key_;
  JsonView value_;
};

}  // namespace cli
