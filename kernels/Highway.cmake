# The target `hwy`: Highway 1.2 or newer, from the system or from its source. See README.md.
find_package(hwy 1.2 QUIET)
if(NOT TARGET hwy)
  include(FetchContent)
  set(HWY_ENABLE_TESTS OFF CACHE INTERNAL "")
  set(HWY_ENABLE_CONTRIB OFF CACHE INTERNAL "")
  set(HWY_ENABLE_EXAMPLES OFF CACHE INTERNAL "")
  set(HWY_ENABLE_INSTALL OFF CACHE INTERNAL "")
  FetchContent_Declare(highway
    URL https://github.com/google/highway/releases/download/1.2.0/highway-1.2.0.tar.gz
    URL_HASH SHA256=7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343)
  FetchContent_MakeAvailable(highway)
  get_target_property(hwy_include hwy INTERFACE_INCLUDE_DIRECTORIES)
  set_target_properties(hwy PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${hwy_include}")
endif()
