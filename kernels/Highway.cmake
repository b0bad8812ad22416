# The target `hwy`: Highway 1.2 or newer, the SIMD library of our kernels. Taken
# from the system; else from the source folder FETCHCONTENT_SOURCE_DIR_HIGHWAY; else from the
# release on GitHub. Only the library is built, without our warning flags, its tests and examples.
set(highway_archive highway-1.2.0.tar.gz)
set(highway_url https://github.com/google/highway/releases/download/1.2.0/${highway_archive})
set(highway_sha256 7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343)

# One try with a short timeout and a helpful message: without a network FetchContent alone would try
# for 85 seconds.
function(download_highway path)
  if(EXISTS ${path})
    return()
  endif()
  message(STATUS "Downloading Highway 1.2.0")
  file(DOWNLOAD ${highway_url} ${path}.part TIMEOUT 120 INACTIVITY_TIMEOUT 15 STATUS status)
  list(GET status 0 code)
  if(NOT code EQUAL 0)
    list(GET status 1 reason)
    file(REMOVE ${path}.part)
    message(FATAL_ERROR "Highway 1.2 or newer is not installed, and ${highway_url} cannot be read "
      "(${reason}). Install it (Debian 13, Ubuntu 25.04: libhwy-dev; Fedora: highway-devel; Homebrew: "
      "highway), or unpack ${highway_archive} and set FETCHCONTENT_SOURCE_DIR_HIGHWAY to its folder.")
  endif()
  file(RENAME ${path}.part ${path})
endfunction()

find_package(hwy 1.2 QUIET CONFIG)
if(TARGET hwy::hwy)
  add_library(hwy ALIAS hwy::hwy)
  get_target_property(highway_file hwy::hwy LOCATION)
  set_property(GLOBAL PROPERTY PRONK_HIGHWAY_FILE ${highway_file})  # for engine/Package.cmake
else()
  if(NOT FETCHCONTENT_SOURCE_DIR_HIGHWAY)
    download_highway(${CMAKE_BINARY_DIR}/${highway_archive})
  endif()

  include(FetchContent)
  if(POLICY CMP0135)
    cmake_policy(SET CMP0135 NEW)  # unpacked files get the time of unpacking
  endif()
  foreach(part CONTRIB EXAMPLES INSTALL TESTS)
    set(HWY_ENABLE_${part} OFF CACHE INTERNAL "")
  endforeach()
  FetchContent_Declare(highway
    URL ${CMAKE_BINARY_DIR}/${highway_archive} URL_HASH SHA256=${highway_sha256})
  FetchContent_MakeAvailable(highway)

  # Highway's other targets are not built, and its headers give no warnings.
  set_property(DIRECTORY ${highway_SOURCE_DIR} PROPERTY EXCLUDE_FROM_ALL ON)
  # Only the part that its headers call, since the rest takes 10 seconds to compile: to choose a
  # target it asks how long the vectors are (per_target.cc), but not on x86.
  set(highway_sources abort.cc targets.cc)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86|AMD64|i.86")
    list(APPEND highway_sources per_target.cc)
  endif()
  list(TRANSFORM highway_sources PREPEND ${highway_SOURCE_DIR}/hwy/)
  set_property(TARGET hwy PROPERTY SOURCES ${highway_sources})
  get_target_property(hwy_include hwy INTERFACE_INCLUDE_DIRECTORIES)
  set_target_properties(hwy PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${hwy_include}")
endif()
