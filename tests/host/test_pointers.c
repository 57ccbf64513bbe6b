/* Invalid addresses are refused with a message before a kernel gets them. */
#include "support/bare_host.h"
#include "support/calls.h"
#include "support/test.h"

/* A 2 x 3 matrix. */
static const int32_t rowptr[] = {0, 2, 4}, colind[] = {0, 2, 1, 0};
static const float values[] = {1, 2, -1, 0.5f};
enum { ROWS = 2, COLS = 3, NNZ = 4, N = 33 };

static float b[COLS * N + 1], c[ROWS * N + 1], dvalues[NNZ + 1], db[COLS * N + 1];
static int32_t arg[ROWS * N + 1];

static wlm_csr small(void) {
  return (wlm_csr)CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr, .colind = colind, .values = values);
}

static void assert_refused(wlm_status status, const char *says) {
  assert_int_equal(WLM_ERR_INVALID_ARGUMENT, status);
  assert_contains(wlm_error_detail(), says);
}

/* An address that is not aligned: `bytes` after another one. */
static void *off(const void *address, size_t bytes) { return (char *)(uintptr_t)address + bytes; }

static wlm_plan *plan_of(wlm_matrix *matrix, const wlm_problem *problem) {
  GET(wlm_plan *, plan, wlm_plan_create(bare_host, matrix, problem, &plan));
  return plan;
}

TEST(matrix_pointers) {
  OWNED(wlm_matrix) *matrix = NULL;
  wlm_csr csr = small();
  csr.rowptr = off(rowptr, 1);
  assert_refused(wlm_matrix_create(bare_host, &csr, NULL, &matrix), "rowptr is 0x");
  csr = small();
  csr.rowptr_type = WLM_I64; /* aligned for int32, not for int64 */
  csr.rowptr = off(rowptr, (uintptr_t)rowptr % 8 ? 0 : 4);
  assert_refused(wlm_matrix_create(bare_host, &csr, NULL, &matrix), "multiple of 8 bytes");
  csr = small();
  csr.colind = off(colind, 2);
  assert_refused(wlm_matrix_create(bare_host, &csr, NULL, &matrix), "colind is 0x");
  csr = small();
  csr.values = off(values, 2);
  assert_refused(wlm_matrix_create(bare_host, &csr, NULL, &matrix), "values is 0x");
  csr.value_type = WLM_F16;
  assert_status(WLM_OK, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
}

TEST(product_pointers) {
  wlm_plan *plan;
  const wlm_csr csr = small();
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  wlm_problem problem = PROBLEM(.n = N, .epilogue.bias = 1);
  plan = plan_of(matrix, &problem);
  assert_refused(test_execute(plan, b, c, NULL), "wlm_plan_execute: bias is NULL");
  wlm_execute_args call = EXECUTE_ARGS(.bias = off(b, 2));
  assert_refused(test_execute_call(plan, &call, b, c, NULL), "wlm_plan_execute: bias is 0x");
  call.bias = b + 1;
  assert_status(WLM_OK, test_execute_call(plan, &call, b, c, NULL));
  wlm_plan_destroy(plan);
  problem.epilogue.bias = 0;

  plan = plan_of(matrix, &problem);
  assert_refused(test_execute(plan, off(b, 2), c, NULL), "wlm_plan_execute: b is 0x");
  assert_refused(test_execute(plan, b, off(c, 1), NULL), "c is 0x");
  assert_status(WLM_OK, test_execute(plan, b + 1, c + 1, NULL));
  call.values = off(values, 2);
  assert_refused(test_execute_call(plan, &call, b, c, NULL), "wlm_plan_execute: values is 0x");
  call.values = NULL;
  wlm_plan_destroy(plan);

  assert_status(WLM_OK, wlm_plan_create_variant(bare_host, matrix, &problem, "host_nnz/nonzeros=1024,tile=32", &plan));
  const size_t size = wlm_plan_workspace_size(plan);
  assert_true(size > 0);
  FREED char *workspace = aligned_alloc(16, (size + 31) / 16 * 16);
  assert_refused(test_execute(plan, b, c, off(workspace, 8)), "workspace is 0x");
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c, .workspace = workspace, .workspace_size = size - 1);
  assert_refused(wlm_plan_execute(plan, &args), "workspace_size is");
  args.workspace_size = size;
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  wlm_plan_destroy(plan);

  problem.reduce = WLM_MAX;
  problem.want_argmax = 1;
  plan = plan_of(matrix, &problem);
  assert_refused(test_execute_argmax(plan, b, c, off(arg, 2), NULL), "wlm_plan_execute: argmax is 0x");
  assert_status(WLM_OK, test_execute_argmax(plan, b, c, arg, NULL));
  wlm_plan_destroy(plan);
#define GRADIENT(...) test_argmax_gradient(bare_host, matrix, &problem, __VA_ARGS__)
  assert_refused(GRADIENT(c, off(arg, 2), b, db, dvalues), "wlm_plan_execute: argmax is 0x");
  assert_refused(GRADIENT(off(c, 2), arg, b, db, dvalues), "x is 0x");
  assert_refused(GRADIENT(c, arg, b, off(db, 2), dvalues), "db is 0x");
  assert_refused(GRADIENT(c, arg, b, db, off(dvalues, 2)), "dvalues is 0x");
  assert_status(WLM_OK, GRADIENT(c, arg, b, db, dvalues));
}

TEST(sddmm_pointers) {
  const wlm_csr csr = small();
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  wlm_problem problem = PROBLEM(.n = N, .operation = WLM_SDDMM);
  OWNED(wlm_plan) *plan = plan_of(matrix, &problem);
  assert_refused(test_execute_sddmm(plan, off(c, 2), b, dvalues, NULL), "wlm_plan_execute: x is 0x");
  assert_refused(test_execute_sddmm(plan, c, off(b, 2), dvalues, NULL), "b is 0x");
  assert_refused(test_execute_sddmm(plan, c, b, off(dvalues, 2), NULL), "dvalues is 0x");
  assert_status(WLM_OK, test_execute_sddmm(plan, c, b, dvalues, NULL));
}

/* B may be NULL only if the message does not read it. */
TEST(messages_that_do_not_read_b) {
  static const int product[] = {1, 1, 0, 1, 1, 1, 1, 1}, gradient[] = {1, 0, 0, 0, 0, 0, 1, 1};
  const wlm_csr csr = small();
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  for (int message = WLM_MUL; message <= WLM_RDIV; message++) {
    const wlm_status of_product = product[message] ? WLM_ERR_INVALID_ARGUMENT : WLM_OK;
    const wlm_status of_gradient = gradient[message] ? WLM_ERR_INVALID_ARGUMENT : WLM_OK;
    wlm_problem problem = PROBLEM(.n = N, .message = (wlm_message)message);
    OWNED(wlm_plan) *plan = plan_of(matrix, &problem);
    assert_int_equal(of_product, test_execute(plan, NULL, c, NULL));
    if (!product[message]) assert_true(c[0] == 3 && c[N] == -0.5f);
    wlm_plan_destroy(plan);
    problem.operation = WLM_SDDMM;
    plan = plan_of(matrix, &problem);
    assert_int_equal(of_gradient, test_execute_sddmm(plan, c, NULL, dvalues, NULL));
    wlm_plan_destroy(plan);
    problem.operation = WLM_SPMM;
    problem.reduce = WLM_MIN;
    problem.want_argmax = 1;
    plan = plan_of(matrix, &problem);
    assert_int_equal(of_product, test_execute_argmax(plan, NULL, c, arg, NULL));
    assert_int_equal(of_gradient, GRADIENT(c, arg, NULL, db, dvalues));
  }
  wlm_problem problem = PROBLEM(.n = N, .reduce = WLM_CUSTOM, .custom = "message=a*a;init=0;reduce=acc+x");
  OWNED(wlm_plan) *plan = plan_of(matrix, &problem);
  assert_status(WLM_OK, test_execute(plan, NULL, c, NULL));
  assert_true(c[0] == 5 && c[N] == 1.25f);
}

/* Runs a product, planned or in one call, whose arrays are at these elements of `memory`, with these distances of
 * lines. */
static wlm_status product_in(float *memory, int at_b, int at_c, int64_t ldb, int64_t ldc, int transpose) {
  static _Alignas(16) char workspace[1 << 16];
  const wlm_csr csr = small();
  wlm_problem problem = PROBLEM(.n = N, .transpose = transpose, .policy.expected_calls = 100);
  wlm_execute_args args = EXECUTE_ARGS(.b = memory + at_b, .c = memory + at_c, .ldb = ldb, .ldc = ldc,
                                       .workspace = workspace, .workspace_size = sizeof workspace);
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  OWNED(wlm_plan) *plan = plan_of(matrix, &problem);
  const wlm_status status = wlm_plan_execute(plan, &args);
  assert_int_equal(wlm_spmm(bare_host, &csr, &problem, &args), status);
  return status;
}

/* C may lie right beside B, also between its lines. */
TEST(results_that_overlap) {
  enum { FIRST = COLS * N, LD = 2 * N + 5, FAR = 2 * LD };
  static float memory[4 * COLS * LD];
  const struct {
    int at_b, at_c, ld, transpose, fine, ldc; /* ldc: 0 = ld */
  } cases[] = {
      {FIRST, FIRST, 0, 0, 0, 0},
      {FIRST, FIRST + COLS * N - 1, 0, 0, 0, 0},
      {FIRST, FIRST + COLS * N, 0, 0, 1, 0},
      {FIRST, FIRST - ROWS * N, 0, 0, 1, 0},
      {FIRST, FIRST - ROWS * N + 1, 0, 0, 0, 0},
      {FIRST, FIRST + ROWS * N - 1, 0, 1, 0, 0}, /* B is rows x n and C cols x n */
      {FIRST, FIRST + ROWS * N, 0, 1, 1, 0},
      {FIRST, FIRST - COLS * N, 0, 1, 1, 0},
      {FIRST, FIRST - COLS * N + 1, 0, 1, 0, 0},
      {0, N, LD, 0, 1, 0},
      {0, N + 5, LD, 0, 1, 0},
      {0, N + 6, LD, 0, 0, 0},
      {0, N - 1, LD, 0, 0, 0},
      {N, 0, LD, 0, 1, 0},
      {N, LD, LD, 0, 1, 0},
      {N, LD + 1, LD, 0, 0, 0},
      {LD + N, 0, LD, 0, 1, 0},
      {LD + N, 1, LD, 0, 0, 0},
      {0, N, FAR, 0, 1, N}, /* all of C between two lines of B */
      {0, FAR + N, FAR, 0, 1, N},
      {0, FAR - ROWS * N, FAR, 0, 1, N},
      {0, FAR - ROWS * N + 1, FAR, 0, 0, N},
      {0, N - 1, FAR, 0, 0, N},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlm_status status = product_in(memory, cases[i].at_b, cases[i].at_c, cases[i].ld,
                                         cases[i].ldc ? cases[i].ldc : cases[i].ld, cases[i].transpose);
    if (status != (cases[i].fine ? WLM_OK : WLM_ERR_INVALID_ARGUMENT)) fail_msg("case %zu: %s", i, wlm_error_detail());
    if (!cases[i].fine) assert_contains(wlm_error_detail(), "wlm_spmm: c and b share memory");
  }
}

/* Every other array of a call, of the matrix, and the workspace. */
TEST(results_that_overlap_others) {
  static struct {
    int32_t rowptr[ROWS + 1], colind[NNZ];
    float values[NNZ], x[ROWS * N], b[COLS * N], c[ROWS * N], bias[N], dvalues[NNZ], db[COLS * N];
    int32_t argmax[ROWS * N];
    _Alignas(16) char workspace[1 << 16];
  } m;
  wlm_csr csr = small();
  memcpy(m.rowptr, rowptr, sizeof rowptr);
  memcpy(m.colind, colind, sizeof colind);
  csr.rowptr = m.rowptr, csr.colind = m.colind, csr.values = m.values;
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  wlm_problem problem = PROBLEM(.n = N, .reduce = WLM_MAX, .want_argmax = 1, .epilogue.bias = 1);
  wlm_execute_args args = EXECUTE_ARGS(.b = m.b, .c = m.c, .bias = m.bias, .argmax = m.argmax, .workspace = m.workspace,
                                       .workspace_size = sizeof m.workspace);
#define SHARES(field, with, says)                        \
  do {                                                   \
    wlm_execute_args bad = args;                         \
    bad.field = (void *)(with);                          \
    assert_refused(wlm_plan_execute(plan, &bad), says);  \
    assert_contains(wlm_error_detail(), "share memory"); \
  } while (0)
  OWNED(wlm_plan) *plan = plan_of(matrix, &problem);
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  SHARES(c, m.rowptr, "c and rowptr");
  SHARES(c, m.colind + NNZ - 1, "c and colind");
  SHARES(c, m.values + NNZ - 1, "c and values");
  SHARES(c, m.bias + N - 1, "c and bias");
  SHARES(argmax, m.c + 3, "c and argmax");
  SHARES(argmax, m.b + 3, "argmax and b");
  SHARES(values, m.c + 3, "c and values");
  wlm_plan_destroy(plan);
  problem.operation = WLM_ARGMAX_GRADIENT;
  problem.epilogue.bias = 0;
  plan = plan_of(matrix, &problem);
  args.bias = NULL, args.x = m.x, args.argmax_db = m.db, args.argmax_dvalues = m.dvalues;
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  SHARES(argmax_db, m.b + 1, "argmax_db and b");
  SHARES(argmax_db, m.colind + NNZ - 1, "argmax_db and colind");
  SHARES(argmax_dvalues, m.argmax, "argmax_dvalues and argmax");
  SHARES(argmax_dvalues, m.db, "argmax_db and argmax_dvalues");
  wlm_plan_destroy(plan);
  problem.operation = WLM_SPMM;
  problem.reduce = WLM_SUM;
  problem.want_argmax = 0;
  args.argmax = NULL;
  assert_status(WLM_OK, wlm_plan_create_variant(bare_host, matrix, &problem, "host_nnz/nonzeros=1024,tile=32", &plan));
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  SHARES(workspace, (uintptr_t)m.c / 16 * 16, "c and workspace");
  SHARES(workspace, (uintptr_t)(m.values + 4) / 16 * 16, "values and workspace");
  wlm_plan_destroy(plan);
  problem.operation = WLM_SDDMM;
  plan = plan_of(matrix, &problem);
  args.dvalues = m.dvalues;
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  SHARES(dvalues, m.values, "dvalues and values");
  SHARES(dvalues, m.x, "dvalues and x");
}

/* What a call gives, and the problem does not have. */
TEST(forgotten_fields_of_the_problem) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  OWNED(wlm_plan) *plan = NULL;
  const wlm_csr csr = small();
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  assert_refused(wlm_plan_create(bare_host, matrix, &problem, &plan), "wlm_problem.n is not given");
  problem.n = N;
  plan = plan_of(matrix, &problem);
  wlm_execute_args call = EXECUTE_ARGS(.bias = b);
  assert_refused(test_execute_call(plan, &call, b, c, NULL), "wlm_problem.epilogue.bias is 0");
}

/* Other invalid fields of a call. */
TEST(fields_of_a_call) {
  static const double not_finite[] = {(double)INFINITY, -(double)INFINITY, (double)NAN};
  const wlm_csr csr = small();
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  for (int operation = WLM_SPMM; operation <= WLM_SDDMM; operation++) {
    wlm_problem problem = PROBLEM(.n = N, .operation = (wlm_operation)operation);
    OWNED(wlm_plan) *plan = plan_of(matrix, &problem);
    for (int i = 0; i < 2 + 2 * 3 + 2; i++) {
      const int64_t most = UINT32_MAX / sizeof(float);
      wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c, .dvalues = c, .x = c);
      char says[64];
      if (i < 2) {
        *(i ? &args.ldc : &args.ldb) = N - 1;
        snprintf(says, sizeof says, "wlm_plan_execute: %s is 32, must be 33 to ", i ? "ldc" : "ldb");
      } else if (i < 8) {
        *(i % 2 ? &args.beta : &args.alpha) = not_finite[i / 2 - 1];
        snprintf(says, sizeof says, "wlm_execute_args.%s", i % 2 ? "beta" : "alpha");
      } else {
        *(i % 2 ? &args.ldc : &args.ldb) = most + 1; /* rows of B or C further apart than a kernel can address */
        assert_fails(WLM_ERR_OVERFLOW, wlm_plan_execute(plan, &args), i % 2 ? "ldc is " : "ldb is ");
        continue;
      }
      assert_refused(wlm_plan_execute(plan, &args), says);
    }
  }
}

/* Values may be passed to a call only if the plan has values. */
TEST(values_of_a_call) {
  static const float twice[] = {2, 4, -2, 1};
  wlm_csr csr = small();
  float once[ROWS * N], again[ROWS * N];
  wlm_problem problem = PROBLEM(.n = N);
  wlm_execute_args call = EXECUTE_ARGS(.values = twice);
  for (int i = 0; i < COLS * N; i++) b[i] = (float)(i % 7);
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  OWNED(wlm_plan) *plan = plan_of(matrix, &problem);
  assert_status(WLM_OK, test_execute(plan, b, once, NULL));
  assert_status(WLM_OK, test_execute_call(plan, &call, b, again, NULL));
  for (int i = 0; i < ROWS * N; i++) assert_true(again[i] == 2 * once[i]);
  assert_status(WLM_OK, test_execute(plan, b, again, NULL)); /* the values of an earlier call are not used again */
  assert_memory_equal(again, once, sizeof once);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  csr.values = NULL;
  assert_status(WLM_OK, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  plan = plan_of(matrix, &problem);
  assert_refused(test_execute_call(plan, &call, b, c, NULL), "wlm_execute_args.values");
}

/* With has_values the matrix has no array of values, and each call gives them. */
TEST(values_only_with_calls) {
  wlm_csr csr = small();
  float wanted[ROWS * N];
  wlm_problem problem = PROBLEM(.n = N);
  for (int i = 0; i < COLS * N; i++) b[i] = (float)(i % 7);
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  OWNED(wlm_plan) *plan = plan_of(matrix, &problem);
  assert_status(WLM_OK, test_execute(plan, b, wanted, NULL));
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);

  csr.values = NULL;
  csr.has_values = 1;
  wlm_execute_args call = EXECUTE_ARGS(.values = values);
  assert_status(WLM_OK, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  plan = plan_of(matrix, &problem);
  assert_refused(test_execute(plan, b, c, NULL), "wlm_execute_args.values is NULL, and so is wlm_csr.values");
  assert_refused(test_spmm_call(bare_host, &csr, &problem, &(wlm_execute_args)WLM_EXECUTE_ARGS_INIT, b, c),
                 "wlm_execute_args.values is NULL");
  for (int i = 0; i < 3; i++) {
    memset(c, 0xff, sizeof c);
    if (i == 2) assert_status(WLM_OK, wlm_plan_rebind(plan, &csr));
    assert_status(WLM_OK, i == 1 ? test_spmm_call(bare_host, &csr, &problem, &call, b, c)
                                 : test_execute_call(plan, &call, b, c, NULL));
    assert_memory_equal(c, wanted, sizeof wanted);
  }
  csr.has_values = 0;
  assert_refused(wlm_plan_rebind(plan, &csr), "the plan is for values of f32, not none");
}

GROUP(bare_host_begin, bare_host_end)
