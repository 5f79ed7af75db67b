# A record that is not named like its file is refused; one that is makes a row. usage: cmake
# -DSOURCE=REPOSITORY -DFOLDER=SCRATCH -P tables_test.cmake
if(DEFINED TABLE_OF)
  include(${SOURCE}/cmake/tables.cmake)
  thimble_generate_table(${FOLDER}/table.cpp policy_ Policy "plan/policy.h" all_policies ${TABLE_OF})
  return()
endif()

function(make_table name text result)
  file(MAKE_DIRECTORY ${FOLDER})
  file(WRITE ${FOLDER}/${name}.cpp "${text}")
  execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${SOURCE} -DFOLDER=${FOLDER}
                          -DTABLE_OF=${FOLDER}/${name}.cpp -P ${CMAKE_CURRENT_LIST_FILE}
                  RESULT_VARIABLE code ERROR_VARIABLE said)
  set(${result} "${code} ${said}" PARENT_SCOPE)
endfunction()

make_table(keep_every "const Policy policy_keep_every{};\n" good)
file(READ ${FOLDER}/table.cpp table)
if(NOT good MATCHES "^0" OR NOT table MATCHES "&policy_keep_every")
  message(FATAL_ERROR "no row of a good file: ${good} ${table}")
endif()
make_table(helper "int policy_of(int x) { return x; }\n" helper)
if(NOT helper MATCHES "^0")
  message(FATAL_ERROR "a file without a record is refused: ${helper}")
endif()
foreach(wrong "const Policy policy_keep_evry{};" "constexpr Policy policy_keep_every{};"
              "  const Policy policy_keep_every = {};")
  make_table(keep_every "${wrong}\n" said)
  if(NOT said MATCHES "^1.*registration.*policy_keep_every")
    message(FATAL_ERROR "'${wrong}' was let through: ${said}")
  endif()
endforeach()
