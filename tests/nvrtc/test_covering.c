/* Compiles the covering set with real NVRTC: every entry for one of the architectures in turn, and the first of
 * each parameter value (in the full set of each variant) for all of them. No kernel may spill, nor use more registers
 * than its family.lua says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "support/covering.h"
#include "support/parallel.h"
#include "support/require.h"
#ifdef WLM_HAVE_CUDA
#include "runtime/cuda/nvrtc.h"

enum { MOST_COMPILES = 1500, MOST_COMPILES_FULL = 12000 };
static const int architectures[] = {80, 90, 100};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

typedef struct compile {
  const covering_entry *entry;
  int arch;
} compile;

typedef struct suite {
  wlmi_generator *generator;
  covering set;
  compile *compiles;
  int64_t count;
} suite;

static wlmi_limits limits_of(int arch) {
  /* dynamic shared memory of a block after opt-in, by the CUDA programming guide */
  return (wlmi_limits){.target = WLM_TARGET_CUDA,
                       .arch = arch,
                       .threads_per_block = 1024,
                       .shared_bytes = arch == 80 ? 166912 : 232448,
                       .processors = 108};
}

static void describe(void *user, int64_t index) {
  const suite *s = user;
  char text[512];
  covering_describe(s->compiles[index].entry, text, sizeof text);
  fprintf(stderr, "sm_%d %s\n", s->compiles[index].arch, text);
}

/* The largest of the numbers that stand between `before` and `behind` in the compiler's log; -1 where there is
 * none. */
static int64_t largest_number(const char *log, const char *before, const char *behind) {
  int64_t largest = -1;
  for (const char *at = log; (at = strstr(at, before)); at++) {
    char *end;
    long value = strtol(at + strlen(before), &end, 10);
    if (end > at + strlen(before) && !strncmp(end, behind, strlen(behind)) && value > largest) largest = value;
  }
  return largest;
}

static wlm_status check_log(const wlmi_program *program, const char *log) {
  int64_t registers = largest_number(log, "Used ", " registers");
  int64_t stores = largest_number(log, "bytes stack frame, ", " bytes spill stores");
  int64_t loads = largest_number(log, "bytes spill stores, ", " bytes spill loads");
  if (registers < 0 || stores < 0 || loads < 0)
    return wlmi_fail(WLM_ERR_MISMATCH, "the compiler's log tells no registers or spills: %s", log);
  if (stores || loads) return wlmi_fail(WLM_ERR_MISMATCH, "spills registers: %s", log);
  if (registers > program->max_registers)
    return wlmi_fail(WLM_ERR_MISMATCH, "uses %lld registers, family.lua says at most %d", (long long)registers,
                     program->max_registers);
  return WLM_OK;
}

static int one(void *user, int64_t index) {
  const suite *s = user;
  const compile *c = &s->compiles[index];
  const wlmi_limits limits = limits_of(c->arch);
  wlmi_program program = {0};
  wlmi_text log = {0};
  void *cubin = NULL;
  size_t size;
  wlm_status status = wlmi_generator_emit(s->generator, c->entry->variant, &c->entry->spec, &limits, &program);
  if (status == WLM_OK) status = wlmi_nvrtc_compile(program.source, "emitted", c->arch, &cubin, &size, &log);
  if (status == WLM_OK) status = check_log(&program, log.data ? log.data : "");
  if (status != WLM_OK) {
    fprintf(stderr, "%s: ", wlm_error_detail());
    describe(user, index);
  }
  wlmi_free(cubin);
  wlmi_text_release(&log);
  wlmi_program_release(&program);
  return status != WLM_OK;
}

/* The set is made for the smallest of the devices, so that each of its entries is a candidate on all. */
static void plan_compiles(suite *s) {
  s->compiles = calloc((size_t)s->set.count * ARCHITECTURES, sizeof *s->compiles);
  assert_non_null(s->compiles);
  for (int64_t i = 0; i < s->set.count; i++)
    for (int a = 0; a < ARCHITECTURES; a++)
      if (s->set.entries[i].first || i % ARCHITECTURES == a)
        s->compiles[s->count++] = (compile){&s->set.entries[i], architectures[a]};
}

static void test_emitted_kernels_compile(void **state) {
  (void)state;
  test_needs_nvrtc();
  suite s = {0};
  const wlmi_limits limits = limits_of(architectures[0]);
  assert_int_equal(wlmi_generator_create(NULL, &s.generator), WLM_OK);
  assert_int_equal(covering_make(s.generator, &limits, 1, covering_full(), &s.set), WLM_OK);
  plan_compiles(&s);
  printf("nvrtc: %lld variants, %lld compilations\n", (long long)s.set.count, (long long)s.count);
  assert_true(s.set.count > 100);
  assert_true(s.count <= (covering_full() ? MOST_COMPILES_FULL : MOST_COMPILES));
  assert_int_equal(test_in_parallel(s.count, one, describe, &s), 0);
  free(s.compiles);
  covering_release(&s.set);
  wlmi_generator_destroy(s.generator);
}

#else

static void test_emitted_kernels_compile(void **state) {
  (void)state;
  test_needs_nvrtc();
}

#endif

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_emitted_kernels_compile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
