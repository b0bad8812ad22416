// JSON as values of the template language, and messages as the input of a template.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/json.h"
#include "tokenizer/chat_template.h"

namespace test {

inline tokenizer::Value ToValue(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    std::vector<tokenizer::Value> items;
    for (const Json& item : json) items.push_back(ToValue(item));
    return tokenizer::Value::ListOf(std::move(items));
  }
  if (!json.is_object()) return {};
  std::vector<std::pair<std::string, tokenizer::Value>> entries;
  for (const auto& [key, value] : json.items()) entries.emplace_back(key, ToValue(value));
  return tokenizer::Value::DictOf(std::move(entries));
}

inline tokenizer::ChatInput Conversation(const std::vector<tokenizer::Message>& messages) {
  return tokenizer::ChatInput(messages);
}

}  // namespace test
