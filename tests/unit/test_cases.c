/* Cases derived from measurements: hand-computed examples, and independence of the input's order. */
#include "select/classes.h"
#include "select/snapshot.h"
#include "support/db_fixture.h"
#include "support/meter.h"
#include "support/test.h"

/* A measurement of `variant` on matrix `matrix`; those from 10 on have more rows. */
static wlmi_measurement_record timed(int matrix, const char *variant, int64_t time_ps, int64_t spread_ps,
                                     int64_t made_at) {
  wlmi_measurement_record record = sample_measurement(0);
  record.stats =
      (wlm_stats){sizeof(wlm_stats), matrix < 10 ? 1000 : 100000, 900, 7000, 300, 3, 40, 900, 7, 1.0, 0.1, {5, 0}};
  record.stats.fingerprint[1] = (uint64_t)matrix;
  record.variant = (char *)variant;
  record.version = "00000000000000000000000000000001";
  record.time_ps = time_ps;
  record.spread_ps = spread_ps;
  record.failed = time_ps == 0;
  record.reason = time_ps ? "" : "it failed";
  record.made_at = made_at;
  return record;
}

static wlmi_cases choose(const wlmi_measurement_record *records, int64_t count) {
  GET(wlmi_cases, choices, wlmi_cases_make(records, count, &choices));
  return choices;
}
#define CHOOSE(records) choose(records, (int64_t)(sizeof(records) / sizeof *(records)))

/* Checks which records are superseded: "010" = the second of three. */
static void assert_superseded(const wlmi_measurement_record *records, const char *which) {
  char found[16];
  const int64_t count = (int64_t)strlen(which);
  memset(found, 9, sizeof found);
  assert_status(WLM_OK, wlmi_cases_superseded(records, count, found));
  for (int64_t i = 0; i < count; i++) assert_int_equal(found[i], which[i] - '0');
}

/* Checks the candidates of a case from the first one on: assert_order(&choices.list[0], "fast", "slow"); */
#define assert_order(choice, ...)                                        \
  do {                                                                   \
    const char *const order_[] = {__VA_ARGS__};                          \
    for (size_t i_ = 0; i_ < sizeof order_ / sizeof *order_; i_++)       \
      assert_string_equal((choice)->candidates[i_].variant, order_[i_]); \
  } while (0)

TEST(nothing_gives_no_choices) {
  HELD(wlmi_cases) choices = choose(NULL, 0);
  assert_int_equal(choices.count, 0);
}

TEST(the_fastest_wins_and_the_others_follow) {
  const wlmi_measurement_record records[] = {timed(0, "b", 300, 1, 1), timed(0, "a", 500, 1, 1),
                                             timed(0, "c", 100, 1, 1), timed(0, "d", 0, 0, 1)};
  HELD(wlmi_cases) choices = CHOOSE(records);
  assert_int_equal(choices.count, 1);
  const wlmi_case *choice = &choices.list[0];
  assert_string_equal(choice->problem, records[0].problem);
  assert_int_equal(choice->n, 32);
  assert_int_equal(choice->count, 3);
  assert_int_equal(choice->failed, 1);
  assert_order(choice, "c", "b", "a", "d");
  assert_true(choice->candidates[0].cost == 100);
  assert_true(choice->candidates[3].failed);
}

TEST(the_median_of_the_newest_source_counts) {
  wlmi_measurement_record records[] = {timed(0, "a", 10, 0, 1),  timed(0, "a", 300, 0, 5), timed(0, "a", 100, 0, 3),
                                       timed(0, "a", 220, 0, 4), timed(0, "a", 200, 0, 2), timed(0, "b", 150, 0, 1)};
  records[0].version = "ffffffffffffffffffffffffffffffff"; /* measured with an older source of the kernel */
  HELD(wlmi_cases) choices = CHOOSE(records);
  assert_string_equal(choices.list[0].candidates[0].variant, "b");
  assert_true(choices.list[0].candidates[1].cost == 210); /* the median of 100, 200, 220 and 300 */
  assert_int_equal(choices.list[0].candidates[1].count, 4);
}

TEST(the_newer_compiler_counts) {
  wlmi_measurement_record records[] = {
      timed(0, "a", 100, 0, 9), timed(0, "a", 200, 0, 1), timed(0, "a", 240, 0, 2),
      timed(0, "a", 50, 0, 3),  timed(0, "b", 10, 0, 5),  timed(0, "b", 0, 0, 4),
      timed(0, "c", 0, 0, 1),   timed(0, "c", 30, 0, 2),  timed(0, "c", 40, 0, 3),
  };
  static const char *const compilers[] = {"nvrtc 12.9", "nvrtc 12.10 -G", "nvrtc 12.10", "clang 19.0", "nvrtc 12.9",
                                          "nvrtc 13.0", "nvrtc 13.0",     "nvrtc 12.0",  "nvrtc 13.0"};
  for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) records[i].compiler = (char *)compilers[i];
  HELD(wlmi_cases) choices = CHOOSE(records);
  const wlmi_case *choice = &choices.list[0];
  assert_int_equal(choice->count, 2);
  assert_string_equal(choice->candidates[0].variant, "c");
  assert_true(choice->candidates[0].cost == 40);
  assert_string_equal(choice->candidates[1].variant, "a");
  assert_true(choice->candidates[1].cost == 220);
  assert_string_equal(choice->candidates[1].compiler, "nvrtc 12.10");
  /* b failed with nvrtc 13.0, the newer compiler, although the time with 12.9 was measured later */
  assert_true(choice->candidates[2].failed);
  assert_superseded(records, "100110110");
}

TEST(failures_never_win) {
  const wlmi_measurement_record broke_later[] = {timed(0, "a", 10, 0, 1), timed(0, "a", 0, 0, 2),
                                                 timed(0, "b", 90, 0, 1)};
  HELD(wlmi_cases) choices = CHOOSE(broke_later);
  assert_string_equal(choices.list[0].candidates[0].variant, "b");
  assert_int_equal(choices.list[0].count, 1);
  wlmi_cases_release(&choices);
  const wlmi_measurement_record mended[] = {timed(0, "a", 10, 0, 3), timed(0, "a", 0, 0, 2), timed(0, "b", 90, 0, 1)};
  choices = CHOOSE(mended);
  assert_string_equal(choices.list[0].candidates[0].variant, "a");
  assert_int_equal(choices.list[0].candidates[0].count, 1);
  wlmi_cases_release(&choices);
  const wlmi_measurement_record same_second[] = {timed(0, "a", 10, 0, 2), timed(0, "a", 0, 0, 2)};
  choices = CHOOSE(same_second);
  assert_int_equal(choices.list[0].count, 0);
}

static wlmi_measurement_record looked_at(int matrix, const char *variant, int64_t time_ps, int samples) {
  wlmi_measurement_record record = timed(matrix, variant, time_ps, 0, 1);
  record.samples = samples;
  return record;
}

/* "lucky" was the fastest in the screening run. But "a" and "b" were timed again, so one of them wins, and "b" is
 * faster in spite of its slow screening run. */
TEST(screening_runs_rank_but_do_not_win) {
  wlmi_measurement_record records[] = {looked_at(0, "lucky", 90, 1), looked_at(0, "a", 95, 1),
                                       looked_at(0, "b", 200, 1),    looked_at(0, "slow", 500, 1),
                                       looked_at(0, "a", 110, 9),    looked_at(0, "b", 100, 9)};
  HELD(wlmi_cases) choices = CHOOSE(records);
  assert_int_equal(choices.list[0].count, 4);
  assert_order(&choices.list[0], "b", "lucky", "a", "slow");
  assert_true(choices.list[0].candidates[0].cost == 100);
  assert_true(choices.list[0].candidates[2].cost == 110);
  assert_int_equal(choices.list[0].candidates[0].precise, 1);
  assert_int_equal(choices.list[0].candidates[3].precise, 0);
  wlmi_cases_release(&choices);
  assert_superseded(records, "011000");
  choices = choose(records, 4); /* without precise times, screening times decide */
  assert_string_equal(choices.list[0].candidates[0].variant, "lucky");
}

/* Noisy measurements are ignored if a candidate has others. Of several screening runs, and of noisy measurements
 * only, the least time counts. */
TEST(noisy_measurements_are_ignored) {
  wlmi_measurement_record records[] = {
      looked_at(0, "a", 3744, 9), looked_at(0, "a", 49, 9),  looked_at(0, "b", 3000, 1), looked_at(0, "b", 90, 1),
      looked_at(0, "b", 95, 1),   looked_at(0, "c", 800, 9), looked_at(0, "c", 400, 9),
  };
  records[0].spread_ps = 3744;
  records[2].spread_ps = 2 * 3000;
  records[5].spread_ps = records[6].spread_ps = 300; /* the machine was busy both times */
  HELD(wlmi_cases) choices = CHOOSE(records);
  const wlmi_measured *c = choices.list[0].candidates;
  assert_string_equal(c[0].variant, "a");
  assert_true(c[0].cost == 49 && c[0].count == 1 && c[0].precise);
  assert_string_equal(c[1].variant, "b");
  assert_true(c[1].cost == 90 && c[1].count == 2 && !c[1].precise);
  assert_true(c[2].cost == 400 && c[2].precise);
  assert_superseded(records, "1010000");
}

/* Failures that may not recur, such as a lack of memory, are ignored; older versions stored them. */
TEST(failures_that_may_not_recur_are_ignored) {
  wlmi_measurement_record records[] = {timed(0, "a", 100, 0, 1), timed(0, "a", 0, 0, 2), timed(0, "b", 200, 0, 1),
                                       timed(0, "b", 0, 0, 2)};
  records[1].reason = "input or output failed: no temporary folder under /full: No space left on device";
  records[3].reason = "a result differs from the float64 reference: row 3";
  HELD(wlmi_cases) choices = CHOOSE(records);
  assert_int_equal(choices.list[0].count, 1);
  assert_string_equal(choices.list[0].candidates[0].variant, "a");
  assert_int_equal(choices.list[0].failed, 1);
  assert_superseded(records, "0110");
  static const wlm_status lasting[] = {WLM_ERR_MISMATCH, WLM_ERR_COMPILE, WLM_ERR_UNSUPPORTED, WLM_ERR_DEVICE};
  for (int status = 0; status <= WLM_ERR_INTERNAL; status++) {
    char reason[200];
    int lasts = 0;
    for (int i = 0; i < 4; i++) lasts |= lasting[i] == (wlm_status)status;
    snprintf(reason, sizeof reason, "%s: why", wlm_status_message((wlm_status)status));
    records[1].reason = reason;
    if (wlmi_measurement_is_passing(&records[1])) assert_false(wlmi_failure_is_lasting((wlm_status)status));
    if (lasts) assert_true(wlmi_failure_is_lasting((wlm_status)status));
  }
  assert_false(wlmi_failure_is_lasting(WLM_ERR_OUT_OF_MEMORY) || wlmi_failure_is_lasting(WLM_ERR_IO));
}

/* A time of online tuning counts as a screening run, whatever its number of samples. */
TEST(online_times_rank_but_do_not_win) {
  wlmi_measurement_record records[] = {looked_at(0, "learned", 90, 24), looked_at(0, "other", 80, 3),
                                       looked_at(0, "tuned", 300, 24), looked_at(0, "tuned", 100, 9)};
  records[0].clock = records[1].clock = records[2].clock = WLMI_CLOCK_ONLINE;
  HELD(wlmi_cases) choices = CHOOSE(records);
  assert_int_equal(choices.list[0].count, 3);
  assert_string_equal(choices.list[0].candidates[0].variant, "tuned");
  assert_true(choices.list[0].candidates[0].cost == 100);
  assert_int_equal(choices.list[0].candidates[1].precise, 0);
  wlmi_cases_release(&choices);
  assert_superseded(records, "0010");
  choices = choose(records, 3); /* not tuned, so only these times exist */
  assert_order(&choices.list[0], "other", "learned");
}

TEST(cold_measurements_choose_nothing) {
  wlmi_measurement_record records[] = {timed(0, "a", 100, 0, 1), timed(0, "b", 110, 0, 1), timed(0, "a", 300, 0, 1),
                                       timed(0, "b", 50, 0, 1)};
  records[2].clock = records[3].clock = "cold";
  HELD(wlmi_cases) choices = CHOOSE(records);
  assert_int_equal(choices.list[0].count, 2);
  assert_string_equal(choices.list[0].candidates[0].variant, "a");
  assert_true(choices.list[0].candidates[0].cost == 100);
  wlmi_cases_release(&choices);
  choices = choose(records + 2, 2);
  assert_int_equal(choices.count, 0);
  assert_superseded(records, "0000");
}

/* A tie needs a difference within the fastest one's spread and within 2 %: "m" ties, "b" is outside of the spread,
 * and "a" outside of 2 %. */
TEST(ties_within_the_spread_go_to_the_smallest_name) {
  const wlmi_measurement_record records[] = {timed(0, "z", 1000, 15, 1),  timed(0, "m", 1015, 0, 1),
                                             timed(0, "p", 1010, 50, 1),  timed(0, "b", 1016, 99, 1),
                                             timed(1, "z", 1000, 500, 1), timed(1, "a", 1021, 500, 1)};
  HELD(wlmi_cases) choices = CHOOSE(records);
  static const char *const order[][4] = {{"m", "z", "p", "b"}, {"z", "a"}};
  assert_int_equal(choices.count, 2);
  for (int matrix = 0; matrix < 2; matrix++) {
    const wlmi_case *choice = &choices.list[choices.list[0].count == 4 ? matrix : !matrix];
    for (int i = 0; i < choice->count; i++) assert_string_equal(choice->candidates[i].variant, order[matrix][i]);
  }
}

TEST(problems_and_widths_stay_apart) {
  wlmi_measurement_record records[] = {timed(0, "a", 1, 0, 1), timed(0, "b", 2, 0, 1), timed(0, "c", 3, 0, 1)};
  records[1].n = 64;
  records[2].problem = "op=mul.max";
  HELD(wlmi_cases) choices = CHOOSE(records);
  assert_int_equal(choices.count, 3);
  assert_string_equal(choices.list[0].problem, "op=mul.max");
  assert_int_equal(choices.list[1].n, 32);
  assert_int_equal(choices.list[2].n, 64);
}

/* The unprepared winner comes first, although prepared candidates are faster and its name is greater. */
TEST(prepared_candidates_come_last) {
  wlmi_measurement_record records[] = {timed(0, "z", 200, 0, 1), timed(0, "y", 400, 0, 1), timed(0, "a", 100, 0, 1),
                                       timed(0, "b", 50, 0, 1),  timed(0, "b", 60, 0, 1),  timed(0, "b", 70, 0, 1)};
  records[2].prepare_ps = 600;
  records[3].prepare_ps = 3000;
  records[4].prepare_ps = 1000;
  records[5].prepare_ps = 2000;
  HELD(wlmi_cases) choices = CHOOSE(records);
  const wlmi_case *c = &choices.list[0];
  assert_int_equal(c->count, 4);
  assert_order(c, "z", "y", "b", "a");
  assert_true(c->candidates[0].prepare == 0 && c->candidates[1].prepare == 0);
  assert_true(c->candidates[2].cost == 60 && c->candidates[2].prepare == 2000); /* the median of each */
  assert_true(c->candidates[3].prepare == 600);
}

/* Prints all choices with all digits. */
static char *spelled(const wlmi_cases *choices) {
  wlmi_text text = {0};
  for (const wlmi_case *c = choices->list; c < choices->list + choices->count; c++) {
    wlmi_text_printf(&text, "%s %lld %a:", c->problem, (long long)c->n, c->stats->cv);
    for (int64_t i = 0; i < c->count + c->failed; i++)
      wlmi_text_printf(&text, " %s %s %a %a %a %lld %d", c->candidates[i].variant,
                       c->candidates[i].version ? c->candidates[i].version : "-", c->candidates[i].cost,
                       c->candidates[i].spread, c->candidates[i].prepare, (long long)c->candidates[i].count,
                       c->candidates[i].failed);
    wlmi_text_puts(&text, "\n");
  }
  GET(char *, string, wlmi_text_take(&text, &string));
  return string;
}

TEST(the_order_of_the_input_does_not_matter) {
  enum { COUNT = 400 };
  static const char *const variants[] = {"a", "b", "c", "d", "e", "f"};
  static const char *const sources[] = {"00000000000000000000000000000001", "00000000000000000000000000000002"};
  wlmi_measurement_record records[COUNT];
  uint64_t seed = 9;
  for (int i = 0; i < COUNT; i++) {
    int64_t time = draw(&seed) % 12 ? 1000 + (int64_t)(draw(&seed) % 40) * 25 : 0;
    records[i] = timed((int)(draw(&seed) % 14), variants[draw(&seed) % 6], time, (int64_t)(draw(&seed) % 60),
                       (int64_t)(draw(&seed) % 6));
    records[i].version = (char *)sources[draw(&seed) % 2];
    if (time) records[i].prepare_ps = draw(&seed) % 3 ? 0 : 1 + (int64_t)(draw(&seed) % 9000);
    records[i].n = 16 << draw(&seed) % 2;
    records[i].stats.cv += (double)(draw(&seed) % 2) * 1e-15; /* rounded differently, as by two machines */
  }
  WLM_FREED char *expected = NULL;
  for (int round = 0; round < 50; round++) {
    HELD(wlmi_cases) choices = choose(records, COUNT);
    char *got = spelled(&choices);
    if (!expected) expected = got;
    assert_string_equal(expected, got);
    if (got != expected) wlm_string_free(got);
    for (int i = COUNT - 1; i > 0; i--) {
      int j = (int)(draw(&seed) % (uint64_t)(i + 1));
      wlmi_measurement_record swapped = records[i];
      records[i] = records[j];
      records[j] = swapped;
    }
  }
}

/* A measurement is stale if it was made with another compiler or driver, as far as both are known. */
TEST(measurements_become_stale) {
  const wlmi_snapshot here = {.compiler = "cc 2", .driver = "7"}, no_compiler = {.compiler = "", .driver = "7"},
                      nothing = {0};
  assert_false(wlmi_snapshot_is_stale(&here, "cc 2", "7"));
  assert_true(wlmi_snapshot_is_stale(&here, "cc 1", "7"));
  assert_true(wlmi_snapshot_is_stale(&here, "cc 2", "6"));
  assert_false(wlmi_snapshot_is_stale(&here, "", NULL));
  assert_false(wlmi_snapshot_is_stale(&no_compiler, "cc 1", "7"));
  assert_true(wlmi_snapshot_is_stale(&no_compiler, "cc 1", "6"));
  assert_false(wlmi_snapshot_is_stale(&nothing, "cc 1", "7"));
}

/* Whichever allocation fails, nothing is left, and the caller may release the classes as after a success. */
TEST(classes_without_memory) {
  int64_t fail_at = 0;
  for (wlm_status status = WLM_ERR_OUT_OF_MEMORY; status != WLM_OK; fail_at++) {
    meter m = {.fail_at = fail_at};
    wlmi_measurement_record records[] = {timed(0, "b", 300, 1, 1), timed(1, "a", 500, 1, 1), timed(0, "c", 100, 1, 1)};
    wlmi_class *classes = (wlmi_class *)&m;
    int64_t count = 7;
    records[2].device.name = "another GPU";
    meter_begin(&m);
    status = wlmi_classes_make(records, 3, &classes, &count);
    if (status == WLM_OK) {
      assert_int_equal(count, 2);
      assert_int_equal(classes[0].count + classes[1].count, 3);
    } else {
      assert_int_equal(status, WLM_ERR_OUT_OF_MEMORY);
      assert_null(classes);
      assert_int_equal(count, 0);
    }
    wlmi_classes_free(classes, count);
    wlm_set_allocator(NULL);
    assert_int_equal(m.live, 0);
  }
  assert_true(fail_at > 5);
}
