/* In which order candidates are measured, so that a tuning which is cut short has seen the likely best ones. */
#ifndef WLM_TUNER_CANDIDATE_ORDER_H
#define WLM_TUNER_CANDIDATE_ORDER_H

#include <stdint.h>

/* What is thought of a candidate before it is measured. */
typedef struct wlm_expectation {
  int present, rule; /* it would be chosen now; it would be if nothing had ever been tuned */
  double seconds;    /* that a model predicts; 0 = nobody can tell */
} wlm_expectation;

/* order[k] is the candidate that is measured as the k-th. The first are the present choice and the rule's, which a
 * model is held against; then those that a model knows, the quickest first; then the others, shuffled by the seed. */
void wlm_candidate_order(const wlm_expectation *expected, int64_t count, uint64_t seed, int64_t *order);

#endif
