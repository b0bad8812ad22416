#include "engine/cli/json_file.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>

#include "engine/cli/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"
#include "gguf/output_file.h"
#include "tokenizer/jinja/unicode.h"

namespace cli {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;  // of a file; no context holds more text

// Passes over a text before values are made of it: those take many times its size, and are freed
// and copied recursively, and an object compares each new key with all that it has.
class Bounds : public Json::json_sax_t {
 public:
  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t number) override {
    return Count() && Within(number <= INT64_MAX, "a number of more than 63 bits");
  }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_object(size_t) override { return Open(); }
  bool key(string_t&) override {
    return Within(++keys_.back() <= kMaxKeys,
                  "more than " + std::to_string(kMaxKeys) + " keys in one object");
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t byte, const std::string&, const Json::exception& error) override {
    // A number that is too large is the one fault whose place is not told.
    wrong_ = dynamic_cast<const Json::out_of_range*>(&error) != nullptr
                 ? "is JSON with a number that is too large"
                 : "is not JSON from byte " + std::to_string(byte) + " on";
    return false;
  }

  const std::string& wrong() const { return wrong_; }

 private:
  static constexpr size_t kMaxDepth = 64, kMaxKeys = 1000, kMaxValues = size_t{1} << 20;

  bool Within(bool within, const std::string& what) {
    if (!within) wrong_ = "is JSON with " + what;
    return within;
  }
  bool Count() {
    return Within(++n_values_ <= kMaxValues, "more than " + std::to_string(kMaxValues) + " values");
  }
  bool Open() {
    keys_.push_back(0);
    return Count() &&
           Within(keys_.size() <= kMaxDepth, "more than " + std::to_string(kMaxDepth) + " levels");
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }
  std::vector<size_t> keys_;  // how many, in each object or list that is open
  size_t n_values_ = 0;
  std::string wrong_;
};

// Characters that a terminal obeys, and that JSON allows as they are: as \u009b and so on. They can
// only stand inside strings.
std::string WithoutControls(const std::string& json) {
  std::string out;
  for (size_t at = 0; at < json.size();) {
    const tokenizer::jinja::Char c = tokenizer::jinja::CharAt(json, at);
    const std::string_view bytes(json.data() + at, c.size);
    if (c.code < 0x7F || gguf::Printable(bytes) == bytes) {
      out += bytes;
    } else {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x",
                    static_cast<unsigned>(c.code & 0xFFFF));
      out += escaped.data();
    }
    at += c.size;
  }
  return out;
}

}  // namespace

Json ParseJson(const std::string& text, const std::string& name) {
  Bounds bounds;
  if (!Json::sax_parse(text, &bounds)) throw engine::Error(name + ": " + bounds.wrong());
  return Json::parse(text);
}

Json ReadJson(const std::string& path) {
  return ParseJson(path == "-" ? ReadStdin(kMaxBytes) : ReadFile(path, kMaxBytes), path);
}

std::optional<std::string> UnquoteJson(const std::string& text) {
  if (!text.starts_with('"')) return std::nullopt;
  try {
    return ParseJson(text, "").get<std::string>();
  } catch (const engine::Error&) {
    return std::nullopt;
  }
}

std::string JsonText(const Json& json, int indent) {
  return WithoutControls(json.dump(indent, ' ', false, Json::error_handler_t::replace)) + "\n";
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
    if (text("reasoning_content")) {
      messages.back().reasoning_content = item["reasoning_content"].get<std::string>();
    }
  }
  return messages;
}

void WriteMessages(const std::string& path, const std::vector<tokenizer::Message>& messages) {
  Json json = Json::array();
  for (const tokenizer::Message& message : messages) {
    json.push_back({{"role", message.role}, {"content", message.content}});
    if (message.reasoning_content.empty()) continue;
    json.back()["reasoning_content"] = message.reasoning_content;
  }
  const std::string text = JsonText(json, 2);
  gguf::OutputFile file(path);
  file.Write(std::as_bytes(std::span(text)));
  file.Commit();
}

}  // namespace cli
