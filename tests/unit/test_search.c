/* The search with a fake clock: candidates have planted times and seeded noise. */
#include "core/problem/measurement.h"
#include "support/db_fixture.h"
#include "support/test.h"
#include "tuner/search.h"

enum { MOST = 200 };

typedef struct fake {
  wlmi_device device;
  double now; /* the time of the fake clock */
  double noise;
  uint64_t random;
  double cost[MOST]; /* seconds of one call */
  double launch;     /* what a single call costs besides */
  int prepared[MOST], wrong[MOST], breaks[MOST], enters_once[MOST];
  int64_t count;
  int screened[MOST], timers[MOST], entered[MOST], verified[MOST];
  int64_t order[MOST]; /* in which results were reported */
  int told, live, methods, most_methods;
  int hurries;
  int stop_after, fail_after; /* 0 = never */
  int burst, burst_left;      /* the first `burst_left` calls of candidate `burst` take 50 times as long, */
  int burst_after;            /* after this many as usual */
  int fades;                  /* each call of a burst takes half as long as the one before */
  int goes_wrong[MOST];       /* correct at the first verification, wrong after the last round */
  double spread[MOST];        /* the spread of each screening run */
  const double *shares;       /* of each last round: the share of its time that this program has; NULL = of all */
  int asked, interrupts;      /* how often for the usage; whether a lost share comes with interrupts */
  double crowded;             /* the share of time in which it used fewer threads */
  double ran;                 /* seconds in which this program had the machine */
} fake;

static fake f;

static double burst_on(const void *cost) {
  static double factor;
  if (!f.burst_left || cost != &f.cost[f.burst] || f.burst_after-- > 0) return factor = 1;
  f.burst_left--;
  return factor = f.fades && factor > 1 ? factor / 2 : 50;
}

static double noisy(double seconds) {
  double u = (double)(draw(&f.random) >> 11) * 0x1p-53;
  return seconds * (1 + f.noise * u);
}

/* ---- the device ---- */

static int64_t index_of(void *user) { return (double *)user - f.cost; }

static wlm_status enqueue(void *user, void *stream) {
  (void)stream;
  if (f.breaks[index_of(user)]) return wlmi_fail(WLM_ERR_DEVICE, "it broke");
  f.now += (f.launch + noisy(*(double *)user)) * burst_on(user);
  return WLM_OK;
}

struct wlmi_timer {
  void *user;
  int64_t calls;
};

static wlm_status make_timer(wlmi_device *device, wlm_status (*call)(void *, void *), void *user, int64_t calls,
                             wlmi_timer **timer) {
  (void)device;
  wlm_status status = call(user, NULL);
  if (status != WLM_OK) return status;
  *timer = malloc(sizeof **timer);
  **timer = (wlmi_timer){user, calls};
  f.timers[index_of(user)]++;
  f.live++;
  return WLM_OK;
}

/* The usage is asked for at the begin and the end of a round. */
static double share_of_round(void) { return f.shares && f.asked % 2 ? f.shares[f.asked / 2] : 1; }

static wlm_status take_sample(wlmi_timer *timer, void *flush, size_t size, double *seconds) {
  (void)flush, (void)size;
  *seconds = noisy((double)timer->calls * *(double *)timer->user) / share_of_round();
  f.now += 2 * *seconds;
  f.ran -= 2 * *seconds * (1 - share_of_round());
  return WLM_OK;
}

static void usage(const wlmi_device *device, wlmi_usage *usage) {
  (void)device;
  f.asked++;
  *usage = (wlmi_usage){.seconds = f.now + f.ran, .crowded = f.crowded * f.now, .switches = f.interrupts * f.asked};
}

static void drop_timer(wlmi_timer *timer) {
  free(timer);
  f.live--;
}

static wlm_status synchronize(wlmi_device *device, void *stream) { return (void)device, (void)stream, WLM_OK; }

static const wlmi_device_ops ops = {
    .timer_create = make_timer, .timer_sample = take_sample, .timer_destroy = drop_timer, .synchronize = synchronize};
static const wlmi_device_ops shared_ops = {.timer_create = make_timer,
                                           .timer_sample = take_sample,
                                           .timer_destroy = drop_timer,
                                           .synchronize = synchronize,
                                           .usage = usage};

/* ---- the candidates ---- */

static double fake_clock(void) { return f.now; }

static void destroy(void *user) {
  (void)user;
  f.methods--;
}

static void enter(void *user, int64_t i, wlmi_method *method) {
  (void)user;
  *method = (wlmi_method){.enqueue = enqueue, .destroy = destroy, .user = &f.cost[i], .prepared = f.prepared[i]};
  snprintf(method->name, sizeof method->name, "%d", (int)i);
  if (f.entered[i]++ && f.enters_once[i]) wlmi_method_fail(method, "no room");
  if (++f.methods > f.most_methods) f.most_methods = f.methods;
}

static void glance(void *user, wlmi_method *method, double *seconds) {
  (void)user;
  const double start = f.now;
  wlm_status status = enqueue(method->user, NULL);
  if (status != WLM_OK) wlmi_method_give_up(method, status);
  f.now += 200e-6; /* the time to load a kernel */
  *seconds = f.now - start;
  method->max_rel_err = 1e-7;
}

static void verify(void *user, wlmi_method *method) {
  (void)user;
  const int64_t i = index_of(method->user);
  f.verified[i]++;
  method->max_rel_err = 2e-7;
  if (f.wrong[i]) wlmi_method_fail(method, "wrong");
}

static wlm_status report_one(void *user, const wlmi_method *method) {
  const int64_t i = method->candidate;
  (void)user;
  assert_true(method->failure || (method->seconds > 0 && method->samples == 1 && method->max_rel_err == 1e-7));
  f.order[f.told++] = i;
  f.screened[i]++;
  f.spread[i] = method->spread;
  return f.told == f.fail_after ? wlmi_fail(WLM_ERR_CANCELLED, "enough") : WLM_OK;
}

static void check_again(void *user, wlmi_finals *finals) {
  (void)user;
  for (int i = 0; i < finals->count; i++)
    if (f.goes_wrong[finals->list[i].candidate]) wlmi_method_fail(&finals->list[i], "wrong the second time");
}

static int in_a_hurry(void *user) { return (void)user, f.hurries; }
static int out_of_time(void *user) { return (void)user, f.stop_after && f.told >= f.stop_after; }

static const wlmi_search_rules rules = {
    .abandon = 2,
    .screening_seconds = 0.2e-3,
    .round_seconds = 1,
    .round_count = 3,
    .rounds = {{6, 16, 2, 1.3, 0.5e-3}, {4, 8, 3, 1.15, 0.5e-3}, {2, 4, 9, 1.1, 1e-3}},
};

static void begin(int64_t count, uint64_t seed, double noise) {
  f = (fake){.device.ops = &ops, .count = count, .random = seed, .noise = noise, .launch = 5e-6};
  for (int64_t i = 0; i < count; i++) f.cost[i] = 1e-5 * (1.08 + 4 * (double)(draw(&f.random) >> 11) * 0x1p-53);
}

/* Candidate i takes seconds * (1 + step * i). */
static void begin_ramp(int count, uint64_t seed, double noise, double seconds, double step) {
  begin(count, seed, noise);
  for (int i = 0; i < count; i++) f.cost[i] = seconds * (1 + step * i);
}

static wlmi_finals finals; /* of the last search */
FIXTURE(release_finals) {
  wlmi_finals_release(&finals);
  return 0;
}

static wlm_status play(wlmi_timed *screened) {
  wlmi_timed none[MOST] = {{0}};
  const wlmi_search_field field = {.device = &f.device,
                                   .count = f.count,
                                   .candidates = screened ? screened : none,
                                   .clock = fake_clock,
                                   .enter = enter,
                                   .glance = glance,
                                   .verify = verify,
                                   .check_again = check_again,
                                   .report = report_one,
                                   .out_of_time = out_of_time,
                                   .in_a_hurry = in_a_hurry};
  wlmi_finals_release(&finals);
  f.methods = 0; /* begin may have cleared it before */
  wlm_status status = wlmi_search(&field, &rules, &finals);
  assert_int_equal(f.live, 0);
  assert_int_equal(f.methods, finals.count);
  return status;
}

/* ---- tests ---- */

/* Noise of up to 10 % on each sample; the planted best is 8 % faster than the next one. */
TEST(the_planted_best_survives_noise) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    begin(150, seed, 0.1);
    const int64_t best = (int64_t)(draw(&f.random) % 150);
    f.cost[best] = 1e-5;
    assert_status(WLM_OK, play(NULL));
    assert_int_equal(wlmi_finals_best(&finals, WLMI_PLAIN)->candidate, best);
    assert_int_equal(finals.list[0].candidate, best);
    assert_true(finals.count >= 2 && finals.count <= 8);
    for (int i = 0; i < finals.count; i++) {
      assert_int_equal(finals.list[i].samples, 9);
      assert_int_equal(f.verified[finals.list[i].candidate], 1);
      assert_true(finals.list[i].max_rel_err == 2e-7);
      assert_true(!i || finals.list[i].seconds >= finals.list[i - 1].seconds);
    }
    for (int64_t i = 0; i < f.count; i++) assert_int_equal(f.screened[i], 1);
  }
}

/* With many similar candidates, the mean loss over 100 seeds is below 2 %, and each loss below 5 %. */
TEST(similar_candidates_lose_little) {
  double logs = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    begin(150, seed, 0.06);
    for (int i = 0; i < 150; i++) f.cost[i] = 1e-5 * (1 + 0.004 * ((i * 37 + (int)seed) % 150));
    assert_status(WLM_OK, play(NULL));
    const double regret = f.cost[finals.list[0].candidate] / 1e-5;
    assert_true(regret < 1.05);
    logs += log(regret);
  }
  assert_true(exp(logs / 100) < 1.02);
}

/* Clearly slower candidates run a few calls only and get no graph, and the whole search takes little time. */
TEST(slow_candidates_are_dropped) {
  begin(150, 3, 0);
  f.cost[0] = 1e-4;
  for (int i = 1; i < 150; i++) f.cost[i] = i % 10 == 5 ? 1.1e-4 : 1e-3;
  f.cost[77] = 5; /* 5 seconds: runs once, because its time is unknown before */
  assert_status(WLM_OK, play(NULL));
  for (int64_t i = 1; i < 150; i++)
    if (f.cost[i] >= 1e-3) {
      assert_int_equal(f.timers[i], 0);
      assert_int_equal(f.entered[i], 1);
    }
  assert_true(f.now < 5 + 0.8);
}

/* Where a launch takes longer than the work, only what is slow beside it is dropped, wherever the best comes. */
TEST(slow_launches_drop_nothing_fast) {
  for (int at = 0; at < 20; at++) {
    wlmi_timed screened[MOST] = {{0}};
    begin(20, (uint64_t)at, 0);
    f.launch = 40e-6;
    for (int i = 0; i < 20; i++) f.cost[i] = 1.2e-6 + 3e-8 * i;
    f.cost[at] = 1e-6;
    f.cost[(at + 5) % 20] = 1e-3;
    assert_status(WLM_OK, play(screened));
    for (int i = 1; i < 20; i++) assert_int_equal(f.timers[i] > 0, f.cost[i] < 1e-3);
    assert_true(fabs(screened[(at + 5) % 20].seconds - 1e-3) <
                (at == 15 ? 50e-6 : 1e-9)); /* the first has its launch */
    assert_int_equal(finals.list[0].candidate, at);
  }
}

/* Calls of 10 ms are timed without a graph, and the rounds stay within their time. */
TEST(long_calls_take_few_samples) {
  begin(100, 5, 0.02);
  for (int i = 0; i < 100; i++) f.cost[i] = 10e-3 * (1 + 0.05 * ((i * 7) % 100));
  assert_status(WLM_OK, play(NULL));
  assert_int_equal(finals.list[0].candidate, 0);
  assert_true(finals.list[0].samples >= 3);
  assert_true(f.now < 100 * 2 * 35e-3 + 3);
}

TEST(both_kinds_have_finalists) {
  begin(100, 8, 0.05);
  for (int i = 0; i < 100; i++) f.prepared[i] = i % 2;
  f.cost[30] = 0.9e-5; /* the fastest unprepared candidate */
  f.cost[51] = 0.3e-5;
  assert_status(WLM_OK, play(NULL));
  assert_int_equal(wlmi_finals_best(&finals, WLMI_PLAIN)->candidate, 30);
  assert_int_equal(wlmi_finals_best(&finals, WLMI_PREPARED)->candidate, 51);
  f.cost[51] = 1e-4; /* now the fastest candidate of all is unprepared */
  f.told = 0;
  assert_status(WLM_OK, play(NULL));
  assert_int_equal(wlmi_finals_best(&finals, WLMI_PREPARED)->candidate, 30);
}

TEST(wrong_candidates_are_replaced) {
  begin_ramp(50, 9, 0.01, 1e-5, 0.02);
  f.wrong[0] = f.wrong[1] = 1;
  f.breaks[20] = 1;
  assert_status(WLM_OK, play(NULL));
  assert_int_equal(finals.list[0].candidate, 2);
  assert_null(finals.list[0].failure);
  int failed = 0;
  for (int i = 0; i < finals.count; i++)
    if (finals.list[i].failure) {
      assert_true(finals.list[i].candidate < 2);
      assert_string_equal(finals.list[i].failure, "wrong");
      assert_true(i >= finals.count - 2);
      failed++;
    }
  assert_int_equal(failed, 2);
  assert_true(finals.count - failed >= 2);
  for (int i = 0; i < 50; i++) f.wrong[i] = 1;
  f.told = 0;
  assert_status(WLM_OK, play(NULL));
  assert_null(wlmi_finals_best(&finals, WLMI_PREPARED));
}

/* More candidates are wrong than take part in the rounds: the search verifies the next ones until one is correct. */
TEST(the_fastest_correct_candidate_wins) {
  for (int again = 0; again < 2; again++) { /* wrong at the first verification, then wrong after the last round */
    begin_ramp(50, 17, 0.01, 1e-5, 0.02);
    for (int i = 0; i < 30; i++) *(again ? &f.goes_wrong[i] : &f.wrong[i]) = 1;
    assert_status(WLM_OK, play(NULL));
    const wlmi_method *best = wlmi_finals_best(&finals, WLMI_PREPARED);
    assert_non_null(best);
    assert_int_equal(best->candidate, 30);
    assert_int_equal(f.verified[30], 1);
    assert_int_equal(best->samples, 9);
  }
}

/* Another load slows the first calls of a candidate: the search calls it again, and it wins. */
TEST(a_burst_does_not_count) {
  static const struct {
    double others, best;
    int length;
  } cases[] = {
      {2e-5, 1.5e-5, 1}, {2e-5, 1.5e-5, 2}, {4e-4, 3e-4, 1} /* 15 ms, which loading a kernel cannot explain */};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_timed screened[20] = {{0}};
    begin_ramp(20, 18, 0.01, cases[i].others, 0.02);
    f.cost[9] = cases[i].best;
    f.burst = 9;
    f.burst_left = cases[i].length;
    assert_status(WLM_OK, play(screened));
    assert_int_equal(finals.list[0].candidate, 9);
  }
}

/* The same if the first call of a candidate is fast and another load slows the next one. */
TEST(a_fast_first_call_counts) {
  wlmi_timed screened[20] = {{0}};
  begin_ramp(20, 18, 0.01, 30e-3, 0.02); /* so long that one more call is enough */
  f.cost[9] = 20e-3;
  f.burst = 9;
  f.burst_left = f.burst_after = 1;
  assert_status(WLM_OK, play(screened));
  assert_true(screened[9].seconds < 22e-3);
  assert_int_equal(finals.list[0].candidate, 9);
}

/* If a burst lasts, the samples disagree, and the spread shows it. A candidate that is really slow has no such
 * spread. */
TEST(disagreeing_times_have_a_spread) {
  wlmi_timed screened[20] = {{0}};
  begin_ramp(20, 19, 0.01, 1e-4, 0.02);
  f.cost[4] = 1e-3;
  f.burst = 9;
  f.burst_left = 4;
  f.fades = 1;
  assert_status(WLM_OK, play(screened));
  assert_true(wlmi_spread_is_noisy(f.spread[9], 1));
  for (int i = 0; i < 20; i++) assert_true(i == 9 || !wlmi_spread_is_noisy(f.spread[i], 1));
}

/* A sample far from the model's prediction is repeated, even if the candidate is far behind the best. */
TEST(unexpected_times_are_measured_again) {
  for (int expects = 0; expects < 2; expects++) {
    wlmi_timed screened[20] = {{0}};
    begin_ramp(20, 20, 0.01, 1e-3, 0.02);
    if (expects) screened[9].expected = 1e-3;
    f.burst = 9;
    f.burst_left = 1; /* 50 ms: not repeated without a prediction */
    assert_status(WLM_OK, play(screened));
    assert_int_equal(screened[9].seconds < 2e-3, expects);
  }
}

/* A hundred screened candidates of both kinds fail when they are set up again: the candidates behind them take part,
 * and the first failures are reported. */
TEST(failing_setups_are_replaced) {
  begin(150, 13, 0.01);
  for (int i = 0; i < 150; i++) {
    f.cost[i] = 1e-5 * (1 + 0.002 * i);
    f.prepared[i] = i % 2;
    f.enters_once[i] = i < 100;
  }
  assert_status(WLM_OK, play(NULL));
  int failed = 0;
  for (int i = 0; i < finals.count; i++) failed += finals.list[i].failure != NULL;
  assert_int_equal(failed, WLMI_SEARCH_FAILURES);
  for (int i = 0; i < failed; i++) assert_int_equal(f.entered[finals.list[finals.count - 1 - i].candidate], 2);
  assert_int_equal(wlmi_finals_best(&finals, WLMI_PREPARED)->candidate, 100);
  assert_int_equal(wlmi_finals_best(&finals, WLMI_PLAIN)->candidate, 100);
}

/* Candidates with known times are not screened again, but take part in the rounds. */
TEST(known_candidates_skip_the_screening) {
  wlmi_timed screened[20] = {{0}};
  begin_ramp(20, 10, 0.01, 1e-5, 0.1);
  for (int i = 0; i < 10; i++) screened[i] = (wlmi_timed){.seconds = f.cost[i], .kind = WLMI_PLAIN};
  screened[5].seconds = INFINITY; /* this one failed in the earlier run */
  assert_status(WLM_OK, play(screened));
  assert_int_equal(finals.list[0].candidate, 0);
  assert_int_equal(f.told, 10);
  assert_int_equal(f.screened[0], 0);
  assert_int_equal(f.entered[0], 1);
  assert_int_equal(f.entered[5], 0);
}

TEST(time_runs_out) {
  begin(50, 11, 0.01);
  f.stop_after = 5;
  assert_status(WLM_OK, play(NULL));
  assert_int_equal(f.told, 5);
  assert_true(finals.count >= 2);
  for (int i = 0; i < finals.count; i++) assert_true(finals.list[i].candidate < 5);
}

/* After the budget has ended, only a few candidates are timed again, in one round. */
TEST(after_the_budget_one_round_remains) {
  int entered[2] = {0};
  double took[2];
  for (int hurries = 0; hurries < 2; hurries++) {
    begin(50, 11, 0.01);
    f.hurries = hurries;
    for (int i = 0; i < 50; i++) f.cost[i] = 1e-5 * (1 + 0.02 * i);
    assert_status(WLM_OK, play(NULL));
    assert_int_equal(finals.list[0].candidate, 0);
    assert_int_equal(finals.list[0].samples, 9);
    for (int i = 0; i < 50; i++) entered[hurries] += f.entered[i] - 1;
    took[hurries] = f.now;
  }
  assert_true(entered[0] > 8 && entered[1] >= 2 && entered[1] <= 4);
  assert_true(took[1] < took[0]);
}

TEST(the_callback_may_cancel) {
  begin(50, 12, 0.01);
  f.fail_after = 7;
  assert_int_equal(play(NULL), WLM_ERR_CANCELLED);
  assert_int_equal(f.told, 7);
  assert_int_equal(finals.count, 0);
}

/* The last round is played again while other programs disturb it, and the calmest one counts as a whole. */
TEST(a_busy_machine_is_measured_again) {
  static const struct {
    double shares[4];
    int interrupts, repeats;
    double counts, lost; /* the share of the round that counts */
    double crowded;
  } cases[] = {{{1, 0}, 1, 0, 1, 0, 0},
               {{0.95, 0}, 1, 0, 0.95, 0, 0},
               {{0.5, 1, 0}, 1, 1, 1, 0, 0},
               {{0.5, 0.4, 1, 0}, 1, 2, 1, 0, 0},
               {{0.5, 0.7, 0.6, 0}, 1, 2, 0.7, 0.3, 0},
               {{1, 1, 1, 0}, 0, 2, 1, 0.4, 0.4}, /* on fewer threads, which are not interrupted */
               {{1, 1, 1, 0}, 0, 2, 1, 1, 1.2},   /* as above; its clock was read later */
               {{0.5, 0}, 0, 0, 0.5, 0, 0}};      /* it waited by itself, as threads do between products */
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    begin(20, 3, 0);
    f.device.ops = &shared_ops;
    f.cost[7] = 1e-5;
    f.shares = cases[k].shares;
    f.interrupts = cases[k].interrupts;
    f.crowded = cases[k].crowded;
    assert_status(WLM_OK, play(NULL));
    assert_int_equal(finals.repeats, cases[k].repeats);
    assert_int_equal(finals.list[0].candidate, 7);
    assert_true(fabs(finals.list[0].seconds - 1e-5 / cases[k].counts) < 1e-9);
    assert_true(fabs(finals.lost - cases[k].lost) < 0.01);
    for (int i = 0; i < finals.count; i++)
      assert_true(finals.list[i].spread >= finals.lost && finals.list[i].samples == 9);
    assert_int_equal(wlmi_spread_is_noisy(finals.list[0].spread, 9), cases[k].lost > 0.25);
  }
}

EACH(NULL, release_finals)
