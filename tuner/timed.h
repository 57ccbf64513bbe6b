/* A variant and its time: of a candidate on one matrix, known from before, predicted, or measured by a search. */
#pragma once

#include <stdint.h>

#include "core/problem/variant.h"

enum { WLMI_PLAIN, WLMI_PREPARED, WLMI_KINDS }; /* whether a candidate must be prepared */

/* When a candidate is measured: the likely best ones first, in case the budget ends the tuning. */
typedef enum wlmi_rank {
  WLMI_RANK_PRESENT,   /* a plan would choose it now, so the others compare with it, */
  WLMI_RANK_RULE,      /* or if nothing had been tuned */
  WLMI_RANK_PREDICTED, /* the fastest first */
  WLMI_RANK_UNKNOWN,
  WLMI_RANK_DOUBTFUL /* predicted to be slow: not at all if time is short; the fastest first */
} wlmi_rank;

typedef struct wlmi_timed {
  double seconds;  /* of one call; 0 = not measured yet; infinite = it failed */
  double expected; /* seconds that a model predicts; 0 = unknown */
  int samples;     /* from which `seconds` was computed */
  int kind;
  int is_known; /* the time is from the store and need not be measured again */
  wlmi_rank rank;
  char variant[WLMI_VARIANT_NAME];
} wlmi_timed;

/* ---- tune_order.c ---- */

/* The predictions of a model that is near enough to be trusted. */
typedef struct wlmi_doubt {
  double best[WLMI_KINDS]; /* seconds of the best unprepared candidate, and of the best of all */
  double spread;           /* standard deviation of log(time) around them */
} wlmi_doubt;

/* Marks as doubtful the candidates that are predicted to take more than twice the time of the best of their kind and
 * lie two spreads above it. Marks at most the `most` slowest, and neither the present choice nor the rule's. Returns
 * how many. */
int64_t wlmi_timed_doubt(wlmi_timed *list, int64_t count, const wlmi_doubt *doubt, int64_t most);
/* Sorts them by rank; of equal rank, those that are not predicted are shuffled by the seed. */
void wlmi_timed_order(wlmi_timed *list, int64_t count, uint64_t seed);
