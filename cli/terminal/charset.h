// Characters between the terminal and us. Inside, all text is UTF-8; a terminal may speak something
// else (Latin-1 for example), which the locale says.
#ifndef PRONK_CLI_TERMINAL_CHARSET_H_
#define PRONK_CLI_TERMINAL_CHARSET_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

// Takes the user's locale for characters, and only for those: numbers stay as in C. Where the
// environment names none, UTF-8 is assumed, which is what terminals speak today.
void SetUpCharset();

// What was typed on a terminal or given as an argument, as UTF-8.
std::string FromTerminal(std::string_view text);

// With \n, \t, \r, \e, \", \', \\ and \xHH replaced by what they mean; any other backslash stays.
std::string Unescaped(std::string_view text);

// UTF-8 for a terminal: in its own character set ('?' for what that lacks), and with nothing in it
// that the terminal would obey: a model's text may hold any control character.
std::string ForTerminal(std::string_view text);

// Columns that a terminal gives a character: 0, 1 or 2.
size_t CharColumns(char32_t c);

// Between UTF-8 and wide characters, which are Unicode's numbers.
std::wstring ToWide(std::string_view utf8);
std::string FromWide(std::wstring_view text);

}  // namespace cli

#endif  // PRONK_CLI_TERMINAL_CHARSET_H_
