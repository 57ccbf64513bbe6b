/* Where the next second of measuring teaches the most. */
#ifndef WLM_TUNER_TUNING_CASE_H
#define WLM_TUNER_TUNING_CASE_H

#include "select/features.h"

/* BEGUN: less than half of its candidates are known. LEAST: half or more, so that the likely best are among them. */
typedef enum wlmi_tuning_case_state {
  WLM_TUNING_CASE_BEGUN,
  WLM_TUNING_CASE_OPEN,
  WLM_TUNING_CASE_LEAST,
  WLM_TUNING_CASE_DONE
} wlmi_tuning_case_state;

/* A matrix at a width that may be tuned. */
typedef struct wlmi_tuning_case {
  wlmi_tuning_case_state state;
  wlmi_place place;
  int64_t matrix;
  double making, measuring; /* seconds: for the matrix, once; for all of its candidates */
  double left;              /* the part of them that is to be measured */
  double distance;          /* to the nearest place that is known, WLM_MODEL_FAR at most */
} wlmi_tuning_case;

/* From what is known before it is made; `left` of its `candidates` are to be measured. */
void wlmi_tuning_case_make(const wlmi_limits *limits, const wlm_stats *stats, int64_t matrix, int64_t n,
                           int64_t candidates, int64_t left, wlmi_tuning_case *tuning_case);
/* After some were measured. */
void wlmi_tuning_case_update(wlmi_tuning_case *tuning_case, int64_t candidates, int64_t left);

/* Something was measured at the place. */
void wlmi_tuning_cases_learn(wlmi_tuning_case *list, int64_t count, const wlmi_place *place);

/* What i takes while `at_hand` is the matrix that is made. */
double wlmi_tuning_case_seconds(const wlmi_tuning_case *tuning_case, int64_t at_hand);

/* The next to be tuned, in the order of the states, of one state the one that brings all others nearest to what is
 * known for each second; -1 = none that fits into the seconds that are left. What was begun is gone on with whether it
 * fits or not. */
int64_t wlmi_tuning_cases_next(const wlmi_tuning_case *list, int64_t count, int64_t at_hand, double seconds_left);

/* The part of the time that is i's among those that are not done: in proportion to their distances. */
double wlmi_tuning_cases_share(const wlmi_tuning_case *list, int64_t count, int64_t i, double seconds_left);

#endif
