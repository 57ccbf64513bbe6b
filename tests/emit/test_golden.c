/* The sources that families emit: golden.tsv has a hash of each family's first candidate for several problems, so a
 * review of a change shows which families and problems it affects. WARPLOOM_UPDATE_GOLDEN=1 or the target golden
 * rewrites the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/hash.h"
#include "generator/generator.h"
#include "support/emit_fixture.h"
#include "support/golden.h"

static const char table[] = WLM_SOURCE_DIR "/tests/emit/golden.tsv";
static const char header[] = "# family, problem, variant, hash of the source";
/* The test writes each hashed source here; `last` has the sources of the run in which the table was last up to date. */
static const char folder_now[] = WLM_BINARY_DIR "/golden", folder_last[] = WLM_BINARY_DIR "/golden/last";

static const struct problem {
  const char *name;
  int64_t n;
  wlm_operation operation;
  wlm_reduce reduce;
  wlm_type type;
  int sampled, has_positions, transposed;
  const char *custom; /* of a message */
} problems[] = {{"plain", 128, WLM_SPMM, WLM_SUM, WLM_F32, 0, 0, 0, NULL},
                {"narrow", 4, WLM_SPMM, WLM_SUM, WLM_F32, 0, 0, 0, NULL},
                {"sampled", 128, WLM_SPMM, WLM_SUM, WLM_F32, 1, 0, 0, NULL},
                {"gradient", 128, WLM_SDDMM, WLM_SUM, WLM_F32, 0, 0, 0, NULL},
                {"positions", 128, WLM_SPMM, WLM_MAX, WLM_F32, 0, 1, 0, NULL},
                {"f16-mean", 128, WLM_SPMM, WLM_MEAN, WLM_F16, 0, 0, 0, NULL},
                {"transposed", 128, WLM_SPMM, WLM_SUM, WLM_F32, 0, 0, 1, NULL},
                {"attention", 64, WLM_ATTENTION, WLM_SUM, WLM_F32, 0, 0, 0, NULL},
                {"attention-back", 64, WLM_ATTENTION, WLM_SUM, WLM_F32, 0, 0, 1, NULL},
                {"message", 128, WLM_MESSAGE, WLM_CUSTOM, WLM_F16, 0, 1, 0, "max=relu(b+e);edge_sum=x*b"},
                {"message-back", 64, WLM_MESSAGE, WLM_CUSTOM, WLM_F32, 0, 0, 1, "d:row;w:row:wins;sum=d*w*a;edge=d*w"}};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static wlmi_spec spec_of(const struct problem *p) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_csr csr = WLM_CSR_INIT;
  wlmi_spec spec;
  problem.n = p->n;
  problem.operation = p->operation;
  problem.reduce = p->reduce;
  problem.custom = p->custom;
  problem.dense_type = csr.value_type = p->type;
  problem.sampling.sample = p->sampled ? WLM_SAMPLE_BUCKET : WLM_SAMPLE_NONE;
  problem.sampling.width = p->sampled ? 64 : 0;
  problem.want_argmax = p->has_positions;
  problem.transpose = p->transposed;
  csr.values = &csr; /* the spec depends only on whether there are values */
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
  return spec;
}

static void add_row(const char *variant, const wlmi_spec *spec, const wlmi_limits *limits, const char *problem,
                    wlmi_text *rows) {
  const int family = (int)strcspn(variant, "/");
  char hex[WLM_HASH_HEX], path[512];
  wlmi_program program;
  assert_status(WLM_OK, wlmi_generator_emit(emit_generator, variant, spec, limits, &program));
  const size_t size = strlen(program.source);
  wlmi_hash_to_hex(wlmi_hash_bytes(program.source, size), hex);
  wlmi_text_printf(rows, "%.*s\t%s\t%s\t%s\n", family, variant, problem, variant, hex);
  snprintf(path, sizeof path, "%s/%.*s.%s.txt", folder_now, family, variant, problem);
  write_whole(path, program.source, size);
  wlmi_program_release(&program);
}

/* Adds a row for the first candidate of each family. */
static void add_rows(const struct problem *p, const wlmi_limits *limits, wlmi_text *rows) {
  const wlmi_spec spec = spec_of(p);
  const wlmi_candidate_list *names;
  assert_status(WLM_OK, wlmi_generator_describe(emit_generator, &spec, limits, &names));
  for (int64_t i = 0; i < names->count; i++) {
    const size_t family = strcspn(names->candidates[i].variant, "/") + 1;
    if (!i || strncmp(names->candidates[i - 1].variant, names->candidates[i].variant, family))
      add_row(names->candidates[i].variant, &spec, limits, p->name, rows);
  }
  wlmi_candidates_drop(names);
}

static void make_folder(const char *path) {
  if (mkdir(path, 0777) && errno != EEXIST) fail_msg("%s: %s", path, strerror(errno));
}

static void keep_texts(void) {
  make_folder(folder_last);
  if (system("cp '" WLM_BINARY_DIR "/golden/'*.txt '" WLM_BINARY_DIR "/golden/last'")) fail_msg("%s", folder_last);
}

static void sources_equal_the_table(void **state) {
  (void)state;
  wlmi_text rows = {0};
  make_folder(folder_now);
  for (int i = 0; i < PROBLEMS; i++) {
    add_rows(&problems[i], &emit_cuda, &rows);
    add_rows(&problems[i], &emit_host, &rows);
  }
  assert_false(rows.failed);
  const int same = golden_is(table, header, &rows);
  wlmi_text_release(&rows);
  if (!same)
    fail_msg(
        "families emit other sources than %s has; they are FAMILY.PROBLEM.txt in %s, and those of the last time "
        "that the table was right in %s: compare with diff -u; " GOLDEN_UPDATE,
        table, folder_now, folder_last);
  keep_texts();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sources_equal_the_table)};
  return cmocka_run_group_tests(tests, emit_begin, emit_end);
}
