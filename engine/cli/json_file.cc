#include "engine/cli/json_file.h"

#include <nlohmann/json.hpp>
#include <span>

#include "engine/cli/terminal.h"
#include "engine/error.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

// Passes over a text before values are made of it: those are freed recursively, and an object
// compares each new key with all that it has.
class Bounds : public Json::json_sax_t {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return Open(); }
  bool key(string_t&) override { return Within(++keys_.back() <= kMaxKeys); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

  std::string wrong() const {
    if (within_) return "is not JSON";
    return "is JSON of more than " + std::to_string(kMaxDepth) + " levels, or of more than " +
           std::to_string(kMaxKeys) + " keys in one object";
  }

 private:
  static constexpr size_t kMaxDepth = 64, kMaxKeys = 1000;

  bool Within(bool within) { return within_ = within; }
  bool Open() {
    keys_.push_back(0);
    return Within(keys_.size() <= kMaxDepth);
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }
  std::vector<size_t> keys_;  // how many, in each object or list that is open
  bool within_ = true;
};

}  // namespace

Json ReadJson(const std::string& path) {
  const std::string text = path == "-" ? ReadStdin() : ReadFile(path);
  Bounds bounds;
  if (!Json::sax_parse(text, &bounds)) throw engine::Error(path + ": " + bounds.wrong());
  return Json::parse(text);
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
