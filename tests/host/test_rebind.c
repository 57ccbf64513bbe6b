/* wlm_plan_rebind on the host device: a rebound plan gives the same result as a new plan for that matrix, and a refused
 * rebind changes nothing. */
#include "core/csr/transpose.h"
#include "support/calls.h"
#include "support/drawn.h"
#include "support/emit_fixture.h"
#include "support/test.h"
#include "warploom/warploom_tune.h"

/* With the library's templates, and with a folder of the families below. */
static wlm_context *context, *other;

static const char spaced_family[] =
    "return { target = 'host', summary = 'a test', parameters = {},\n"
    "  passes = function() return { { kernel = 'spaced', units = 'rows' } } end,\n"
    "  workspace = function() return { rows = 16 } end }\n";
/* Writes to the first element of each row of C the row's place in the workspace. */
static const char spaced_kernel[] =
    "WLM_KERNEL(spaced) {\n"
    "  for (long long row = 0; row < unit_blocks; row++) {\n"
    "    ((double *)args->workspace)[2 * row + 1] = (double)row;\n"
    "    ((float *)args->c)[row * args->ldc] = (float)((double *)args->workspace)[2 * row + 1];\n"
    "  }\n"
    "}\n";
static const char ready_family[] =
    "return { target = 'host', summary = 'a test', parameters = {},\n"
    "  passes = function() return { { kernel = 'ready_prepare', when = 'prepare', units = 'one' },\n"
    "    { kernel = 'ready', units = 'rows' } } end,\n"
    "  prepared = function() return { rows = 16 } end }\n";
static const char ready_kernel[] =
    "WLM_KERNEL(ready_prepare) { *(float *)args->prepared = 7; }\n"
    "WLM_KERNEL(ready) { *(float *)args->c = *(const float *)args->prepared; }\n";

static wlm_context *open_context(const char *templates) {
  wlm_context_options options = BARE_OPTIONS(.device = "host", .templates = templates);
  GET(wlm_context *, opened, wlm_context_create(&options, &opened));
  return opened;
}

static int begin(void **state) {
  folder_begin(state);
  emit_write(&folder, "spaced", "family.lua", spaced_family);
  emit_write(&folder, "spaced", "kernel.c.in", spaced_kernel);
  emit_write(&folder, "ready", "family.lua", ready_family);
  emit_write(&folder, "ready", "kernel.c.in", ready_kernel);
  context = open_context(NULL);
  other = open_context(folder.path);
  return 0;
}

static int end(void **state) {
  wlm_context_destroy(context);
  wlm_context_destroy(other);
  return folder_end(state);
}

typedef struct results {
  float c[DRAWN_DENSE], db[DRAWN_DENSE], dvalues[DRAWN_NNZ];
  int32_t argmax[DRAWN_DENSE];
} results;

static wlm_execute_args call_of(const drawn *d, results *to) {
  static _Alignas(64) char workspace[1 << 20];
  return (wlm_execute_args)EXECUTE_ARGS(.b = d->b, .c = to->c, .x = d->x, .argmax = to->argmax, .argmax_db = to->db,
                                        .dvalues = to->dvalues, .argmax_dvalues = to->dvalues, .workspace = workspace,
                                        .workspace_size = sizeof workspace);
}

/* Compares the rebound plan with a new one. A gradient has the positions of its product. */
static void expect_as_alone(const wlm_plan *plan, const wlm_problem *problem, const drawn *d) {
  static results moved, alone;
  memset(&moved, 0, sizeof moved);
  memset(&alone, 0, sizeof alone);
  wlm_execute_args args = call_of(d, &alone);
  if (problem->operation == WLM_ARGMAX_GRADIENT) {
    wlm_problem product = *problem;
    product.operation = WLM_SPMM;
    assert_status(WLM_OK, drawn_plan_once(context, &d->csr, &product, args));
    memcpy(moved.argmax, alone.argmax, sizeof alone.argmax);
    memcpy(moved.c, alone.c, sizeof alone.c);
  }
  assert_status(WLM_OK, drawn_plan_once(context, &d->csr, problem, args));
  args = call_of(d, &moved);
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  assert_memory_equal(&moved, &alone, sizeof moved);
}

static wlm_plan *plan_of(wlm_context *of, const wlm_csr *csr, const wlm_problem *problem, wlm_matrix **matrix) {
  assert_status(WLM_OK, wlm_matrix_create(of, csr, NULL, matrix));
  GET(wlm_plan *, plan, wlm_plan_create(of, *matrix, problem, &plan));
  return plan;
}

static wlm_problem problem_of(int want_argmax) {
  wlm_problem problem = PROBLEM(.n = DRAWN_N, .want_argmax = want_argmax);
  if (want_argmax) problem.reduce = WLM_MAX;
  return problem;
}

/* Half of the matrices use the memory of an earlier one. */
TEST(rebinds_to_other_matrices) {
  static drawn memory[2];
  test_random random = {2};
  for (int kind = 0; kind < 6; kind++) {
    const int has_values = kind % 2, want_argmax = kind / 2;
    wlm_problem problem = problem_of(want_argmax > 0);
    if (want_argmax == 2) problem.operation = WLM_ARGMAX_GRADIENT;
    OWNED(wlm_matrix) *matrix = NULL;
    draw_matrix(&memory[0], &random, has_values);
    OWNED(wlm_plan) *plan = plan_of(context, &memory[0].csr, &problem, &matrix);
    expect_as_alone(plan, &problem, &memory[0]);
    for (int i = 0; i < 20; i++) {
      drawn *d = &memory[i / 2 % 2];
      draw_matrix(d, &random, has_values);
      if (i % 7 == 3) d->csr.rows = d->csr.nnz = 0;
      assert_status(WLM_OK, wlm_plan_rebind(plan, &d->csr));
      expect_as_alone(plan, &problem, d);
    }
  }
}

TEST(the_matrix_may_be_destroyed) {
  static drawn d;
  test_random random = {4};
  const wlm_problem problem = problem_of(0);
  FREED drawn *first = calloc(1, sizeof *first);
  OWNED(wlm_matrix) *matrix = NULL;
  assert_non_null(first);
  draw_matrix(first, &random, 1);
  OWNED(wlm_plan) *plan = plan_of(context, &first->csr, &problem, &matrix);
  draw_matrix(&d, &random, 1);
  assert_status(WLM_OK, wlm_plan_rebind(plan, &d.csr));
  expect_as_alone(plan, &problem, &d);
}

TEST(the_workspace_size_follows) {
  static drawn d;
  static results to;
  test_random random = {6};
  const wlm_problem problem = problem_of(0);
  draw_matrix(&d, &random, 1);
  OWN(wlm_matrix, matrix, wlm_matrix_create(other, &d.csr, NULL, &matrix));
  OWN(wlm_plan, plan, wlm_plan_create_variant(other, matrix, &problem, "spaced", &plan));
  for (int i = 0; i < 10; i++) {
    assert_int_equal(wlm_plan_workspace_size(plan), 16 * d.csr.rows);
    wlm_execute_args args = call_of(&d, &to);
    args.workspace_size = wlm_plan_workspace_size(plan) - 1;
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_execute(plan, &args));
    args.workspace_size++;
    assert_status(WLM_OK, wlm_plan_execute(plan, &args));
    for (int64_t row = 0; row < d.csr.rows; row++) assert_true(to.c[row * DRAWN_N] == (float)row);
    draw_matrix(&d, &random, 1);
    assert_status(WLM_OK, wlm_plan_rebind(plan, &d.csr));
  }
}

static void expect_refused(wlm_plan *plan, const wlm_csr *csr, wlm_status status, const char *reason) {
  assert_status(status, wlm_plan_rebind(plan, csr));
  assert_contains(wlm_error_detail(), reason);
}

/* A^T of a matrix, for wlm_csr. */
typedef struct turned {
  int32_t rowptr[DRAWN_COLS + 1], colind[DRAWN_NNZ], order[DRAWN_NNZ];
} turned;

static wlm_csr with_transpose(const drawn *d, turned *t) {
  wlm_csr csr = d->csr;
  assert_status(WLM_OK, wlmi_transpose_pattern(&csr, t->rowptr, t->colind, t->order));
  csr.t_rowptr = t->rowptr;
  csr.t_colind = t->colind;
  csr.t_order = t->order;
  return csr;
}

/* A plan for a size alone, and A^T from the caller: the product, one call, and a matrix. */
TEST(plans_of_a_size) {
  static drawn d;
  static turned t;
  static results moved, alone;
  test_random random = {16};
  for (int kind = 0; kind < 8; kind++) {
    wlm_problem problem = problem_of(kind / 4);
    problem.transpose = kind / 2 % 2;
    problem.policy.expected_calls = 1000;
    draw_matrix(&d, &random, kind % 2);
    wlm_csr size = d.csr;
    size.rowptr = size.colind = size.values = NULL;
    size.has_values = kind % 2;
    wlm_matrix_options options = MATRIX_OPTIONS(.grade = WLM_STATS_ESTIMATED);
    GET(wlm_matrix *, matrix, wlm_matrix_create(context, &size, &options, &matrix));
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_matrix_validate(matrix, NULL, NULL));
    GET(wlm_plan *, plan, wlm_plan_create(context, matrix, &problem, &plan));
    wlm_matrix_destroy(matrix);
    for (int i = 0; i < 10; i++) {
      wlm_execute_args args = call_of(&d, &moved);
      if (!i) assert_status(WLM_ERR_NOT_READY, wlm_plan_execute(plan, &args));
      const wlm_csr csr = with_transpose(&d, &t);
      if (problem.transpose) expect_refused(plan, &d.csr, WLM_ERR_INVALID_ARGUMENT, "t_rowptr is NULL");
      assert_status(WLM_OK, wlm_plan_rebind(plan, &csr));
      for (int gradient = 0; gradient <= problem.want_argmax; gradient++)
        for (int way = 0; way < 3; way++) {
          memset(&moved, 0, sizeof moved);
          memset(&alone, 0, sizeof alone);
          args = call_of(&d, &alone);
          if (gradient) args.x = d.x;
          assert_status(WLM_OK, drawn_plan_once(context, &d.csr, &problem, args));
          args = call_of(&d, &moved);
          if (gradient) args.x = d.x;
          switch (way) {
            case 0: assert_status(WLM_OK, wlm_plan_execute(plan, &args)); break;
            case 1: assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args)); break;
            default: assert_status(WLM_OK, drawn_plan_once(context, &csr, &problem, args)); break;
          }
          assert_memory_equal(&moved, &alone, sizeof moved);
        }
      draw_matrix(&d, &random, kind % 2);
    }
    wlm_plan_destroy(plan);
  }
}

/* ---- refusals ------------------------------------------------------------------------------------------------ */

TEST(refused_rebinds_change_nothing) {
  static drawn d, next;
  test_random random = {8};
  const wlm_problem problem = problem_of(1);
  OWNED(wlm_matrix) *matrix = NULL;
  draw_matrix(&d, &random, 1);
  draw_matrix(&next, &random, 1);
  OWNED(wlm_plan) *plan = plan_of(context, &d.csr, &problem, &matrix);
#define REFUSED(set, status, reason)            \
  do {                                          \
    wlm_csr csr = next.csr;                     \
    set;                                        \
    expect_refused(plan, &csr, status, reason); \
    expect_as_alone(plan, &problem, &d);        \
  } while (0)
  REFUSED(csr.values = NULL, WLM_ERR_INVALID_ARGUMENT, "values of f32, not none");
  REFUSED(csr.value_type = WLM_F64, WLM_ERR_INVALID_ARGUMENT, "values of f32, not f64");
  REFUSED(csr.rowptr_type = WLM_I64, WLM_ERR_INVALID_ARGUMENT, "rowptr of i32");
  REFUSED(csr.colind_type = WLM_I64, WLM_ERR_INVALID_ARGUMENT, "colind of i32");
  REFUSED(csr.rows = -1, WLM_ERR_INVALID_ARGUMENT, "rows = -1");
  REFUSED(csr.rowptr = NULL, WLM_ERR_INVALID_ARGUMENT, "rowptr");
  REFUSED(csr.colind = (char *)next.colind + 1, WLM_ERR_INVALID_ARGUMENT, "colind");
  REFUSED(csr.cols = (int64_t)1 << 40, WLM_ERR_OVERFLOW, "columns do not fit");
  REFUSED(csr.size = 1, WLM_ERR_INVALID_ARGUMENT, "size");
#undef REFUSED
  expect_refused(plan, NULL, WLM_ERR_INVALID_ARGUMENT, "csr");
  expect_refused(NULL, &d.csr, WLM_ERR_INVALID_ARGUMENT, "plan");
}

TEST(values_for_a_plan_without) {
  static drawn d;
  test_random random = {10};
  const wlm_problem problem = problem_of(0);
  OWNED(wlm_matrix) *matrix = NULL;
  draw_matrix(&d, &random, 0);
  OWNED(wlm_plan) *plan = plan_of(context, &d.csr, &problem, &matrix);
  wlm_csr csr = d.csr;
  csr.values = d.values;
  expect_refused(plan, &csr, WLM_ERR_INVALID_ARGUMENT, "values of none, not f32");
  expect_as_alone(plan, &problem, &d);
}

/* Both of products and of messages, which may read positions only. */
TEST(positions_of_32_bits) {
  static drawn d;
  int64_t rowptr[DRAWN_ROWS + 1];
  test_random random = {12};
  const wlm_problem problem = problem_of(1);
  wlm_problem message = problem_of(0);
  OWNED(wlm_matrix) *matrix = NULL;
  draw_matrix(&d, &random, 1);
  for (int64_t i = 0; i <= d.csr.rows; i++) rowptr[i] = d.rowptr[i];
  d.csr.rowptr = rowptr;
  d.csr.rowptr_type = WLM_I64;
  OWNED(wlm_plan) *plan = plan_of(context, &d.csr, &problem, &matrix);
  wlm_csr csr = d.csr;
  csr.nnz = (int64_t)INT32_MAX + 1;
  expect_refused(plan, &csr, WLM_ERR_OVERFLOW, "argmax_type is i32");
  expect_as_alone(plan, &problem, &d);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  message.operation = WLM_MESSAGE;
  message.reduce = WLM_CUSTOM;
  message.custom = "w:row:wins;sum=w*b";
  plan = plan_of(context, &d.csr, &message, &matrix);
  expect_refused(plan, &csr, WLM_ERR_OVERFLOW, "argmax_type is i32");
  wlm_plan_destroy(plan);
  message.custom = "max=b";
  assert_status(WLM_OK, wlm_plan_create(context, matrix, &message, &plan));
  assert_status(WLM_OK, wlm_plan_rebind(plan, &csr)); /* it has no positions */
}

TEST(plans_of_one_matrix) {
  static drawn d;
  static results to;
  test_random random = {14};
  wlm_problem problem = problem_of(0);
  OWNED(wlm_matrix) *matrix = NULL;
  draw_matrix(&d, &random, 1);
  problem.transpose = 1;
  OWNED(wlm_plan) *plan = plan_of(context, &d.csr, &problem, &matrix);
  expect_refused(plan, &d.csr, WLM_ERR_UNSUPPORTED, "the A^T of one matrix");
  expect_as_alone(plan, &problem, &d);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);

  problem.transpose = 0;
  assert_status(WLM_OK, wlm_matrix_create(context, &d.csr, NULL, &matrix));
  assert_status(WLM_OK, wlm_plan_create_online(context, matrix, &problem, NULL, &plan));
  expect_refused(plan, &d.csr, WLM_ERR_UNSUPPORTED, "tunes online");
  expect_as_alone(plan, &problem, &d);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);

  float prepared[4 * DRAWN_ROWS] __attribute__((aligned(16)));
  assert_status(WLM_OK, wlm_matrix_create(other, &d.csr, NULL, &matrix));
  assert_status(WLM_OK, wlm_plan_create_variant(other, matrix, &problem, "ready", &plan));
  expect_refused(plan, &d.csr, WLM_ERR_UNSUPPORTED, "prepared memory");
  const wlm_execute_args args = call_of(&d, &to);
  assert_status(WLM_ERR_NOT_READY, wlm_plan_execute(plan, &args));
  assert_status(WLM_OK, wlm_plan_prepare(plan, prepared, NULL));
  expect_refused(plan, &d.csr, WLM_ERR_UNSUPPORTED, "prepared memory");
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  assert_true(to.c[0] == 7);
}

GROUP(begin, end)
