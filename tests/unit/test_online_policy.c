/* The decisions of online tuning with planted times; nothing is measured. */
#include "core/base/random.h"
#include "support/test.h"
#include "tuner/online_policy.h"

static const wlmi_online_rules usual = {.share = 1.0 / 16, .slowdown = 0.02, .abandon = 2};

/* Simulates contenders: contender i takes seconds[i], plus up to `noise` per call, and its time is known `delay`
 * calls later. */
typedef struct world {
  wlmi_online online;
  double seconds[WLMI_ONLINE_CONTENDERS], noise;
  int delay;
  wlmi_random random;
  double spent, lost, worst; /* true times; worst: the largest lost / spent after the first calls */
  int64_t trials;            /* calls of another kernel than the incumbent */
  struct {
    int contender, age;
    double seconds;
  } told[4];
  int waiting;
} world;

static void begin(world *w, const wlmi_online_rules *rules, const double *seconds, int count) {
  double expected[WLMI_ONLINE_CONTENDERS];
  *w = (world){.random = wlmi_random_for(1, 2, 3)};
  for (int i = 0; i < count; i++) expected[i] = (w->seconds[i] = seconds[i]) / seconds[0];
  wlmi_online_begin(&w->online, rules, expected, count);
}

static double take(world *w, int contender) {
  const double shift = (double)wlmi_random_below(&w->random, 2001) / 1000 - 1;
  return w->seconds[contender] * (1 + w->noise * shift);
}

static void hear(world *w) {
  while (w->waiting && w->told[0].age >= w->delay) {
    wlmi_online_add_time(&w->online, w->told[0].contender, w->told[0].seconds);
    memmove(w->told, w->told + 1, (size_t)--w->waiting * sizeof *w->told);
  }
  for (int i = 0; i < w->waiting; i++) w->told[i].age++;
}

static wlmi_online_turn call(world *w) {
  hear(w);
  const int incumbent = w->online.incumbent;
  const wlmi_online_turn turn = wlmi_online_next(&w->online);
  const double seconds = take(w, turn.contender);
  assert_true(turn.timed || turn.contender == incumbent);
  w->spent += seconds;
  if (turn.contender != incumbent) {
    w->lost += fmax(0, seconds - w->seconds[incumbent]);
    w->trials++;
  }
  if (w->spent > 0) w->worst = fmax(w->worst, w->lost / w->spent);
  if (turn.timed) {
    assert_true(w->waiting < 2);
    w->told[w->waiting].contender = turn.contender;
    w->told[w->waiting].seconds = seconds;
    w->told[w->waiting++].age = 0;
  }
  return turn;
}

static void calls(world *w, int count) {
  while (count--) call(w);
}

TEST(a_faster_challenger_wins) {
  for (int delay = 0; delay <= 3; delay += 3) {
    world w;
    begin(&w, &usual, (const double[]){1e-3, 1.3e-3, 0.8e-3}, 3);
    w.noise = 0.05;
    w.delay = delay;
    calls(&w, 4000);
    assert_int_equal(w.online.incumbent, 2);
    assert_int_equal(w.online.replacements, 1);
    assert_int_equal(w.online.contenders[0].fate, WLMI_ONLINE_BEATEN);
    assert_int_equal(w.online.contenders[1].fate, WLMI_ONLINE_REJECTED);
    assert_int_equal(w.online.contenders[2].fate, WLMI_ONLINE_WAITING);
    assert_true(wlmi_online_is_over(&w.online));
    const wlmi_online_summary best = wlmi_online_summarise(&w.online.contenders[2]);
    assert_true(best.samples >= WLMI_ONLINE_LEAST && fabs(best.median - 0.8e-3) < 0.05e-3 && best.spread < 0.1);
  }
}

/* The bound limits the time really lost over all calls, for any order and times of kernels. */
TEST(the_bound_is_kept) {
  for (int slow = 0; slow < 5; slow++) {
    const double factor = 1 + 0.2 * slow;
    world w;
    begin(&w, &usual, (const double[]){1e-3, 1e-3 * factor, 1e-3 * factor, 1e-3 * factor, 1e-3 * factor}, 5);
    calls(&w, 20000);
    if (w.worst > usual.slowdown * 1.001) fail_msg("factor %g: lost %g of the time", factor, w.worst);
    assert_true(w.trials <= 20000 / 16 + 1);
    assert_int_equal(w.online.incumbent, 0);
    assert_true(wlmi_online_is_over(&w.online));
  }
}

/* With a bound of 0, no challenger that is expected to be slower is tried. */
TEST(no_slowdown_means_no_slower_challenger) {
  wlmi_online_rules rules = usual;
  world w;
  rules.slowdown = 0;
  begin(&w, &rules, (const double[]){1e-3, 1.1e-3}, 2);
  calls(&w, 1000);
  assert_int_equal(w.trials, 0);
}

/* A challenger was expected to be as fast and is fifty times slower. It runs once, and the next trial waits until
 * the loss is within the bound again. */
TEST(a_slow_challenger_runs_once) {
  world w;
  begin(&w, &usual, (const double[]){1e-3, 1e-3, 0.9e-3}, 3);
  w.seconds[1] = 50e-3;
  int64_t call_of_second = 0, first = 0;
  for (int64_t i = 0; i < 8000; i++) {
    const int64_t before = w.trials;
    const int contender = call(&w).contender;
    if (w.trials == before) continue;
    if (contender == 1) first = i;
    if (contender == 2 && !call_of_second) call_of_second = i;
  }
  assert_int_equal(w.online.contenders[1].fate, WLMI_ONLINE_ABANDONED);
  assert_int_equal(w.online.contenders[1].timed, 1);
  assert_true(call_of_second > first + 2000); /* 49 ms of loss are 2 % of 2.4 s */
  assert_int_equal(w.online.incumbent, 2);
}

TEST(slow_predictions_are_never_tried) {
  world w;
  begin(&w, &usual, (const double[]){1e-3, 2.5e-3}, 2);
  calls(&w, 5000);
  assert_int_equal(w.trials, 0);
  assert_int_equal(w.online.contenders[1].fate, WLMI_ONLINE_ABANDONED);
}

/* With equal kernels the incumbent stays, and the trials end. */
TEST(noise_does_not_replace_the_incumbent) {
  for (int seed = 0; seed < 200; seed++) {
    world w;
    begin(&w, &usual, (const double[]){1e-3, 1e-3}, 2);
    w.random = wlmi_random_for((uint64_t)seed, 5, 6);
    w.noise = 0.02;
    calls(&w, 3000);
    if (w.online.replacements) fail_msg("seed %d: noise took the incumbent's place", seed);
    assert_true(wlmi_online_is_over(&w.online));
    assert_in_range(w.online.contenders[1].pairs, WLMI_ONLINE_LEAST, WLMI_ONLINE_SAMPLES);
  }
}

/* Of noisy challengers that are no faster at most 20 % win; of those that are 15 % faster at least 90 % do. */
TEST(noisy_times_are_judged_by_their_spread) {
  int wrong = 0, right = 0;
  for (int seed = 0; seed < 300; seed++)
    for (int better = 0; better < 2; better++) {
      world w;
      begin(&w, &usual, (const double[]){1e-3, better ? 0.85e-3 : 1e-3}, 2);
      w.random = wlmi_random_for((uint64_t)seed, 7, (uint64_t)better);
      w.noise = 0.15;
      calls(&w, 3000);
      *(better ? &right : &wrong) += w.online.replacements > 0;
    }
  if (wrong > 60 || right < 270) fail_msg("%d of 300 wrong, %d of 300 right", wrong, right);
}

TEST(trials_stay_within_their_share) {
  const wlmi_online_rules rules = {.share = 0.25, .slowdown = 1, .abandon = 2};
  world w;
  begin(&w, &rules, (const double[]){1e-3, 1e-3}, 2);
  calls(&w, 60);
  assert_true(w.trials > 10 && w.trials <= 15);
}

/* The two calls of a pair are adjacent, and either kernel comes first. */
TEST(pairs_are_adjacent_and_alternate) {
  int first[2] = {0, 0};
  world w;
  begin(&w, &usual, (const double[]){1e-3, 1e-3}, 2);
  calls(&w, 16);
  for (int i = 0; i < 12; i++) {
    const int one = call(&w).contender, other = call(&w).contender;
    assert_int_equal(one + other, 1);
    first[one]++;
    calls(&w, 14);
  }
  assert_int_equal(first[0], 6);
  assert_int_equal(first[1], 6);
}

/* A capture came between the two calls of a pair: the pair is discarded, but its expected loss counts. */
TEST(an_interrupted_pair_is_discarded) {
  world w;
  begin(&w, &usual, (const double[]){1e-3, 1.1e-3}, 2);
  calls(&w, 17);
  assert_true(w.online.second_half);
  wlmi_online_withdraw(&w.online);
  assert_false(w.online.second_half || w.online.in_flight);
  assert_true(fabs(w.online.lost - 0.1e-3) < 1e-9);
  wlmi_online_add_time(&w.online, 0, 1); /* the time of the discarded pair arrives too late */
  assert_int_equal(w.online.contenders[0].timed, 3);
  w.waiting = 0;
  calls(&w, 4000);
  assert_int_equal(w.online.contenders[1].fate, WLMI_ONLINE_REJECTED);
}

TEST(excluded_challengers_do_not_run) {
  world w;
  begin(&w, &usual, (const double[]){1e-3, 0.5e-3, 0.9e-3}, 3);
  wlmi_online_exclude(&w.online, 1);
  calls(&w, 2000);
  assert_int_equal(w.online.contenders[1].timed, 0);
  assert_int_equal(w.online.incumbent, 2);
  begin(&w, &usual, (const double[]){1e-3, 0.5e-3, 0.9e-3}, 3);
  wlmi_online_exclude(&w.online, 2);
  calls(&w, 2000);
  assert_int_equal(w.online.contenders[2].timed, 0);
  assert_int_equal(w.online.incumbent, 1);
}

/* A time of 0 means that the clock is too coarse, so it decides nothing. */
TEST(a_time_of_0_decides_nothing) {
  world w;
  begin(&w, &usual, (const double[]){1e-3, 1e-3}, 2);
  calls(&w, 16);
  w.seconds[1] = 0;
  calls(&w, 500);
  assert_int_equal(w.online.contenders[1].timed, 0);
  assert_int_equal(w.online.incumbent, 0);
}

TEST(no_challengers) {
  world w;
  begin(&w, &usual, (const double[]){1e-3}, 1);
  assert_true(wlmi_online_is_over(&w.online));
  for (int i = 0; i < 100; i++) assert_false(call(&w).timed);
}
