/* deterministic = 1 restricts the candidates. All host families are deterministic, so this test reads two of them from
 * a folder in which they declare that they are not: then they are refused (by name, rule, pin and tuner) with
 * deterministic = 1 and serve otherwise. It also checks that families which declare to be deterministic are. */
#include <omp.h>

#include "core/synth/input.h"
#include "runtime/context.h"
#include "runtime/devices.h"
#include "support/emit_fixture.h"
#include "support/kernel_check.h"
#include "support/stats.h"
#include "support/test.h"
#include "tuner/upload.h"
#include "warploom/warploom_tune.h"

enum { N = 12 };
/* The first and the second choice of the rules for a skewed matrix; host_nnz is declared not deterministic below. */
static const char loose[] = "host_nnz/nonzeros=8192,tile=16", strict[] = "host_row/rows=128,tile=16";
static const char loose_edges[] = "sddmm_host/nonzeros=1024,ahead=16";
static const char refused[] = "is not deterministic";

/* ---- a folder of families, and a context that reads it --------------------------------------------------- */

/* Copies a family of the library. If `is_loose`, the copy declares that it is not deterministic. */
static void copy_family(test_folder *to, const char *family, int is_loose) {
  static const char *const names[] = {"family.lua", "kernel.c.in"};
  for (int i = 0; i < 2; i++) {
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s/templates/%s/%s", WLM_SOURCE_DIR, family, names[i]);
    char *text = (char *)read_whole(path, &size), *copy = malloc(size + 64);
    assert_non_null(copy);
    const int with_line = is_loose && i == 0;
    const size_t head = with_line ? strlen("return {\n") : 0;
    if (with_line) assert_memory_equal(text, "return {\n", head);
    snprintf(copy, size + 64, "%.*s%s%.*s", (int)head, text, with_line ? "  deterministic = false,\n" : "",
             (int)(size - head), text + head);
    emit_write(to, family, names[i], copy);
    free(copy);
    free(text);
  }
}

static wlm_context *context;
static wlmi_csr_host csr;
static wlmi_upload upload;
static char database[320];

static int begin(void **state) {
  test_folder templates;
  folder_begin(state);
  folder_make(&templates);
  copy_family(&templates, "host_row", 0);
  copy_family(&templates, "host_nnz", 1);
  copy_family(&templates, "sddmm_host", 1);
  snprintf(database, sizeof database, "%s/tuned.db", folder.path);
  wlm_context_options options = BARE_OPTIONS(.device = "host", .database = database, .templates = templates.path);
  assert_status(WLM_OK, wlm_context_create(&options, &context));
  folder_remove(&templates);
  assert_status(WLM_OK, wlmi_input_read("twin:youtube,scale=0.005", &csr)); /* skewed */
  assert_status(WLM_OK, wlmi_upload_create(context, &csr, WLM_I32, &upload));
  return 0;
}

static int end(void **state) {
  wlmi_upload_release(&upload);
  wlmi_csr_host_release(&csr);
  wlm_context_destroy(context);
  return folder_end(state);
}

static wlm_problem problem_of(wlm_operation operation, int deterministic) {
  return (wlm_problem)PROBLEM(.n = N, .operation = operation, .policy.deterministic = deterministic);
}

/* ---- the constraint ---------------------------------------------------------------------------------------- */

static void expect_chosen(int deterministic, const char *step, const char *variant, const char *says) {
  const wlm_problem problem = problem_of(WLM_SPMM, deterministic);
  char expected[64];
  OWN(wlm_plan, plan, wlm_plan_create(context, upload.matrix, &problem, &plan));
  assert_string_equal(wlm_plan_variant(plan), variant);
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 1, &text));
  snprintf(expected, sizeof expected, "\"step\":\"%s\"", step);
  assert_contains(text, expected, says);
}

TEST(rules_skip_other_families) {
  expect_chosen(0, "rule", loose, "\"deterministic\":false");
  expect_chosen(1, "rule", strict, "\"deterministic\":true");
}

TEST(named_variants_are_refused) {
  static const struct {
    wlm_operation operation;
    const char *variant;
    int is_loose;
  } cases[] = {{WLM_SPMM, loose, 1}, {WLM_SPMM, strict, 0}, {WLM_SDDMM, loose_edges, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int deterministic = 0; deterministic < 2; deterministic++) {
      const wlm_problem problem = problem_of(cases[i].operation, deterministic);
      const int is_refused = deterministic && cases[i].is_loose;
      OWNED(wlm_plan) *plan = NULL;
      assert_status(is_refused ? WLM_ERR_INVALID_ARGUMENT : WLM_OK,
                    wlm_plan_create_variant(context, upload.matrix, &problem, cases[i].variant, &plan));
      if (is_refused) assert_contains(wlm_error_detail(), refused);
    }
}

/* If no family is deterministic, plan creation fails. */
TEST(no_deterministic_family_is_an_error) {
  wlm_problem problem = problem_of(WLM_SDDMM, 0);
  GET(wlm_plan *, plan, wlm_plan_create(context, upload.matrix, &problem, &plan));
  wlm_plan_destroy(plan);
  problem.policy.deterministic = 1;
  assert_status(WLM_ERR_NOT_FOUND, wlm_plan_create(context, upload.matrix, &problem, &plan));
  assert_null(plan);
}

TEST(candidates_are_deterministic) {
  int64_t counts[2], loose_ones[2] = {0};
  for (int deterministic = 0; deterministic < 2; deterministic++) {
    const wlm_problem problem = problem_of(WLM_SPMM, deterministic);
    GET(wlmi_spec, spec, wlmi_context_spec(context, upload.matrix, &problem, &spec));
    OWN(wlmi_candidates, names,
        wlmi_generator_describe(wlmi_context_generator(context), &spec, &wlmi_context_device(context)->info.limits,
                                &names));
    counts[deterministic] = names->count;
    for (int64_t i = 0; i < names->count; i++)
      loose_ones[deterministic] += !strncmp(names->candidates[i].variant, "host_nnz/", strlen("host_nnz/"));
  }
  assert_true(loose_ones[0] > 0);
  assert_int_equal(loose_ones[1], 0);
  assert_true(counts[1] > 0);
  assert_int_equal(counts[0] - counts[1], loose_ones[0]);
}

static int no_loose_one(void *user, int64_t done, int64_t total, const wlm_candidate_result *last) {
  (void)done, (void)total;
  *(int *)user += last && !strncmp(last->variant, "host_row/", strlen("host_row/"));
  return last && !strncmp(last->variant, "host_nnz/", strlen("host_nnz/"));
}

TEST(the_tuner_measures_deterministic_families_only) {
  const wlm_problem problem = problem_of(WLM_SPMM, 1);
  int tried = 0;
  wlm_tune_options options =
      TUNE_OPTIONS(.min_sample_seconds = 1e-5, .samples = 3, .progress = no_loose_one, .user = &tried);
  assert_status(WLM_OK, wlm_tune(context, upload.matrix, &problem, NULL, &options));
  assert_true(tried > 0);
}

/* A pin is for both, because determinism is not part of the problem key; with deterministic = 1 it is reported and
 * ignored. */
TEST(a_pin_is_ignored) {
  const wlm_problem problem = problem_of(WLM_SPMM, 0);
  const wlm_stats stats = test_stats_of(&csr);
  HELD(wlmi_text) device_class = {0};
  wlmi_device_record device;
  char place[WLMI_HASH_HEX], key[WLMI_SPEC_KEY];
  device = wlmi_device_record_of(wlmi_context_device(context));
  wlmi_device_class(&device, &device_class);
  wlmi_hash_to_hex((wlmi_hash){stats.fingerprint[0], stats.fingerprint[1]}, place);
  GET(wlmi_spec, spec, wlmi_context_spec(context, upload.matrix, &problem, &spec));
  wlmi_spec_key(&spec, key);
  const wlmi_pin_record pin = {device_class.data, place, key, N, (char *)loose};
  GET(wlm_store *, store, wlmi_store_open(database, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_pin(store, &pin));
  wlmi_store_close(store);
  assert_status(WLM_OK, wlm_context_refresh(context));
  expect_chosen(0, "pin", loose, "\"deterministic\":false");
  const wlm_problem same_bits = problem_of(WLM_SPMM, 1);
  GET(wlmi_decision, decision, wlmi_context_choose(context, upload.matrix, &same_bits, &decision));
  assert_int_not_equal(decision.step, WLMI_STEP_PIN);
  assert_memory_equal(decision.variant, "host_row/", strlen("host_row/"));
  assert_string_equal(decision.pin, loose);
}

/* ---- families that declare to be deterministic --------------------------------------------------------------- */

/* Correct for any number of threads, but each number gives another order of edges and so another rounding. */
static const char turning_kernel[] =
    "int omp_get_max_threads(void);\n"
    "WLM_KERNEL(turning) {\n"
    "  const long long turn = omp_get_max_threads();\n"
    "  for (long long row = 0; row < args->rows; row++) {\n"
    "    const long long begin = wlm_begin(args, row), degree = wlm_begin(args, row + 1) - begin;\n"
    "    for (long long column = 0; column < args->n; column++) {\n"
    "      wlm_acc_t acc = wlm_init();\n"
    "      for (long long k = 0; k < degree; k++) {\n"
    "        const long long p = begin + (k + turn) % degree;\n"
    "        const wlm_b_t *b = (const wlm_b_t *)args->b + wlm_column(args, p) * args->ldb + column;\n"
    "        acc = wlm_reduce(acc, wlm_message(wlm_load_a(args, p), wlm_load_b(b)));\n"
    "      }\n"
    "      wlm_store(args, (wlm_c_t *)args->c + row * args->ldc + column, column, wlm_finish(acc, degree));\n"
    "    }\n"
    "  }\n"
    "}\n";

static void next_threads(void *user, int run) {
  (void)user;
  omp_set_num_threads(run + 1);
}

static wlm_status check_turning(int claims) {
  test_folder templates;
  char family[256];
  HELD(wlmi_program) program = {0};
  wlmi_spec spec = emit_spec(N);
  spec.problem.message = WLM_DIV; /* quotients are not exact, so the order of a sum changes its bits */
  snprintf(family, sizeof family,
           "return { target = \"host\", summary = \"a test\", parameters = {}, deterministic = %s,\n"
           "  passes = function() return { { kernel = \"turning\", units = \"rows\", units_per_block = 1 } } end }\n",
           claims ? "true" : "false");
  folder_make(&templates);
  emit_write(&templates, "turning", "family.lua", family);
  emit_write(&templates, "turning", "kernel.c.in", turning_kernel);
  OWN(wlmi_generator, generator, wlmi_generator_create(templates.path, &generator));
  folder_remove(&templates);
  OWN(wlmi_device, device, wlmi_host_device_open(&device));
  assert_status(WLM_OK, wlmi_generator_emit(generator, "turning", &spec, &device->info.limits, &program));
  const kernel_check check = {.device = device, .spec = &spec, .runs = 3, .before_run = next_threads, .seed = 1};
  wlm_status status = kernel_check_program(&check, &program);
  return status;
}

TEST(wrong_declarations_are_found) {
  assert_status(WLM_OK, check_turning(0));
  assert_fails(WLM_ERR_MISMATCH, check_turning(1), "gives other bits than the first");
}

GROUP(begin, end)
