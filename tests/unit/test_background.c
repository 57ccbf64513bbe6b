/* What runs on a GPU while kernels are compiled in the background: A^T is built on the host, and gradients by argmax
 * run in the form for any number of columns. Driver and compiler are fakes (tests/fake_cuda, tests/fake_nvrtc), and the
 * compiler does not end while a file exists. */
#include "core/problem/cell.h"
#include "fake_cuda/fake_process.h"
#include "runtime/context_state.h"
#include "runtime/load.h"
#include "support/folder.h"
#include "support/test.h"

enum { ROWS = 100, COLS = 2, NNZ = 4, N = 8 };
static int32_t rowptr[ROWS + 1] = {0, 2, 3}; /* then 4 */
static const int32_t colind[] = {0, 1, 1, 0};
static test_folder place;
static wlm_context *context;

/* ---- a compiler that waits ---------------------------------------------------------------------------------- */

static void close_gate(void) { write_whole(folder_file(&place, "waits"), "", 0); }
static void open_gate(void) { CHECK(!unlink(folder_file(&place, "waits"))); }

static void (*in_context)(void);

static void with_context(void) {
  alarm(120); /* ends the test if something waits for the compiler */
  fake->any_code = 1;
  folder_make(&place);
  setenv("WARPLOOM_NVRTC", WLM_FAKE_NVRTC, 1);
  setenv("WLM_FAKE_NVRTC_WAITS", folder_file(&place, "waits"), 1);
  wlm_context_options options = BARE_OPTIONS(.device = "cuda", .compile_in_background = 1);
  CHECK(wlm_context_create(&options, &context) == WLM_OK);
  in_context();
  wlm_context_destroy(context);
  folder_remove(&place);
}

static void in_a_context(void (*body)(void)) {
  in_context = body;
  in_a_process(with_context);
}

static wlm_csr csr_of_test(void) {
  for (int i = 3; i <= ROWS; i++) rowptr[i] = NNZ;
  return (wlm_csr)CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr, .colind = colind);
}

static wlm_matrix *matrix_of(const wlm_csr *csr) {
  wlm_stats stats = STATS(.rows = ROWS, .cols = COLS, .nnz = NNZ, .longest = 2, .mean = (double)NNZ / ROWS,
                          .rows_le_4 = ROWS, .rows_le_16 = ROWS);
  wlm_matrix *matrix;
  wlm_matrix_options options = MATRIX_OPTIONS(.grade = WLM_STATS_GIVEN, .stats = &stats);
  CHECK(wlm_matrix_create(context, csr, &options, &matrix) == WLM_OK);
  return matrix;
}

/* Loads all kernels of a decision. */
static void load_decision(const wlmi_spec *spec, const wlm_stats *stats, wlmi_use use) {
  wlmi_decision decision;
  wlmi_loaded loaded;
  CHECK(wlmi_context_select(context, NULL, stats, use, spec, &decision) == WLM_OK);
  for (int i = 0; i < decision.entry_count; i++)
    CHECK(decision.entries[i].step == WLMI_STEP_BUILTIN ||
          wlmi_context_load(context, &(wlmi_wanted){.spec = spec, .variant = decision.entries[i].variant}, &loaded) ==
              WLM_OK);
}

/* ---- A^T ------------------------------------------------------------------------------------------------------ */

static void expect_transpose(const wlmi_matrix_view *view) {
  static const int32_t t_rowptr[] = {0, 2, 4}, t_colind[] = {0, 2, 0, 1}, order[] = {0, 3, 1, 2};
  CHECK(!memcmp(view->csr.rowptr, t_rowptr, sizeof t_rowptr) && !memcmp(view->csr.colind, t_colind, sizeof t_colind));
  CHECK(!memcmp(view->order, order, sizeof order));
}

TEST_IN(in_a_context, the_host_builds_transposes) {
  const wlm_csr csr = csr_of_test();
  wlm_problem problem = PROBLEM(.n = N, .transpose = 1);
  wlmi_matrix_view view;
  close_gate();
  OWNED(wlm_matrix) *matrix = matrix_of(&csr);
  CHECK(wlmi_matrix_see(matrix, &problem, &view) == WLM_OK && !fake->launches);
  expect_transpose(&view);
  wlm_matrix_destroy(matrix);
  open_gate();
  while (!wlmi_has_helper(context, WLMI_HELPER_TRANSPOSE, &csr)) usleep(1000);
  /* From here on kernels build it; those of the fake driver compute nothing, which the stats of A^T show. */
  matrix = matrix_of(&csr);
  wlmi_matrix_see(matrix, &problem, &view);
  CHECK(fake->launches);
}

/* Also for a single call, whose product has no other kernel. */
TEST_IN(in_a_context, calls_build_transposes_on_the_host) {
  static float b[ROWS * N], c[COLS * N];
  const wlm_csr csr = csr_of_test();
  wlm_problem problem = PROBLEM(.n = N, .reduce = WLM_MAX, .transpose = 1, .policy.expected_calls = 1);
  wlmi_spec spec;
  wlm_stats stats;
  wlmi_stats_estimate(COLS, ROWS, NNZ, &stats);
  CHECK(wlmi_spec_make(&problem, &csr, &spec) == WLM_OK);
  load_decision(&spec, &stats, WLMI_USE_ESTIMATED);
  close_gate();
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c);
  CHECK(wlm_spmm(context, &csr, &problem, &args) == WLM_OK);
  CHECK(fake->args.rows == COLS && fake->args.rowptr != rowptr && fake->launches < 5);
  open_gate();
}

/* ---- gradients by argmax ---------------------------------------------------------------------------------------- */

static wlm_plan *gradient_of(const wlm_matrix *matrix, int64_t n) {
  const wlm_problem problem =
      PROBLEM(.n = n, .operation = WLM_ARGMAX_GRADIENT, .message = WLM_COPY_B, .reduce = WLM_MAX);
  wlm_plan *plan;
  CHECK(wlm_plan_create(context, matrix, &problem, &plan) == WLM_OK);
  return plan;
}

/* Returns the blocks of the second kernel, each of which has 256 threads. */
static unsigned int run_gradient(const wlm_plan *plan) {
  static float dc[ROWS * N], db[COLS * N];
  static int64_t argmax[ROWS * N];
  wlm_execute_args args = EXECUTE_ARGS(.x = dc, .argmax_db = db, .argmax = argmax);
  const int before = fake->launches;
  CHECK(wlm_plan_execute(plan, &args) == WLM_OK && fake->launches == before + 2);
  CHECK(fake->args.rows == ROWS && fake->args.nnz == NNZ && fake->args.c == db && fake->args.x == dc);
  CHECK(fake->args.rowptr == rowptr && fake->args.colind == colind);
  return fake->grid[0];
}

TEST_IN(in_a_context, gradients_run_in_another_form) {
  const wlm_csr csr = csr_of_test();
  OWNED(wlm_matrix) *matrix = matrix_of(&csr);
  OWNED(wlm_plan) *wide = gradient_of(matrix, 64); /* compiles the gradients for 32 columns at once */
  CHECK(!wide->upgrade && wide->shape.loaded.program.passes[1].columns_per_block == 32);
  close_gate();
  OWNED(wlm_plan) *plan = gradient_of(matrix, N);
  CHECK(plan->upgrade && run_gradient(plan) == (ROWS + 31) / 32);
  open_gate();
  while (!plan->upgraded(plan)) usleep(1000);
  CHECK(!strcmp(wlm_plan_variant(plan), plan->reason.decision.variant));
  CHECK(run_gradient(plan) == (ROWS + 127) / 128);
  OWNED(wlm_plan) *second = gradient_of(matrix, N);
  CHECK(!second->upgrade && run_gradient(second) == (ROWS + 127) / 128);
}

/* What no form is at hand for is compiled at once. */
TEST_IN(in_a_context, other_gradients_wait) {
  const wlm_csr csr = csr_of_test();
  OWNED(wlm_matrix) *matrix = matrix_of(&csr);
  OWNED(wlm_plan) *plan = gradient_of(matrix, N);
  CHECK(!plan->upgrade && run_gradient(plan) == (ROWS + 127) / 128);
}

/* Only the caller can prepare, so another kernel takes the place of one that must be prepared. */
TEST_IN(in_a_context, prepared_choices_do_not_wait) {
  enum { MANY_ROWS = 5000, EDGES = 40000, WIDE = 32 };
  static int32_t begins[MANY_ROWS + 1], columns[EDGES];
  static float edge_values[EDGES];
  wlm_csr csr = CSR(.rows = MANY_ROWS, .cols = MANY_ROWS, .nnz = EDGES, .rowptr = begins, .colind = columns,
                    .values = edge_values);
  wlm_stats stats =
      STATS(.rows = MANY_ROWS, .cols = MANY_ROWS, .nnz = EDGES, .longest = 500, .mean = (double)EDGES / MANY_ROWS,
            .cv = 2, .top_share = 0.1, .rows_le_4 = 1000, .rows_le_16 = 4000);
  wlmi_decision decision;
  wlmi_spec spec;
  char chosen[WLMI_VARIANT_NAME];
  OWNED(wlm_matrix) *matrix = NULL;
  OWNED(wlm_plan) *plan = NULL;
  wlm_matrix_options options = MATRIX_OPTIONS(.grade = WLM_STATS_GIVEN, .stats = &stats);
  wlm_problem problem = PROBLEM(.n = WIDE, .policy.expected_calls = 100);
  CHECK(wlm_matrix_create(context, &csr, &options, &matrix) == WLM_OK);
  CHECK(wlmi_context_spec(context, matrix, &problem, &spec) == WLM_OK);
  CHECK(wlmi_context_select(context, NULL, &stats, WLMI_USE_MEASURED, &spec, &decision) == WLM_OK);
  wlmi_entry_print(&decision, 0, chosen);
  CHECK(!strncmp(chosen, "row_sorted/", 11));
  close_gate();
  CHECK(wlm_plan_create(context, matrix, &problem, &plan) == WLM_OK);
  CHECK(plan->upgrade && !wlm_plan_prepared_size(plan));
  open_gate();
  while (!plan->upgraded(plan)) usleep(1000);
  CHECK(!wlm_plan_prepared_size(plan) && plan->reason.decision.calls == 100);
  CHECK(strncmp(wlm_plan_variant(plan), "row_sorted/", 11));
}
