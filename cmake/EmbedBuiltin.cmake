# Writes the built-in kernels during the build and compiles them (exported/tables.h), so that the library can multiply
# without a compiler: C for the host, and PTX for GPUs, which NVRTC makes without a GPU. The tool that emits them
# consists of the library's own objects. Without NVRTC on the building machine there are only those of the host.
function(embed_builtin out)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/builtin)
  set(files ${folder}/tables.c ${folder}/kernels.S)
  foreach(i RANGE 3)
    list(APPEND files ${folder}/host/${i}.c)
  endforeach()
  find_library(WARPLOOM_BUILD_NVRTC NAMES nvrtc libnvrtc.so.13 libnvrtc.so.12 HINTS ${CUDAToolkit_LIBRARY_DIR})
  add_executable(embed_builtin ${CMAKE_CURRENT_SOURCE_DIR}/tools/embed_builtin.c)
  target_link_libraries(embed_builtin PRIVATE warploom_objects)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${files} DEPENDS embed_builtin VERBATIM COMMENT "Emitting the built-in kernels"
    COMMAND ${CMAKE_COMMAND} -E env WARPLOOM_NVRTC=${WARPLOOM_BUILD_NVRTC} ASAN_OPTIONS=detect_leaks=0
            $<TARGET_FILE:embed_builtin> ${folder})
  if(WARPLOOM_BUILD_NVRTC)
    message(STATUS "Built-in PTX: by ${WARPLOOM_BUILD_NVRTC}")
  else()
    message(STATUS "Built-in PTX: none (no NVRTC found); running on a GPU will need NVRTC")
  endif()
  add_library(warploom_builtin OBJECT ${files})
  target_include_directories(warploom_builtin PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(warploom_builtin PRIVATE $<$<COMPILE_LANGUAGE:ASM>:-Wa,-I,${folder}>)
  target_link_libraries(warploom_builtin PRIVATE OpenMP::OpenMP_C)
  set(${out} $<TARGET_OBJECTS:warploom_builtin> PARENT_SCOPE)
endfunction()
