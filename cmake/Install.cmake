# Libraries, headers, command, system database, pkg-config file and CMake package.
list(TRANSFORM kinds TOLOWER OUTPUT_VARIABLE libraries)
list(TRANSFORM libraries PREPEND warploom_)
install(TARGETS ${libraries} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS warploom RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES share/warploom/system.db DESTINATION ${CMAKE_INSTALL_DATADIR}/warploom)
install(FILES include/warploom/warploom.h include/warploom/warploom_tune.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warploom)

# Relative, so that the file stays right after `cmake --install --prefix` and when the folder is moved.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
get_filename_component(lua_name ${LUA_LIBRARY} NAME_WLE) # liblua5.4 on Debian, liblua on Fedora
string(REGEX REPLACE "^lib" "" lua_name ${lua_name})
configure_file(cmake/warploom.pc.in warploom.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/warploom.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/warploom-config.cmake.in warploom-config.cmake
                              PATH_VARS CMAKE_INSTALL_FULL_LIBDIR CMAKE_INSTALL_FULL_INCLUDEDIR
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/warploom)
write_basic_package_version_file(warploom-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/warploom-config.cmake
        ${CMAKE_CURRENT_BINARY_DIR}/warploom-config-version.cmake cmake/FindJansson.cmake cmake/FindxxHash.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/warploom)
