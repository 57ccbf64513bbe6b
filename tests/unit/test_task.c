/* Which case is tuned next, and its share of the time. */
#include "support/test.h"
#include "tuner/design.h"
#include "tuner/task.h"

static const wlmi_limits device = {.target = WLMI_TARGET_CUDA, .processors = 132, .l2_bytes = 50 << 20};
enum { CANDIDATES = 100, NONE_AT_HAND = -1 };

static wlmi_task tuning(int64_t matrix, int64_t rows, int64_t nnz, int64_t n, int64_t left) {
  wlm_stats stats = STATS(.rows = rows, .cols = rows, .nnz = nnz, .mean = (double)nnz / (double)rows);
  wlmi_task out;
  wlmi_task_make(&device, &stats, matrix, n, CANDIDATES, left, &out);
  return out;
}

TEST(states_follow_from_what_is_left) {
  static const struct {
    int64_t left;
    wlmi_task_state state;
  } cases[] = {{CANDIDATES, WLMI_TASK_OPEN}, {CANDIDATES - 1, WLMI_TASK_BEGUN},
               {51, WLMI_TASK_BEGUN},        {50, WLMI_TASK_LEAST},
               {1, WLMI_TASK_LEAST},         {0, WLMI_TASK_DONE}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlmi_task p = tuning(0, 1000, 9000, 32, cases[i].left);
    assert_int_equal(p.state, cases[i].state);
    assert_true(fabs(p.left - (double)cases[i].left / CANDIDATES) < 1e-9);
  }
}

TEST(the_most_distant_case_is_next) {
  wlmi_task list[3] = {tuning(0, 1000, 9000, 32, CANDIDATES), tuning(1, 1000, 9000, 128, CANDIDATES),
                       tuning(2, 1000, 18000, 32, CANDIDATES)};
  const wlmi_point known = list[0].point;
  wlmi_tasks_learn(list, 3, &known);
  assert_true(list[0].distance == 0 && fabs(list[1].distance - 2) < 1e-6 && fabs(list[2].distance - 1) < 1e-6);
  assert_int_equal(wlmi_tasks_next(list, 3, NONE_AT_HAND, 1e9), 1);
  wlmi_tasks_learn(list, 3, &list[1].point);
  assert_int_equal(wlmi_tasks_next(list, 3, NONE_AT_HAND, 1e9), 2);
}

/* Of two equally useful cases the faster one is next. The matrix in memory saves the time to generate it. */
TEST(faster_cases_come_first) {
  wlmi_task list[2] = {tuning(0, 1000000, 30000000, 32, CANDIDATES), tuning(1, 1000, 30000, 32, CANDIDATES)};
  assert_int_equal(wlmi_tasks_next(list, 2, NONE_AT_HAND, 1e9), 1);
  list[0] = tuning(0, 1000, 30000, 32, CANDIDATES);
  list[0].making = list[1].making = 5;
  assert_int_equal(wlmi_tasks_next(list, 2, 0, 1e9), 0);
  assert_int_equal(wlmi_tasks_next(list, 2, 1, 1e9), 1);
  assert_true(wlmi_task_seconds(&list[0], 1) - wlmi_task_seconds(&list[0], 0) == 5);
}

TEST(cases_longer_than_the_budget_are_skipped) {
  wlmi_task list[4] = {tuning(0, 1000000, 100000000, 256, CANDIDATES), tuning(1, 1000, 9000, 32, CANDIDATES),
                       tuning(2, 1000, 9000, 32, CANDIDATES - 1), tuning(3, 1000, 9000, 32, 40)};
  const double room = 1.01 * wlmi_task_seconds(&list[1], NONE_AT_HAND);
  assert_true(wlmi_task_seconds(&list[0], NONE_AT_HAND) > room);
  assert_int_equal(wlmi_tasks_next(list, 4, NONE_AT_HAND, 0), 2); /* a begun case continues, whatever its time */
  list[2].state = WLMI_TASK_DONE;
  assert_int_equal(wlmi_tasks_next(list, 4, NONE_AT_HAND, room), 1);
  list[1].state = WLMI_TASK_DONE;
  /* the case with the fewest missing candidates comes last */
  assert_int_equal(wlmi_tasks_next(list, 4, NONE_AT_HAND, room), 3);
  assert_int_equal(wlmi_tasks_next(list, 4, NONE_AT_HAND, 1e9), 0);
  list[3].state = WLMI_TASK_DONE;
  assert_int_equal(wlmi_tasks_next(list, 4, NONE_AT_HAND, room), -1);
  assert_int_equal(wlmi_tasks_next(list, 0, NONE_AT_HAND, 1e9), -1);
}

TEST(time_is_shared_by_distance) {
  wlmi_task list[3] = {tuning(0, 1000, 9000, 32, CANDIDATES), tuning(0, 1000, 9000, 64, CANDIDATES),
                       tuning(0, 1000, 9000, 512, CANDIDATES)};
  const wlmi_point known = list[0].point;
  wlmi_tasks_learn(list, 3, &known);
  const double shares[3] = {wlmi_tasks_share(list, 3, 0, 60), wlmi_tasks_share(list, 3, 1, 60),
                            wlmi_tasks_share(list, 3, 2, 60)};
  assert_true(fabs(shares[0] + shares[1] + shares[2] - 60) < 1e-9);
  assert_true(shares[0] > 0 && shares[1] > 3 * shares[0] && shares[2] > 2 * shares[1]);
  list[2].state = WLMI_TASK_DONE;
  assert_true(fabs(wlmi_tasks_share(list, 3, 0, 60) + wlmi_tasks_share(list, 3, 1, 60) - 60) < 1e-9);
}

/* ---- over the whole design ------------------------------------------------------------------------------ */

enum { MATRICES = 64, WIDTHS = 6 };
static const int64_t widths[WIDTHS] = {4, 16, 32, 64, 128, 256};

typedef struct world {
  wlmi_design_matrix *matrices;
  wlmi_task *list;
  int64_t matrix_count, count;
} world;

static world make_world(uint64_t seed) {
  const wlmi_design_limits limits = wlmi_design_limits_of(INT64_C(140) << 30);
  world w;
  assert_status(WLM_OK, wlmi_design_make(seed, &limits, MATRICES, &w.matrices, &w.matrix_count));
  w.list = calloc((size_t)w.matrix_count * WIDTHS, sizeof *w.list);
  w.count = 0;
  for (int64_t i = 0; i < w.matrix_count * WIDTHS; i++) {
    const int64_t matrix = i / WIDTHS, n = widths[i % WIDTHS];
    wlm_stats stats;
    if (!wlmi_design_fits(&w.matrices[matrix], n, &limits)) continue;
    wlmi_design_stats(&w.matrices[matrix], &stats);
    wlmi_task_make(&device, &stats, matrix, n, CANDIDATES, CANDIDATES, &w.list[w.count++]);
  }
  return w;
}

static void release_world(world *w) {
  wlmi_free(w->matrices);
  free(w->list);
}

static double mean_distance(const world *w) {
  double sum = 0;
  for (int64_t i = 0; i < w->count; i++) sum += w->list[i].distance;
  return sum / (double)w->count;
}

/* Spends the budget and returns the number of tuned cells. in_order: one cell after another, as they are listed. */
static int64_t spend(world *w, double budget, int in_order, int64_t *tuned) {
  int64_t count = 0, at_hand = NONE_AT_HAND;
  for (;; count++) {
    const int64_t i = !in_order ? wlmi_tasks_next(w->list, w->count, at_hand, budget) : count < w->count ? count : -1;
    if (i < 0 || wlmi_task_seconds(&w->list[i], at_hand) > budget) return count;
    budget -= wlmi_task_seconds(&w->list[i], at_hand);
    at_hand = w->list[i].matrix;
    wlmi_task_update(&w->list[i], CANDIDATES, 0);
    wlmi_tasks_learn(w->list, w->count, &w->list[i].point);
    tuned[count] = i;
  }
}

/* For any budget, the tuned cells are nearer to all others than in listed order; from a few minutes on they have
 * every size and width. */
TEST(a_budget_covers_the_space) {
  for (uint64_t seed = 1; seed <= 3; seed++)
    for (double budget = 60; budget < 1000; budget *= 3) {
      int64_t tuned[MATRICES * WIDTHS], again[MATRICES * WIDTHS];
      int decades[6] = {0}, of_width[WIDTHS] = {0};
      world w = make_world(seed), same = make_world(seed), plain = make_world(seed);
      const int64_t count = spend(&w, budget, 0, tuned);
      assert_int_equal(spend(&same, budget, 0, again), count);
      assert_memory_equal(tuned, again, (size_t)count * sizeof *tuned);
      for (int64_t k = 0; k < count; k++) {
        const wlmi_task *cell = &w.list[tuned[k]];
        decades[(int)lround(log10((double)w.matrices[cell->matrix].rows)) - 2]++;
        for (int i = 0; i < WIDTHS; i++) of_width[i] += widths[i] == cell->n;
      }
      spend(&plain, budget, 1, again);
      if (!(mean_distance(&w) < 0.8 * mean_distance(&plain)))
        fail_msg("%g s: %g, in order %g", budget, mean_distance(&w), mean_distance(&plain));
      for (int i = 0; i < 6; i++)
        if (!decades[i] && budget > 100) fail_msg("seed %d, %g s: no matrix of decade %d", (int)seed, budget, i + 2);
      for (int i = 0; i < WIDTHS; i++)
        if (!of_width[i] && budget > 100)
          fail_msg("seed %d, %g s: nothing of width %d", (int)seed, budget, (int)widths[i]);
      release_world(&w);
      release_world(&same);
      release_world(&plain);
    }
}
