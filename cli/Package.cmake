# `cmake --install` for the program and its default model, and `cpack` for packages of it (.tar.gz; .deb where
# Debian's tools are) that need nothing but libc: what else the program is linked with goes along, beside it.
# Not all of that is in Debian as static libraries (sentencepiece is not).
set(libraries ${CMAKE_INSTALL_LIBDIR}/pronk)
file(RELATIVE_PATH from_program /${CMAKE_INSTALL_BINDIR} /${libraries})
set_target_properties(pronk PROPERTIES INSTALL_RPATH $ORIGIN/${from_program})
if(NOT APPLE)
  # In the build, too: else CMake fills the path's place there with empty entries, which the loader takes for the
  # current folder.
  set_target_properties(pronk PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  # As RPATH, which counts for what those libraries need, too.
  target_link_options(pronk PRIVATE LINKER:--disable-new-dtags)
endif()

install(TARGETS pronk RUNTIME_DEPENDENCY_SET needed
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(PROGRAMS cli/pronk-pull DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(FILES models/default.gguf DESTINATION ${CMAKE_INSTALL_DATADIR}/pronk COMPONENT program OPTIONAL)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
if(NOT APPLE)
  install(RUNTIME_DEPENDENCY_SET needed PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread)\\.so" "^ld-linux"
    LIBRARY DESTINATION ${libraries} COMPONENT needed EXCLUDE_FROM_ALL)
endif()

# The texts of their licences, and of what is compiled in: as this system's packages have them.
get_target_property(highway pronk_hwy INTERFACE_INCLUDE_DIRECTORIES)
set(compiled_in */nlohmann/json.hpp)
if(EXISTS "${highway}/LICENSE-BSD3")  # built here
  install(FILES ${highway}/LICENSE-BSD3 DESTINATION ${CMAKE_INSTALL_DOCDIR}/licences RENAME highway
    COMPONENT needed EXCLUDE_FROM_ALL)
else()
  list(APPEND compiled_in */hwy/highway.h)
endif()
install(CODE "
  set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  file(GLOB needed \"\${prefix}/${libraries}/*\")
  foreach(file IN LISTS needed ITEMS ${compiled_in})
    get_filename_component(name \"\${file}\" NAME)
    if(NOT IS_SYMLINK \"\${file}\")
      string(REGEX REPLACE \"^/.*/\" \"*lib/${CMAKE_LIBRARY_ARCHITECTURE}/\" pattern \"\${file}\")
      execute_process(COMMAND dpkg-query --search \"\${pattern}\" OUTPUT_VARIABLE found ERROR_QUIET)
      string(REGEX REPLACE \"[:,].*\" \"\" package \"\${found}\")
      if(package AND EXISTS /usr/share/doc/\${package}/copyright)
        configure_file(/usr/share/doc/\${package}/copyright
          \"\${prefix}/${CMAKE_INSTALL_DOCDIR}/licences/\${package}\" COPYONLY)
      else()
        message(WARNING \"\${name} is part of the package, but the text of its licence was not found: \"
          \"put it into ${CMAKE_INSTALL_DOCDIR}/licences before you pass the package on.\")
      endif()
    endif()
  endforeach()
" COMPONENT needed EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR TGZ)
find_program(DPKG_DEB dpkg-deb)
if(DPKG_DEB)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_INSTALL_CMAKE_PROJECTS ${PROJECT_BINARY_DIR} pronk program / ${PROJECT_BINARY_DIR} pronk needed /)
set(CPACK_PACKAGE_CONTACT "the maintainers of pronk")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE libc ERROR_QUIET)
if(libc MATCHES "([0-9.]+)")
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${CMAKE_MATCH_1})")
endif()
include(CPack)
