// Cursor: reads the head of an untrusted file.
//
// Every read is checked against the end of the file. A failure is one line: file, byte, current key
// or tensor, expected, found. reader.cc interprets the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "gguf/error.h"
#include "gguf/load.h"
#include "gguf/mapped_file.h"

namespace gguf {

class Cursor {
 public:
  // The part that is being read, for messages: the index-th key or tensor, and its name once that
  // is known.
  struct Item {
    std::string_view kind;
    uint64_t index = 0;
    std::string_view name;
  };

  // mapping: the mapping of `bytes`, if any; consumed bytes are kept (MappedFile::KeepFirst).
  Cursor(const std::string& file, std::span<const std::byte> bytes, MappedFile* mapping = nullptr)
      : file_(file), bytes_(bytes), mapping_(mapping) {}

  std::span<const std::byte> bytes() const { return bytes_; }  // the whole file
  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }
  const std::byte* here() const { return bytes_.data() + offset_; }

  void set_item(const Item& item) { item_ = item; }

  // Each consumes the next bytes; `what` names them in the message if the file ends early.
  template <typename T>
  T Read(std::string_view what) {
    return Load<T>(Take(sizeof(T), what));
  }
  template <typename Length = uint64_t>
  std::string_view ReadString(std::string_view what) {
    const uint64_t length = Read<Length>(what);
    return {reinterpret_cast<const char*>(Take(length, what)), length};
  }
  // Skips n bytes and returns their start.
  const std::byte* Take(uint64_t n, std::string_view what) {
    if (n > remaining()) {
      Fail(offset_, "expected ", n, " bytes (", what, "), found ", remaining(),
           " before the end of the file: truncated or damaged, download or copy it again");
    }
    if (mapping_ != nullptr) mapping_->KeepFirst(offset_ + n);
    return bytes_.data() + std::exchange(offset_, offset_ + n);
  }

  // Throws gguf::Error, or one derived from it: "<file>: byte <offset>: <item>: <what>".
  template <class Exception = Error, class... Parts>
  [[noreturn]] void Fail(uint64_t offset, const Parts&... what) const {
    throw Exception(PrintablePath(file_), ": byte ", offset, ": ", ItemText(), what...);
  }

 private:
  std::string ItemText() const {
    if (item_.kind.empty()) return "";
    const std::string name = item_.name.empty() ? std::to_string(item_.index) : Quoted(item_.name);
    return Message(item_.kind, " ", name, ": ");
  }

  std::string file_;
  std::span<const std::byte> bytes_;
  MappedFile* mapping_;
  uint64_t offset_ = 0;
  Item item_;
};

}  // namespace gguf
