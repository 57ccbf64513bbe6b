/* The source of one variant of each family, byte for byte, so that a change of a template or of the operator block
 * shows in review as a change of what is compiled. WARPLOOM_UPDATE_GOLDEN=1 writes them anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"
#include "generator/generator.h"
#include "support/emit_fixture.h"

/* Says on stderr what is at the first line that differs. */
static void show_difference(const char *golden, const char *emitted) {
  int64_t line = 1;
  while (*golden && *emitted) {
    size_t a = strcspn(golden, "\n"), b = strcspn(emitted, "\n");
    if (a != b || memcmp(golden, emitted, a)) break;
    golden += a + (golden[a] == '\n');
    emitted += b + (emitted[b] == '\n');
    line++;
  }
  fprintf(stderr, "line %lld\n- %.*s\n+ %.*s\n", (long long)line, (int)strcspn(golden, "\n"), golden,
          (int)strcspn(emitted, "\n"), emitted);
}

static void check_golden(const char *family, const wlmi_program *program) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/emit/golden/%s.txt", WLM_SOURCE_DIR, family);
  if (getenv("WARPLOOM_UPDATE_GOLDEN")) {
    write_whole(path, program->source, strlen(program->source));
    return;
  }
  if (access(path, R_OK)) fail_msg("%s is not there: run the test with WARPLOOM_UPDATE_GOLDEN=1", path);
  size_t size;
  char *golden = (char *)read_whole(path, &size);
  int equal = size == strlen(program->source) && !memcmp(golden, program->source, size);
  if (!equal) {
    char *ended = realloc(golden, size + 1);
    assert_non_null(ended);
    ended[size] = 0;
    golden = ended;
    show_difference(golden, program->source);
  }
  free(golden);
  if (!equal)
    fail_msg("%s differs from %s; if it should, run the test with WARPLOOM_UPDATE_GOLDEN=1 and look at the diff",
             program->variant, path);
}

enum { MOST_FAMILIES = 64 };

static int is_new(char seen[MOST_FAMILIES][WLM_VARIANT_NAME], int *count, const char *family) {
  for (int i = 0; i < *count; i++)
    if (!strcmp(seen[i], family)) return 0;
  assert_true(*count < MOST_FAMILIES);
  strcpy(seen[(*count)++], family);
  return 1;
}

/* The first candidate of each family, for the first of these problems that has one: plain, narrow, sampled, sddmm,
 * transposed. */
static void test_golden(void **state) {
  (void)state;
  static const struct {
    int64_t n;
    wlm_sample sample;
    wlm_operation operation;
    int transpose;
  } problems[] = {{128, WLM_SAMPLE_NONE, WLM_SPMM, 0},
                  {4, WLM_SAMPLE_NONE, WLM_SPMM, 0},
                  {128, WLM_SAMPLE_BUCKET, WLM_SPMM, 0},
                  {128, WLM_SAMPLE_NONE, WLM_SDDMM, 0},
                  {128, WLM_SAMPLE_NONE, WLM_SPMM, 1}};
  enum { NUMBERS = 2 * sizeof problems / sizeof *problems };
  static const wlmi_limits *const devices[] = {&emit_cuda, &emit_host};
  char seen[MOST_FAMILIES][WLM_VARIANT_NAME];
  int families = 0;
  for (int number = 0; number < NUMBERS; number++) {
    const wlmi_limits *limits = devices[number % 2];
    wlmi_spec spec = emit_spec(problems[number / 2].n);
    wlmi_names names;
    spec.problem.sampling.sample = problems[number / 2].sample;
    spec.problem.sampling.width = 64;
    spec.problem.operation = problems[number / 2].operation;
    spec.problem.transpose = problems[number / 2].transpose;
    assert_status(WLM_OK, wlmi_generator_candidates(emit_generator, &spec, limits, &names));
    for (int64_t i = 0; i < names.count; i++) {
      char family[WLM_VARIANT_NAME];
      wlmi_program program;
      snprintf(family, sizeof family, "%.*s", (int)strcspn(names.names[i], "/"), names.names[i]);
      if (!is_new(seen, &families, family)) continue;
      assert_status(WLM_OK, wlmi_generator_emit(emit_generator, names.names[i], &spec, limits, &program));
      check_golden(family, &program);
      wlmi_program_release(&program);
    }
    wlmi_names_release(&names);
  }
  assert_true(families >= 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden)};
  return cmocka_run_group_tests(tests, emit_begin, emit_end);
}
