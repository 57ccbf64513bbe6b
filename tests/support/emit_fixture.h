/* Problems, limits and template folders for tests of the generator. Include after cmocka. */
#pragma once

#include "generator/generator.h"
#include "support/asserts.h"
#include "support/folder.h"

/* The GPU of the simt shim, the host, and the smallest GPU: a candidate there is a candidate on every GPU. */
extern const wlmi_limits emit_cuda, emit_host, emit_smallest;

/* A generator with the library's templates; emit_begin and emit_end, cmocka's group setup and teardown, create and
 * destroy it. */
extern wlmi_generator *emit_generator;
int emit_begin(void **state);
int emit_end(void **state);

/* Emits a helper for these types of indices. */
wlm_status emit_helper(wlmi_generator *generator, wlmi_helper helper, wlm_index rowptr_type, wlm_index colind_type,
                       int base, wlmi_program *program);

/* mul.sum, f32, int32, with values. */
wlmi_spec emit_spec(int64_t n);

/* Writes folder/family/name; creates the family's folder. */
void emit_write(test_folder *folder, const char *family, const char *name, const char *text);
