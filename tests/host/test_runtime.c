/* The public API on the host device: what a program that embeds warploom sees. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "support/calls.h"
#include "support/test.h"
#include "warploom/warploom_message.h"

/* 4 x 5; row 1 is empty; no edge uses B's row 4. */
static const int32_t rowptr32[] = {0, 2, 2, 5, 6};
static const int64_t rowptr64[] = {0, 2, 2, 5, 6};
static const int32_t colind[] = {0, 2, 3, 1, 1, 0};
static const float values[] = {1, 2, -1, 0.5f, 4, 3};
enum { ROWS = 4, COLS = 5, NNZ = 6, N = 3 };

static wlm_csr small_csr(wlm_index type) {
  return (wlm_csr)CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ,
                      .rowptr = type == WLM_I32 ? (const void *)rowptr32 : rowptr64, .rowptr_type = type,
                      .colind = colind, .values = values);
}

static wlm_problem problem_n(int64_t n) { return (wlm_problem)PROBLEM(.n = n); }

static void fill_b(float *b) {
  for (int i = 0; i < COLS * N; i++) b[i] = (float)(i % 7) - 2.5f;
  for (int j = 0; j < N; j++) b[4 * N + j] = NAN;
}

static double expected(const float *b, int row, int column) {
  double sum = 0;
  for (int p = rowptr32[row]; p < rowptr32[row + 1]; p++) sum += (double)values[p] * b[colind[p] * N + column];
  return sum;
}

static wlm_context *open_host(const char *database) {
  wlm_context_options options = BARE_OPTIONS(.device = "host", .database = database);
  GET(wlm_context *, context, wlm_context_create(&options, &context));
  return context;
}

static void check_sum(const float *b, const float *c, double alpha) {
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < N; j++) assert_true(fabs(c[i * N + j] - alpha * expected(b, i, j)) < 1e-6);
}

TEST(info_names_device_and_databases) {
  OWNED(wlm_context) *context = open_host("");
  WLM_FREED GET(char *, json, wlm_context_info(context, &json));
  assert_non_null(strstr(json, "\"kind\":\"host\""));
  assert_non_null(strstr(json, "\"compiler\":\""));
  assert_non_null(strstr(json, "\"database\":\"\",\"system_database\":\"\",\"layers\":[]}"));
}

TEST(one_call) {
  OWNED(wlm_context) *context = open_host("");
  float b[COLS * N], c[ROWS * N];
  fill_b(b);
  assert_string_equal(wlm_context_device_kind(context), "host");
  for (int type = WLM_I32; type <= WLM_I64; type++) {
    wlm_csr csr = small_csr((wlm_index)type);
    wlm_problem problem = problem_n(N);
    memset(c, 0xff, sizeof c); /* NaN: beta = 0 must not read it */
    assert_int_equal(test_spmm(context, &csr, &problem, b, c), WLM_OK);
    check_sum(b, c, 1);
  }
}

TEST(alpha_and_beta) {
  OWNED(wlm_context) *context = open_host("");
  wlm_csr csr = small_csr(WLM_I32);
  wlm_problem problem = problem_n(N);
  float b[COLS * N], c[ROWS * N];
  fill_b(b);
  wlm_execute_args call = EXECUTE_ARGS(.alpha = -2, .beta = 0.5);
  for (int i = 0; i < ROWS * N; i++) c[i] = 8;
  assert_int_equal(test_spmm_call(context, &csr, &problem, &call, b, c), WLM_OK);
  for (int i = 0; i < ROWS * N; i++) c[i] -= 4;
  check_sum(b, c, -2);
}

TEST(empty_products) {
  OWNED(wlm_context) *context = open_host("");
  wlm_csr csr = small_csr(WLM_I32);
  wlm_problem problem = problem_n(0);
  float c = 7;
  assert_int_equal(test_spmm(context, &csr, &problem, NULL, &c), WLM_OK);
  static const int32_t zero[] = {0};
  csr.rows = csr.nnz = 0;
  csr.rowptr = zero;
  problem = problem_n(N);
  assert_int_equal(test_spmm(context, &csr, &problem, NULL, &c), WLM_OK);
  assert_true(c == 7);
}

TEST(no_nonzeros_still_write_c) {
  OWNED(wlm_context) *context = open_host("");
  wlm_csr csr = small_csr(WLM_I32);
  static const int32_t zeros[ROWS + 1] = {0};
  float c[ROWS * N];
  csr.nnz = 0;
  csr.rowptr = zeros;
  csr.colind = NULL;
  csr.values = NULL;
  wlm_problem problem = problem_n(N);
  memset(c, 0xff, sizeof c);
  assert_int_equal(test_spmm(context, &csr, &problem, NULL, c), WLM_OK);
  for (int i = 0; i < ROWS * N; i++) assert_true(c[i] == 0);
}

TEST(bad_matrices) {
  OWNED(wlm_context) *context = open_host("");
  wlm_matrix *matrix;
  static const int32_t falls[] = {0, 3, 2, 5, 6}, wrong_end[] = {0, 2, 2, 5, 5};
  const struct {
    const void *rowptr;
    int64_t rows, cols, nnz;
    const char *says;
  } cases[] = {
      {falls, ROWS, COLS, NNZ, "row"},
      {wrong_end, ROWS, COLS, NNZ, "nnz"},
      {NULL, ROWS, COLS, NNZ, "rowptr"},
      {rowptr32, -1, COLS, NNZ, "rows"},
      {rowptr32, ROWS, 0, NNZ, "wlm_csr: nnz is 6, and the matrix has no columns"},
      {rowptr32, 0, COLS, NNZ, "wlm_csr: nnz is 6, and the matrix has no rows"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_csr csr = small_csr(WLM_I32);
    csr.rowptr = cases[i].rowptr;
    csr.rows = cases[i].rows;
    csr.cols = cases[i].cols;
    csr.nnz = cases[i].nnz;
    assert_int_equal(wlm_matrix_create(context, &csr, NULL, &matrix), WLM_ERR_INVALID_ARGUMENT);
    assert_null(matrix);
    if (!strstr(wlm_error_detail(), cases[i].says)) fail_msg("%s: %s", cases[i].says, wlm_error_detail());
  }
  wlm_csr csr = small_csr(WLM_I32);
  csr.nnz = (int64_t)INT32_MAX + 1;
  assert_int_equal(wlm_matrix_create(context, &csr, NULL, &matrix), WLM_ERR_OVERFLOW);
  csr = small_csr(WLM_I64);
  csr.rows = INT64_MAX;
  assert_int_equal(wlm_matrix_create(context, &csr, NULL, &matrix), WLM_ERR_OVERFLOW);
  csr = small_csr(WLM_I64);
  csr.colind_type = WLM_I64;
  csr.cols = INT64_MAX / 16 + 1;
  assert_int_equal(wlm_matrix_create(context, &csr, NULL, &matrix), WLM_ERR_OVERFLOW);
  csr = small_csr(WLM_I32);
  csr.size = 8;
  assert_int_equal(wlm_matrix_create(context, &csr, NULL, &matrix), WLM_ERR_INVALID_ARGUMENT);
}

TEST(unsupported_fields_are_named) {
  OWNED(wlm_context) *context = open_host("");
  wlm_csr csr = small_csr(WLM_I32);
  wlm_plan *plan;
  OWN(wlm_matrix, matrix, wlm_matrix_create(context, &csr, NULL, &matrix));
  wlm_problem problem = problem_n(N);
  problem.transpose = 1;
  problem.operation = WLM_SDDMM;
  assert_fails(WLM_ERR_UNSUPPORTED, wlm_plan_create(context, matrix, &problem, &plan), "transpose");
  problem = problem_n(N);
  problem.want_argmax = 1;
  assert_fails(WLM_ERR_UNSUPPORTED, wlm_plan_create(context, matrix, &problem, &plan), "want_argmax");
  const int64_t widths[] = {-1, INT64_MAX / 16 + 1, INT64_MAX};
  for (int i = 0; i < 3; i++) {
    problem = problem_n(widths[i]);
    assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_plan_create(context, matrix, &problem, &plan), "wlm_problem.n is");
  }
  problem = problem_n(N);
  assert_fails(WLM_ERR_INVALID_ARGUMENT,
               wlm_plan_create_variant(context, matrix, &problem, "row_crc/cf=2,rows=4", &plan), "cuda");
  assert_null(plan);
}

/* A larger struct of a newer header is accepted if its unknown fields are 0. */
TEST(structs_of_a_newer_header) {
  struct {
    wlm_context_options known;
    char more[16];
  } options = {WLM_CONTEXT_OPTIONS_INIT, {0}};
  struct {
    wlm_csr known;
    char more[16];
  } csr = {small_csr(WLM_I32), {0}};
  struct {
    wlm_problem known;
    char more[16];
  } problem = {problem_n(N), {0}};
  struct {
    wlm_execute_args known;
    char more[16];
  } args = {WLM_EXECUTE_ARGS_INIT, {0}};
  struct {
    wlm_matrix_options known;
    char more[16];
  } binding = {WLM_MATRIX_OPTIONS_INIT, {0}};
  float b[COLS * N], c[ROWS * N];
  OWNED(wlm_context) *context = NULL;
  wlm_matrix *refused;
  fill_b(b);
  options.known.size = sizeof options;
  options.known.device = "host";
  options.known.database = options.known.system_database = options.known.kernel_cache = "";
  csr.known.size = sizeof csr;
  problem.known.size = sizeof problem;
  args.known.size = sizeof args;
  args.known.b = b;
  args.known.c = c;
  binding.known.size = sizeof binding;
  options.more[3] = 1;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_context_create(&options.known, &context), "wlm_context_options.size");
  options.more[3] = 0;
  assert_status(WLM_OK, wlm_context_create(&options.known, &context));
  OWN(wlm_matrix, matrix, wlm_matrix_create(context, &csr.known, &binding.known, &matrix));
  GET(wlm_plan *, plan, wlm_plan_create(context, matrix, &problem.known, &plan));
  assert_status(WLM_OK, wlm_plan_execute(plan, &args.known));
  check_sum(b, c, 1);
  memset(c, 0xff, sizeof c);
  assert_status(WLM_OK, wlm_spmm(context, &csr.known, &problem.known, &args.known));
  check_sum(b, c, 1);
  char *const tails[] = {csr.more, problem.more, args.more};
  const char *const names[] = {"wlm_csr.size", "wlm_problem.size", "wlm_execute_args.size"};
  for (int i = 0; i < 3; i++) {
    tails[i][15] = 1;
    assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_spmm(context, &csr.known, &problem.known, &args.known), names[i]);
    tails[i][15] = 0;
  }
  args.more[0] = 1;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_execute(plan, &args.known));
  wlm_plan_destroy(plan);
  binding.more[0] = 1;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_matrix_create(context, &csr.known, &binding.known, &refused),
               "wlm_matrix_options.size");
  problem.more[0] = 1;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_create(context, matrix, &problem.known, &plan));
}

TEST(rules_choose_by_skew) {
  enum { MANY = 1000 };
  static int32_t even[MANY + 1], skewed[MANY + 1];
  static int32_t columns[2 * MANY];
  for (int i = 0; i <= MANY; i++) even[i] = 2 * i;
  for (int i = 1; i <= MANY; i++) skewed[i] = 2 * MANY; /* all edges lie in the first row */
  OWNED(wlm_context) *context = open_host("");
  wlm_problem problem = problem_n(64);
  const int32_t *const rowptrs[] = {even, skewed};
  const char *const families[] = {"host_row/", "host_nnz/"};
  for (int i = 0; i < 2; i++) {
    wlm_csr csr = CSR(.rows = MANY, .cols = MANY, .nnz = 2 * MANY, .rowptr = rowptrs[i], .colind = columns);
    OWN(wlm_matrix, matrix, wlm_matrix_create(context, &csr, NULL, &matrix));
    OWN(wlm_plan, plan, wlm_plan_create(context, matrix, &problem, &plan));
    if (strncmp(wlm_plan_variant(plan), families[i], strlen(families[i])))
      fail_msg("%s instead of %s", wlm_plan_variant(plan), families[i]);
    WLM_FREED GET(char *, text, wlm_plan_explain(plan, 0, &text));
    assert_non_null(strstr(text, "built-in rule"));
    wlm_string_free(text);
    assert_int_equal(wlm_plan_explain(plan, 1, &text), WLM_OK);
    assert_non_null(strstr(text, "\"step\":\"rule\""));
  }
}

TEST(execute_checks_its_pointers) {
  OWNED(wlm_context) *context = open_host("");
  wlm_csr csr = small_csr(WLM_I32);
  wlm_problem problem = problem_n(N);
  float b[COLS * N], c[ROWS * N];
  fill_b(b);
  OWN(wlm_matrix, matrix, wlm_matrix_create(context, &csr, NULL, &matrix));
  OWN(wlm_plan, plan, wlm_plan_create_variant(context, matrix, &problem, "host_nnz/nonzeros=1024,tile=16", &plan));
  size_t size = wlm_plan_workspace_size(plan);
  assert_true(size > 0);
  assert_fails(WLM_ERR_INVALID_ARGUMENT, test_execute(plan, b, c, NULL), "workspace");
  FREED void *workspace = malloc(size);
  assert_int_equal(test_execute(plan, b, NULL, workspace), WLM_ERR_INVALID_ARGUMENT);
  assert_int_equal(test_execute(plan, NULL, c, workspace), WLM_ERR_INVALID_ARGUMENT);
  assert_int_equal(test_execute(plan, b, c, workspace), WLM_OK);
  check_sum(b, c, 1);
}

typedef struct caller {
  const wlm_plan *plan;
  const float *b;
  float c[ROWS * N];
  _Alignas(16) char workspace[1024];
  wlm_status status;
} caller;

static void *call_often(void *argument) {
  caller *me = argument;
  for (int i = 0; i < 200 && me->status == WLM_OK; i++)
    me->status = test_execute(me->plan, me->b, me->c, me->workspace);
  return NULL;
}

TEST(one_plan_many_threads) {
  enum { CALLERS = 4 };
  static caller callers[CALLERS];
  OWNED(wlm_context) *context = open_host("");
  wlm_csr csr = small_csr(WLM_I32);
  wlm_problem problem = problem_n(N);
  float b[COLS * N];
  pthread_t threads[CALLERS];
  fill_b(b);
  OWN(wlm_matrix, matrix, wlm_matrix_create(context, &csr, NULL, &matrix));
  OWN(wlm_plan, plan, wlm_plan_create_variant(context, matrix, &problem, "host_nnz/nonzeros=1024,tile=16", &plan));
  assert_true(wlm_plan_workspace_size(plan) <= sizeof callers[0].workspace);
  for (int i = 0; i < CALLERS; i++) {
    callers[i].plan = plan;
    callers[i].b = b;
    assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
  }
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(callers[i].status, WLM_OK);
    check_sum(b, callers[i].c, 1);
  }
}

/* Without a valid database the product runs with the rules. Without a compiler it runs the built-in kernel, if that
 * supports the product. */
TEST(works_without_database_and_compiler) {
  char path[] = "/tmp/warploom-test-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, "this is no database", 19), 19);
  close(file);
  setenv("WARPLOOM_CC", "/nonexistent/cc", 1);
  OWNED(wlm_context) *context = open_host(path);
  wlm_csr csr = small_csr(WLM_I32);
  wlm_problem problem = problem_n(N);
  float b[COLS * N], c[ROWS * N];
  fill_b(b);
  OWN(wlm_matrix, matrix, wlm_matrix_create(context, &csr, NULL, &matrix));
  GET(wlm_plan *, plan, wlm_plan_create(context, matrix, &problem, &plan));
  assert_string_equal(wlm_plan_variant(plan), "host_builtin");
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 0, &text));
  assert_non_null(strstr(text, "the kernel that the library carries"));
  assert_int_equal(test_execute(plan, b, c, NULL), WLM_OK);
  check_sum(b, c, 1);
  wlm_plan_destroy(plan);
  memset(c, 0xff, sizeof c);
  assert_int_equal(wlm_plan_create(context, matrix, &problem, &plan), WLM_OK); /* the loaded kernel is used again */
  assert_string_equal(wlm_plan_variant(plan), "host_builtin");
  assert_int_equal(test_execute(plan, b, c, NULL), WLM_OK);
  check_sum(b, c, 1);
  wlm_plan_destroy(plan);
  problem.reduce = WLM_MAX;
  assert_fails(WLM_ERR_NO_COMPILER, wlm_plan_create(context, matrix, &problem, &plan), "WARPLOOM_CC");
  unsetenv("WARPLOOM_CC");
  unlink(path);
}

/* In a program that ignores SIGCHLD, waitpid reports no exit status of the compiler. */
TEST(compiles_with_sigchld_ignored) {
  void (*before)(int) = signal(SIGCHLD, SIG_IGN);
  wlm_context *context = open_host("");
  wlm_csr csr = small_csr(WLM_I32);
  wlm_problem problem = problem_n(N);
  GET(wlm_matrix *, matrix, wlm_matrix_create(context, &csr, NULL, &matrix));
  GET(wlm_plan *, plan, wlm_plan_create(context, matrix, &problem, &plan));
  assert_string_not_equal(wlm_plan_variant(plan), "host_builtin");
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
  signal(SIGCHLD, before);
}

/* Of a failure of before, and of those of parts for which there is another way, such as a kernel that is in no archive
 * and a user database that cannot be read. */
TEST(no_detail_after_success) {
  wlm_message_table table = WLM_MESSAGE_TABLE_INIT;
  wlm_problem problem = problem_n(N), message = problem_n(N), gradient = problem_n(N);
  const wlm_csr csr = small_csr(WLM_I32);
  static _Alignas(16) char workspace[4096];
  float b[COLS * N], c[COLS * N];
  OWNED(wlm_context) *context = NULL;
  OWNED(wlm_matrix) *matrix = NULL;
  OWNED(wlm_plan) *plan = NULL;
  char *text;
  fill_b(b);
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c, .workspace = workspace, .workspace_size = sizeof workspace);
  wlm_context_options options = BARE_OPTIONS(.device = "host", .database = "/dev/null/tuned.db");
  message.operation = WLM_MESSAGE, message.reduce = WLM_CUSTOM, message.custom = "sum=x*b";
#define FINE(call)                                                              \
  do {                                                                          \
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_context_info(NULL, &text));     \
    assert_string_not_equal(wlm_error_detail(), "");                            \
    assert_status(WLM_OK, call);                                                \
    if (*wlm_error_detail()) fail_msg("%s: \"%s\"", #call, wlm_error_detail()); \
  } while (0)
  FINE(wlm_context_create(&options, &context));
  FINE(wlm_context_info(context, &text));
  wlm_string_free(text);
  FINE(wlm_spmm(context, &csr, &problem, &args));
  FINE(wlm_matrix_create(context, &csr, NULL, &matrix));
  FINE(wlm_matrix_validate(matrix, NULL, NULL));
  FINE(wlm_plan_create(context, matrix, &problem, &plan));
  FINE(wlm_plan_explain(plan, 1, &text));
  wlm_string_free(text);
  FINE(wlm_plan_prepare(plan, NULL, NULL));
  FINE(wlm_plan_execute(plan, &args));
  FINE(wlm_plan_rebind(plan, &csr));
  FINE(wlm_message_describe(&message, &table));
  FINE(wlm_message_gradient(&message, "b", &gradient, &text));
  wlm_string_free(text);
  FINE(wlm_problem_init(&problem, sizeof problem));
  wlm_plan_destroy(plan);
  problem.n = N;
  problem.transpose = 1;
  FINE(wlm_spmm(context, &csr, &problem, &args));
  FINE(wlm_plan_create(context, matrix, &problem, &plan));
}

TEST(device_names) {
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_context *context;
  const char *const wrong[] = {"gpu", "cuda:x", "cuda:-1", "host:1", ""};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    options.device = wrong[i];
    assert_int_equal(wlm_context_create(&options, &context), WLM_ERR_INVALID_ARGUMENT);
    assert_null(context);
  }
  options.device = "cuda:4096";
  assert_int_equal(wlm_context_create(&options, &context), WLM_ERR_NO_DEVICE);
}
