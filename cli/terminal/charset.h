// Characters of a terminal. All text is UTF-8, the program's and the terminal's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

// Sets the user's locale, or a UTF-8 one, for characters only: numbers stay as in C.
void SetUpCharset();

// Replaces \n, \t, \r, \e, \", \', \\ and \xHH; any other backslash stays.
std::string Unescaped(std::string_view text);

// Removes control characters, which a terminal would obey; a model's text may contain any of them.
std::string ForTerminal(std::string_view text);

// Width of a character in columns: 0, 1 or 2.
size_t CharColumns(char32_t c);

// Convert between UTF-8 and wide characters, which are Unicode code points.
std::wstring ToWide(std::string_view utf8);
std::string FromWide(std::wstring_view text);

}  // namespace cli
