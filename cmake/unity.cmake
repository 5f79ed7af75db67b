# Sources compiled several at a time, so that a build from nothing reads the headers they share once, and
# makes the templates they share once. Whoever edits a source compiles its neighbours along, and a cache
# of objects keeps fewer of them, so this is for builds from nothing: the Makefile asks for it where there
# is no ccache. Only folders whose files read much (JSON, flags) and whose local names differ
# (tools/check_unity); no kernels: what is inlined where decides which sums and products become one
# instruction, and so bits.
option(THIMBLE_UNITY "Compile sources several at a time, for builds from nothing" OFF)

# usage: thimble_unite(target folders): the target's sources of these folders of src, each by itself
function(thimble_unite target)
  if(NOT THIMBLE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(folder IN LISTS ARGN)
    set(files ${sources})
    list(FILTER files INCLUDE REGEX "/src/${folder}/[^/]*$")
    string(REPLACE "/" "_" name ${folder})
    set(number 0)
    foreach(file IN LISTS files)
      math(EXPR group "${number} / 8")
      set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${name}_${group})
      math(EXPR number "${number} + 1")
    endforeach()
  endforeach()
endfunction()

# g++ collects garbage from 128 MB on, of which precompiled headers alone are half; at 512 it rarely does.
if(THIMBLE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
endif()
