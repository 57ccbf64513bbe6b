/* Whether other programs want the cores, from planted times and counts of involuntary context switches. */
#include "runtime/host/threads.h"
#include "support/test.h"

static double now, rate; /* seconds; switches a second */
static double counted;
static int asked;

static int64_t switches(void) {
  asked++;
  return (int64_t)counted;
}

/* Runs products of so many seconds, back to back, for a time. Returns the share of them in which it was crowded. */
static double run(wlmi_crowding *crowding, double product, double seconds, int threads) {
  int crowded = 0, count = 0;
  for (const double end = now + seconds; now < end; now += product, counted += rate * product, count++)
    crowded += wlmi_is_crowded(crowding, now, threads, switches);
  return (double)crowded / count;
}

static wlmi_crowding begin(double switches_a_second) {
  now = 5000, counted = 77, asked = 0;
  rate = switches_a_second;
  return (wlmi_crowding){0};
}

TEST(calm_machines_are_not_crowded) {
  wlmi_crowding c = begin(0);
  assert_true(run(&c, 1e-4, 60, 2) == 0);
  c = begin(10);
  assert_true(run(&c, 1e-4, 60, 2) == 0);
  c = begin(100); /* one core of many in dispute */
  assert_true(run(&c, 1e-4, 60, 8) == 0);
  c = begin(150); /* a few for each of many cores */
  assert_true(run(&c, 1e-4, 60, 64) == 0);
}

TEST(interrupted_threads_are_noticed) {
  static const double products[] = {2e-5, 1e-3, 8e-3, 24e-3};
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    wlmi_crowding c = begin(120);
    assert_true(run(&c, products[i], 0.05 + 2 * products[i], 2) < 1);
    assert_int_equal(wlmi_is_crowded(&c, now, 2, switches), 1);
    assert_true(run(&c, products[i], 60, 2) > 0.9);
  }
}

TEST(the_usual_number_is_tried_again) {
  wlmi_crowding c = begin(1000);
  assert_true(run(&c, 1e-4, 30, 2) < 0.97);
  rate = 0;
  run(&c, 1e-4, 0.6, 2);
  assert_true(run(&c, 1e-4, 10, 2) == 0);
}

/* The tuner asks for them: times of fewer threads are not those of a calm machine. */
TEST(crowded_seconds_are_counted) {
  wlmi_crowding c = begin(0);
  run(&c, 1e-4, 1, 2);
  assert_true(wlmi_crowded_seconds(&c, now) == 0);
  rate = 120;
  const double share = run(&c, 1e-4, 60, 2);
  assert_float_equal(wlmi_crowded_seconds(&c, now) / 60, share, 0.01);
}

/* What happened while no product ran says nothing. */
TEST(rare_products_are_not_judged) {
  wlmi_crowding c = begin(1000);
  assert_true(run(&c, 0.5, 60, 2) == 0);
}

TEST(the_count_is_asked_for_rarely) {
  wlmi_crowding c = begin(0);
  run(&c, 1e-5, 10, 2);
  assert_in_range(asked, 100, 500);
}
