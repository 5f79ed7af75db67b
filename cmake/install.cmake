# What `cmake --install` puts where, and what finds it there: find_package(thimble), pkg-config, Python.
#
#   bin/thimble                     the program
#   lib/libthimble.so.0             the C functions; libthimble_cuda.so beside it, where it was built
#   include/thimble/thimble.h       what they are; thimble.hpp: the same for C++
#   lib/cmake/thimble, lib/pkgconfig
#   lib/python3/dist-packages/thimble
include(CMakePackageConfigHelpers)

install(TARGETS thimble RUNTIME DESTINATION bin)
install(TARGETS thimble_library EXPORT thimble_targets LIBRARY DESTINATION lib)
if(THIMBLE_HAS_CUDA)
  install(TARGETS thimble_cuda LIBRARY DESTINATION lib)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/thimble DESTINATION include)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/thimble DESTINATION lib/python3/dist-packages
        PATTERN __pycache__ EXCLUDE)

# Completion of words in shells, and pages of man, as the program that was built prints them.
if(NOT CMAKE_CROSSCOMPILING)
  install(CODE "
    set(words \"${CMAKE_BINARY_DIR}/generated/words\")
    file(MAKE_DIRECTORY \${words})
    foreach(shell bash zsh fish)
      execute_process(COMMAND $<TARGET_FILE:thimble> completion \${shell} OUTPUT_FILE \${words}/\${shell}
                      COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    execute_process(COMMAND $<TARGET_FILE:thimble> man --all \${words} COMMAND_ERROR_IS_FATAL ANY)")
  set(words ${CMAKE_BINARY_DIR}/generated/words)
  install(FILES ${words}/bash DESTINATION share/bash-completion/completions RENAME thimble)
  install(FILES ${words}/zsh DESTINATION share/zsh/site-functions RENAME _thimble)
  install(FILES ${words}/fish DESTINATION share/fish/vendor_completions.d RENAME thimble.fish)
  install(DIRECTORY ${words}/ DESTINATION share/man/man1 FILES_MATCHING PATTERN "*.1")
endif()

set(cmake_files lib/cmake/thimble)
install(EXPORT thimble_targets NAMESPACE thimble:: FILE thimbleTargets.cmake
        DESTINATION ${cmake_files})
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/thimbleConfig.cmake @ONLY CONTENT
     "include(\"\${CMAKE_CURRENT_LIST_DIR}/thimbleTargets.cmake\")\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/thimbleConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/thimbleConfig.cmake
              ${CMAKE_BINARY_DIR}/generated/thimbleConfigVersion.cmake
        DESTINATION ${cmake_files})

# Found from where it lies, so that a tree that was moved still works.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/thimble.pc @ONLY CONTENT
"prefix=\${pcfiledir}/../..
Name: thimble
Description: Trains neural networks inside a memory budget
Version: @PROJECT_VERSION@
Cflags: -I\${prefix}/include
Libs: -L\${prefix}/lib -lthimble
")
install(FILES ${CMAKE_BINARY_DIR}/generated/thimble.pc DESTINATION lib/pkgconfig)

# make deb
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "The Thimble authors")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Trains neural networks inside a memory budget")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS python3)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3-numpy)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/triggers)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
include(CPack)
