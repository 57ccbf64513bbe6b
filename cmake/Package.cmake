# `cpack` makes a Debian package and an RPM of an installation, and of the archive of compiled kernels, if one was built,
# packages of its own (docs/install.md). Build a package on the distribution that it is for: names of libraries differ.
set(CPACK_GENERATOR DEB RPM)
set(CPACK_PACKAGE_NAME warploom)
set(CPACK_PACKAGE_VENDOR warploom)
set(CPACK_PACKAGE_CONTACT "the warploom authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "autotuned products of sparse and dense matrices (SpMM) on GPUs and CPUs")
set(CPACK_PACKAGE_DESCRIPTION
    "The library, its headers, the command warploom, its man page and completions, and what was measured on GPUs.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL Unspecified)
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/share/warploom/kernels.archive)
  list(APPEND CPACK_COMPONENTS_ALL kernels)
endif()
set(kernels_summary "kernels of warploom for GPUs, compiled ahead")
set(kernels_text "With this archive first products need no compiler. It is for the version of warploom that built it.")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME warploom)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_RECOMMENDS gcc) # kernels of the host are compiled when they run
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_SUGGESTS warploom-kernels)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_KERNELS_PACKAGE_NAME warploom-kernels)
set(CPACK_DEBIAN_KERNELS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_KERNELS_PACKAGE_DEPENDS "warploom (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_KERNELS_DESCRIPTION "${kernels_summary}\n ${kernels_text}")

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_MAIN_COMPONENT Unspecified)
set(CPACK_RPM_PACKAGE_AUTOREQ ON)
set(CPACK_RPM_KERNELS_PACKAGE_NAME warploom-kernels)
set(CPACK_RPM_KERNELS_PACKAGE_ARCHITECTURE noarch)
set(CPACK_RPM_KERNELS_PACKAGE_REQUIRES "warploom = ${PROJECT_VERSION}")
set(CPACK_RPM_KERNELS_PACKAGE_SUMMARY ${kernels_summary})
set(CPACK_RPM_KERNELS_PACKAGE_DESCRIPTION ${kernels_text})
# Folders that other packages own.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/share/man /usr/share/man/man1 /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh
    /usr/share/zsh/site-functions /usr/${CMAKE_INSTALL_LIBDIR}/pkgconfig /usr/${CMAKE_INSTALL_LIBDIR}/cmake)
include(CPack)
