# The target `pronk_hwy`: Highway 1.2 or newer, the SIMD library of our kernels. Taken from the system; else
# from the source folder FETCHCONTENT_SOURCE_DIR_HIGHWAY; else from the release on GitHub.
set(highway_archive highway-1.2.0.tar.gz)
set(highway_url https://github.com/google/highway/releases/download/1.2.0/${highway_archive})
set(highway_sha256 7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343)

# One try with a short timeout and a helpful message.
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
  file(SHA256 ${path}.part sha256)
  if(NOT sha256 STREQUAL highway_sha256)
    message(FATAL_ERROR "${highway_url}: expected the SHA-256 ${highway_sha256}, found ${sha256}")
  endif()
  file(RENAME ${path}.part ${path})
endfunction()

find_package(hwy 1.2 QUIET CONFIG)
if(TARGET hwy::hwy)
  add_library(pronk_hwy ALIAS hwy::hwy)
  get_target_property(highway_file hwy::hwy LOCATION)
  set_property(GLOBAL PROPERTY PRONK_HIGHWAY_FILE ${highway_file})  # for engine/Package.cmake
else()
  set(highway_SOURCE_DIR ${FETCHCONTENT_SOURCE_DIR_HIGHWAY})
  if(NOT highway_SOURCE_DIR)
    set(highway_SOURCE_DIR ${PROJECT_BINARY_DIR}/highway-1.2.0)
    if(NOT EXISTS ${highway_SOURCE_DIR})
      download_highway(${PROJECT_BINARY_DIR}/${highway_archive})
      file(ARCHIVE_EXTRACT INPUT ${PROJECT_BINARY_DIR}/${highway_archive} DESTINATION ${PROJECT_BINARY_DIR})
    endif()
  endif()
  # Not by its own CMakeLists.txt, which has options for the whole build; and only the part that its
  # headers call, since the rest takes 10 seconds to compile: to choose a target it asks how long the
  # vectors are (per_target.cc), but not on x86.
  set(highway_sources abort.cc targets.cc)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86|AMD64|i.86")
    list(APPEND highway_sources per_target.cc)
  endif()
  list(TRANSFORM highway_sources PREPEND ${highway_SOURCE_DIR}/hwy/)
  add_library(pronk_hwy STATIC ${highway_sources})
  target_compile_definitions(pronk_hwy PUBLIC HWY_STATIC_DEFINE)
  target_include_directories(pronk_hwy SYSTEM PUBLIC ${highway_SOURCE_DIR})  # no warnings
endif()
