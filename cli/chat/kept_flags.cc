// Tells which flags a saved chat keeps, and sets them again when it continues.
#include "cli/chat/kept_flags.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>

#include "cli/command.h"
#include "cli/options/generation_options.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/error.h"

namespace cli {
namespace {

// Kept flags besides all sampling flags.
constexpr auto kKept = std::to_array<std::string_view>(
    {"--ctx-size", "--kv", "--cache-type-k", "--cache-type-v", "--override-kv", "--template-var",
     "--think", "--no-think", "--n-predict", "--reverse-prompt", "--escape", "--grammar",
     "--json-schema", "--json-object", "--json-free-space", "--schema-in-prompt",
     "--no-schema-in-prompt", "--reasoning-budget", "--reasoning-budget-message"});

// Flags that exclude one another, or mean the same.
const std::initializer_list<std::initializer_list<std::string_view>> kExclusive = {
    {"--think", "--no-think"},
    {"--schema-in-prompt", "--no-schema-in-prompt"},
    {"--kv", "--cache-type-k", "--cache-type-v"},
    {"--grammar", "--json-schema", "--json-object"}};

bool IsKept(const Flag& flag) {
  const bool is_named = std::ranges::any_of(flag.names, [](const std::string& name) {
    return std::ranges::find(kKept, name) != kKept.end();
  });
  return is_named || flag.group.starts_with("Sampling");
}

// Whether the value of such a flag is a text; otherwise it names a file.
bool IsText(std::string_view flag, const std::string& value) {
  if (flag == "--grammar") return IsGrammarText(value);
  return flag != "--json-schema" || IsSchemaText(value);
}

}  // namespace

std::string LongName(const std::vector<std::string>& names) {
  const auto is_long = [](const std::string& name) { return name.starts_with("--"); };
  const auto found = std::ranges::find_if(names, is_long);
  return found != names.end() ? *found : "";
}

KeptFlags::KeptFlags(Command& command) {
  for (Flag& flag : command.flags) {
    if (!IsKept(flag)) continue;
    flags_.emplace_back(
        &flag, std::visit([](const auto* variable) { return Default(*variable); }, flag.target));
  }
}

Flag* KeptFlags::Find(std::string_view name) const {
  for (const auto& [flag, value] : flags_) {
    if (LongName(flag->names) == name) return flag;
  }
  return nullptr;
}

FlagValues KeptFlags::Typed() const {
  FlagValues values;
  for (const auto& [flag, value] : flags_) {
    if (!flag->given.empty()) values[LongName(flag->names)] = flag->given;
  }
  return values;
}

bool KeptFlags::IsTyped(std::string_view name) const {
  const Flag* const flag = Find(name);
  return flag != nullptr && !flag->typed.empty();
}

FlagValues KeptFlags::WithTyped(FlagValues saved) const {
  const FlagValues typed = Typed();
  for (const auto& group : kExclusive) {
    const auto is_typed = [&](std::string_view name) { return typed.contains(name); };
    if (std::ranges::none_of(group, is_typed)) continue;
    for (const std::string_view name : group) saved.erase(std::string(name));
  }
  for (const auto& [name, values] : typed) saved[name] = values;
  return saved;
}

void KeptFlags::Apply(const FlagValues& values) {
  for (const auto& [flag, value] : flags_) {
    const auto found = values.find(LongName(flag->names));
    flag->given = found != values.end() ? found->second : std::vector<std::string>();
    std::visit(
        [&initial = value](auto* variable) {
          *variable = std::get<std::remove_pointer_t<decltype(variable)>>(initial);
        },
        flag->target);
    try {
      flag->Read();
    } catch (const UsageError& error) {
      throw engine::Error(error.what());
    }
  }
}

void KeptFlags::CheckSaved(const FlagValues& values) const {
  for (const auto& [name, list] : values) {
    if (Find(name) == nullptr) throw engine::Error("flags: a chat keeps no ", gguf::Quoted(name));
    for (const std::string& value : list) {
      if (!IsText(name, value))
        throw engine::Error("flags: ", name, ": expected the text itself, found ",
                            gguf::Quoted(value));
    }
  }
}

FlagValues KeptFlags::WithTexts(FlagValues values) const {
  for (const std::string name : {"--grammar", "--json-schema"}) {
    const auto found = values.find(name);
    if (found == values.end() || IsText(name, found->second.back())) continue;
    const std::string& path = found->second.back();
    const std::string text = path == "-" ? "" : ReadFile(path, kMaxDocumentBytes);
    if (IsText(name, text)) {
      found->second = {text};
    } else {
      values.erase(found);
    }
  }
  return values;
}

}  // namespace cli
