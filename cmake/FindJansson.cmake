# Jansson::Jansson, for distributions that ship the library without a CMake package.
find_path(Jansson_INCLUDE_DIR jansson.h)
find_library(Jansson_LIBRARY jansson)
if(Jansson_INCLUDE_DIR)
  file(STRINGS ${Jansson_INCLUDE_DIR}/jansson.h version_lines REGEX "#define JANSSON_VERSION +\"")
  string(REGEX REPLACE ".*\"([0-9.]+)\".*" "\\1" Jansson_VERSION "${version_lines}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Jansson REQUIRED_VARS Jansson_LIBRARY Jansson_INCLUDE_DIR VERSION_VAR Jansson_VERSION)
if(Jansson_FOUND AND NOT TARGET Jansson::Jansson)
  add_library(Jansson::Jansson UNKNOWN IMPORTED)
  set_target_properties(Jansson::Jansson PROPERTIES IMPORTED_LOCATION ${Jansson_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${Jansson_INCLUDE_DIR})
endif()
