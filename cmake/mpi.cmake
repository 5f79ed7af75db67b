# Finds MPI, for training by several processes. THIMBLE_MPI is AUTO (found, or left out with a word on
# what to install), ON (missing is an error) or OFF.
set(THIMBLE_MPI AUTO CACHE STRING "Ranks over MPI: AUTO, ON or OFF")

set(THIMBLE_HAS_MPI OFF)
if(NOT THIMBLE_MPI)
  message(STATUS "MPI: left out, as asked")
else()
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(THIMBLE_HAS_MPI ON)
    message(STATUS "MPI: ${MPI_CXX_LIBRARY_VERSION_STRING} ${MPI_CXX_VERSION}, ${MPIEXEC_EXECUTABLE}")
  elseif(THIMBLE_MPI STREQUAL "ON")
    message(FATAL_ERROR "THIMBLE_MPI=ON, but no MPI was found; install libopenmpi-dev and openmpi-bin")
  else()
    message(STATUS "MPI: left out: not found (install libopenmpi-dev and openmpi-bin to train by "
                   "several processes)")
  endif()
endif()
