#include "engine/cli/json_file.h"

#include <nlohmann/json.hpp>
#include <span>

#include "engine/cli/terminal.h"
#include "engine/error.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

constexpr int kMaxDepth = 64;

}  // namespace

Json ReadJson(const std::string& path) {
  const std::string text = path == "-" ? ReadStdin() : ReadFile(path);
  bool too_deep = false;
  Json json = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > kMaxDepth;
        return !too_deep;
      },
      /*allow_exceptions=*/false);
  if (too_deep || json.is_discarded()) throw engine::Error(path + ": is not JSON");
  return json;
}

std::optional<std::string> UnquoteJson(const std::string& text) {
  if (!text.starts_with('"')) return std::nullopt;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_string() ? std::optional(json.get<std::string>()) : std::nullopt;
}

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<tokenizer::Message> ReadMessages(const std::string& path) {
  const Json json = ReadJson(path);
  std::vector<tokenizer::Message> messages;
  for (const Json& item : json.is_array() ? json : Json::array({nullptr})) {
    const auto text = [&](const char* key) {
      return item.is_object() && item.contains(key) && item[key].is_string();
    };
    if (!text("role") || !text("content")) {
      throw engine::Error(path + R"(: expected a list of {"role": "...", "content": "..."})");
    }
    messages.push_back({item["role"].get<std::string>(), item["content"].get<std::string>()});
  }
  return messages;
}

void WriteMessages(const std::string& path, const std::vector<tokenizer::Message>& messages) {
  Json json = Json::array();
  for (const auto& [role, content] : messages)
    json.push_back({{"role", role}, {"content", content}});
  const std::string text = JsonText(json, 2);
  gguf::OutputFile file(path);
  file.Write(std::as_bytes(std::span(text)));
  file.Commit();
}

}  // namespace cli
