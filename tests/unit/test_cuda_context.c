/* Contexts on the cuda device with a fake driver (tests/fake_cuda), whose memory is the host's: what the library
 * computes where there is no NVRTC, and what it launches where there is one. */
#include "core/csr/stats.h"
#include "fake_cuda/fake_process.h"
#include "runtime/context_state.h"
#include "support/test.h"

enum { ROWS = 4, COLS = 5, NNZ = 6 };

static wlm_context *context;
static wlm_matrix *matrix; /* small_csr() in tests without a compiler */

static void create(void) {
  fake->any_code = 1;
  wlm_context_options options = BARE_OPTIONS(.device = "cuda");
  CHECK(wlm_context_create(&options, &context) == WLM_OK);
}

static int32_t rowptr[] = {0, 2, 2, 5, 6}, colind[] = {1, 4, 0, 1, 3, 4};
static float values[] = {1, 2, 3, 4, 5, 6};

static wlm_csr small_csr(void) {
  return (wlm_csr)CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr, .colind = colind, .values = values);
}

/* ---- without a compiler ----------------------------------------------------------------------------------- */

static void (*with_matrix)(void);
static void run_with_matrix(void) {
  const wlm_csr csr = small_csr();
  setenv("WARPLOOM_NVRTC", "/no/such/file", 1);
  create();
  CHECK(wlm_matrix_create(context, &csr, NULL, &matrix) == WLM_OK);
  with_matrix();
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
}

static void without_nvrtc(void (*body)(void)) {
  with_matrix = body;
  in_a_process(run_with_matrix);
}

/* Stats and the fingerprint come from copies of the arrays. */
TEST_IN(without_nvrtc, stats_come_from_copies) {
  wlm_stats expected;
  CHECK(wlmi_stats_compute(rowptr, WLM_I32, ROWS, COLS, NNZ, colind, WLM_I32, &expected) == WLM_OK);
  CHECK(wlm_matrix_stats(matrix)->longest == 3 && wlm_matrix_stats(matrix)->empty_rows == 1);
  CHECK(wlmi_matrix_fingerprint(matrix) == WLM_OK);
  CHECK(!memcmp(wlm_matrix_stats(matrix), &expected, sizeof expected));
  CHECK(!fake->launches);

  wlm_csr wide = small_csr(); /* 64-bit columns */
  const int64_t wide_colind[] = {1, 4, 0, 1, 3, 4};
  wide.colind = wide_colind;
  wide.colind_type = WLM_I64;
  OWNED(wlm_matrix) *of_wide = NULL;
  CHECK(wlm_matrix_create(context, &wide, NULL, &of_wide) == WLM_OK);
  CHECK(wlmi_matrix_fingerprint(of_wide) == WLM_OK);
  CHECK(!memcmp(wlm_matrix_stats(of_wide), &expected, sizeof expected));
}

TEST_IN(without_nvrtc, patterns_are_validated_on_the_host) {
  int64_t row = 7;
  CHECK(wlm_matrix_validate(matrix, NULL, &row) == WLM_OK && row == -1);
  colind[3] = COLS;
  CHECK(wlm_matrix_validate(matrix, NULL, &row) == WLM_ERR_INVALID_ARGUMENT && row == 2);
  DETAIL("row 2: colind[3] is 5");
  colind[3] = 1;
  rowptr[2] = 1;
  CHECK(wlm_matrix_validate(matrix, NULL, &row) == WLM_ERR_INVALID_ARGUMENT && row == 1);
  DETAIL("rowptr falls");
  rowptr[2] = 2;
}

TEST_IN(without_nvrtc, a_transpose_is_built_on_the_host) {
  static const int32_t expected_rowptr[] = {0, 1, 3, 3, 4, 6}, expected_colind[] = {2, 0, 2, 2, 0, 3};
  static const int32_t expected_order[] = {2, 0, 3, 4, 1, 5};
  wlmi_matrix_view view;
  wlm_problem problem = PROBLEM(.transpose = 1);
  CHECK(!wlmi_matrix_has_transpose(matrix));
  CHECK(wlmi_matrix_see(matrix, &problem, &view) == WLM_OK && wlmi_matrix_has_transpose(matrix));
  CHECK(view.csr.rows == COLS && view.csr.cols == ROWS && view.csr.values == values);
  CHECK(!memcmp(view.csr.rowptr, expected_rowptr, sizeof expected_rowptr));
  CHECK(!memcmp(view.csr.colind, expected_colind, sizeof expected_colind));
  CHECK(!memcmp(view.order, expected_order, sizeof expected_order));
  CHECK(view.stats->longest == 2 && view.stats->empty_rows == 1 && !fake->launches);
}

/* Earlier work on the matrix's stream may still write the pattern, and the legacy stream does not wait for a stream
 * that does not block. */
TEST_IN(without_nvrtc, a_pattern_is_copied_in_its_streams_order) {
  static char some_stream[64];
  const wlm_csr csr = small_csr();
  wlm_matrix_options options = MATRIX_OPTIONS(.stream = some_stream, .grade = WLM_STATS_ESTIMATED);
  wlm_problem problem = PROBLEM(.transpose = 1);
  OWNED(wlm_matrix) *of_stream = NULL;
  wlmi_matrix_view view;
  fake->legacy_copies = 0;
  CHECK(wlm_matrix_create(context, &csr, &options, &of_stream) == WLM_OK);
  CHECK(wlmi_matrix_see(of_stream, &problem, &view) == WLM_OK && !fake->legacy_copies);
}

/* A product with a column index out of range is refused when A^T is built, and the memory is released. */
TEST_IN(without_nvrtc, a_bad_transpose_is_refused) {
  wlmi_matrix_view view;
  wlm_problem problem = PROBLEM(.transpose = 1);
  colind[3] = -1;
  CHECK(wlmi_matrix_see(matrix, &problem, &view) == WLM_ERR_INVALID_ARGUMENT);
  DETAIL("the transpose of the matrix");
  colind[3] = 1;
  CHECK(wlmi_matrix_see(matrix, &problem, &view) == WLM_OK);
}

/* Sums in f32 have a built-in kernel; other problems say what is missing. */
TEST_IN(without_nvrtc, only_the_builtin_kernel_runs) {
  const wlm_csr csr = small_csr();
  wlm_plan *plan;
  static float b[COLS * 8] __attribute__((aligned(16))), c[ROWS * 8] __attribute__((aligned(16)));
  wlm_problem problem = PROBLEM(.n = 8);
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c);
  CHECK(wlm_plan_create(context, matrix, &problem, &plan) == WLM_OK);
  CHECK(wlm_plan_execute(plan, &args) == WLM_OK && fake->launches == 1 && fake->args.nnz == NNZ);
  wlm_plan_destroy(plan);
  CHECK(wlm_spmm(context, &csr, &problem, &args) == WLM_OK && fake->launches == 2);
  problem.reduce = WLM_MAX;
  CHECK(wlm_plan_create(context, matrix, &problem, &plan) == WLM_ERR_NO_COMPILER && !plan);
  DETAIL("WARPLOOM_NVRTC");
  CHECK(wlm_spmm(context, &csr, &problem, &args) == WLM_ERR_NO_COMPILER);
  problem.transpose = 1;
  CHECK(wlm_spmm(context, &csr, &problem, &args) == WLM_ERR_NO_COMPILER);
  CHECK(fake->launches == 2);
}

static void is_refused_after_fork(wlm_status status) {
  CHECK(status == WLM_ERR_DEVICE);
  DETAIL("cuda:0: this process was forked");
}

/* In the child, where CUDA does not work, each call fails at once, also if a lock was held. */
TEST_IN(without_nvrtc, a_forked_child_gets_errors) {
  const wlm_csr csr = small_csr();
  wlm_matrix *other;
  wlm_plan *plan;
  int how;
  static float b[COLS * 8] __attribute__((aligned(16))), c[ROWS * 8] __attribute__((aligned(16)));
  wlm_problem problem = PROBLEM(.n = 8);
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c);
  CHECK(wlm_plan_create(context, matrix, &problem, &plan) == WLM_OK);
  pthread_mutex_lock(&context->kernel_lock);
  fflush(NULL);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (!child) {
    alarm(30); /* ends the child if it hangs */
    is_refused_after_fork(wlm_plan_execute(plan, &args));
    is_refused_after_fork(wlm_spmm(context, &csr, &problem, &args));
    is_refused_after_fork(wlm_matrix_create(context, &csr, NULL, &other));
    is_refused_after_fork(wlm_matrix_validate(matrix, NULL, NULL));
    is_refused_after_fork(wlmi_matrix_fingerprint(matrix));
    problem.transpose = 1;
    is_refused_after_fork(wlm_plan_create(context, matrix, &problem, &plan));
    CHECK(!fake->launches && fake->retained);
    wlm_matrix_destroy(matrix);
    wlm_context_destroy(context);
    CHECK(fake->retained); /* the parent's context stays */
    child_exit(0);
  }
  CHECK(waitpid(child, &how, 0) == child && WIFEXITED(how) && !WEXITSTATUS(how));
  pthread_mutex_unlock(&context->kernel_lock);
  CHECK(wlm_plan_execute(plan, &args) == WLM_OK && fake->launches == 1);
  wlm_plan_destroy(plan);
}

/* ---- with a compiler: the fake driver runs no kernel, so results stay as they were filled ------------------- */

static void in_a_process_with_nvrtc(void (*body)(void)) {
  test_needs_nvrtc();
  in_a_process(body);
}

TEST_IN(in_a_process_with_nvrtc, kernels_are_launched) {
  create();
  static int32_t row[NNZ], col[NNZ], to_rowptr[ROWS + 1], to_colind[NNZ], perm[NNZ];
  const wlm_csr csr = small_csr();
  wlmi_matrix_view view;
  int64_t at = 7;
  CHECK(wlm_matrix_create(context, &csr, NULL, &matrix) == WLM_ERR_INVALID_ARGUMENT); /* stats of zeros */
  CHECK(!matrix && fake->launches == 1);
  wlm_matrix_options options = MATRIX_OPTIONS(.grade = WLM_STATS_ESTIMATED);
  CHECK(wlm_matrix_create(context, &csr, &options, &matrix) == WLM_OK && fake->launches == 1);
  CHECK(wlm_matrix_validate(matrix, NULL, &at) == WLM_ERR_INVALID_ARGUMENT && at == 0);
  CHECK(fake->launches == 2);
  wlm_problem problem = PROBLEM(.transpose = 1);
  CHECK(wlmi_matrix_see(matrix, &problem, &view) == WLM_ERR_INVALID_ARGUMENT);
  DETAIL("the transpose of the matrix");
  CHECK(fake->launches == 6); /* two of a round, the last pass, and those of the stats */
  wlm_matrix_destroy(matrix);

  wlm_coo coo = COO(.rows = ROWS, .cols = COLS, .nnz = NNZ, .row = row, .col = col, .rowptr = to_rowptr,
                    .colind = to_colind, .perm = perm);
  CHECK(wlm_csr_from_coo(context, &coo) == WLM_OK && fake->launches == 9);
  wlm_context_destroy(context);
}
