/* The order in which the tuner measures candidates: the likely best ones first, in case the budget ends the tuning. */
#pragma once

#include <stdint.h>

/* What is expected of a candidate before it is measured. */
typedef struct wlmi_expectation {
  int present, rule; /* a plan would choose it now; a plan would choose it if nothing had been tuned */
  int prepares;
  int doubtful;   /* predicted to be slow: measured last, and not at all if time is short */
  double seconds; /* predicted by a model; 0 = not known */
} wlmi_expectation;

/* The predictions of a model that is near enough to be trusted. */
typedef struct wlmi_doubt {
  double plain, best; /* seconds of the best unprepared candidate, and of the best of all */
  double spread;      /* standard deviation of log(time) around them */
} wlmi_doubt;

/* Marks as doubtful the candidates that are predicted to take more than twice the time of the best of their kind
 * (prepared or unprepared) and lie two spreads above it. Marks at most the `most` slowest, and neither the present
 * choice nor the rule's. Returns how many. */
int64_t wlmi_candidates_doubt(wlmi_expectation *expected, int64_t count, const wlmi_doubt *doubt, int64_t most);

/* order[k] is the index of the candidate that is measured k-th. First come the present choice and the rule's, with
 * which the others compare; then the candidates with a prediction, the fastest first; then the others, shuffled by the
 * seed; then the doubtful ones. */
void wlmi_candidate_order(const wlmi_expectation *expected, int64_t count, uint64_t seed, int64_t *order);
