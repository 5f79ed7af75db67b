# Tables of constants made of text files in assets/, one initialiser a line: a source includes what is between the
# braces of its array.
#   TEXTS  a string literal for each line
#   RUNS   {first, last, ...} for each line: two codes in hexadecimal, then decimal numbers
#
# usage: thimble_asset_tables(SOURCE TEXTS|RUNS file.txt ...): SOURCE, in src, may include "generated/assets/file.inc"
if(DEFINED OUT)  # run at build time
  file(READ ${IN} text)
  if(KIND STREQUAL "TEXTS")
    string(REGEX REPLACE "([^\n]+)\n" "\"\\1\",\n" text "${text}")
  else()
    string(REGEX REPLACE " " ", " text "${text}")
    string(REGEX REPLACE "([0-9a-f]+), ([0-9a-f]+)([^\n]*)\n" "{0x\\1, 0x\\2\\3},\n" text "${text}")
  endif()
  file(WRITE ${OUT} "${text}")
  return()
endif()

function(thimble_asset_tables source kind)
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME_WE)
    set(table ${CMAKE_BINARY_DIR}/generated/assets/${name}.inc)
    add_custom_command(
      OUTPUT ${table} DEPENDS ${PROJECT_SOURCE_DIR}/assets/${file} ${PROJECT_SOURCE_DIR}/cmake/asset_table.cmake
      COMMAND ${CMAKE_COMMAND} -DOUT=${table} -DIN=${PROJECT_SOURCE_DIR}/assets/${file} -DKIND=${kind}
              -P ${PROJECT_SOURCE_DIR}/cmake/asset_table.cmake
      COMMENT "Embedding assets/${file}" VERBATIM)
    set_property(SOURCE ${source} APPEND PROPERTY OBJECT_DEPENDS ${table})
  endforeach()
  set_source_files_properties(${source} PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR})
endfunction()
