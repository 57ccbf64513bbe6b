/* The grades of a matrix's stats: estimated stats read none of its arrays, given ones are checked, measured ones are
 * those of csr/stats; and in each grade a tuned matrix is recognised by its fingerprint. Decisions go by cells, and a
 * refresh forgets them. */
#include <sys/mman.h>

#include "core/problem/cell.h"
#include "core/synth/input.h"
#include "runtime/context_state.h"
#include "runtime/devices.h"
#include "support/calls.h"
#include "support/command.h"
#include "support/host_bench.h"
#include "support/put_times.h"
#include "support/stats.h"
#include "support/test.h"
#include "warploom/warploom_tune.h"

#define TUNED "synth:rows=300,d=6,cv=1"
enum { N = 16 };

static bench b;

static int begin(void **state) {
  folder_begin(state);
  bench_make(&b, NULL, TUNED, N);
  return 0;
}

static int end(void **state) {
  bench_release(&b);
  return folder_end(state);
}

static wlm_csr csr_of(const wlmi_csr_host *host) {
  return (wlm_csr)CSR(.rows = host->rows, .cols = host->cols, .nnz = host->nnz, .rowptr = host->rowptr,
                      .rowptr_type = WLM_I64, .colind = host->colind, .values = host->values);
}

static wlm_matrix *matrix_of(wlm_context *context, const wlm_csr *csr, wlm_stats_grade grade, const wlm_stats *stats) {
  wlm_matrix_options options = MATRIX_OPTIONS(.grade = grade, .stats = stats);
  GET(wlm_matrix *, matrix, wlm_matrix_create(context, csr, &options, &matrix));
  return matrix;
}

/* ---- grades of stats ------------------------------------------------------------------------------------ */

TEST(estimated_stats_read_nothing) {
  const size_t size = 1 << 20;
  void *forbidden = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(forbidden != MAP_FAILED);
  wlm_csr csr =
      CSR(.rows = 1000, .cols = 1000, .nnz = 9000, .rowptr = forbidden, .colind = forbidden, .values = forbidden);
  wlm_matrix *matrix = matrix_of(b.context, &csr, WLM_STATS_ESTIMATED, NULL);
  GET(wlm_plan *, plan, wlm_plan_create(b.context, matrix, &b.problem, &plan));
  assert_status(WLM_OK, wlm_plan_rebind(plan, &csr));
  WLM_FREED GET(char *, why, wlm_plan_explain(plan, 1, &why));
  const wlm_stats *stats = wlm_matrix_stats(matrix);
  assert_true(stats->rows == 1000 && stats->cols == 1000 && stats->nnz == 9000 && stats->mean == 9);
  assert_false(wlmi_stats_has_fingerprint(stats));
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  munmap(forbidden, size);
}

TEST(measured_stats_are_those_of_csr) {
  wlm_stats expected = test_stats_of(&b.csr);
  const wlm_csr csr = csr_of(&b.csr);
  OWNED(wlm_matrix) *matrix = matrix_of(b.context, &csr, WLM_STATS_MEASURED, NULL);
  /* the fingerprint is computed when something needs it */
  memset(expected.fingerprint, 0, sizeof expected.fingerprint);
  assert_memory_equal(wlm_matrix_stats(matrix), &expected, sizeof expected);
}

TEST(given_stats_are_checked) {
  const wlm_csr csr = csr_of(&b.csr);
  const wlm_stats sound = test_stats_of(&b.csr);
  wlm_matrix_options options = MATRIX_OPTIONS(.grade = WLM_STATS_GIVEN);
  wlm_matrix *matrix;
  wlm_stats given;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_matrix_create(b.context, &csr, &options, &matrix));
  options.stats = &given;
#define REFUSED(set, reason)                                                                        \
  do {                                                                                              \
    given = sound;                                                                                  \
    set;                                                                                            \
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_matrix_create(b.context, &csr, &options, &matrix)); \
    assert_contains(wlm_error_detail(), reason);                                                    \
    assert_null(matrix);                                                                            \
  } while (0)
  REFUSED(given.mean = NAN, "finite");
  REFUSED(given.cv = NAN, "finite");
  REFUSED(given.cv = INFINITY, "finite");
  REFUSED(given.top_share = NAN, "finite");
  REFUSED(given.rows++, "another size");
  REFUSED(given.cols--, "another size");
  REFUSED(given.nnz++, "another size");
  REFUSED(given.size = 3, "size");
  REFUSED(given.longest = given.nnz + 1, "longest must not be greater than nnz");
  REFUSED(given.longest = (int64_t)given.mean - 1, "longest must not be less than nnz / rows");
  REFUSED(given.longest = -1, "must not be negative");
  REFUSED(given.empty_rows = -1, "must not be negative");
  REFUSED(given.empty_rows = given.rows_le_4 + 1, "empty_rows <= rows_le_4");
  REFUSED(given.rows_le_4 = given.rows_le_16 + 1, "empty_rows <= rows_le_4");
  REFUSED(given.rows_le_16 = given.rows + 1, "empty_rows <= rows_le_4");
  REFUSED(given.mean *= 1.01, "mean must be nnz / rows");
  REFUSED(given.mean = 0, "mean must be nnz / rows");
  REFUSED(given.cv = -0.1, "cv must not be negative");
  REFUSED(given.top_share = -0.1, "top_share must be 0 to 1");
  REFUSED(given.top_share = 1.1, "top_share must be 0 to 1");
#undef REFUSED
  given = sound;
  given.mean = (double)(float)given.mean;
  assert_status(WLM_OK, wlm_matrix_create(b.context, &csr, &options, &matrix));
  wlm_matrix_destroy(matrix);
  given = sound;
  assert_status(WLM_OK, wlm_matrix_create(b.context, &csr, &options, &matrix));
  assert_memory_equal(wlm_matrix_stats(matrix), &sound, sizeof sound);
  wlm_matrix_destroy(matrix);
  options.grade = (wlm_stats_grade)7;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_matrix_create(b.context, &csr, &options, &matrix), "grade is 7");
}

/* ---- tuned matrices ------------------------------------------------------------------------------------- */

static wlmi_spec spec_of(void) {
  const wlm_csr csr = csr_of(&b.csr);
  GET(wlmi_spec, spec, wlmi_spec_make(&b.problem, &csr, &spec));
  return spec;
}

/* Stores times as if these variants had been tuned on a matrix with these stats. */
static void plant(const wlm_stats *stats, const char *const *variants, int count) {
  const wlmi_spec spec = spec_of();
  put_times(b.context, b.database, &spec, stats, variants, count, NULL);
}

static wlm_context *open_again(void) {
  wlm_context_options options = CONTEXT_OPTIONS(.device = "host", .database = b.database, .system_database = "");
  GET(wlm_context *, context, wlm_context_create(&options, &context));
  return context;
}

static void expect_step(wlm_context *context, const wlm_csr *csr, wlm_stats_grade grade, const wlm_stats *stats,
                        const char *step, const char *variant) {
  OWNED(wlm_matrix) *matrix = matrix_of(context, csr, grade, stats);
  OWN(wlm_plan, plan, wlm_plan_create(context, matrix, &b.problem, &plan));
  WLM_FREED GET(char *, why, wlm_plan_explain(plan, 1, &why));
  assert_json_at(why, "$.step", step);
  if (variant) assert_string_equal(wlm_plan_variant(plan), variant);
}

static const char *const slowest_by_rule[] = {"host_row/rows=16,tile=16", "host_row/rows=128,tile=16"};

/* Tunes with the tuner in one context; the next context recognises the matrix. */
TEST(tuned_matrices_are_recognised) {
  const wlm_csr csr = csr_of(&b.csr);
  wlm_stats none = test_stats_of(&b.csr);
  OWNED(wlm_context) *context = open_again();
  wlm_matrix *matrix = matrix_of(context, &csr, WLM_STATS_MEASURED, NULL);
  wlm_tune_options options = TUNE_OPTIONS(.budget_seconds = 2);
  assert_status(WLM_OK, wlm_tune(context, matrix, &b.problem, NULL, &options));
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
  context = open_again();
  none.fingerprint[0] = none.fingerprint[1] = 0;
  expect_step(context, &csr, WLM_STATS_ESTIMATED, NULL, "fingerprint", NULL);
  expect_step(context, &csr, WLM_STATS_MEASURED, NULL, "fingerprint", NULL);
  expect_step(context, &csr, WLM_STATS_GIVEN, &none, "fingerprint", NULL);
}

/* A matrix of the tuned one's size is not mistaken for it, in any grade. */
TEST(equal_sizes_do_not_match) {
  wlm_csr csr = csr_of(&b.csr);
  const wlm_stats stats = test_stats_of(&b.csr);
  int32_t colind[8192];
  assert_true(csr.nnz <= 8192);
  memset(colind, 0, sizeof colind);
  plant(&stats, slowest_by_rule, 2);
  OWNED(wlm_context) *context = open_again();
  expect_step(context, &csr, WLM_STATS_ESTIMATED, NULL, "fingerprint", slowest_by_rule[0]);
  csr.colind = colind;
  expect_step(context, &csr, WLM_STATS_ESTIMATED, NULL, "similar", NULL);
  expect_step(context, &csr, WLM_STATS_MEASURED, NULL, "similar", NULL);
}

/* A stored case with the fingerprint 0, 0 matches no matrix, not even stats without a fingerprint. */
TEST(no_fingerprint_is_no_match) {
  const wlm_csr csr = csr_of(&b.csr);
  wlm_stats stats = test_stats_of(&b.csr);
  OWNED(wlm_context) *context = NULL;
  stats.rows += 5;
  plant(&stats, slowest_by_rule, 2);
  context = open_again();
  stats = test_stats_of(&b.csr);
  stats.fingerprint[0] = stats.fingerprint[1] = 0;
  expect_step(context, &csr, WLM_STATS_GIVEN, &stats, "similar", NULL);
}

/* ---- decisions -------------------------------------------------------------------------------------------- */

static void variant_of(wlm_context *context, const wlmi_csr_host *host, char variant[WLMI_VARIANT_NAME]) {
  const wlm_csr csr = csr_of(host);
  OWNED(wlm_matrix) *matrix = matrix_of(context, &csr, WLM_STATS_MEASURED, NULL);
  OWN(wlm_plan, plan, wlm_plan_create(context, matrix, &b.problem, &plan));
  snprintf(variant, WLMI_VARIANT_NAME, "%s", wlm_plan_variant(plan));
}

/* Matrices of one cell, with tuned ones on both sides of it: the decision for one must not depend on which
 * came first. */
TEST(the_order_of_matrices_does_not_matter) {
  static const char *const inputs[] = {"uniform:rows=255,d=8", "uniform:rows=257,d=8"};
  char variants[2][2][WLMI_VARIANT_NAME];
  wlm_stats small, large;
  wlmi_stats_estimate(250, 250, 2000, &small);
  wlmi_stats_estimate(300, 300, 2400, &large);
  small.fingerprint[0] = 1, large.fingerprint[0] = 2;
  static const char *const other_way[] = {"host_row/rows=128,tile=16", "host_row/rows=16,tile=16"};
  plant(&small, slowest_by_rule, 2);
  plant(&large, other_way, 2);
  for (int order = 0; order < 2; order++) {
    OWNED(wlm_context) *context = open_again();
    for (int i = 0; i < 2; i++) {
      const int which = i ^ order;
      HOLD(wlmi_csr_host, host, wlmi_input_read(inputs[which], &host));
      variant_of(context, &host, variants[order][which]);
    }
  }
  for (int which = 0; which < 2; which++) assert_string_equal(variants[0][which], variants[1][which]);
  assert_string_equal(variants[0][0], variants[0][1]);
}

/* After a refresh the decision is made again. */
TEST(a_refresh_clears_decisions) {
  const wlm_stats stats = test_stats_of(&b.csr);
  char before[WLMI_VARIANT_NAME], after[WLMI_VARIANT_NAME];
  variant_of(b.context, &b.csr, before);
  const int same = !strcmp(before, slowest_by_rule[0]);
  const char *const other[] = {slowest_by_rule[same], slowest_by_rule[!same]};
  plant(&stats, other, 2);
  variant_of(b.context, &b.csr, after);
  assert_string_equal(after, before);
  assert_status(WLM_OK, wlm_context_refresh(b.context));
  variant_of(b.context, &b.csr, after);
  assert_string_equal(after, other[0]);
}

/* With two tuned kernels, wlm_spmm compiles the faster one only if the loaded one takes over 1.1 times as long. */
TEST(one_call_prefers_a_loaded_kernel) {
  static float dense[2][400 * N];
  const wlm_stats stats = test_stats_of(&b.csr);
  const wlm_csr csr = csr_of(&b.csr);
  assert_true(csr.rows <= 400 && csr.cols <= 400);
  wlm_execute_args args = EXECUTE_ARGS(.b = dense[0], .c = dense[1]);
  GET(wlmi_spec, spec, wlmi_spec_make(&b.problem, &csr, &spec));
  plant(&stats, slowest_by_rule, 2); /* 1 us and 2 us */
  for (int near = 0; near < 2; near++) {
    OWNED(wlm_context) *context = open_again();
    OWNED(wlm_matrix) *matrix = matrix_of(context, &csr, WLM_STATS_ESTIMATED, NULL);
    wlmi_snapshot *snapshot = wlmi_context_snapshot(context);
    OWN(wlm_plan, plan, wlm_plan_create_variant(context, matrix, &b.problem, slowest_by_rule[1], &plan));
    if (near) /* lets the measured times differ by little */
      for (int64_t i = 0; i < snapshot->case_count; i++)
        if (snapshot->cases[i].stats) ((wlmi_measured *)snapshot->cases[i].candidates)[1].cost *= 0.52;
    wlmi_snapshot_release(snapshot);
    assert_status(WLM_OK, wlm_spmm(context, &csr, &b.problem, &args));
    wlmi_variant slowest;
    wlmi_variant_recognise(wlmi_generator_families(context->generator), slowest_by_rule[0], &slowest);
    assert_int_equal(wlmi_context_has(context, &(wlmi_wanted){.spec = &spec, .variant = slowest}), !near);
  }
}

TEST(a_pin_is_seen_after_a_refresh) {
  const wlm_stats stats = test_stats_of(&b.csr);
  wlmi_device_record device;
  HELD(wlmi_text) device_class = {0};
  char key[WLMI_SPEC_KEY], place[WLMI_HASH_HEX];
  char before[WLMI_VARIANT_NAME], after[WLMI_VARIANT_NAME];
  variant_of(b.context, &b.csr, before);
  const char *pinned = slowest_by_rule[!strcmp(before, slowest_by_rule[0])];
  const wlmi_spec spec = spec_of();
  wlmi_spec_key(&spec, key);
  device = wlmi_device_record_of(wlmi_context_device(b.context));
  wlmi_device_class(&device, &device_class);
  wlmi_hash_to_hex((wlmi_hash){stats.fingerprint[0], stats.fingerprint[1]}, place);
  const wlmi_pin_record pin = {device_class.data, place, key, N, (char *)pinned};
  GET(wlm_store *, store, wlmi_store_open(b.database, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_pin(store, &pin));
  wlmi_store_close(store);
  variant_of(b.context, &b.csr, after);
  assert_string_equal(after, before);
  assert_status(WLM_OK, wlm_context_refresh(b.context));
  variant_of(b.context, &b.csr, after);
  assert_string_equal(after, pinned);
}

EACH(begin, end)
