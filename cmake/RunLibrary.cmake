# libwarploom-run: the part of the library that chooses and runs, without what measures, emits, compiles and stores. It
# stands on two interfaces of runtime/context_state.h: where choices come from, and where kernels come from. The full
# library has a database and a compiler behind them, this one has the tables of an export (exported/tables.h).
set(run_rooms core/base core/problem core/csr select runtime/dispatch runtime runtime/host runtime/cuda exported
    exported/library)
list(TRANSFORM run_rooms APPEND /*.c)
file(GLOB run_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${run_rooms})
list(REMOVE_ITEM run_files
     core/base/json_value.c # Jansson
     core/csr/npz.c core/csr/lines.c # zlib, minizip
     core/csr/edge_list.c core/csr/formats.c core/csr/matrix_market.c core/csr/scipy.c core/csr/shares.c # files
     runtime/stores.c runtime/shipped.c runtime/recorder.c runtime/import_export.c # databases
     runtime/kernels.c exported/write.c runtime/archived.c runtime/purpose.c runtime/layers.c runtime/host/compiler.c runtime/cuda/nvrtc.c
     runtime/cuda/compile_only.c # compilers
     runtime/forecast.c) # tuning
add_library(warploom_run STATIC EXCLUDE_FROM_ALL ${run_files})
set_target_properties(warploom_run PROPERTIES OUTPUT_NAME warploom-run)
# XXH_INLINE_ALL: without libxxhash. Functions that a program does not call are left out of it.
target_compile_definitions(warploom_run PRIVATE _GNU_SOURCE XXH_INLINE_ALL)
target_compile_options(warploom_run PRIVATE -ffunction-sections -fdata-sections)
target_include_directories(warploom_run PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
target_include_directories(warploom_run SYSTEM PRIVATE ${xxHash_INCLUDE_DIR})
target_link_libraries(warploom_run PRIVATE OpenMP::OpenMP_C)

# The command, which depends on warploom_run, embeds the library, because export writes it beside the tables.
set(embedded_run_library ${CMAKE_CURRENT_BINARY_DIR}/run_library.S)
file(CONFIGURE OUTPUT ${embedded_run_library} @ONLY CONTENT "\t.section .rodata
\t.global wlmi_run_library\n\t.hidden wlmi_run_library\nwlmi_run_library:\n\t.incbin \"@CMAKE_CURRENT_BINARY_DIR@/libwarploom-run.a\"
\t.global wlmi_run_library_end\n\t.hidden wlmi_run_library_end\nwlmi_run_library_end:\n\t.byte 0
\t.section .note.GNU-stack,\"\",@progbits\n")
set_source_files_properties(${embedded_run_library} PROPERTIES
                            OBJECT_DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/libwarploom-run.a)
