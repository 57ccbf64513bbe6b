/* Tuning, online tuning and training while allocation k fails, alone or with all behind it: the call succeeds or
 * returns WLM_ERR_OUT_OF_MEMORY, and data that it stored never prevents the same call or a product later. k = 1, 2, ...
 * up to the last allocation of a call: each of the first few, then fewer. WARPLOOM_FULL: more of them. */
#include "support/command.h"
#include "support/drawn.h"
#include "support/failing_malloc.h"
#include "support/test.h"
#include "warploom/warploom_tune.h"

static drawn a;
static wlm_problem problem = PROBLEM(.n = DRAWN_N);
static wlm_context *context;
static wlm_matrix *matrix;
static float c[DRAWN_DENSE], expected[DRAWN_DENSE];
static char database[320];

static wlm_execute_args call(void) { return (wlm_execute_args)EXECUTE_ARGS(.b = a.b, .c = c); }

/* ---- the calls ---- */

static wlm_status tune(void) {
  wlm_tune_options options = TUNE_OPTIONS(.min_sample_seconds = 1e-6, .samples = 3, .again = 1);
  return wlm_tune(context, matrix, &problem, NULL, &options);
}

static wlm_status tune_online(void) {
  OWNED(wlm_plan) *plan = NULL;
  const wlm_execute_args args = call();
  wlm_status status = wlm_plan_create_online(context, matrix, &problem, NULL, &plan);
  for (int i = 0; i < 40 && status == WLM_OK; i++) status = wlm_plan_execute(plan, &args);
  if (status == WLM_OK) status = wlm_plan_online_close(plan);
  return status;
}

static wlm_status train(void) { return wlm_train(context); }

static const struct {
  const char *name;
  wlm_status (*run)(void);
} calls[] = {{"tune", tune}, {"online", tune_online}, {"train", train}};
enum { CALLS = sizeof calls / sizeof *calls };

static void expect_product(const char *name, int64_t k) {
  const wlm_execute_args args = call();
  wlmi_text faults = {0};
  memset(c, 0xff, sizeof c);
  if (drawn_plan_once(context, &a.csr, &problem, args) != WLM_OK || memcmp(c, expected, sizeof c))
    fail_msg("%s, allocation %lld: then a product is wrong: %s", name, (long long)k, wlm_error_detail());
  OWN(wlm_store, store, wlmi_store_open(database, WLMI_STORE_READ, &store));
  if (wlmi_store_check(store, &faults) != WLM_OK) fail_msg("%s, allocation %lld: %s", name, (long long)k, faults.data);
}

static void suffer(int which, int64_t count) {
  /* the number of first values of k that are all tested; after them the steps grow */
  const int64_t dense = getenv("WARPLOOM_FULL") ? 128 : 3;
  int64_t runs = 0, last = 0, refused = 0;
  for (int64_t k = 1, failed = 1; failed; last = k, k += 1 + k / dense, runs++) {
    failing_malloc_begin(k, count);
    const wlm_status status = calls[which].run();
    failed = failing_malloc_end();
    refused += status != WLM_OK;
    if (status != WLM_OK && status != WLM_ERR_OUT_OF_MEMORY)
      fail_msg("%s, allocation %lld: %s: %s", calls[which].name, (long long)k, wlm_status_name(status),
               wlm_error_detail());
    expect_product(calls[which].name, k);
  }
  if (calls[which].run() != WLM_OK) fail_msg("%s afterwards: %s", calls[which].name, wlm_error_detail());
  print_message("%s: %lld runs up to allocation %lld, %lld refused\n", calls[which].name, (long long)runs,
                (long long)last, (long long)refused);
}

TEST(one_allocation_fails) {
  for (int i = 0; i < CALLS; i++) suffer(i, 1);
}

TEST(all_later_allocations_fail) {
  for (int i = 0; i < CALLS; i++) suffer(i, INT64_MAX);
}

static int begin(void **state) {
  test_random random = {5};
  home_begin(state);
  snprintf(database, sizeof database, "%s/tuned.db", folder.path);
  wlm_context_options options = CONTEXT_OPTIONS(.device = "host", .database = database, .system_database = "");
  draw_matrix(&a, &random, 1);
  assert_status(WLM_OK, wlm_context_create(&options, &context));
  assert_status(WLM_OK, wlm_matrix_create(context, &a.csr, NULL, &matrix));
  assert_status(WLM_OK, tune()); /* compiles all kernels */
  memset(c, 0xff, sizeof c);
  assert_status(WLM_OK, drawn_plan_once(context, &a.csr, &problem, call()));
  memcpy(expected, c, sizeof c);
  return 0;
}

static int end(void **state) {
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
  return folder_end(state);
}

GROUP(begin, end)

int main(void) {
  failing_malloc_open();
  return test_run();
}
