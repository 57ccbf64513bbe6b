/* In which order candidates are measured, so that a tuning which is cut short has seen the likely best ones. */
#ifndef WLM_SELECT_ORDER_H
#define WLM_SELECT_ORDER_H

#include <stdint.h>

/* What is thought of a candidate before it is measured. */
typedef struct wlmi_expectation {
  int present, rule; /* it would be chosen now; it would be if nothing had ever been tuned */
  int prepares;
  int doubtful;   /* hardly the best: comes last, and not at all where time is short */
  double seconds; /* that a model predicts; 0 = not known */
} wlmi_expectation;

/* What a model that is trusted predicts. */
typedef struct wlmi_doubt {
  double plain, best; /* seconds of the best that needs no preparing, and of the best of all */
  double spread;      /* of log(time) around them */
} wlmi_doubt;

/* Marks those that are predicted to take twice the best of their kind, with two spreads between; the slowest `most` at
 * most, and neither the present choice nor the rule's. Returns how many. */
int64_t wlmi_candidates_doubt(wlmi_expectation *expected, int64_t count, const wlmi_doubt *doubt, int64_t most);

/* order[k] is the candidate that is measured as the k-th. The first are the present choice and the rule's, which a
 * model is held against; then those that a model knows, the quickest first; then the others, shuffled by the seed; then
 * the doubtful. */
void wlmi_candidate_order(const wlmi_expectation *expected, int64_t count, uint64_t seed, int64_t *order);

#endif
