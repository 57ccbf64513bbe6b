#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/emit_fixture.h"

#include "support/asserts.h"
#include "support/defaults.h"

const wlmi_limits emit_cuda = {
    .target = WLMI_TARGET_CUDA, .arch = 90, .threads_per_block = 1024, .shared_bytes = 232448, .processors = 132};
const wlmi_limits emit_smallest = {
    .target = WLMI_TARGET_CUDA, .arch = 80, .threads_per_block = 1024, .shared_bytes = 166912, .processors = 108};
const wlmi_limits emit_host = {.target = WLMI_TARGET_HOST, .processors = 2};

wlmi_generator *emit_generator;

int emit_begin(void **state) {
  (void)state;
  return wlmi_generator_create(NULL, &emit_generator) != WLM_OK;
}

int emit_end(void **state) {
  (void)state;
  wlmi_generator_destroy(emit_generator);
  return 0;
}

wlmi_spec emit_spec(int64_t n) {
  wlm_problem problem = PROBLEM(.n = n);
  wlm_csr csr = CSR(.values = &csr /* the spec depends only on whether there are values */);
  GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
  return spec;
}

void emit_write(test_folder *folder, const char *family, const char *name, const char *text) {
  char inside[128];
  mkdir(folder_file(folder, family), 0777);
  snprintf(inside, sizeof inside, "%s/%s", family, name);
  write_whole(folder_file(folder, inside), text, strlen(text));
}

wlm_status emit_helper(wlmi_generator *generator, wlmi_helper helper, wlm_index rowptr_type, wlm_index colind_type,
                       int base, wlmi_program *program) {
  wlm_csr types = CSR(.rowptr_type = rowptr_type, .colind_type = colind_type, .base = base);
  wlmi_spec spec;
  WLM_CHECK(wlmi_spec_of_types(&types, &spec));
  return wlmi_generator_emit_program(generator, helper, NULL, &spec, NULL, program);
}
