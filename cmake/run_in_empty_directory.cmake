# Empties DIRECTORY, and runs PROGRAM with it as its argument.
#
#   cmake -DPROGRAM=... -DLAUNCHER=... -DDIRECTORY=... -P run_in_empty_directory.cmake

file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${LAUNCHER} ${PROGRAM} ${DIRECTORY} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} failed: ${result}")
endif()
