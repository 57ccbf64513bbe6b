# The extension module warploom._native: the library, statically, behind a cffi binding for every CPython from 3.9 on.
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
set(binding ${CMAKE_CURRENT_SOURCE_DIR}/python/warploom/_build.py)
set(handler ${CMAKE_CURRENT_SOURCE_DIR}/python/binding/jax_handler)
add_custom_command(
  OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/_native.c
  COMMAND Python::Interpreter ${binding} ${CMAKE_C_COMPILER} ${CMAKE_CURRENT_SOURCE_DIR}/include
          ${CMAKE_CURRENT_BINARY_DIR}/_native.c
  DEPENDS ${binding} ${handler}.h include/warploom/warploom.h include/warploom/warploom_attention.h include/warploom/warploom_message.h include/warploom/warploom_tune.h
  VERBATIM)
python_add_library(warploom_python MODULE ${CMAKE_CURRENT_BINARY_DIR}/_native.c ${handler}.c)
target_include_directories(warploom_python PRIVATE python/binding)
set_target_properties(warploom_python PROPERTIES OUTPUT_NAME _native SUFFIX .abi3.so)
target_link_libraries(warploom_python PRIVATE warploom_static)
# Hide the symbols, so that another copy of the library in the process does not replace them.
target_link_options(warploom_python PRIVATE -Wl,--exclude-libs,ALL)
install(TARGETS warploom_python LIBRARY DESTINATION warploom COMPONENT python)
install(FILES share/warploom/system.db DESTINATION warploom/share/warploom COMPONENT python)
install(FILES share/warploom/kernels.archive DESTINATION warploom/share/warploom COMPONENT python OPTIONAL)
