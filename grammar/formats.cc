// The formats of JSON Schema as patterns.
#include "grammar/formats.h"

#include <map>

namespace grammar {
namespace {

using Texts = std::map<std::string, std::string, std::less<>>;

// Patterns of parts; {NAME} is replaced by an earlier part.
const char* const kParts[][2] = {
    // RFC 3339. February 29 exists in leap years only.
    {"leap", "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"},
    {"day",
     "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-"
     "9]|30)|"
     "02-(?:0[1-9]|1[0-9]|2[0-8]))|{leap}-02-29)"},
    {"offset", "(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"},
    {"clock", "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?{offset}"},
    {"hours", "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"},
    {"days", "(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"},
    // At most 41 characters, so that six labels stay below the limit of 253.
    {"label", "[A-Za-z0-9](?:[A-Za-z0-9-]{0,39}[A-Za-z0-9])?"},
    {"domain", "{label}(?:\\.{label}){0,5}"},
    {"byte", "(?:[0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"},
    {"ipv4", "{byte}\\.{byte}\\.{byte}\\.{byte}"},
    {"h", "[0-9A-Fa-f]{1,4}"},
    {"last", "(?:{h}:{h}|{ipv4})"},  // 32 bits
    {"ipv6",
     "(?:(?:{h}:){6}{last}|::(?:{h}:){5}{last}|(?:{h})?::(?:{h}:){4}{last}|(?:(?:{h}:){0,1}{h})?::("
     "?:{h}:){3}{last}|"
     "(?:(?:{h}:){0,2}{h})?::(?:{h}:){2}{last}|(?:(?:{h}:){0,3}{h})?::{h}:{last}|(?:(?:{h}:){0,4}{"
     "h})?::{last}|"
     "(?:(?:{h}:){0,5}{h})?::{h}|(?:(?:{h}:){0,6}{h})?::)"},
    {"atom", "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"},
    // RFC 3986; the host is a name, which covers IPv4.
    {"u", "(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})"},
    {"pchar", "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"},
    {"authority", "(?:(?:{u}|:)*@)?(?:{u}*|\\[{ipv6}\\])(?::[0-9]*)?"},
    {"tail", "(?:\\?(?:{pchar}|[/?])*)?(?:#(?:{pchar}|[/?])*)?"},
    {"scheme", "[A-Za-z][A-Za-z0-9+.-]*:"},
    {"path", "(?://{authority}(?:/{pchar}*)*|/(?:{pchar}+(?:/{pchar}*)*)?"},
    // RFC 3987: other letters, too.
    {"iu",
     "(?:[A-Za-z0-9._~!$&'()*+,;=\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF-]|%[0-9A-Fa-f]{2})"},
    {"ipchar", "(?:{iu}|[:@])"},
    {"iauthority", "(?:(?:{iu}|:)*@)?(?:{iu}*|\\[{ipv6}\\])(?::[0-9]*)?"},
    {"itail", "(?:\\?(?:{ipchar}|[/?])*)?(?:#(?:{ipchar}|[/?])*)?"},
    {"ipath", "(?://{iauthority}(?:/{ipchar}*)*|/(?:{ipchar}+(?:/{ipchar}*)*)?"},
    {"pointer", "(?:/(?:[^~/]|~[01])*)*"},
    // RFC 6570.
    {"var",
     "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*(?::[1-9][0-9]{0,3}"
     "|\\*)?"},
    {"expression", "\\{[+#./;?&=,!@|]?{var}(?:,{var})*\\}"},
    // Expressions of two levels of groups.
    {"times", "\\{(?:[0-9]{1,3}(?:,)?|0,[0-9]{1,3}|1,[1-9][0-9]{0,2}|[0-9],[1-9][0-9]{1,2})\\}"},
    {"quantifier", "(?:(?:[*+?]|{times})[?]?)?"},
    {"char",
     "(?:[^\\\\\\[\\](){}*+?|]|\\\\[dDwWsSbBnrtfv.*+?^$|()\\[\\]{}/\\\\-]|"
     "\\[\\^?(?:[^\\\\\\[\\]^-]|[a-z]-z|[A-Z]-Z|[0-9]-9|\\\\[dDwWsSnrt.\\[\\]\\\\/^-])+-?\\])"},
    {"sequence", "(?:{char}{quantifier})*"},
    {"group", "\\((?:\\?:)?{sequence}(?:\\|{sequence})*\\){quantifier}"},
    {"sequence1", "(?:{char}{quantifier}|{group})*"},
    {"group1", "\\((?:\\?:)?{sequence1}(?:\\|{sequence1})*\\){quantifier}"},
    {"sequence2", "(?:{char}{quantifier}|{group1})*"},
};

const char* const kFormats[][2] = {
    {"date", "{day}"},
    {"time", "{clock}"},
    {"date-time", "{day}[Tt]{clock}"},
    {"duration", "P(?:{days}(?:{hours})?|{hours}|[0-9]+W)"},
    {"email", "{atom}(?:\\.{atom})*@(?:{label}(?:\\.{label}){1,5}|\\[{ipv4}\\])"},
    {"idn-email", "{atom}(?:\\.{atom})*@{label}(?:\\.{label}){1,5}"},
    {"hostname", "{domain}"},
    {"idn-hostname", "(?!.*--){domain}"},
    {"ipv4", "{ipv4}"},
    {"ipv6", "{ipv6}"},
    {"uri", "{scheme}(?:{path}|{pchar}+(?:/{pchar}*)*)?){tail}"},
    {"uri-reference",
     "(?:{scheme}(?:{path}|{pchar}+(?:/{pchar}*)*)?)|(?:{path}|{u}+(?:/{pchar}*)*)?)){tail}"},
    {"iri", "{scheme}(?:{ipath}|{ipchar}+(?:/{ipchar}*)*)?){itail}"},
    {"iri-reference",
     "(?:{scheme}(?:{ipath}|{ipchar}+(?:/{ipchar}*)*)?)|(?:{ipath}|{iu}+(?:/"
     "{ipchar}*)*)?)){itail}"},
    {"uri-template", "(?:[^\\u0000-\\u0020\"'%<>\\\\^`{|}]|%[0-9A-Fa-f]{2}|{expression})*"},
    {"uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"},
    {"json-pointer", "{pointer}"},
    {"relative-json-pointer", "(?:0|[1-9][0-9]*)(?:#|{pointer})"},
    {"regex", "{sequence2}(?:\\|{sequence2})*"},
    // Names of draft 3.
    {"ip-address", "{ipv4}"},
    {"host-name", "{domain}"},
};

std::string Filled(std::string_view pattern, const Texts& parts) {
  std::string all;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const size_t end = pattern[i] == '{' ? pattern.find('}', i) : pattern.npos;
    const auto part =
        end == pattern.npos ? parts.end() : parts.find(pattern.substr(i + 1, end - i - 1));
    if (part == parts.end()) {
      all += pattern[i];
      continue;
    }
    all += part->second;
    i = end;
  }
  return all;
}

}  // namespace

std::optional<std::string> PatternOfFormat(std::string_view format) {
  static const Texts formats = [] {
    Texts parts, all;
    for (const auto& [name, pattern] : kParts) parts[name] = Filled(pattern, parts);
    for (const auto& [name, pattern] : kFormats) {
      all[name] = "^(?:" + Filled(pattern, parts) + ")$";
    }
    return all;
  }();
  const auto found = formats.find(format);
  return found == formats.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace grammar
