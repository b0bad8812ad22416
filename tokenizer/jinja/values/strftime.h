// A date as text, as the C locale's strftime writes it. Our own, because the program's locale must
// not change a prompt and because a stranger's format must not reach a function that trusts it.
#ifndef PRONK_TOKENIZER_JINJA_VALUES_STRFTIME_H_
#define PRONK_TOKENIZER_JINJA_VALUES_STRFTIME_H_

#include <chrono>
#include <string>
#include <string_view>

namespace tokenizer::jinja {

// %a %A %b %B %c %d %D %e %f %F %h %H %I %j %m %M %n %p %R %S %t %T %u %w %x %X %y %Y %%, and %-d
// and the like without the leading zero. Others stay as they are.
std::string FormatTime(std::chrono::local_seconds time, std::string_view format);

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_VALUES_STRFTIME_H_
