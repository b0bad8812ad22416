// Parses JSON with limits, and writes it.
#include "cli/output/json_file.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"
#include "gguf/utf8.h"

namespace cli {
namespace {

// Escapes characters of strings that are valid in JSON but control a terminal, as \u009b.
std::string WithoutControls(const std::string& json) {
  std::string out;
  for (const auto& [code, bytes] : gguf::Characters(json)) {
    if (code < 0x7F || gguf::Printable(bytes) == bytes) {
      out += bytes;
    } else {
      std::array<char, 8> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x",
                    static_cast<unsigned>(code & 0xFFFF));
      out += escaped.data();
    }
  }
  return out;
}

}  // namespace

JsonView ParseJson(std::string text, const std::string& name) {
  try {
    return JsonView::Parse(std::move(text), tokenizer::kValueLimits);
  } catch (const gguf::Error& error) {
    throw engine::Error(name, ": ", error.what());
  }
}

JsonView ReadJson(const std::string& path) {
  return ParseJson(ReadText(path, kMaxDocumentBytes), path == "-" ? "stdin" : path);
}

std::optional<std::string> UnquoteJson(const std::string& text) {
  if (!text.starts_with('"')) return std::nullopt;
  try {
    return ParseJson(text, "").String();
  } catch (const engine::Error&) {
    return std::nullopt;
  }
}

std::string JsonText(const Json& json, int indent) {
  return WithoutControls(json.dump(indent, ' ', false, Json::error_handler_t::replace)) + "\n";
}

std::string JsonLine(const Json& json) {
  std::string line = JsonText(json, -1);
  line.pop_back();
  return line;
}

std::vector<tokenizer::Message> ReadMessages(const std::string& path) {
  const JsonView json = ReadJson(path);
  try {
    return tokenizer::ReadMessages(json.IsObject() ? json["messages"] : json);
  } catch (const gguf::Error& error) {
    throw engine::Error(path, ": ", error.what());
  }
}

std::string MessagesText(const std::vector<tokenizer::Message>& messages) {
  return WithoutControls(tokenizer::MessagesJson(messages));
}

}  // namespace cli
