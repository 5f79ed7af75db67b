# What Thimble builds on. Installed packages (tools/setup) come first. A machine with CUDA and none of
# them can still build it: THIMBLE_HEADERS names a folder with the header-only ones (fmt, CLI11,
# nlohmann-json, toml++); without oneDNN the CPU's convolutions and products run their plain kernels,
# without zlib compressed data sets cannot be read.
set(THIMBLE_HEADERS "" CACHE PATH "Folder with header-only dependencies; empty: installed packages")

find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(GTest REQUIRED)
if(THIMBLE_HEADERS)
  foreach(target fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json PkgConfig::tomlplusplus)
    add_library(${target} INTERFACE IMPORTED)
    target_include_directories(${target} SYSTEM INTERFACE ${THIMBLE_HEADERS})
  endforeach()
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
  find_package(dnnl QUIET)
  find_package(ZLIB QUIET)
  find_package(benchmark QUIET)
else()
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(dnnl REQUIRED)
  find_package(ZLIB REQUIRED)
  find_package(benchmark REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)
endif()

