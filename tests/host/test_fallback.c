/* A plan gets the first variant of its decision that loads: if a tuned kernel no longer compiles, calls still succeed,
 * for every type. */
#include "runtime/context.h"
#include "support/calls.h"
#include "support/emit_fixture.h"
#include "support/exact.h"
#include "support/host_bench.h"
#include "support/put_times.h"
#include "support/stats.h"
#include "support/test.h"

static const char sound[] = "host_row/rows=128,tile=16"; /* the rules' choice */
static bench b;

static void write_broken(test_folder *templates, const char *family) {
  emit_write(templates, family, "family.lua",
             "return { target = \"host\", summary = \"a test\", parameters = {},\n"
             "  passes = function() return { { kernel = \"broken\", units = \"rows\", units_per_block = 1 } } end }\n");
  emit_write(templates, family, "kernel.c.in", "this is no C\n");
}

static void copy_host_row(test_folder *templates) {
  static const char *const names[] = {"family.lua", "kernel.c.in"};
  for (int i = 0; i < 2; i++) {
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s/templates/host_row/%s", WLM_SOURCE_DIR, names[i]);
    FREED char *text = (char *)read_whole(path, &size);
    text = realloc(text, size + 1);
    text[size] = 0;
    emit_write(templates, "host_row", names[i], text);
  }
}

/* Stores measurements as if a tuning had made them; the families that do not compile are the fastest. */
static void tune(wlm_type type) {
  static const char *const variants[] = {"broken", "broken2", "host_row/rows=16,tile=16"};
  const wlm_stats stats = test_stats_of(&b.csr);
  b.problem.dense_type = type;
  GET(wlmi_spec, spec, wlmi_context_spec(b.context, b.upload.matrix, &b.problem, &spec));
  put_times(b.context, b.database, &spec, &stats, variants, 3, NULL);
  assert_status(WLM_OK, wlm_context_refresh(b.context));
}

static void begin_with(int has_sound) {
  test_folder templates;
  folder_make(&templates);
  write_broken(&templates, "broken");
  write_broken(&templates, "broken2");
  if (has_sound) copy_host_row(&templates);
  bench_make(&b, templates.path, "uniform:rows=300,d=4", 8);
  folder_remove(&templates);
}

TEST(the_first_variant_that_compiles_runs) {
  static const wlm_type types[] = {WLM_F32, WLM_F16, WLM_BF16};
  begin_with(1);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    tune(types[i]);
    OWN(wlm_plan, plan, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
    WLM_FREED GET(char *, text, wlm_plan_explain(plan, 1, &text));
    assert_contains(text, "\"variant\":\"host_row/rows=16,tile=16\",\"step\":\"fingerprint\"", "\"refused\":2",
                    "{\"variant\":\"broken\",\"reason\":\"");
  }
  bench_release(&b);
}

/* The ranked list has each valid variant once, in the order of the steps, and the built-in kernel last. */
TEST(entries_are_in_the_order_of_steps) {
  static const char *const expected[] = {"broken", "broken2", "host_row/rows=16,tile=16", sound, "builtin"};
  static const wlmi_step steps[] = {WLMI_STEP_FINGERPRINT, WLMI_STEP_FINGERPRINT, WLMI_STEP_FINGERPRINT, WLMI_STEP_RULE,
                                    WLMI_STEP_BUILTIN};
  begin_with(1);
  tune(WLM_F32);
  GET(wlmi_decision, d, wlmi_context_choose(b.context, b.upload.matrix, &b.problem, &d));
  assert_int_equal(d.entry_count, 5);
  for (int i = 0; i < 5; i++) {
    char name[WLMI_VARIANT_NAME];
    wlmi_entry_print(&d, i, name);
    assert_string_equal(name, expected[i]);
    assert_int_equal(d.entries[i].step, steps[i]);
    assert_non_null(d.entries[i].reason);
    assert_true(d.entries[i].seconds == (i < 3 ? (i + 1) / 1e9 : 0)); /* unknown for what was not measured */
  }
  bench_release(&b);
}

/* If no kernel compiles, the built-in kernel serves f32, and other types return the compiler's error. */
TEST(the_built_in_kernel_is_the_last_choice) {
  begin_with(0);
  tune(WLM_F32);
  GET(wlm_plan *, plan, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 1, &text));
  assert_contains(text, "\"step\":\"builtin\"");
  wlm_plan_destroy(plan);
  tune(WLM_F16);
  assert_status(WLM_ERR_COMPILE, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  bench_release(&b);
}

/* Its product has alpha, beta and several tiles of columns. All sums are exact. */
TEST(the_built_in_kernel_is_right) {
  enum { N = 130 };
  HELD(exact_product) exact;
  begin_with(0);
  b.problem.n = N;
  exact_product_make(&b.csr, N, &exact);
  FREED float *c = malloc(exact.c_size);
  assert_non_null(c);
  for (size_t i = 0; i < exact.c_size / sizeof *c; i++) c[i] = (float)(i % 7);
  GET(wlm_plan *, plan, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  assert_string_equal(wlm_plan_variant(plan), "host_builtin");
  b.call.alpha = -2;
  b.call.beta = 0.5;
  assert_status(WLM_OK, test_execute_call(plan, &b.call, exact.b, c, NULL));
  for (size_t i = 0; i < exact.c_size / sizeof *c; i++)
    if (c[i] != -2 * exact.c[i] + 0.5f * (float)(i % 7)) fail_msg("element %zu is %g", i, (double)c[i]);
  b.call.beta = 0;
  for (size_t i = 0; i < exact.c_size / sizeof *c; i++) c[i] = NAN; /* which is not read */
  assert_status(WLM_OK, test_execute_call(plan, &b.call, exact.b, c, NULL));
  for (size_t i = 0; i < exact.c_size / sizeof *c; i++) assert_true(c[i] == -2 * exact.c[i]);
  wlm_plan_destroy(plan);
  bench_release(&b);
}

/* A product that the built-in kernel supports works even if nothing was tuned and the rules name no kernel that
 * compiles. */
TEST(the_built_in_kernel_needs_no_rule) {
  begin_with(0);
  GET(wlm_plan *, plan, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  wlm_plan_destroy(plan);
  b.problem.dense_type = WLM_F16;
  assert_status(WLM_ERR_COMPILE, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  bench_release(&b);
}

/* If a family.lua raises an error, no family can be chosen, and the call runs the built-in kernel. */
TEST(a_broken_family_leaves_the_built_in_kernel) {
  test_folder templates;
  folder_make(&templates);
  copy_host_row(&templates);
  emit_write(&templates, "raising", "family.lua",
             "return { target = \"host\", summary = \"a test\", parameters = {},\n"
             "  passes = function() return nil + 1 end }\n");
  emit_write(&templates, "raising", "kernel.c.in", "WLM_KERNEL(raising) {}\n");
  bench_make(&b, templates.path, "uniform:rows=300,d=4", 8);
  folder_remove(&templates);
  GET(wlm_plan *, plan, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  assert_string_equal(wlm_plan_variant(plan), "host_builtin");
  wlm_plan_destroy(plan);
  assert_status(WLM_OK, wlm_plan_create_variant(b.context, b.upload.matrix, &b.problem, sound, &plan));
  assert_string_equal(wlm_plan_variant(plan), sound);
  wlm_plan_destroy(plan);
  assert_status(WLM_ERR_TEMPLATE, wlm_plan_create_variant(b.context, b.upload.matrix, &b.problem, "raising", &plan));
  assert_contains(wlm_error_detail(), "raising/family.lua:2");
  bench_release(&b);
}

/* A template whose kernel has another name than its family.lua says, or calls a function that there is not. */
TEST(a_template_without_its_kernel) {
  static const struct {
    const char *family, *source, *says;
    wlm_status status;
  } wrong[] = {
      {"nameless", "WLM_KERNEL(another) { (void)args; (void)unit_blocks; }\n",
       "the template defines no kernel 'nameless'", WLM_ERR_TEMPLATE},
      {"calling", "WLM_KERNEL(calling) { void no_function(void); (void)args; (void)unit_blocks; no_function(); }\n",
       "no_function", WLM_ERR_COMPILE}};
  test_folder templates;
  wlm_plan *plan;
  folder_make(&templates);
  for (int i = 0; i < 2; i++) {
    char table[256];
    snprintf(table, sizeof table,
             "return { target = \"host\", summary = \"a test\", parameters = {},\n"
             "  passes = function() return { { kernel = \"%s\", units = \"rows\", units_per_block = 1 } } end }\n",
             wrong[i].family);
    emit_write(&templates, wrong[i].family, "family.lua", table);
    emit_write(&templates, wrong[i].family, "kernel.c.in", wrong[i].source);
  }
  bench_make(&b, templates.path, "uniform:rows=300,d=4", 8);
  folder_remove(&templates);
  for (int i = 0; i < 2; i++) {
    assert_status(wrong[i].status,
                  wlm_plan_create_variant(b.context, b.upload.matrix, &b.problem, wrong[i].family, &plan));
    assert_contains(wlm_error_detail(), wrong[i].says);
  }
  bench_release(&b);
}

/* The context keeps what it compiled, so a later call does not read the template, which the test has deleted. */
TEST(a_source_is_emitted_once) {
  test_folder templates;
  folder_make(&templates);
  emit_write(&templates, "once", "family.lua",
             "return { target = \"host\", summary = \"a test\", parameters = {},\n"
             "  passes = function() return { { kernel = \"once\", units = \"rows\", units_per_block = 1 } } end }\n");
  emit_write(&templates, "once", "kernel.c.in", "% include \"once/piece.h\"\n");
  emit_write(&templates, "once", "piece.h", "WLM_KERNEL(once) { (void)args; (void)unit_blocks; }\n");
  bench_make(&b, templates.path, "uniform:rows=300,d=4", 8);
  GET(wlmi_spec, spec, wlmi_context_spec(b.context, b.upload.matrix, &b.problem, &spec));
  assert_status(WLM_OK, wlmi_context_compile(b.context, "once", &spec));
  folder_remove(&templates);
  assert_status(WLM_OK, wlmi_context_compile(b.context, "once", &spec));
  GET(wlm_plan *, plan, wlm_plan_create_variant(b.context, b.upload.matrix, &b.problem, "once", &plan));
  wlm_plan_destroy(plan);
  spec.problem.n++;
  assert_status(WLM_ERR_TEMPLATE, wlmi_context_compile(b.context, "once", &spec));
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_context_compile(b.context, "twice", &spec));
  bench_release(&b);
}

EACH(folder_begin, folder_end)
