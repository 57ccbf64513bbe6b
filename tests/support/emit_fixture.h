/* Problems, limits and template folders for tests of the generator. Include after cmocka. */
#ifndef WLM_TESTS_EMIT_FIXTURE_H
#define WLM_TESTS_EMIT_FIXTURE_H

#include "generator/generator.h"
#include "support/asserts.h"
#include "support/folder.h"

/* A GPU as the simt shim has it, the host, and the smallest GPU: what is a candidate there is one on any. */
extern const wlmi_limits emit_cuda, emit_host, emit_smallest;

/* A generator of the library's own templates; cmocka's group setup and teardown make and destroy it. */
extern wlmi_generator *emit_generator;
int emit_begin(void **state);
int emit_end(void **state);

/* mul.sum, f32, int32, with values. */
wlmi_spec emit_spec(int64_t n);

/* Writes folder/family/name, making the family's folder. */
void emit_write(test_folder *folder, const char *family, const char *name, const char *text);

#endif
