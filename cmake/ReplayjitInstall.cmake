# What `cmake --install` puts where: the shared library with its headers, a CMake
# package, a pkg-config file, and the tools.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/replayjit)
install(TARGETS replayjit EXPORT replayjitTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/replayjit
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT replayjitTargets NAMESPACE replayjit:: DESTINATION ${package_dir})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/replayjitConfig.cmake.in replayjitConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# As REPLAYJIT_API_VERSION promises; the SOVERSION too.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(replayjitConfigVersion.cmake
  COMPATIBILITY ${compatibility})
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/replayjitConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/replayjitConfigVersion.cmake
  DESTINATION ${package_dir})

# From the file to the prefix, so that an installed tree may be moved.
file(RELATIVE_PATH pc_to_prefix
  /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(${PROJECT_SOURCE_DIR}/cmake/replayjit.pc.in replayjit.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/replayjit.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# `cpack --config build/CPackConfig.cmake`: the same tree as a Debian package.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the replayjit developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
  "Decode kernels of linear-attention models, generated at run time")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
include(CPack)
