// A JSON Schema before it becomes rules: references are followed, allOf is merged, unsupported
// keywords are refused. For json_schema.cc.
#ifndef PRONK_GRAMMAR_SCHEMA_PARTS_H_
#define PRONK_GRAMMAR_SCHEMA_PARTS_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace grammar {

using Json = nlohmann::ordered_json;

// Throws grammar::Error: "#/properties/name: WHAT".
[[noreturn]] void FailAt(const std::string& pointer, const std::string& what);
// A place below a pointer; / and ~ in its name are escaped as in JSON Pointer (RFC 6901).
std::string Below(const std::string& pointer, const std::string& name);

class SchemaParts {
 public:
  // The whole schema, which must outlive this.
  explicit SchemaParts(const Json& root);

  // The schema that a reference such as "#/$defs/node" points to. Throws if there is none.
  const Json& Follow(const std::string& reference, const std::string& pointer) const;
  // The schema's keywords without annotations, merged with those of allOf and of a reference beside
  // other keywords; a lone reference is kept. false if no value fits. Throws grammar::Error if a
  // keyword is not supported or has a wrong value, or schemas cannot be merged.
  Json Flat(const Json& schema, const std::string& pointer, size_t depth = 0);
  // Whether no value generated for one schema is valid under the other. false: unknown.
  bool Apart(const Json& a, const Json& b, const std::string& pointer, size_t depth = 0);

 private:
  void Charge(const Json& schema, const std::string& pointer);
  void CheckKeywords(const Json& schema, const std::string& pointer) const;
  Json Merged(Json a, const Json& b, const std::string& pointer);
  bool Misses(const Json& made, const Json& other, const std::string& pointer, size_t depth);

  const Json& root_;
  size_t n_values_ = 0;  // copied so far
};

// The types that a flat schema allows: those it names, else those its keywords apply to, else all.
std::vector<std::string> TypesOf(const Json& flat);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_SCHEMA_PARTS_H_
