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
    file(STRINGS ${file} defines REGEX "^(extern )?const ${type} ${prefix}${stem}[{ =]")
    if(defines)
      string(APPEND declarations "extern const ${type} ${prefix}${stem};\n")
      string(APPEND rows "    &${prefix}${stem},\n")
      math(EXPR count "${count} + 1")
    endif()
    # A record of another name would be in no table, and nobody would know why.
    file(STRINGS ${file} others REGEX "(const|constexpr) ${type} ${prefix}[a-z0-9_]+[{ =]")
    if(others AND NOT defines)
      message(FATAL_ERROR "${file} says '${others}': the file's name is the registration, so it is "
                          "`const ${type} ${prefix}${stem}` at the beginning of a line")
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

# The same of the sources that match, into generated/NAME_table.cpp.
# usage: thimble_generate_table_of(name prefix type header function patterns)
function(thimble_generate_table_of name prefix type header function)
  set(patterns ${ARGN})
  list(TRANSFORM patterns PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB files CONFIGURE_DEPENDS ${patterns})
  thimble_generate_table(${CMAKE_BINARY_DIR}/generated/${name}_table.cpp ${prefix} ${type}
                         ${header} ${function} ${files})
endfunction()

# Writes what knows the update rules, rules/<stem>.h: one `static constexpr UpdateRule kRule` in the
# last struct of the file. A rule that is a template gets kernels of its own from each backend's
# rule_kernels.*.in, of which thimble_generate_rule_kernels makes one source per rule.
#   generated/update_rules.h         with_update_rule(name, body), for code that runs any rule
#   generated/update_rule_table.cpp  all_update_rules()
# Sets UPDATE_RULE_KERNELS to the rules with kernels, as stem:Struct.
# usage: thimble_generate_update_rules(folder files)
function(thimble_generate_update_rules folder)
  set(includes "")
  set(rows "")
  set(checks "")
  set(cases "")
  set(kernels "")
  set(count 0)
  foreach(file IN LISTS ARGN)
    get_filename_component(stem ${file} NAME_WE)
    file(STRINGS ${file} structs REGEX "^struct [A-Za-z0-9]+")
    list(POP_BACK structs last)
    string(REGEX REPLACE "^struct ([A-Za-z0-9]+).*" "\\1" name "${last}")
    file(STRINGS ${file} template REGEX "^template <class Real>")
    set(type ${name})
    if(template)
      set(type "${name}<float>")
      string(APPEND cases
             "  if (name == \"${stem}\") return body(TypeTag<${name}<Real>>{});\n")
      list(APPEND kernels ${stem}:${name})
    endif()
    string(APPEND includes "#include \"ops/update/rules/${stem}.h\"\n")
    string(APPEND checks "static_assert(${type}::kRule.name == \"${stem}\");\n")
    string(APPEND rows "    &${type}::kRule,\n")
    math(EXPR count "${count} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/update_rules.h CONTENT
"// Generated from the file list by cmake/tables.cmake.
#pragma once

#include \"base/number/dtype.h\"
#include \"base/error.h\"
${includes}
namespace thimble {
${checks}
// Calls body(TypeTag<Rule<Real>>) for the rule of that name.
template <class Real, class Body>
void with_update_rule(std::string_view name, const Body& body) {
${cases}  internal_check(false, \"there is no such rule of single elements\");
}
}  // namespace thimble
" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/update_rule_table.cpp CONTENT
"// Generated from the file list by cmake/tables.cmake.
#include \"generated/update_rules.h\"

namespace thimble {
std::span<const UpdateRule* const> all_update_rules() {
  static const std::array<const UpdateRule*, ${count}> table = {
${rows}  };
  return table;
}
}  // namespace thimble
" @ONLY)
  set(UPDATE_RULE_KERNELS ${kernels} PARENT_SCOPE)
endfunction()

# Configures `template` once per rule, as folder/<prefix><stem>.<suffix>, and sets `out` to the files.
# usage: thimble_generate_rule_kernels(out template folder prefix suffix)
function(thimble_generate_rule_kernels out template folder prefix suffix)
  set(files "")
  foreach(rule IN LISTS UPDATE_RULE_KERNELS)
    string(REPLACE ":" ";" parts ${rule})
    list(GET parts 0 stem)
    list(GET parts 1 struct)
    configure_file(${template} ${folder}/${prefix}${stem}.${suffix} @ONLY)
    list(APPEND files ${folder}/${prefix}${stem}.${suffix})
  endforeach()
  set(${out} ${files} PARENT_SCOPE)
endfunction()
