/* Pins: they override measurements, a matrix's pin overrides its bucket's, and they apply only if the variant is a
 * candidate. */
#include "support/snapshot_fixture.h"
#include "support/test.h"

static const wlmi_limits host = {.target = WLMI_TARGET_HOST, .processors = 8};
static const wlmi_bucket of_tuned = {WLMI_BUCKET_VERSION, 9, 6, 1}; /* 1000 rows, 9 a row, cv 1 */

static wlm_stats stats_of(uint64_t fingerprint, double cv) {
  return (wlm_stats)STATS(.rows = 1000, .cols = 1000, .nnz = 9000, .mean = 9, .cv = cv, .fingerprint[0] = fingerprint);
}

static void tune(wlmi_snapshot *snapshot, uint64_t fingerprint) {
  const wlm_stats stats = stats_of(fingerprint, 1);
  snapshot_case(snapshot, &stats, "p", 32);
  snapshot_measured(snapshot, "measured", 1, 0);
  snapshot_measured(snapshot, "second", 2, 0);
}

static void pin(wlmi_snapshot *snapshot, uint64_t fingerprint, int64_t n, const char *variant) {
  const wlmi_pin p = {fingerprint != 0, {fingerprint, 0}, of_tuned, "p", n, snapshot_variant(snapshot, variant),
                      variant};
  snapshot->families = snapshot_families();
  assert_int_equal(wlmi_snapshot_add_pin(snapshot, &p), WLM_OK);
}

static wlmi_decision decide(const wlmi_snapshot *snapshot, const wlm_stats *stats, int64_t n, int64_t calls) {
  wlm_problem problem = PROBLEM(.n = n, .policy.expected_calls = calls);
  wlm_csr csr = WLM_CSR_INIT;
  const wlmi_variant_set variants = snapshot_accepted();
  wlmi_decision decision;
  GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
  assert_status(WLM_OK, select_for(snapshot, stats, "p", &spec, &host, &variants, &decision));
  return decision;
}

TEST(a_pin_wins_and_the_measured_choice_stays_visible) {
  CLEARED(wlmi_snapshot) snapshot = {0};
  const wlm_stats tuned = stats_of(7, 1), alike = stats_of(8, 1.2), other = stats_of(9, 40);
  tune(&snapshot, 7);
  pin(&snapshot, 0, 32, "for the bucket");
  pin(&snapshot, 0, 32, "too late"); /* pins of the system database come after the user's, so this one is ignored */
  wlmi_decision d = decide(&snapshot, &tuned, 32, 1);
  assert_int_equal(d.step, WLMI_STEP_PIN);
  assert_string_equal(wlmi_step_name(d.step), "pin");
  assert_string_equal(d.variant, "for the bucket");
  assert_string_equal(d.unpinned, "measured");
  assert_false(d.pin_exact);
  assert_int_equal(d.ranked_count, 2);
  assert_string_equal(decide(&snapshot, &alike, 32, 1).variant, "for the bucket");
  d = decide(&snapshot, &tuned, 64, 1); /* the pin is for another N */
  assert_string_equal(d.pin, "");
  assert_true(d.step != WLMI_STEP_PIN);
  assert_true(decide(&snapshot, &other, 32, 1).step == WLMI_STEP_RULE);

  pin(&snapshot, 7, 32, "for the matrix");
  pin(&snapshot, 7, 32, "too late");
  d = decide(&snapshot, &tuned, 32, 1);
  assert_string_equal(d.variant, "for the matrix");
  assert_true(d.pin_exact);
  assert_string_equal(decide(&snapshot, &alike, 32, 1).variant, "for the bucket");
}

TEST(invalid_pins_are_shown_and_ignored) {
  CLEARED(wlmi_snapshot) snapshot = {0};
  const wlm_stats tuned = stats_of(7, 1);
  tune(&snapshot, 7);
  pin(&snapshot, 7, 32, "no longer there");
  wlmi_decision d = decide(&snapshot, &tuned, 32, 1);
  assert_int_equal(d.step, WLMI_STEP_FINGERPRINT);
  assert_string_equal(d.variant, "measured");
  assert_string_equal(d.pin, "no longer there");

  snapshot_failure(&snapshot, "wrong", "it was wrong");
  /* the kernel failed on this matrix after the user pinned it */
  snapshot.pins[0].value = snapshot_variant(&snapshot, "wrong");
  assert_string_equal(decide(&snapshot, &tuned, 32, 1).variant, "measured");

  pin(&snapshot, 7, 64, "turned");
  assert_true(decide(&snapshot, &tuned, 64, 1).step != WLMI_STEP_PIN); /* the pinned kernel needs preparation */
  assert_string_equal(decide(&snapshot, &tuned, 64, 2).variant, "turned");
}

TEST(buckets_as_text) {
  static const char *const wrong[] = {"",
                                      "v1",
                                      "matrix.mtx",
                                      "v1 rows=9 mean=6",
                                      "v1 rows=9 mean=6 cv=1 ",
                                      "v1  rows=9 mean=6 cv=1",
                                      "v1 rows=09 mean=6 cv=1",
                                      "v1 rows=9 mean=6 cv=1x",
                                      "v1 rows=9 mean=6 cv=1 and much more of what is no bucket at all, at the end"};
  wlmi_bucket bucket = {1, -1, WLMI_BUCKET_NO_NNZ, 0}, back;
  char text[WLMI_BUCKET_TEXT];
  wlmi_bucket_print(&bucket, text);
  assert_string_equal(text, "v1 rows=-1 mean=-128 cv=0");
  assert_true(wlmi_bucket_parse(text, &back));
  assert_memory_equal(&bucket, &back, sizeof back);
  assert_true(wlmi_bucket_parse("v1,rows=9,mean=6,cv=1", &back));
  assert_memory_equal(&of_tuned, &back, sizeof back);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (wlmi_bucket_parse(wrong[i], &back)) fail_msg("'%s' is taken for a bucket", wrong[i]);
}

/* Texts that look like buckets to which no matrix can belong. */
TEST(impossible_buckets) {
  static const struct {
    const char *text, *fault; /* NULL = the bucket is possible */
  } cases[] = {{"v1 rows=9 mean=6 cv=1", NULL},
               {"v1 rows=-1 mean=-128 cv=0", NULL},
               {"v1 rows=62 mean=-126 cv=4", NULL},
               {"v2 rows=9 mean=6 cv=1", "version"},
               {"v0 rows=9 mean=6 cv=1", "version"},
               {"v1 rows=63 mean=6 cv=1", "rows must"},
               {"v1 rows=-2 mean=-128 cv=0", "rows must"},
               {"v1 rows=-1 mean=6 cv=1", "mean must"},
               {"v1 rows=9 mean=127 cv=1", "mean must"},
               {"v1 rows=9 mean=6 cv=5", "cv must"},
               {"v1 rows=9 mean=6 cv=9", "cv must"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_bucket bucket;
    assert_true(wlmi_bucket_parse(cases[i].text, &bucket));
    const char *fault = wlmi_bucket_fault(&bucket);
    assert_int_equal(!fault, !cases[i].fault);
    if (fault) assert_contains(fault, cases[i].fault);
  }
}
