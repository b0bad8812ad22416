// Turns conjunctions of schemas into rules: for json_schema.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/conjunctions.h"
#include "grammar/json_rules.h"
#include "grammar/json_schema.h"

namespace grammar {

class Converter {
 public:
  Converter(Schemas& schemas, const SchemaOptions& options, Builder& builder)
      : options_(options),
        schemas_(schemas),
        all_(schemas, options.closed),
        builder_(builder),
        json_(builder, options.free_space) {}

  RuleId Convert();

 private:
  using MaybePart = std::optional<Part>;

  // Empty if no value fits.
  std::optional<RuleId> RuleOf(const Conjunction& all, const std::string& place);
  RuleId AnyValue();
  void Define(const Conjunction& all, RuleId rule);
  MaybePart OfShape(const Shape& shape);
  std::string Spelled(const JsonView& value) const;
  MaybePart String(const Shape& shape);
  MaybePart Number(const Shape& shape);
  RuleId Outline(Part part);
  Part After(std::string_view text, Part part);
  Part Value(RuleId rule);

  // The ends of a list or an object: its body leads from the end of `open` to another state.
  struct Brackets {
    Part open;
    StateId after_some, after_none, end;
  };
  Brackets BracketsOf(char bracket, bool is_unique = false);
  // Members in a rule of their own, since the rule needs its register. `others`: members that may
  // follow the named ones.
  Part MembersIn(char bracket, uint32_t id, MaybePart others);
  void AddMember(uint32_t id, Part key, std::optional<RuleId> value, bool is_required);

  // Lists: list_rules.cc.
  MaybePart Array(const Shape& shape);
  Part Item(RuleId rule, bool is_first);
  Part Items(const Shape& shape, const std::vector<RuleId>& first, std::optional<RuleId> rest,
             uint64_t most);
  MaybePart Containing(const Shape& shape, uint64_t n_first, uint64_t most,
                       const std::vector<Contains>& contains);
  Names FewTexts(const Shape& shape);
  std::optional<Names> FewValues(const Shape& shape);
  MaybePart UniqueOf(const Shape& shape, const Names& texts, uint64_t most);

  // Objects: object_rules.cc.
  struct Needs;   // one way to have the members that some schemas need
  struct Others;  // keys that no schema names, and the schemas of their values
  MaybePart Object(const Shape& shape);
  std::vector<Needs> WaysToHave(const Shape& shape, const Names& names);
  MaybePart ObjectWith(const Shape& shape, const Names& names, const Needs& needs);
  bool AddNeeds(const Shape& shape, const std::map<std::string, uint32_t>& index, Members& members);
  std::vector<Others> OthersOf(const Shape& shape, Dfa keys, bool is_closed);

  const SchemaOptions& options_;
  Schemas& schemas_;
  Conjunctions all_;
  Builder& builder_;
  JsonRules json_;
  std::map<Conjunction, RuleId> rules_;
  std::vector<std::pair<Conjunction, RuleId>> pending_;  // rules not defined yet
  std::map<std::string, std::optional<RuleId>> shared_;
  std::map<std::string, RuleId> keys_;
  std::vector<StateId> ends_;  // ends of the members of the object or list that is being made
  RuleId any_value_ = kNone;
  bool has_closed_ = false;
};

}  // namespace grammar
