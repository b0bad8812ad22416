# cmake -D SOURCE=CHECKOUT -D FILE=FILE.cc -P commit.cmake: writes a function
# that returns the commit (machine.h), unless it is up to date.
# "unknown" without git, or if the sources were unpacked inside a checkout of something else.
set(commit unknown)
execute_process(COMMAND git --no-optional-locks rev-parse --show-prefix WORKING_DIRECTORY ${SOURCE}
  OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
if(status STREQUAL 0 AND prefix STREQUAL "")
  execute_process(COMMAND git --no-optional-locks describe --always --dirty --abbrev=10 --exclude=*
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE status ERROR_QUIET)
  if(status STREQUAL 0)
    set(commit ${described})
  endif()
endif()
set(text "#include \"cli/bench/machine.h\"\nstd::string cli::BuildCommit() { return \"${commit}\"; }\n")
set(present "")
if(EXISTS ${FILE})
  file(READ ${FILE} present)
endif()
if(NOT text STREQUAL present)
  file(WRITE ${FILE} "${text}")
endif()
