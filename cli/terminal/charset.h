// Converts characters between the terminal and the program. Inside, all text is UTF-8; the terminal
// uses the locale's character set (Latin-1 for example).
#ifndef PRONK_CLI_TERMINAL_CHARSET_H_
#define PRONK_CLI_TERMINAL_CHARSET_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

// Takes the user's locale for characters only: numbers stay as in C. If the environment names none,
// UTF-8 is assumed, the default of today's terminals.
void SetUpCharset();

// Converts text typed on a terminal or given as an argument to UTF-8.
std::string FromTerminal(std::string_view text);

// Replaces \n, \t, \r, \e, \", \', \\ and \xHH; any other backslash stays.
std::string Unescaped(std::string_view text);

// UTF-8 for a terminal: in its character set ('?' for missing characters), and without control
// characters that the terminal would obey, since a model's text may contain any.
std::string ForTerminal(std::string_view text);

// Width of a character in columns: 0, 1 or 2.
size_t CharColumns(char32_t c);

// Between UTF-8 and wide characters, which are Unicode code points.
std::wstring ToWide(std::string_view utf8);
std::string FromWide(std::wstring_view text);

}  // namespace cli

#endif  // PRONK_CLI_TERMINAL_CHARSET_H_
