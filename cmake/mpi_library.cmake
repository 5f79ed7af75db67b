# libthimble_mpi.so, the ranks over MPI: loaded by the program when it was started as one of several
# (src/comm/mpi_library.h). As with CUDA's, what it needs of the core it holds itself, hidden.
file(GLOB mpi_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/comm/mpi/*.cpp)
add_library(thimble_mpi MODULE ${mpi_files} base/printable.cpp $<TARGET_OBJECTS:thimble_build_id>)
target_include_directories(thimble_mpi PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(thimble_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
target_link_libraries(thimble_mpi PRIVATE fmt::fmt)
target_include_directories(thimble_mpi SYSTEM PRIVATE ${MPI_CXX_INCLUDE_DIRS})
target_link_libraries(thimble_mpi PRIVATE ${MPI_CXX_LIBRARIES})
target_link_options(thimble_mpi PRIVATE -Wl,-z,defs -Wl,--exclude-libs,ALL)
set_target_properties(thimble_mpi PROPERTIES CXX_VISIBILITY_PRESET hidden
                      VISIBILITY_INLINES_HIDDEN ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
                      BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
install(TARGETS thimble_mpi LIBRARY DESTINATION lib)
