# What `cmake --install` installs for other projects: pronk/pronk.h, one static library that
# includes all of ours, and the package for find_package(pronk), with the target pronk::engine.
#
# Our folders' libraries are not installed: they have warning flags, and their headers expose SIMD. A
# Highway that was built here goes into the library; the package finds everything else again when used.
include(CMakePackageConfigHelpers)

add_library(pronk_package STATIC $<TARGET_OBJECTS:pronk_gguf> $<TARGET_OBJECTS:pronk_kernels>
  $<TARGET_OBJECTS:pronk_jinja> $<TARGET_OBJECTS:pronk_tokenizer> $<TARGET_OBJECTS:pronk_schema>
  $<TARGET_OBJECTS:pronk_grammar> $<TARGET_OBJECTS:pronk_engine>)
set_target_properties(pronk_package PROPERTIES OUTPUT_NAME pronk LINKER_LANGUAGE CXX)

# Library files by name, each with a folder to look in first. OpenMP's is the one of the compiler
# that built the library, whichever compiler uses it.
set(PRONK_PACKAGE_LIBRARIES)
function(package_needs)
  foreach(path ${ARGN})
    get_filename_component(name ${path} NAME_WE)
    get_filename_component(folder ${path} DIRECTORY)
    string(REGEX REPLACE "^lib" "" name ${name})
    list(APPEND PRONK_PACKAGE_LIBRARIES "${name}=${folder}")
  endforeach()
  set(PRONK_PACKAGE_LIBRARIES ${PRONK_PACKAGE_LIBRARIES} PARENT_SCOPE)
endfunction()

get_property(highway_file GLOBAL PROPERTY PRONK_HIGHWAY_FILE)
if(highway_file)
  package_needs(${highway_file})
else()
  target_sources(pronk_package PRIVATE $<TARGET_OBJECTS:hwy>)
endif()
find_package(OpenMP REQUIRED COMPONENTS CXX)
package_needs(${OpenMP_CXX_LIBRARIES} ${SENTENCEPIECE_LIBRARY} ${PCRE2_LIBRARY})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/pronk)
configure_package_config_file(pronkConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/pronkConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
if(PROJECT_VERSION_MAJOR EQUAL 0)  # semantic versions: until 1.0, minor ones may break
  set(compatible SameMinorVersion)
else()
  set(compatible SameMajorVersion)
endif()
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/pronkConfigVersion.cmake
  COMPATIBILITY ${compatible})
install(TARGETS pronk_package ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES pronk.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pronk)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pronkConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/pronkConfigVersion.cmake DESTINATION ${package_folder})
