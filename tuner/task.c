/* Chooses what to tune next. The error of the model's prediction for an untuned matrix grows with the distance to the
 * most similar tuned case. So the worth of a measurement is the sum, over all cases, of the decrease of their distance
 * to the nearest tuned case. The next case is the one with the greatest worth per second. For such sums a greedy order
 * is close to the best one.
 *
 * Nothing here depends on measured times, so the same database gives the same order. */
#include "tuner/task.h"

#include <math.h>

/* Rough costs of a tuning: making and reading a matrix, per entry; filling and comparing B, C and the result, per
 * element; compiling, setting up and calling, per candidate, including its part of the finals. */
static const double entry_seconds = 100e-9, element_seconds = 20e-9;
static const struct {
  double seconds, calls;
} candidate_takes[] = {[WLMI_TARGET_CUDA] = {10e-3, 20}, [WLMI_TARGET_HOST] = {80e-3, 20}};
/* The worth of a case at distance 0: its locality and its number of columns may still differ. */
static const double least_worth = 0.25;

void wlmi_task_make(const wlmi_limits *limits, const wlm_stats *stats, int64_t matrix, int64_t n, int64_t candidates,
                    int64_t left, wlmi_task *task) {
  const double dense = (double)n * ((double)stats->rows + (double)stats->cols);
  const double candidate = candidate_takes[limits->target].seconds +
                           candidate_takes[limits->target].calls * wlmi_simple_seconds(limits, stats, n);
  *task = (wlmi_task){.point = wlmi_point_of(stats, n),
                      .matrix = matrix,
                      .n = n,
                      .making = entry_seconds * (double)stats->nnz,
                      .measuring = element_seconds * dense + candidate * (double)candidates,
                      .distance = WLMI_MODEL_FAR};
  wlmi_task_update(task, candidates, left);
}

void wlmi_task_update(wlmi_task *task, int64_t candidates, int64_t left) {
  task->left = candidates ? (double)left / (double)candidates : 0;
  task->state = !left                   ? WLMI_TASK_DONE
                : left == candidates    ? WLMI_TASK_OPEN
                : 2 * left > candidates ? WLMI_TASK_BEGUN
                                        : WLMI_TASK_LEAST;
}

void wlmi_tasks_learn(wlmi_task *list, int64_t count, const wlmi_point *point) {
  for (int64_t i = 0; i < count; i++)
    list[i].distance = fmin(list[i].distance, wlmi_point_distance(&list[i].point, point));
}

double wlmi_task_seconds(const wlmi_task *p, int64_t at_hand) {
  return (p->matrix == at_hand ? 0 : p->making) + p->left * p->measuring;
}

static double worth(const wlmi_task *list, int64_t count, int64_t i) {
  double sum = least_worth;
  for (int64_t k = 0; k < count; k++)
    sum += fmax(0, list[k].distance - wlmi_point_distance(&list[i].point, &list[k].point));
  return sum;
}

int64_t wlmi_tasks_next(const wlmi_task *list, int64_t count, int64_t at_hand, double seconds_left) {
  int64_t best = -1;
  double most = 0;
  for (int64_t i = 0; i < count; i++) {
    const wlmi_task *p = &list[i];
    const double seconds = wlmi_task_seconds(p, at_hand);
    if (p->state == WLMI_TASK_DONE || (best >= 0 && p->state > list[best].state)) continue;
    if (p->state != WLMI_TASK_BEGUN && seconds > seconds_left) continue;
    const double rate = worth(list, count, i) / seconds;
    if (best >= 0 && p->state == list[best].state && !(rate > most)) continue;
    best = i;
    most = rate;
  }
  return best;
}

double wlmi_tasks_share(const wlmi_task *list, int64_t count, int64_t i, double seconds_left) {
  double sum = 0;
  for (int64_t k = 0; k < count; k++)
    if (list[k].state != WLMI_TASK_DONE || k == i) sum += least_worth + list[k].distance;
  return seconds_left * (least_worth + list[i].distance) / sum;
}
