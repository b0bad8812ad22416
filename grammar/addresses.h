// The addresses of the schemas in a document: JSON Pointers, anchors, and $id.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "gguf/json.h"
#include "grammar/dfa.h"

namespace grammar {

inline constexpr size_t kMaxSchemaDepth = 100;

bool IsSchema(const gguf::JsonView& value);

class Addresses {
 public:
  // Drafts have numbers; 8 is 2019-09, 9 is 2020-12. The document and the budget must outlive it.
  Addresses(const gguf::JsonView& root, int draft, Budget& budget);

  // A schema, the address to which references in it are relative, and its place.
  struct Found {
    gguf::JsonView schema;
    std::string base, place;
  };
  // Resolves a reference. Throws grammar::Error, with the place of the reference.
  Found Follow(const std::string& reference, const std::string& base, const std::string& place);
  // The address that a schema gives itself; empty if it has none.
  std::string Own(const gguf::JsonView& schema) const;

 private:
  void FindIn(const gguf::JsonView& value, std::string base, size_t depth);
  gguf::JsonView At(gguf::JsonView at, std::string_view path, std::string& base);
  gguf::JsonView Part(const gguf::JsonView& value, const std::string& name);

  const gguf::JsonView& root_;
  int draft_;
  Budget& budget_;
  std::map<std::string, gguf::JsonView> schemas_;       // [address, or address#anchor]
  std::unordered_map<const char*, std::string> bases_;  // the bases of schemas with addresses
  std::unordered_map<const char*, std::unordered_map<std::string, gguf::JsonView>> parts_;
};

}  // namespace grammar
