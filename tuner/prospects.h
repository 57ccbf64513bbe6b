/* Where the next second of measuring teaches the most. */
#ifndef WLM_TUNER_PROSPECTS_H
#define WLM_TUNER_PROSPECTS_H

#include "select/features.h"

/* BEGUN: less than half of its candidates are known. LEAST: half or more, so that the likely best are among them. */
typedef enum wlmi_prospect_state {
  WLM_PROSPECT_BEGUN,
  WLM_PROSPECT_OPEN,
  WLM_PROSPECT_LEAST,
  WLM_PROSPECT_DONE
} wlmi_prospect_state;

/* A matrix at a width that may be tuned. */
typedef struct wlmi_prospect {
  wlmi_prospect_state state;
  wlmi_place place;
  int64_t matrix;
  double making, measuring; /* seconds: for the matrix, once; for all of its candidates */
  double left;              /* the part of them that is to be measured */
  double distance;          /* to the nearest place that is known, WLM_MODEL_FAR at most */
} wlmi_prospect;

/* From what is known before it is made; `left` of its `candidates` are to be measured. */
void wlmi_prospect_make(const wlmi_machine *machine, const wlm_stats *stats, int64_t matrix, int64_t n,
                        int64_t candidates, int64_t left, wlmi_prospect *prospect);
/* After some were measured. */
void wlmi_prospect_update(wlmi_prospect *prospect, int64_t candidates, int64_t left);

/* Something was measured at the place. */
void wlmi_prospects_learn(wlmi_prospect *list, int64_t count, const wlmi_place *place);

/* What i takes while `at_hand` is the matrix that is made. */
double wlmi_prospect_seconds(const wlmi_prospect *prospect, int64_t at_hand);

/* The next to be tuned, in the order of the states, of one state the one that brings all others nearest to what is
 * known for each second; -1 = none that fits into the seconds that are left. What was begun is gone on with whether it
 * fits or not. */
int64_t wlmi_prospects_next(const wlmi_prospect *list, int64_t count, int64_t at_hand, double seconds_left);

/* The part of the time that is i's among those that are not done: in proportion to their distances. */
double wlmi_prospects_share(const wlmi_prospect *list, int64_t count, int64_t i, double seconds_left);

#endif
