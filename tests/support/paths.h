// The paths of the checkout and the program under test. Only one source file knows them, so the
// other files compile to the same code everywhere.
#pragma once

#include <string>

namespace test {

const std::string& SourceDir();
const std::string& Program();  // build/bin/pronk

}  // namespace test
