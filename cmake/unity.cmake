# Sources compiled several at a time, so that a build from nothing reads the headers they share once. Whoever
# edits a source compiles its neighbours along, and a cache of objects keeps fewer of them, so this is for
# builds from nothing: the Makefile asks for it where there is no ccache. Only folders whose files read
# much (JSON, flags) and whose local names differ (tools/check_unity); no kernels: what is inlined where
# decides which sums and products become one instruction, and so bits.
option(THIMBLE_UNITY "Compile sources several at a time, for builds from nothing" OFF)

# usage: thimble_unite(target files): those of one folder
function(thimble_unite target)
  if(NOT THIMBLE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(number 0)
  foreach(file IN LISTS ARGN)
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    math(EXPR group "${number} / 8")
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${folder}_${group})
    math(EXPR number "${number} + 1")
  endforeach()
endfunction()
