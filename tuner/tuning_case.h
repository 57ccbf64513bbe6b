/* Chooses the case whose tuning improves choices most per second. */
#pragma once

#include "select/features.h"

/* BEGUN: less than half of its candidates were measured. LEAST: half or more, which include the likely best. */
typedef enum wlmi_tuning_case_state {
  WLM_TUNING_CASE_BEGUN,
  WLM_TUNING_CASE_OPEN,
  WLM_TUNING_CASE_LEAST,
  WLM_TUNING_CASE_DONE
} wlmi_tuning_case_state;

/* A matrix and an N that may be tuned. */
typedef struct wlmi_tuning_case {
  wlmi_tuning_case_state state;
  wlmi_point point;
  int64_t matrix, n;
  double making, measuring; /* seconds: for making the matrix once; for measuring all candidates */
  double left;              /* the share of candidates that is not measured yet */
  double distance;          /* to the nearest tuned case, at most WLM_MODEL_FAR */
} wlmi_tuning_case;

/* Uses only what is known before the matrix is made; `left` of its `candidates` are not measured yet. */
void wlmi_tuning_case_make(const wlmi_limits *limits, const wlm_stats *stats, int64_t matrix, int64_t n,
                           int64_t candidates, int64_t left, wlmi_tuning_case *tuning_case);
/* Updates it after some were measured. */
void wlmi_tuning_case_update(wlmi_tuning_case *tuning_case, int64_t candidates, int64_t left);

/* Updates the distances after a case at `place` was tuned. */
void wlmi_tuning_cases_learn(wlmi_tuning_case *list, int64_t count, const wlmi_point *point);

/* The seconds that the case takes if the matrix `at_hand` is in memory. */
double wlmi_tuning_case_seconds(const wlmi_tuning_case *tuning_case, int64_t at_hand);

/* Returns the next case to tune: in the order of the states, and within a state the case that improves choices most per
 * second. A case that was begun is returned even if it needs more than the seconds left. -1 = no other case fits. */
int64_t wlmi_tuning_cases_next(const wlmi_tuning_case *list, int64_t count, int64_t at_hand, double seconds_left);

/* The share of the time that case i gets among the unfinished ones, in proportion to their distances. */
double wlmi_tuning_cases_share(const wlmi_tuning_case *list, int64_t count, int64_t i, double seconds_left);
