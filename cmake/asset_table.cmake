# Tables of constants made of text files in assets/, one initialiser a line: a source includes what is between the
# braces of its array.
#   TEXTS  a string literal for each line
#   RUNS   {first, last, ...} for each line: two codes in hexadecimal, then decimal numbers
#
# usage: thimble_asset_tables(source TEXTS|RUNS file.txt ...): the source may include "generated/assets/file.inc"
function(thimble_asset_tables source kind)
  foreach(file IN LISTS ARGN)
    set(asset ${PROJECT_SOURCE_DIR}/assets/${file})
    file(READ ${asset} text)
    if(kind STREQUAL "TEXTS")
      string(REGEX REPLACE "([^\n]+)\n" "\"\\1\",\n" text "${text}")
    else()
      string(REPLACE " " ", " text "${text}")
      string(REGEX REPLACE "([0-9a-f]+), ([0-9a-f]+)([^\n]*)\n" "{0x\\1, 0x\\2\\3},\n" text "${text}")
    endif()
    get_filename_component(name ${file} NAME_WE)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/assets/${name}.inc CONTENT "${text}" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${asset})
  endforeach()
  set_source_files_properties(${source} PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR})
endfunction()
