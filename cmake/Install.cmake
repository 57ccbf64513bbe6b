# Libraries, headers, command, man page, completions, system database, pkg-config file and CMake package.
list(TRANSFORM kinds TOLOWER OUTPUT_VARIABLE libraries)
list(TRANSFORM libraries PREPEND warploom_)
install(TARGETS ${libraries} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS warploom RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES share/warploom/system.db DESTINATION ${CMAKE_INSTALL_DATADIR}/warploom)
# A kernel archive, if one was built there (docs/install.md); git does not track it.
install(FILES share/warploom/kernels.archive DESTINATION ${CMAKE_INSTALL_DATADIR}/warploom COMPONENT kernels OPTIONAL)
install(FILES include/warploom/warploom.h include/warploom/warploom_attention.h include/warploom/warploom_message.h include/warploom/warploom_tune.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warploom)

# Man page and completions, which the command prints; a build for another machine cannot run it.
if(NOT CMAKE_CROSSCOMPILING)
  set(help_files)
  foreach(form man bash zsh)
    list(APPEND help_files ${CMAKE_CURRENT_BINARY_DIR}/help/warploom.${form})
    add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/help/warploom.${form}
                       COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/help
                       COMMAND warploom help ${form} > ${CMAKE_CURRENT_BINARY_DIR}/help/warploom.${form}
                       DEPENDS warploom VERBATIM)
  endforeach()
  add_custom_target(warploom_help ALL DEPENDS ${help_files})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/help/warploom.man DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
          RENAME warploom.1)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/help/warploom.bash
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME warploom)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/help/warploom.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
          RENAME _warploom)
endif()

# Relative, so that the file stays right after `cmake --install --prefix` and when the folder is moved.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
get_filename_component(lua_name ${LUA_LIBRARY} NAME_WLE) # liblua5.4 on Debian, liblua on Fedora
string(REGEX REPLACE "^lib" "" lua_name ${lua_name})
set(pc_rpath) # where the loader does not look by itself
if(NOT CMAKE_INSTALL_FULL_LIBDIR IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
  set(pc_rpath " -Wl,-rpath,\${libdir}")
endif()
configure_file(cmake/warploom.pc.in warploom.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/warploom.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/warploom-config.cmake.in warploom-config.cmake
                              PATH_VARS CMAKE_INSTALL_FULL_LIBDIR CMAKE_INSTALL_FULL_INCLUDEDIR
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/warploom)
write_basic_package_version_file(warploom-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/warploom-config.cmake
        ${CMAKE_CURRENT_BINARY_DIR}/warploom-config-version.cmake cmake/FindJansson.cmake cmake/Findminizip.cmake cmake/FindxxHash.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/warploom)
