# Writes a table from a file list: one `const TYPE PREFIX_<stem>` per file becomes one row. The file
# name is the registration; nothing registers itself, so a static library drops nothing.
# usage: thimble_generate_table(OUT files prefix type header function)
function(thimble_generate_table out prefix type header function)
  set(declarations "")
  set(rows "")
  set(count 0)
  set(files ${ARGN})
  list(SORT files COMPARE FILE_BASENAME)  # rows are looked up by name
  foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    file(STRINGS ${file} defines REGEX "^const ${type} ${prefix}${stem}[{ =]")
    if(defines)
      string(APPEND declarations "extern const ${type} ${prefix}${stem};\n")
      string(APPEND rows "    &${prefix}${stem},\n")
      math(EXPR count "${count} + 1")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT
"// Generated from the file list by cmake/tables.cmake.
#include <array>

#include \"${header}\"

namespace thimble {
${declarations}
std::span<const ${type}* const> ${function}() {
  static const std::array<const ${type}*, ${count}> table = {
${rows}  };
  return table;
}
}  // namespace thimble
" @ONLY)
endfunction()
