# The library for other projects: one archive of all our folders' libraries, one shared library of the same
# objects, and the header that is included as <pronk/pronk.h>. The folders' own libraries are for this project
# alone: they have warning flags, and their headers expose SIMD.
#
# Inside another project (add_subdirectory, FetchContent) these are the targets pronk::engine and
# pronk::shared. `cmake --install` installs them, for find_package(pronk) and pkg-config. A Highway that was
# built here goes into the library; everything else is found again when it is used.
include(CMakePackageConfigHelpers)

foreach(folder gguf kernels jinja tokenizer schema grammar engine)
  list(APPEND objects $<TARGET_OBJECTS:pronk_${folder}>)
endforeach()
get_property(highway_file GLOBAL PROPERTY PRONK_HIGHWAY_FILE)
if(NOT highway_file)
  list(APPEND objects $<TARGET_OBJECTS:pronk_hwy>)
endif()
# OpenMP's is that of the compiler which built the library, whichever compiler uses it.
find_package(OpenMP REQUIRED COMPONENTS CXX)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
set(needed ${highway_file} ${OpenMP_CXX_LIBRARIES} ${SENTENCEPIECE_LIBRARY} ${PCRE2_LIBRARY})

add_library(pronk_package STATIC ${objects})
add_library(pronk_shared SHARED ${objects})
add_library(pronk::engine ALIAS pronk_package)
add_library(pronk::shared ALIAS pronk_shared)
# pronk.h and what it includes, in <pronk/>: in the folders that they have here, where each finds the others
# by a path from its own folder, since no folder of ours is in the path of those who use them.
foreach(header engine/pronk.h engine/pronk_c.h engine/completion.h engine/sampling/sampling.h tokenizer/message.h)
  string(REGEX REPLACE "^engine/(pronk.*)" "\\1" name ${header})
  get_filename_component(folder "/${name}" DIRECTORY)
  string(REGEX REPLACE "/[^/]+" "../" up "${folder}")
  if(folder STREQUAL "/")
    set(up "")
  endif()
  file(READ ${PROJECT_SOURCE_DIR}/${header} text)
  string(REPLACE "#include \"" "#include \"${up}" text "${text}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/pronk/${name} CONTENT "${text}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
endforeach()
foreach(library pronk_package pronk_shared)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME pronk LINKER_LANGUAGE CXX UNITY_BUILD OFF)
  target_include_directories(${library} SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/include)
  target_compile_features(${library} INTERFACE cxx_std_17)
  target_link_libraries(${library} PRIVATE ${needed} ${CMAKE_THREAD_LIBS_INIT} ${CMAKE_DL_LIBS})
endforeach()

# Semantic versions: until 1.0, minor ones may break.
set(compatible SameMajorVersion)
set(so_version ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatible SameMinorVersion)
  set(so_version 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(pronk_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${so_version})
if(PRONK_SANITIZE OR NOT PROJECT_IS_TOP_LEVEL)
  set_target_properties(pronk_shared PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
if(APPLE)  # only what the header declares can be seen, whatever else the host links
  target_link_options(pronk_shared PRIVATE LINKER:-exported_symbol,_pronk_*,-exported_symbol,__ZN*5pronk*
    LINKER:-exported_symbol,__ZT[ISV]N5pronk5ErrorE)
else()
  target_link_options(pronk_shared PRIVATE LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/pronk.map)
  set_target_properties(pronk_shared PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/pronk.map)
endif()
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# The needed libraries by name, each with a folder to look in first.
set(PRONK_PACKAGE_LIBRARIES)
foreach(path ${needed})
  get_filename_component(name ${path} NAME_WE)
  get_filename_component(folder ${path} DIRECTORY)
  string(REGEX REPLACE "^lib" "" name ${name})
  list(APPEND PRONK_PACKAGE_LIBRARIES "${name}=${folder}")
  string(APPEND PRONK_PRIVATE_LIBRARIES " -l${name}")
endforeach()
# The standard library of C++, which a linker for C does not add.
set(PRONK_CXX_LIBRARIES ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER PRONK_CXX_LIBRARIES INCLUDE REGEX "^(stdc\\+\\+|c\\+\\+|m|pthread)$")
list(REMOVE_DUPLICATES PRONK_CXX_LIBRARIES)
foreach(name ${PRONK_CXX_LIBRARIES})
  string(APPEND PRONK_PRIVATE_LIBRARIES " -l${name}")
endforeach()

set(here ${CMAKE_CURRENT_BINARY_DIR})
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/pronk)
configure_package_config_file(pronkConfig.cmake.in ${here}/pronkConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${here}/pronkConfigVersion.cmake COMPATIBILITY ${compatible})
file(RELATIVE_PATH PRONK_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(pronk.pc.in ${here}/pronk.pc @ONLY)

# The launcher builds no more than the program.
install(CODE "if(NOT EXISTS \"$<TARGET_FILE:pronk_package>\")
  message(FATAL_ERROR \"Not all is built that is installed: run cmake --build ${PROJECT_BINARY_DIR} first.\")
endif()")
install(TARGETS pronk_package ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS pronk_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/pronk DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${here}/pronkConfig.cmake ${here}/pronkConfigVersion.cmake DESTINATION ${package_folder})
install(FILES ${here}/pronk.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
