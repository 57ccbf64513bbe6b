/* Contexts that compile in the background, on the host device: a plan runs the built-in kernel until the compiler ends.
 * The compiler here is a script that waits for a file of the test. */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/csr/stats.h"
#include "runtime/context.h"
#include "runtime/decisions.h"
#include "support/drawn.h"
#include "support/emit_fixture.h"
#include "support/put_times.h"
#include "support/test.h"

static char database[320];
static drawn a;
static _Alignas(64) char workspace[1 << 20];

/* ---- a compiler that waits ---------------------------------------------------------------------------------- */

static void use_compiler(const char *text) {
  const char *path = in_folder("compiler");
  write_whole(path, text, strlen(text));
  assert_int_equal(chmod(path, 0700), 0);
  setenv("WARPLOOM_CC", path, 1);
}

static void use_waiting_compiler(void) {
  char text[1024];
  snprintf(text, sizeof text,
           "#!/bin/sh\n"
           "[ \"$1\" = --version ] && exec cc --version\n"
           "echo >> '%s/begun'\n"
           "while [ ! -e '%s/open' ]; do sleep 0.01; done\n"
           "exec cc \"$@\"\n",
           folder.path, folder.path);
  use_compiler(text);
}

static void open_gate(void) { write_whole(folder_file(&folder, "open"), "", 0); }

static void wait_until_it_compiles(void) {
  const char *path = in_folder("begun");
  while (access(path, F_OK)) usleep(1000);
}

static void wait_for_another_kernel(const wlm_plan *plan) {
  while (!strcmp(wlm_plan_variant(plan), "host_builtin")) usleep(1000);
}

static int begin(void **state) {
  test_random random = {5};
  alarm(300); /* ends the test if something waits for ever */
  folder_begin(state);
  snprintf(database, sizeof database, "%s/tuned.db", folder.path);
  draw_matrix(&a, &random, 1);
  use_waiting_compiler();
  return 0;
}

static int end(void **state) {
  alarm(0);
  unsetenv("WARPLOOM_CC");
  return folder_end(state);
}

/* ---- plans ---------------------------------------------------------------------------------------------------- */

static wlm_context *open_context(const char *templates) {
  wlm_context_options options =
      BARE_OPTIONS(.device = "host", .database = database, .templates = templates, .compile_in_background = 1);
  GET(wlm_context *, context, wlm_context_create(&options, &context));
  return context;
}

static wlm_problem problem_of(int64_t n) { return (wlm_problem)PROBLEM(.n = n); }

static wlm_plan *plan_of(wlm_context *context, const wlm_problem *problem, wlm_matrix **matrix) {
  if (!*matrix) assert_status(WLM_OK, wlm_matrix_create(context, &a.csr, NULL, matrix));
  GET(wlm_plan *, plan, wlm_plan_create(context, *matrix, problem, &plan));
  return plan;
}

static wlm_execute_args call_into(float *c) {
  return (wlm_execute_args)EXECUTE_ARGS(.b = a.b, .c = c, .workspace = workspace, .workspace_size = sizeof workspace);
}

/* Small integers have exact sums in float. */
static void expect_right(const float *c, int64_t n) {
  for (int64_t row = 0; row < a.csr.rows; row++)
    for (int64_t j = 0; j < n; j++) {
      float sum = 0;
      for (int32_t p = a.rowptr[row]; p < a.rowptr[row + 1]; p++) sum += a.values[p] * a.b[a.colind[p] * n + j];
      assert_true(c[row * n + j] == sum);
    }
}

static void expect_product(const wlm_plan *plan, int64_t n) {
  static float c[DRAWN_DENSE];
  memset(c, 0xff, sizeof c);
  const wlm_execute_args args = call_into(c);
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  expect_right(c, n);
}

TEST(the_chosen_kernel_takes_over) {
  OWNED(wlm_context) *context = open_context(NULL);
  const wlm_problem problem = problem_of(DRAWN_N);
  OWNED(wlm_matrix) *matrix = NULL;
  OWNED(wlm_plan) *plan = plan_of(context, &problem, &matrix), *second = plan_of(context, &problem, &matrix);
  assert_string_equal(wlm_plan_variant(plan), "host_builtin");
  assert_string_equal(wlm_plan_variant(second), "host_builtin");
  expect_product(plan, DRAWN_N);
  wlm_plan_destroy(second);
  open_gate();
  wait_for_another_kernel(plan);
  expect_product(plan, DRAWN_N);
  test_random random = {9}; /* after the plan changed its kernel it computes another matrix as well */
  draw_matrix(&a, &random, 1);
  assert_status(WLM_OK, wlm_plan_rebind(plan, &a.csr));
  expect_product(plan, DRAWN_N);
  second = plan_of(context, &problem, &matrix);
  assert_string_equal(wlm_plan_variant(second), wlm_plan_variant(plan));
  assert_null(second->upgrade);
}

TEST(one_call_does_not_wait) {
  static float c[DRAWN_DENSE];
  OWNED(wlm_context) *context = open_context(NULL);
  const wlm_problem problem = problem_of(DRAWN_N);
  const wlm_execute_args args = call_into(c);
  assert_status(WLM_OK, wlm_spmm(context, &a.csr, &problem, &args));
  expect_right(c, DRAWN_N);
  wait_until_it_compiles();
  open_gate();
  memset(c, 0xff, sizeof c);
  assert_status(WLM_OK, wlm_spmm(context, &a.csr, &problem, &args));
  expect_right(c, DRAWN_N);
}

/* Destroys a context while one kernel is being compiled and others wait. A child lets the compiler continue some
 * time later. */
TEST(a_context_closes_while_it_compiles) {
  wlm_context *context = open_context(NULL);
  wlm_matrix *matrix = NULL;
  for (int64_t n = 1; n <= 4; n++) {
    const wlm_problem problem = problem_of(n);
    OWNED(wlm_plan) *plan = plan_of(context, &problem, &matrix);
    expect_product(plan, n);
  }
  wlm_matrix_destroy(matrix);
  wait_until_it_compiles();
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    usleep(50000);
    open_gate();
    _exit(0);
  }
  wlm_context_destroy(context);
  assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(deterministic_plans_wait) {
  OWNED(wlm_context) *context = open_context(NULL);
  wlm_problem problem = problem_of(DRAWN_N);
  OWNED(wlm_matrix) *matrix = NULL;
  problem.policy.deterministic = 1;
  open_gate();
  OWNED(wlm_plan) *plan = plan_of(context, &problem, &matrix);
  assert_string_not_equal(plan->reason.decision.variant, "host_builtin");
  assert_null(plan->upgrade);
  expect_product(plan, DRAWN_N);
}

TEST(texts_of_a_problem_may_be_freed) {
  char activation[] = "relu";
  OWNED(wlm_context) *context = open_context(NULL);
  wlm_problem problem = problem_of(DRAWN_N);
  OWNED(wlm_matrix) *matrix = NULL;
  OWNED(wlm_plan) *plan = plan_of(context, &problem, &matrix); /* keeps the compiler busy */
  open_gate();
  problem.epilogue.activation = activation;
  OWNED(wlm_plan) *second = plan_of(context, &problem, &matrix); /* no loaded kernel serves it */
  memset(activation, '?', sizeof activation - 1);
  assert_string_not_equal(wlm_plan_variant(second), "host_builtin");
}

/* ---- families of a folder --------------------------------------------------------------------------------------- */

/* Stores times as if the variants had been tuned. */
static void plant(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                  const char *const *variants, int count, const char *prepared) {
  wlm_stats stats;
  assert_status(WLM_OK,
                wlmi_stats_compute(a.rowptr, WLM_I32, a.csr.rows, a.csr.cols, a.csr.nnz, a.colind, WLM_I32, &stats));
  GET(wlmi_spec, spec, wlmi_context_spec(context, matrix, problem, &spec));
  put_times(context, database, &spec, &stats, variants, count, prepared);
  assert_status(WLM_OK, wlm_context_refresh(context));
}

static const char body[] = "{ for (long long i = 0; i < args->rows; i++) ((float *)args->c)[i * args->ldc] = 7; }\n";

static void write_family(const char *name, const char *rest, const char *kernel) {
  char family[512], text[512];
  snprintf(family, sizeof family, "return { target = 'host', summary = 'a test', parameters = {}, %s }\n", rest);
  snprintf(text, sizeof text, "%s%s", kernel, body);
  emit_write(&folder, name, "family.lua", family);
  emit_write(&folder, name, "kernel.c.in", text);
}

/* The compiled kernel needs a workspace, unlike the built-in one that the plan began with. */
TEST(a_larger_workspace_is_requested) {
  static const char *const variants[] = {"spaced"};
  float c[DRAWN_DENSE];
  write_family("spaced",
               "passes = function() return { { kernel = 'spaced', units = 'rows' } } end, "
               "workspace = function() return { rows = 16 } end",
               "WLM_KERNEL(spaced) ");
  OWNED(wlm_context) *context = open_context(folder.path);
  const wlm_problem problem = problem_of(DRAWN_N);
  OWNED(wlm_matrix) *matrix = NULL;
  assert_status(WLM_OK, wlm_matrix_create(context, &a.csr, NULL, &matrix));
  plant(context, matrix, &problem, variants, 1, "");
  OWNED(wlm_plan) *plan = plan_of(context, &problem, &matrix);
  assert_int_equal(wlm_plan_workspace_size(plan), 0);
  open_gate();
  wait_for_another_kernel(plan);
  wlm_execute_args args = call_into(c);
  args.workspace = NULL;
  args.workspace_size = 0;
  assert_status(WLM_OK, wlm_plan_execute(plan, &args)); /* without a workspace the first kernel runs */
  expect_right(c, DRAWN_N);
  args.workspace = workspace;
  args.workspace_size = wlm_plan_workspace_size(plan);
  assert_int_equal(args.workspace_size, 16 * a.csr.rows);
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  assert_true(c[0] == 7);
}

/* The chosen kernel does not compile. The next one needs preparation, which the caller was not told of, so the
 * built-in kernel stays. */
TEST(prepared_kernels_do_not_take_over) {
  static const char *const variants[] = {"broken", "ready"};
  write_family("broken", "passes = function() return { { kernel = 'broken', units = 'rows' } } end", "this is no C");
  write_family("ready",
               "passes = function() return { { kernel = 'prepares', when = 'prepare', units = 'one' }, "
               "{ kernel = 'ready', units = 'rows' } } end, prepared = function() return { rows = 16 } end",
               "WLM_KERNEL(prepares) { *(int *)args->prepared = 1; }\n"
               "WLM_KERNEL(ready) ");
  OWNED(wlm_context) *context = open_context(folder.path);
  wlm_problem problem = problem_of(DRAWN_N);
  OWNED(wlm_matrix) *matrix = NULL;
  problem.policy.expected_calls = 1000;
  assert_status(WLM_OK, wlm_matrix_create(context, &a.csr, NULL, &matrix));
  plant(context, matrix, &problem, variants, 2, "ready");
  GET(wlmi_decision, decision, wlmi_context_choose(context, matrix, &problem, &decision));
  for (int i = 0; i < 2; i++) {
    char name[WLMI_VARIANT_NAME];
    wlmi_entry_print(&decision, i, name);
    assert_string_equal(name, i ? "ready" : "broken");
  }
  OWNED(wlm_plan) *plan = plan_of(context, &problem, &matrix);
  assert_string_equal(wlm_plan_variant(plan), "host_builtin");
  open_gate();
  /* until the job has ended; the cache and the plan keep their references */
  while (atomic_load(&plan->upgrade->users) > 2) usleep(1000);
  assert_string_equal(wlm_plan_variant(plan), "host_builtin");
  expect_product(plan, DRAWN_N);
}

EACH(begin, end)
