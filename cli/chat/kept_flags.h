// The flags of chat that affect the answers. A saved chat stores them by name, so continuing it
// needs no flags.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/options/command_line.h"

namespace cli {

// The values of flags by their long names; a switch has one value, "".
using FlagValues = std::map<std::string, std::vector<std::string>, std::less<>>;

class KeptFlags {
 public:
  // The flags of `command` must all be declared, and not yet read.
  explicit KeptFlags(Command& command);

  // The kept flags on the command line; call it before Apply().
  FlagValues Typed() const;
  // Whether the flag with this long name was on the command line.
  bool IsTyped(std::string_view name) const;
  // `saved`, merged with the flags of the command line, which replace the same flags and flags that
  // they exclude.
  FlagValues WithTyped(FlagValues saved) const;
  // Sets the variables of all kept flags to these values, or to their defaults. Throws
  // engine::Error for a value that its flag refuses.
  void Apply(const FlagValues& values);

  // Throws engine::Error for a flag that is not kept, and for a grammar or a schema that is not the
  // text itself: a chat by someone else must not make the program read files.
  void CheckSaved(const FlagValues& values) const;
  // Replaces the file names of grammars and schemas by their texts, and drops those flags if they
  // name standard input, which cannot be read twice.
  FlagValues WithTexts(FlagValues values) const;

 private:
  template <class>
  struct Pointed;
  template <class... T>
  struct Pointed<std::variant<T*...>> {
    using Type = std::variant<T...>;
  };
  using Default = Pointed<Target>::Type;  // the type of the flag's variable
  Flag* Find(std::string_view name) const;

  std::vector<std::pair<Flag*, Default>> flags_;
};

// The flag's name in FlagValues.
std::string LongName(const std::vector<std::string>& names);

}  // namespace cli
