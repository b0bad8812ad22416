// Resolves a schema's references: pointers, anchors, own addresses.
#include "grammar/addresses.h"

#include <algorithm>
#include <charconv>

#include "grammar/schema.h"

namespace grammar {
namespace {

// A reference is part of a URI: %25 in it is a percent sign.
std::string WithoutPercents(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && text.size() - i > 2 &&
        std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      plain += static_cast<char>(code);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// An address relative to another (RFC 3986, without "..").
std::string Resolved(const std::string& base, const std::string& reference) {
  if (reference.empty()) return base;
  const size_t scheme = reference.find_first_of(":/?#");
  if (scheme != reference.npos && reference[scheme] == ':') return reference;
  const size_t colon = base.find(':');
  if (colon == base.npos) {
    return reference[0] == '/' ? reference : base.substr(0, base.rfind('/') + 1) + reference;
  }
  const bool has_host = base.compare(colon, 3, "://") == 0;
  const size_t host = has_host ? std::min(base.find('/', colon + 3), base.size()) : colon + 1;
  if (reference[0] == '/') return base.substr(0, host) + reference;
  const size_t slash = base.rfind('/');
  if (slash == base.npos || slash < host) return base.substr(0, host) + "/" + reference;
  return base.substr(0, slash + 1) + reference;
}

}  // namespace

bool IsSchema(const JsonView& value) { return value.IsObject() || value.IsBool(); }

Addresses::Addresses(const JsonView& root, int draft, Budget& budget)
    : root_(root), draft_(draft), budget_(budget) {
  FindIn(root, "", 0);
}

// Schemas' own addresses ($id) and anchors.
void Addresses::FindIn(const JsonView& value, std::string base, size_t depth) {
  if (depth > kMaxSchemaDepth) return;
  if (value.IsObject()) {
    for (const char* const key : {"$id", "id"}) {
      const JsonView id = value[key];
      // Older drafts ignore all keywords beside a reference.
      if (!id.IsString() || (draft_ <= 7 && value["$ref"].IsString()) ||
          (draft_ > 4 && std::string_view(key) == "id" && root_["$schema"].IsString()))
        continue;
      std::string address = id.String();
      if (address.empty()) continue;
      if (address[0] == '#') {
        schemas_.try_emplace(base + address, value);
        continue;
      }
      if (address.back() == '#') address.pop_back();
      base = Resolved(base, address);
      schemas_.try_emplace(base, value);
      bases_[value.text().data()] = base;
    }
    for (const char* const key : {"$anchor", "$dynamicAnchor"}) {
      if (const JsonView anchor = value[key]; anchor.IsString()) {
        schemas_.try_emplace(base + "#" + anchor.String(), value);
      }
    }
  }
  if (!value.IsObject() && !value.IsArray()) return;
  for (const auto& [key, part] : value) {
    if (key != "enum" && key != "const" && (part.IsObject() || part.IsArray())) {
      FindIn(part, base, depth + 1);
    }
  }
}

Addresses::Found Addresses::Follow(const std::string& reference, const std::string& base,
                                   const std::string& place) {
  const size_t hash = std::min(reference.find('#'), reference.size());
  const std::string file = reference.substr(0, hash);
  const std::string fragment =
      WithoutPercents(reference.substr(std::min(hash + 1, reference.size())));
  const std::string address = file.empty() ? base : Resolved(base, file);
  Found to = {root_, address, file.empty() ? "#" + fragment : reference};
  if (const auto found = schemas_.find(address); found != schemas_.end()) {
    to.schema = found->second;
  } else if (!file.empty()) {
    FailAt(place, "'$ref' leads to ", gguf::Quoted(reference), ", which is another document");
  }
  if (!fragment.empty() && fragment[0] != '/') {
    const auto found = schemas_.find(address + "#" + fragment);
    to.schema = found == schemas_.end() ? JsonView() : found->second;
  } else if (!fragment.empty()) {
    to.schema = At(to.schema, fragment, to.base);
    // Many schemas have an $id that was never meant as a base: then the pointer starts at the root.
    if (!IsSchema(to.schema)) to.schema = At(root_, fragment, to.base);
  }
  if (!IsSchema(to.schema)) {
    FailAt(place, "'$ref' leads to ", gguf::Quoted(reference), ", where no schema is");
  }
  return to;
}

std::string Addresses::Own(const JsonView& schema) const {
  const auto own = bases_.find(schema.text().data());
  return own == bases_.end() ? "" : own->second;
}

// The value at a JSON Pointer (RFC 6901).
JsonView Addresses::At(JsonView at, std::string_view path, std::string& base) {
  while (!path.empty() && at.is_there()) {
    path.remove_prefix(1);
    std::string name(path.substr(0, path.find('/')));
    path.remove_prefix(name.size());
    for (size_t i = 0; (i = name.find('~', i)) != name.npos; ++i) {
      const bool is_tilde = name.compare(i, 2, "~0") == 0;
      if (is_tilde || name.compare(i, 2, "~1") == 0) name.replace(i, 2, is_tilde ? "~" : "/");
    }
    at = Part(at, name);
    if (const auto own = bases_.find(at.text().data()); at.IsObject() && own != bases_.end())
      base = own->second;
  }
  return at;
}

// A member or an item; the members of each object are read once.
JsonView Addresses::Part(const JsonView& value, const std::string& name) {
  const auto [known, is_new] = parts_.try_emplace(value.text().data());
  if (is_new) {
    size_t i = 0;
    budget_.Charge(value.text().size() / 4);
    for (const auto& [key, part] : value)
      known->second[value.IsArray() ? std::to_string(i++) : key] = part;
  }
  const auto found = known->second.find(name);
  return found == known->second.end() ? JsonView() : found->second;
}

}  // namespace grammar
