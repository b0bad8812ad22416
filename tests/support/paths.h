// Where the checkout and the program under test are: known to one source only, so that the others
// compile to the same code wherever that is.
#pragma once

#include <string>

namespace test {

const std::string& SourceDir();
const std::string& Program();  // build/bin/pronk

}  // namespace test
