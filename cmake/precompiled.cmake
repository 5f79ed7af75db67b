# Headers from outside that most files read, compiled once per target. Sources still include what they
# use: a build with THIMBLE_PRECOMPILED=OFF must pass, too. No header that leaves templates to be made at the end
# of every file that sees it: nlohmann/json.hpp costs half a second there, so only the command line, all of
# which writes JSON, has it.
option(THIMBLE_PRECOMPILED "Precompile the standard library's and the dependencies' headers" ON)

# usage: thimble_precompile(target [more headers])
function(thimble_precompile target)
  if(THIMBLE_PRECOMPILED)
    target_precompile_headers(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:<fmt/format.h$<ANGLE-R>>"
      "$<$<COMPILE_LANGUAGE:CXX>:<filesystem$<ANGLE-R>>"
      "$<$<COMPILE_LANGUAGE:CXX>:<functional$<ANGLE-R>>"
      "$<$<COMPILE_LANGUAGE:CXX>:<span$<ANGLE-R>>"
      "$<$<COMPILE_LANGUAGE:CXX>:<unordered_map$<ANGLE-R>>"
      ${ARGN})
  endif()
endfunction()
