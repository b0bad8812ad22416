# native_target(VARIABLE FLAGS...): the name of the best target that this CPU runs and this compiler
# builds, e.g. avx512vnni. The program's own choice (threads/cpu.cc), made while configuring.
function(native_target variable)
  if(NOT PRONK_NATIVE_TARGET)
    set(folder ${PROJECT_BINARY_DIR}/native_target)
    file(WRITE ${folder}/main.cc "#include <cstdio>\n#include \"kernels/threads/cpu.h\"\n"
      "int main() { std::puts(kernels::CpuTarget().c_str()); }\n")
    set(sources ${folder}/main.cc ${CMAKE_CURRENT_SOURCE_DIR}/threads/cpu.cc)
    set(include ${PROJECT_SOURCE_DIR})
    if(TARGET hwy::hwy)
      set(libraries LINK_LIBRARIES hwy::hwy)
    else()
      list(APPEND sources ${highway_SOURCE_DIR}/hwy/targets.cc ${highway_SOURCE_DIR}/hwy/abort.cc)
      list(APPEND include ${highway_SOURCE_DIR})
    endif()
    try_compile(compiles ${folder} SOURCES ${sources}
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${include}"
      COMPILE_DEFINITIONS ${ARGN} -DPRONK_BUILDS_AVX_VNNI
      ${libraries} CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
      OUTPUT_VARIABLE output COPY_FILE ${folder}/native_target)
    if(compiles)
      execute_process(COMMAND ${folder}/native_target OUTPUT_VARIABLE name OUTPUT_STRIP_TRAILING_WHITESPACE)
    endif()
    if(NOT name)
      message(WARNING "PRONK_TARGETS=native: cannot find out what this CPU has, so all is built. ${output}")
      set(name all)
    endif()
    set(PRONK_NATIVE_TARGET ${name} CACHE INTERNAL "The best target of this CPU")
  endif()
  message(STATUS "Kernels for ${PRONK_NATIVE_TARGET} and the baseline")
  set(${variable} ${PRONK_NATIVE_TARGET} PARENT_SCOPE)
endfunction()
