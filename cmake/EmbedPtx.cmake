# Compiles the built-in kernels to PTX during the build and embeds them (runtime/cuda/builtin.h), so that the library
# can multiply on a GPU without NVRTC. The tool that compiles them consists of the library's own objects; NVRTC needs no
# GPU. Without NVRTC on the building machine the table is empty.
function(embed_ptx out)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/cuda_builtin_table.c)
  find_library(WARPLOOM_BUILD_NVRTC NAMES nvrtc libnvrtc.so.13 libnvrtc.so.12 HINTS ${CUDAToolkit_LIBRARY_DIR})
  if(WARPLOOM_BUILD_NVRTC)
    add_executable(embed_ptx ${CMAKE_CURRENT_SOURCE_DIR}/tools/embed_ptx.c)
    target_link_libraries(embed_ptx PRIVATE warploom_objects)
    add_custom_command(OUTPUT ${table} DEPENDS embed_ptx VERBATIM COMMENT "Compiling built-in kernels to PTX"
      COMMAND ${CMAKE_COMMAND} -E env WARPLOOM_NVRTC=${WARPLOOM_BUILD_NVRTC} ASAN_OPTIONS=detect_leaks=0
              $<TARGET_FILE:embed_ptx> ${table})
    message(STATUS "Built-in PTX: by ${WARPLOOM_BUILD_NVRTC}")
  else()
    file(CONFIGURE OUTPUT ${table} @ONLY CONTENT "#include \"runtime/cuda/builtin.h\"\n
const struct wlmi_cuda_builtin wlmi_cuda_builtins[1] = {{0}};\nconst int wlmi_cuda_builtin_count = 0;\n")
    message(STATUS "Built-in PTX: none (no NVRTC found); running on a GPU will need NVRTC")
  endif()
  add_library(warploom_builtin OBJECT ${table})
  target_include_directories(warploom_builtin PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
  set(${out} $<TARGET_OBJECTS:warploom_builtin> PARENT_SCOPE)
endfunction()
