/* Tasks: what may be tuned, and which of it improves choices most per second. */
#pragma once

#include "select/features.h"

/* BEGUN: less than half of its candidates were measured. LEAST: half or more, which include the likely best. */
typedef enum wlmi_task_state { WLMI_TASK_BEGUN, WLMI_TASK_OPEN, WLMI_TASK_LEAST, WLMI_TASK_DONE } wlmi_task_state;

/* A matrix and an N that may be tuned. */
typedef struct wlmi_task {
  wlmi_task_state state;
  wlmi_point point;
  int64_t matrix, n;
  double making, measuring; /* seconds: for making the matrix once; for measuring all candidates */
  double left;              /* the share of candidates that is not measured yet */
  double distance;          /* to the nearest tuned case, at most WLMI_MODEL_FAR */
} wlmi_task;

/* Uses only what is known before the matrix is made; `left` of its `candidates` are not measured yet. */
void wlmi_task_make(const wlmi_limits *limits, const wlm_stats *stats, int64_t matrix, int64_t n, int64_t candidates,
                    int64_t left, wlmi_task *task);
/* Updates it after some were measured. */
void wlmi_task_update(wlmi_task *task, int64_t candidates, int64_t left);

/* Updates the distances after a case at `place` was tuned. */
void wlmi_tasks_learn(wlmi_task *list, int64_t count, const wlmi_point *point);

/* The seconds that the task takes if the matrix `at_hand` is in memory. */
double wlmi_task_seconds(const wlmi_task *task, int64_t at_hand);

/* Returns the next task: in the order of the states, and within a state the one that improves choices most per
 * second. A task that was begun is returned even if it needs more than the seconds left. -1 = no other one fits. */
int64_t wlmi_tasks_next(const wlmi_task *list, int64_t count, int64_t at_hand, double seconds_left);

/* The share of the time that task i gets among the unfinished ones, in proportion to their distances. */
double wlmi_tasks_share(const wlmi_task *list, int64_t count, int64_t i, double seconds_left);
