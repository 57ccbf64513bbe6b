/* Where the next second of measuring teaches the most. */
#ifndef WLM_TUNER_PROSPECTS_H
#define WLM_TUNER_PROSPECTS_H

#include "runtime/dispatch/features.h"

/* BEGUN: less than half of its candidates are known. LEAST: half or more, so that the likely best are among them. */
typedef enum wlm_prospect_state {
  WLM_PROSPECT_BEGUN,
  WLM_PROSPECT_OPEN,
  WLM_PROSPECT_LEAST,
  WLM_PROSPECT_DONE
} wlm_prospect_state;

/* A matrix at a width that may be tuned. */
typedef struct wlm_prospect {
  wlm_prospect_state state;
  wlm_place place;
  int64_t matrix;
  double making, measuring; /* seconds: for the matrix, once; for all of its candidates */
  double left;              /* the part of them that is to be measured */
  double distance;          /* to the nearest place that is known, WLM_MODEL_FAR at most */
} wlm_prospect;

/* From what is known before it is made; `left` of its `candidates` are to be measured. */
void wlm_prospect_make(const wlm_machine *machine, const wlm_stats *stats, int64_t matrix, int64_t n,
                       int64_t candidates, int64_t left, wlm_prospect *prospect);
/* After some were measured. */
void wlm_prospect_update(wlm_prospect *prospect, int64_t candidates, int64_t left);

/* Something was measured at the place. */
void wlm_prospects_learn(wlm_prospect *list, int64_t count, const wlm_place *place);

/* What i takes while `at_hand` is the matrix that is made. */
double wlm_prospect_seconds(const wlm_prospect *prospect, int64_t at_hand);

/* The next to be tuned, in the order of the states, of one state the one that brings all others nearest to what is
 * known for each second; -1 = none that fits into the seconds that are left. What was begun is gone on with whether it
 * fits or not. */
int64_t wlm_prospects_next(const wlm_prospect *list, int64_t count, int64_t at_hand, double seconds_left);

/* The part of the time that is i's among those that are not done: in proportion to their distances. */
double wlm_prospects_share(const wlm_prospect *list, int64_t count, int64_t i, double seconds_left);

#endif
