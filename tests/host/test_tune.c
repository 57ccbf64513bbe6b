/* The tuner on the host device: failed candidates are stored as such, and a stopped tuning keeps its measurements. */
#include <sys/stat.h>
#include <unistd.h>

#include <errno.h>

#include "support/command.h"
#include "support/host_bench.h"
#include "support/test.h"
#include "support/verified.h"
#include "tuner/compile_ahead.h"
#include "tuner/timing.h"
#include "warploom/warploom_tune.h"

/* ---- progress ------------------------------------------------------------------------------------ */

enum { MOST = 64 };
typedef struct told {
  int count, failed, ticks;
  int finalists, cold; /* told again, with a cold time */
  int stop_after;      /* results; 0 = never, -1 = at the first tick */
  int64_t total;
  char variants[MOST][WLMI_VARIANT_NAME];
} told;

static int listen_to(void *user, int64_t done, int64_t total, const wlm_candidate_result *last) {
  told *t = user;
  t->total = total;
  if (!last) {
    t->ticks++;
    return t->stop_after < 0;
  }
  assert_int_equal(last->failed, last->reason != NULL);
  assert_int_equal(last->failed, !(last->seconds > 0 && last->gather_gbs > 0 && last->max_rel_err >= 0));
  int finalist = last->samples > 1; /* or one that was found wrong at last */
  for (int i = 0; i < t->count; i++) finalist |= !strcmp(t->variants[i], last->variant);
  if (finalist) {
    assert_int_equal(done, t->count);
    assert_true(last->failed || last->samples >= 3);
    t->finalists++;
    t->cold += last->cold_seconds > 0;
    return 0;
  }
  assert_int_equal(t->finalists, 0);
  assert_int_equal(last->samples, !last->failed);
  assert_int_equal(done, t->count + 1);
  assert_true(t->count < MOST);
  snprintf(t->variants[t->count], WLMI_VARIANT_NAME, "%s", last->variant);
  t->count++;
  t->failed += last->failed;
  return t->stop_after && t->count >= t->stop_after;
}

static wlm_tune_options quick(told *t) {
  *t = (told){.count = 0};
  return (wlm_tune_options)TUNE_OPTIONS(.again = 1, .min_sample_seconds = 1e-5, .samples = 3, .progress = listen_to,
                                        .user = t);
}

/* Measures only what was not measured before. */
static wlm_tune_options missing(told *t) {
  wlm_tune_options options = quick(t);
  options.again = 0;
  return options;
}

static wlm_status tune(bench *b, const wlm_tune_options *options) {
  return wlm_tune(b->context, b->upload.matrix, &b->problem, &b->call, options);
}

/* Calls each with the records of the bench's database; gives the number of those that are not cold. */
static int64_t stored(const bench *b, void (*each)(const wlmi_measurement_record *record)) {
  OWNED(wlm_store) *store = NULL;
  wlmi_measurement_record *records;
  wlm_status status = wlmi_store_open(b->database, WLMI_STORE_READ, &store);
  if (status == WLM_ERR_NOT_FOUND) return 0;
  assert_status(WLM_OK, status);
  GET(int64_t, count, wlmi_store_load(store, NULL, &records, &count));
  int64_t hot = 0;
  for (int64_t i = 0; i < count; i++) {
    hot += strcmp(records[i].clock, "cold") != 0;
    if (each) each(&records[i]);
  }
  wlmi_measurements_free(records, count);
  return hot;
}

/* ---- families that are wrong ------------------------------------------------------------------------ */

static const char *new_folder(const char *name) {
  const char *path = in_folder(name);
  assert_int_equal(mkdir(path, 0700), 0);
  return path;
}

static void add_family(const char *templates, const char *name, const char *statement) {
  static const char family[] =
      "return { target = \"host\", summary = \"a test\", parameters = {},\n"
      "  workspace = function() return { blocks = 4 } end,\n" /* bytes for each row */
      "  passes = function() return { { kernel = \"%s\", units = \"rows\", units_per_block = 1 } } end }\n";
  static const char kernel[] =
      "WLM_KERNEL(%s) {\n"
      "  for (long long row = 0; row < unit_blocks; row++)\n"
      "    for (long long j = 0; j < args->n; j++) {\n"
      "      const long long begin = wlm_begin(args, row), degree = wlm_begin(args, row + 1) - begin;\n"
      "      wlm_acc_t acc = wlm_init();\n"
      "      for (long long p = begin; p < begin + degree; p++)\n"
      "        acc = wlm_reduce(acc, wlm_message(wlm_load_a(args, p),\n"
      "          wlm_load_b((const wlm_b_t *)args->b + wlm_column(args, p) * args->ldb + j)));\n"
      "      %s\n"
      "      wlm_store(args, (wlm_c_t *)args->c + row * args->ldc + j, j, wlm_finish(acc, degree));\n"
      "    }\n"
      "}\n";
  char path[512], text[2048];
  snprintf(path, sizeof path, "%s/%s", templates, name);
  assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
  snprintf(path, sizeof path, "%s/%s/family.lua", templates, name);
  snprintf(text, sizeof text, family, name);
  write_whole(path, text, strlen(text));
  snprintf(path, sizeof path, "%s/%s/kernel.c.in", templates, name);
  snprintf(text, sizeof text, kernel, name, statement);
  write_whole(path, text, strlen(text));
}

static void check_failure(const wlmi_measurement_record *record) {
  static const struct {
    const char *variant, *reason;
  } expected[] = {{"no_compile", "no_such_thing"}, {"off_by_little", "differs"}, {"skips_a_row", "differs"}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    if (!strcmp(record->variant, expected[i].variant)) {
      assert_true(record->failed);
      assert_int_equal(record->time_ps, 0);
      assert_contains(record->reason, expected[i].reason);
      return;
    }
  assert_string_equal(record->variant, "right");
  assert_false(record->failed);
  assert_true(record->time_ps > 0);
  assert_true(record->max_rel_err < 1e-6);
  assert_int_equal(strlen(record->version), 32);
}

TEST(failures_are_recorded) {
  told t;
  const char *templates = new_folder("templates");
  add_family(templates, "right", "");
  add_family(templates, "no_compile", "no_such_thing();");
  add_family(templates, "off_by_little", "if (row == 4) acc *= 1.0001f;");
  add_family(templates, "skips_a_row", "if (row == args->rows - 1) continue;"); /* found because C was poisoned */
  MAKE(bench, b, templates, "uniform:rows=40,d=5", 9);
  wlm_tune_options options = quick(&t);
  options.matrix_name = "forty";
  assert_status(WLM_OK, tune(&b, &options));
  assert_int_equal(t.count, 4);
  assert_int_equal(t.total, 4);
  assert_int_equal(t.failed, 3);
  assert_int_equal(t.finalists, 1);
  assert_int_equal(t.cold, 1);
  assert_int_equal(stored(&b, check_failure), 5);
  OWN(wlm_plan, plan, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan)); /* refreshed: sees it */
  assert_string_equal(wlm_plan_variant(plan), "right");
}

/* ---- a machine whose timer does what the test says ------------------------------------------------------- */

static const wlmi_device_ops *real_ops;
static int busy, samples_taken;
static double calm_seconds;
static wlm_status planted_sample(wlmi_timer *timer, void *flush, size_t size, double *seconds) {
  const wlm_status status = real_ops->timer_sample(timer, flush, size, seconds);
  *seconds = busy ? calm_seconds * (1 + samples_taken++ % 7) : calm_seconds;
  return status;
}

/* Calm unless `busy` is set; `ops` belongs to the caller. */
static void plant_timer(bench *b, wlmi_device_ops *ops) {
  wlmi_device *device = wlmi_context_device(b->context);
  real_ops = device->ops;
  *ops = *real_ops;
  ops->timer_sample = planted_sample;
  ops->usage = NULL;
  device->ops = ops;
  busy = 0;
  calm_seconds = 1e-3;
}

/* ---- kernels that are wrong where screening does not look ------------------------------------------------ */

static int64_t mismatches, screened;
static void count_mismatches(const wlmi_measurement_record *record) {
  mismatches += record->failed && strstr(record->reason, "differs") != NULL;
  screened += !record->failed && record->samples == 1;
}

/* No kernel wins before its whole result was compared; if none passes, the matrix stays untuned. */
TEST(wrong_in_one_row) {
  static const char wrong[] = "if (row == 1777) acc += 1000;";
  bench b;
  told t;
  wlm_plan *plan;
  for (int right = 0; right < 2; right++) {
    const char *templates = new_folder(right ? "one-row-1" : "one-row-0");
    add_family(templates, "wrong_a", wrong);
    add_family(templates, "wrong_b", wrong);
    if (right) add_family(templates, "slow", "for (volatile int i = 0; i < 2000; i++) continue;");
    bench_make(&b, templates, "uniform:rows=3000,d=5", 9);
    wlmi_device_ops calm;
    plant_timer(&b, &calm);
    wlm_tune_options options = quick(&t);
    mismatches = screened = 0;
    assert_status(right ? WLM_OK : WLM_ERR_MISMATCH, tune(&b, &options));
    if (!right) assert_contains(wlm_error_detail(), "stays untuned");
    assert_int_equal(t.failed, 0); /* screening saw nothing */
    assert_int_equal(t.finalists, 2 + right);
    stored(&b, count_mismatches);
    assert_int_equal(mismatches, 2);
    assert_int_equal(screened, 2 + right);
    assert_status(WLM_OK, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
    assert_string_equal(wlm_plan_variant(plan), right ? "slow" : "host_builtin");
    wlm_plan_destroy(plan);
    options = missing(&t); /* nothing is measured again, and it is still an error */
    assert_status(right ? WLM_OK : WLM_ERR_NOT_FOUND, tune(&b, &options));
    assert_int_equal(t.count + t.finalists, 0);
    wlmi_context_device(b.context)->ops = real_ops;
    bench_release(&b);
  }
}

static const struct {
  const char *variant, *statement, *reason;
} sly[] = {
    {"in_padding", "if (!j) ((float *)args->c)[row * args->ldc + args->n] = 1;", "behind its 9 columns, in row 0"},
    {"behind_c", "if (row == args->rows - 1 && !j) ((float *)args->c)[args->rows * args->ldc + 5] = 1;",
     "byte 20 behind c was written"},
    {"behind_work", "if (!row && !j) ((float *)args->workspace)[args->rows + 64] = 1;", "behind the workspace"},
    {"fifth_call", "static int calls; calls += !row && !j; if (calls % 5 == 4) acc += 1000;", "differs"},
    {"misaligned", "if ((unsigned long long)args->b & 15) acc += 1000;", "differs"},
};
enum { SLY = sizeof sly / sizeof *sly };
static int found_out[SLY];

static void find_out(const wlmi_measurement_record *record) {
  for (int i = 0; i < SLY; i++)
    if (record->failed && !strcmp(record->variant, sly[i].variant)) {
      assert_contains(record->reason, sly[i].reason);
      found_out[i] = 1;
    }
}

/* What one correct result in aligned memory does not show. */
TEST(hidden_faults_are_found) {
  told t;
  const char *templates = new_folder("sly");
  for (int i = 0; i < SLY; i++) add_family(templates, sly[i].variant, sly[i].statement);
  add_family(templates, "honest", "for (volatile int i = 0; i < 200; i++) continue;");
  MAKE(bench, b, templates, "uniform:rows=300,d=5", 9);
  b.call.ldc = 12;
  wlm_tune_options options = quick(&t);
  assert_status(WLM_OK, tune(&b, &options));
  stored(&b, find_out);
  for (int i = 0; i < SLY; i++)
    if (!found_out[i]) fail_msg("%s passed", sly[i].variant);
  OWN(wlm_plan, plan, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  assert_string_equal(wlm_plan_variant(plan), "honest");
}

/* ---- failures of the environment ------------------------------------------------------------------------ */

/* A compiler that is killed while the file `flag` is there. */
static void write_compiler(const char *path, const char *flag) {
  char text[1024];
  snprintf(text, sizeof text,
           "#!/bin/sh\nif [ \"$1\" != --version ] && [ -e '%s' ]; then\n"
           "  echo 'cc: fatal error: Killed signal terminated program cc1' >&2\n  exit 1\nfi\nexec cc \"$@\"\n",
           flag);
  write_whole(path, text, strlen(text));
  assert_int_equal(chmod(path, 0700), 0);
}

TEST(environment_failures_are_not_stored) {
  bench b;
  told t;
  char compiler[320], flag[320], nowhere[320], *before = getenv("TMPDIR");
  snprintf(compiler, sizeof compiler, "%s/compiler", folder.path);
  snprintf(flag, sizeof flag, "%s/no-memory", folder.path);
  snprintf(nowhere, sizeof nowhere, "%s/no/such/folder", folder.path);
  write_compiler(compiler, flag);
  before = before ? strdup(before) : NULL;
  setenv("WARPLOOM_CC", compiler, 1);
  bench_make(&b, NULL, "uniform:rows=100,d=4", 8);
  b.problem.reduce = WLM_MAX; /* which the built-in kernel does not have */
  for (int full = 0; full < 2; full++) {
    wlm_tune_options options = missing(&t);
    if (full)
      setenv("TMPDIR", nowhere, 1);
    else
      write_whole(flag, "", 0);
    assert_fails(WLM_ERR_IO, tune(&b, &options), full ? "TMPDIR" : "Killed signal");
    assert_true(t.count > 0);
    assert_int_equal(t.failed, t.count);
    assert_int_equal(stored(&b, NULL), 0);
    unlink(flag);
    if (before)
      setenv("TMPDIR", before, 1);
    else
      unsetenv("TMPDIR");
  }
  GET(wlm_plan *, plan, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  wlm_plan_destroy(plan);
  wlm_tune_options options = missing(&t);
  assert_status(WLM_OK, tune(&b, &options));
  assert_true(t.count > 0);
  assert_int_equal(t.failed, 0);
  bench_release(&b);
  unsetenv("WARPLOOM_CC");
  free(before);
}

/* ---- kernels that do not fit -------------------------------------------------------------------------- */

/* A GPU's answers: the first kernel is fine, the second has no room, all others spill. */
static int asked;
static wlm_status odd_facts(const wlmi_device *device, const wlmi_launch *launch, wlmi_kernel_facts *facts) {
  (void)device;
  (void)launch;
  asked++;
  *facts = (wlmi_kernel_facts){255, asked > 2 ? 4096 : 0, 1024, asked != 2};
  return WLM_OK;
}

static int without_room, spilling;
static void count_unfit(const wlmi_measurement_record *record) {
  without_room += record->failed && strstr(record->reason, "no block of it fits") != NULL;
  spilling += record->failed && strstr(record->reason, "4096 bytes in memory") != NULL;
}

TEST(what_does_not_fit_is_not_timed) {
  static told t;
  MAKE(bench, b, NULL, "uniform:rows=100,d=4", 16);
  wlmi_device *device = wlmi_context_device(b.context);
  real_ops = device->ops;
  wlmi_device_ops odd = *real_ops;
  odd.kernel_facts = odd_facts;
  device->ops = &odd;
  wlm_tune_options options = quick(&t);
  asked = without_room = spilling = 0;
  assert_status(WLM_OK, tune(&b, &options));
  assert_int_equal(t.failed, t.count - 1);
  stored(&b, count_unfit);
  assert_int_equal(without_room, 1);
  assert_true(spilling >= t.count - 2);
  device->ops = real_ops;
}

/* ---- stopping ------------------------------------------------------------------------------------------ */

TEST(cancelled_keeps_what_it_has) {
  told t;
  MAKE(bench, b, NULL, "uniform:rows=100,d=4", 16);
  wlm_tune_options options = quick(&t);
  t.stop_after = 2;
  assert_fails(WLM_ERR_CANCELLED, tune(&b, &options), "kept");
  const int64_t kept = stored(&b, NULL);
  assert_true(kept >= 2);
  assert_int_equal(t.count + t.finalists, kept); /* all that was stored was reported */
  options = quick(&t);
  t.stop_after = -1;
  assert_status(WLM_ERR_CANCELLED, tune(&b, &options));
  assert_int_equal(t.count, 0);
  assert_int_equal(t.ticks, 1);
  assert_int_equal(stored(&b, NULL), kept);
}

/* A budget that is over at once still gives one measurement: a tuner that is called learns something. */
TEST(budget) {
  told t;
  MAKE(bench, b, NULL, "uniform:rows=100,d=4", 16);
  wlm_tune_options options = quick(&t);
  options.budget_seconds = 1e-9;
  assert_status(WLM_OK, tune(&b, &options));
  assert_int_equal(t.count, 1);
  assert_int_equal(t.finalists, 1);
  assert_true(t.total > 1);
  assert_int_equal(stored(&b, NULL), 2);
  options = quick(&t);
  options.budget_seconds = 1e6;
  assert_status(WLM_OK, tune(&b, &options));
  assert_int_equal(t.count, t.total);
}

/* What the database has decides about the order, too, so each has a new one. */
static void tune_anew(uint64_t seed, told *t) {
  MAKE(bench, b, NULL, "uniform:rows=100,d=4", 32);
  wlm_tune_options options = quick(t);
  options.seed = seed;
  assert_status(WLM_OK, tune(&b, &options));
  assert_int_equal(stored(&b, NULL), t->count + t->finalists);
}

TEST(seed_orders) {
  static told first, again, other;
  tune_anew(1, &first);
  tune_anew(1, &again);
  tune_anew(2, &other);
  assert_memory_equal(first.variants, again.variants, sizeof first.variants);
  assert_memory_not_equal(first.variants, other.variants, sizeof first.variants);
  assert_int_equal(first.count, other.count);
}

/* The first is what would be chosen anyway: the rule's where nothing is known, what won before where it was tuned. */
TEST(the_present_choice_is_measured_first) {
  static told t;
  char rule[WLMI_VARIANT_NAME], tuned[WLMI_VARIANT_NAME];
  MAKE(bench, b, NULL, "uniform:rows=100,d=4", 32);
  GET(wlmi_decision, decision, wlmi_context_choose(b.context, b.upload.matrix, &b.problem, &decision));
  assert_int_equal(decision.step, WLMI_STEP_RULE);
  snprintf(rule, sizeof rule, "%s", decision.variant);
  wlm_tune_options options = quick(&t);
  assert_status(WLM_OK, tune(&b, &options));
  assert_string_equal(t.variants[0], rule);
  assert_status(WLM_OK, wlmi_context_choose(b.context, b.upload.matrix, &b.problem, &decision));
  assert_int_equal(decision.step, WLMI_STEP_FINGERPRINT);
  snprintf(tuned, sizeof tuned, "%s", decision.variant);
  options = quick(&t);
  assert_status(WLM_OK, tune(&b, &options));
  assert_string_equal(t.variants[0], tuned);
  if (strcmp(rule, tuned)) assert_string_equal(t.variants[1], rule);
}

/* ---- going on ---------------------------------------------------------------------------------------------- */

static int precise_seen;
static void count_precise(const wlmi_measurement_record *record) { precise_seen += record->samples >= 3; }

/* What was measured stays measured: a run that was cut off is gone on with, and one that was not has nothing to do. */
TEST(only_what_is_missing) {
  static told first, rest, nothing;
  wlmi_device_ops calm;
  MAKE(bench, b, NULL, "uniform:rows=100,d=4", 16);
  plant_timer(&b, &calm);
  wlm_tune_options options = missing(&first);
  options.budget_seconds = 1e-9;
  assert_status(WLM_OK, tune(&b, &options));
  assert_int_equal(first.count, 1);
  options = missing(&rest);
  assert_status(WLM_OK, tune(&b, &options));
  assert_int_equal(rest.count, rest.total);
  assert_int_equal(rest.total, first.total - 1);
  for (int i = 0; i < rest.count; i++) assert_string_not_equal(rest.variants[i], first.variants[0]);
  assert_true(rest.finalists > 0);
  for (int again = 0; again < 3; again++) { /* what was noisy is measured once more */
    options = missing(&nothing);
    assert_status(WLM_OK, tune(&b, &options));
  }
  assert_int_equal(nothing.count + nothing.finalists + nothing.ticks, 0);
  precise_seen = 0;
  stored(&b, count_precise);
  assert_true(precise_seen >= first.finalists + rest.finalists);
  wlmi_context_device(b.context)->ops = real_ops;
}

/* ---- noise ------------------------------------------------------------------------------------------------- */

static char warning[512];
static void keep_warning(void *user, wlm_log_level level, const char *message) {
  (void)user;
  if (level == WLM_LOG_WARNING) snprintf(warning, sizeof warning, "%s", message);
}

/* Finalists whose samples disagree are measured again, but not for ever. */
TEST(noise_is_measured_again) {
  told t;
  MAKE(bench, b, NULL, "uniform:rows=100,d=4", 16);
  wlmi_device_ops planted;
  plant_timer(&b, &planted);
  wlm_set_log(keep_warning, NULL, WLM_LOG_WARNING);
  int finalists = 0;
  for (int round = 0; round < 5; round++) { /* busy, busy, then calm */
    wlm_tune_options options = missing(&t);
    options.samples = 4;
    busy = round < 2;
    *warning = 0;
    assert_status(WLM_OK, tune(&b, &options));
    if (!round) finalists = t.finalists;
    if (busy) assert_contains(warning, "busy: the times of one kernel spread by");
    if (round == 1) assert_true(t.count >= finalists); /* those, and what was screened in a noisy moment */
    if (round > 3) assert_int_equal(t.count + t.finalists, 0);
  }
  wlm_set_log(NULL, NULL, WLM_LOG_WARNING);
  wlmi_context_device(b.context)->ops = real_ops;
}

/* Each tuning measures one candidate. The third is a finalist in a busy moment, and in all later tunings too slow to be
 * one again; it is measured once more, and then the others have their turn. */
TEST(short_budgets_end_after_a_busy_moment) {
  told t;
  MAKE(bench, b, NULL, "uniform:rows=100,d=4", 16);
  wlmi_device_ops planted;
  plant_timer(&b, &planted);
  int64_t candidates = 0, tunings = 0;
  do {
    wlm_tune_options options = missing(&t);
    options.budget_seconds = 1e-9;
    options.min_sample_seconds = 0; /* one call a sample */
    busy = tunings == 2;
    calm_seconds = tunings < 2 ? 1e-3 : busy ? 1e-4 : 5e-3;
    assert_status(WLM_OK, tune(&b, &options));
    if (!tunings) candidates = t.total;
    assert_in_range(tunings, 0, 2 * candidates);
    tunings++;
  } while (t.count);
  assert_true(tunings > candidates);
  wlmi_context_device(b.context)->ops = real_ops;
}

/* A family that is new, or one whose files changed: its candidate is measured, and the finals are played with those
 * that are known. */
TEST(a_new_family_is_measured_alone) {
  static told t;
  const char *templates = new_folder("more");
  add_family(templates, "old", "");
  MAKE(bench, b, templates, "uniform:rows=40,d=5", 9);
  wlmi_device_ops calm;
  plant_timer(&b, &calm);
  wlm_tune_options options = missing(&t);
  assert_status(WLM_OK, tune(&b, &options));
  assert_int_equal(t.count, 1);
  wlmi_context_device(b.context)->ops = real_ops;
  static const char *const changed[] = {"young", "old"};
  for (int i = 0; i < 2; i++) {
    wlmi_upload_release(&b.upload);
    wlm_context_destroy(b.context);
    wlm_context_options open =
        CONTEXT_OPTIONS(.device = "host", .database = b.database, .system_database = "", .templates = templates);
    add_family(templates, changed[i], i ? ";" : "");
    assert_status(WLM_OK, wlm_context_create(&open, &b.context));
    assert_status(WLM_OK, wlmi_upload_create(b.context, &b.csr, WLM_I32, &b.upload));
    wlmi_device_ops calm_again;
    plant_timer(&b, &calm_again);
    options = missing(&t);
    assert_status(WLM_OK, tune(&b, &options));
    assert_int_equal(t.count, 1);
    assert_string_equal(t.variants[0], changed[i]);
    assert_true(t.finalists >= 1);
    wlmi_context_device(b.context)->ops = real_ops;
  }
}

/* ---- compiling while others are measured --------------------------------------------------------------- */

/* Jobs are waited for one by one, as they are needed; an early end leaves the others undone, and says so. */
TEST(compiled_meanwhile) {
  enum { JOBS = 40, WAITED = 6 };
  wlmi_compile_job jobs[JOBS];
  int cancelled = 0;
  MAKE(bench, b, NULL, "uniform:rows=40,d=5", 9);
  GET(wlmi_spec, spec, wlmi_context_spec(b.context, b.upload.matrix, &b.problem, &spec));
  OWN(wlmi_candidates, names,
      wlmi_generator_describe(wlmi_context_generator(b.context), &spec, &wlmi_context_device(b.context)->info.limits,
                              &names));
  for (int i = 0; i < JOBS; i++)
    jobs[i] = (wlmi_compile_job){.variant = i == 2 ? "no_such_family" : names->candidates[i % names->count].variant,
                                 .spec = &spec};
  GET(wlmi_compiling *, compiling, wlmi_compile_begin(b.context, jobs, JOBS, &compiling));
  for (int i = 0; i < WAITED; i++) {
    wlmi_compile_wait(compiling, i, NULL, NULL);
    assert_int_equal(jobs[i].status == WLM_OK, i != 2);
    assert_int_equal(jobs[i].detail != NULL, i == 2);
  }
  wlmi_compile_end(compiling);
  for (int i = 0; i < JOBS; i++) {
    cancelled += jobs[i].status == WLM_ERR_CANCELLED;
    wlmi_free(jobs[i].detail);
  }
  assert_in_range(cancelled, 0, JOBS - WAITED);
}

/* ---- problems --------------------------------------------------------------------------------------------- */

TEST(every_kind_of_problem) {
  static const struct {
    wlm_message message;
    wlm_reduce reduce;
    double alpha, beta;
    int64_t n, ldb, ldc;
    wlm_sample sample;
    wlm_sample_norm norm;
  } kinds[] = {
      {WLM_MUL, WLM_SUM, 2, -0.5, 7, 9, 8, WLM_SAMPLE_NONE, WLM_NORM_NONE},
      {WLM_COPY_A, WLM_SUM, 1, 0, 3, 0, 0, WLM_SAMPLE_NONE, WLM_NORM_NONE},
      {WLM_COPY_B, WLM_MEAN, 1, 0, 5, 0, 7, WLM_SAMPLE_NONE, WLM_NORM_NONE},
      {WLM_ADD, WLM_MAX, 1, 0, 1, 0, 0, WLM_SAMPLE_NONE, WLM_NORM_NONE},
      {WLM_MUL, WLM_MIN, -1, 1, 6, 0, 0, WLM_SAMPLE_NONE, WLM_NORM_NONE},
      {WLM_MUL, WLM_SUM, 1, 0, 16, 0, 0, WLM_SAMPLE_BUCKET, WLM_NORM_KEPT},
      {WLM_MUL, WLM_SUM, 1, 0, 4, 0, 0, WLM_SAMPLE_FASTRAND_COPRIME, WLM_NORM_UNBIASED},
  };
  enum { KINDS = sizeof kinds / sizeof *kinds };
  MAKE(bench, b, NULL, "twin:arxiv,scale=0.002", 0);
  for (int number = 0; number < KINDS + 2; number++) { /* the last kind also with its backward passes */
    const int i = number < KINDS ? number : KINDS - 1;
    told t;
    wlm_tune_options options = quick(&t);
    options.budget_seconds = getenv("WARPLOOM_FULL") ? 2 : 0.3;
    b.problem.transpose = number == KINDS;
    b.problem.operation = number > KINDS ? WLM_SDDMM : WLM_SPMM;
    b.problem.message = kinds[i].message;
    b.problem.reduce = kinds[i].reduce;
    b.call.alpha = kinds[i].alpha;
    b.call.beta = kinds[i].beta;
    b.problem.n = kinds[i].n;
    b.call.ldb = kinds[i].ldb;
    b.call.ldc = kinds[i].ldc;
    b.problem.sampling.sample = kinds[i].sample;
    b.problem.sampling.norm = kinds[i].norm;
    b.problem.sampling.width = kinds[i].sample ? 8 : 0;
    assert_status(WLM_OK, tune(&b, &options));
    assert_true(t.count > 0);
    assert_int_equal(t.failed, 0);
  }
}

TEST(nothing_to_compute) {
  told t;
  MAKE(bench, b, NULL, "uniform:rows=10,d=2", 0);
  wlm_tune_options options = quick(&t);
  assert_status(WLM_OK, tune(&b, &options));
  assert_int_equal(t.count, 0);
}

TEST(invalid_options_are_refused) {
  told t;
  MAKE(bench, b, NULL, "uniform:rows=10,d=2", 4);
  static const struct {
    size_t size;
    double budget, sample_seconds;
    int samples;
    const char *field;
  } bad[] = {
      {1, 0, 0.001, 9, "size"},
      {sizeof(wlm_tune_options), -1, 0.001, 9, "budget_seconds"},
      {sizeof(wlm_tune_options), NAN, 0.001, 9, "budget_seconds"},
      {sizeof(wlm_tune_options), INFINITY, 0.001, 9, "budget_seconds"},
      {sizeof(wlm_tune_options), 0, -0.001, 9, "min_sample_seconds"},
      {sizeof(wlm_tune_options), 0, NAN, 9, "min_sample_seconds"},
      {sizeof(wlm_tune_options), 0, 1e9, 9, "min_sample_seconds"},
      {sizeof(wlm_tune_options), 0, 0.001, 0, "samples"},
      {sizeof(wlm_tune_options), 0, 0.001, 1 << 30, "samples"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    wlm_tune_options options = quick(&t);
    options.size = bad[i].size;
    options.budget_seconds = bad[i].budget;
    options.min_sample_seconds = bad[i].sample_seconds;
    options.samples = bad[i].samples;
    assert_fails(WLM_ERR_INVALID_ARGUMENT, tune(&b, &options), bad[i].field);
  }
  wlm_tune_options options = quick(&t);
  b.call.ldc = 3;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, tune(&b, &options), "wlm_execute_args.ldc");
  b.call.ldc = 0;
  b.call.alpha = (double)NAN;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, tune(&b, &options), "wlm_execute_args.alpha");
  b.call.alpha = 1;
  b.problem.want_argmax = 1; /* of a sum */
  assert_status(WLM_ERR_UNSUPPORTED, tune(&b, &options));
  assert_int_equal(stored(&b, NULL), 0);
}

/* ---- the checked run -------------------------------------------------------------------------------------- */

/* Of a matrix too large to compare whole, the rows that are compared include those that go wrong first. */
TEST(large_matrices_are_sampled) {
  double error = -1;
  MAKE(bench, b, NULL, "uniform:rows=40000,d=3", 1024);
  HOLD(wlmi_operands, operands, wlmi_operands_create(b.context, b.upload.matrix, &b.problem, NULL, 1, &operands));
  OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 1, &verifier));
  assert_in_range(wlmi_verifier_rows(verifier), 3500, 4100);
  OWN(wlm_plan, plan, wlm_plan_create(b.context, b.upload.matrix, &b.problem, &plan));
  assert_status(WLM_OK, verify_plan(&operands, verifier, plan, &error));
  assert_true(error >= 0 && error < 1e-6);
  assert_status(WLM_OK, wlmi_verify_spots(verifier, &error));
  /* The last row is one of them: a matrix whose last row changed is found out. */
  operands.a.values[operands.a.nnz - 1] += 1;
  wlmi_verifier_destroy(verifier);
  assert_status(WLM_OK, wlmi_verifier_create(&operands, 1, &verifier));
  assert_fails(WLM_ERR_MISMATCH, verify_plan(&operands, verifier, plan, &error), "row 39999");
  assert_status(WLM_ERR_MISMATCH, wlmi_verify_spots(verifier, &error)); /* screening finds that too */
  assert_contains(wlm_error_detail(), "row 39999");
}

GROUP(home_begin, folder_end)
