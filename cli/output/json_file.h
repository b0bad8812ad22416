// Reads untrusted JSON, with limits, and writes JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gguf/json.h"
#include "tokenizer/messages.h"

namespace cli {

using Json = nlohmann::ordered_json;  // JSON that is written
using gguf::JsonView;                 // JSON that was read

// All JSON from outside is read here. Throws engine::Error, which names the source, if the text is
// not JSON, or has deeper nesting, more keys or values, or larger numbers than any real file.
JsonView ParseJson(std::string text, const std::string& name);
// The JSON in a file, "-" for stdin.
JsonView ReadJson(const std::string& path);
// The value of a JSON string ("\"a\\nb\"" is two lines); empty if the text is not a string.
std::optional<std::string> UnquoteJson(const std::string& text);
// JSON as text that is safe on a terminal: bytes that are not UTF-8 are replaced, and control
// characters are escaped. indent -1: all in one line.
std::string JsonText(const Json& json, int indent);
std::string JsonLine(const Json& json);  // one line without a line feed

// A conversation as JSON (tokenizer/messages.h), or an object that has it as "messages", as saved
// chats are. Throws engine::Error.
std::vector<tokenizer::Message> ReadMessages(const std::string& path);
// A conversation as JSON that is safe on a terminal.
std::string MessagesText(const std::vector<tokenizer::Message>& messages);

}  // namespace cli
