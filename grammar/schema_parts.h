// A JSON Schema before it becomes rules: references are followed, allOf is merged, negations and
// conditions become alternatives. For json_schema.cc.
#ifndef PRONK_GRAMMAR_SCHEMA_PARTS_H_
#define PRONK_GRAMMAR_SCHEMA_PARTS_H_

#include <cstddef>
#include <string>

#include "grammar/schema_keywords.h"

namespace grammar {

class SchemaParts {
 public:
  explicit SchemaParts(JsonView root);

  // The schema that a reference such as "#/$defs/node" points to. Throws if there is none.
  JsonView Follow(const std::string& reference, const std::string& pointer) const;
  // The schema's keywords without annotations, merged with those of allOf and of a reference beside
  // other keywords; a lone reference is kept. Throws grammar::Error if a
  // keyword is not supported or has a wrong value, or schemas cannot be merged.
  Flat Flatten(const JsonView& schema, const std::string& pointer, size_t depth = 0);
  // The same of what a lone reference leads to.
  Flat Resolve(const JsonView& schema, const std::string& pointer, size_t depth = 0);
  // Whether no value generated for one schema is valid under the other. false: unknown.
  bool Apart(const JsonView& a, const JsonView& b, const std::string& pointer, size_t depth = 0);

 private:
  void Charge(size_t bytes, const std::string& pointer);
  // A schema of exactly the values that are not valid under this one.
  JsonView Negation(const JsonView& schema, const std::string& pointer, size_t depth);
  bool Misses(const JsonView& made, const JsonView& other, const std::string& pointer,
              size_t depth);

  JsonView root_;
  size_t n_bytes_ = 0;  // of schemas looked at and of what merging them made
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_SCHEMA_PARTS_H_
