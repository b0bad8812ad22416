// JSON of a folder that a stranger made: read with bounds, and asked for with messages that name
// file, key, what was expected and what was found.
#ifndef PRONK_CONVERT_JSON_H_
#define PRONK_CONVERT_JSON_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace convert {

using Json = nlohmann::json;

// Throws gguf::Error where the text is no JSON, is nested deeper or has more values than any honest
// file, or an object has a key twice. `name` is the file's, for messages.
Json ParseJson(const std::string& name, std::string_view text);

// An object of a file, to ask for its values. Copies are cheap and share the file's text. null
// counts as absent: published files use it so.
class Fields {
 public:
  Fields() = default;  // of a file that is not there: has nothing
  Fields(std::string file, Json json);

  const std::string& file() const { return file_; }
  const Json& json() const;  // null where there is nothing
  bool is_there() const { return json_ != nullptr; }
  bool Has(std::string_view key) const;

  // Throw gguf::Error where the value is of another kind, out of range, or (without "Or") absent.
  uint64_t Count(std::string_view key) const;  // 1 to 2^32 - 1
  uint64_t CountOr(std::string_view key, uint64_t fallback) const;
  uint64_t UintOr(std::string_view key, uint64_t fallback) const;  // 0 to 2^32 - 1
  double Number(std::string_view key) const;
  double NumberOr(std::string_view key, double fallback) const;
  bool BoolOr(std::string_view key, bool fallback) const;
  std::string Text(std::string_view key) const;
  std::string TextOr(std::string_view key, const std::string& fallback) const;
  // The object under this key; one that has nothing where it is absent.
  Fields Object(std::string_view key) const;
  // A list; empty where it is absent. Of Numbers also a single one.
  std::vector<double> Numbers(std::string_view key) const;
  std::vector<std::string> Texts(std::string_view key) const;

  bool IsText(std::string_view key) const;
  bool IsObject(std::string_view key) const;
  bool IsList(std::string_view key) const;

  // These, and what they lack of `outer`.
  Fields Over(const Fields& outer) const;

  // Throws gguf::Error: "FILE: KEY: what".
  [[noreturn]] void Fail(std::string_view key, const std::string& what) const;

 private:
  const Json& Find(std::string_view key) const;
  const Json& Need(std::string_view key, const std::string& expected) const;
  [[noreturn]] void FailKind(std::string_view key, const std::string& expected) const;

  std::string file_, prefix_;
  std::shared_ptr<const Json> json_;
};

}  // namespace convert

#endif  // PRONK_CONVERT_JSON_H_
